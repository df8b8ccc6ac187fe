// SPDX-License-Identifier: Apache-2.0
#include "pkg/config/map_reader.h"

#include <algorithm>
#include <chrono>
#include <map>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/config/yaml_reader.h"

namespace resmgr {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Pair;

struct Values {
  bool flag = true;
  int64_t number = 7;
  std::string text = "default";
  std::string choice = "table";
  std::vector<std::string> list = {"default"};
  std::string upper;
  bool inner = false;
  std::chrono::milliseconds time{90'000};
  std::map<std::string, bool> each;
};

Status ReadValues(std::string_view yaml, Values& values) {
  const StatusOr<ConfigNode> root = ParseYaml(yaml, "f");
  if (!root.ok()) return root.status();
  MapReader reader(*root, "top");
  reader.Bool("Flag", values.flag);
  reader.Int("Number", 1, 10, values.number);
  reader.Text("Text", values.text);
  reader.Choice("Choice", {"table", "json"}, values.choice);
  reader.List("List", values.list);
  reader.Parse("Upper", [&values](std::string_view text, const std::string& origin) -> Status {
    values.upper = fmt::format("{} from {}", text, origin);
    return text == "bad" ? InvalidArgument("is bad") : OkStatus();
  });
  reader.Map("Inner", [&values](MapReader& inner) { inner.Bool("Flag", values.inner); });
  reader.Duration("Time", std::chrono::seconds(1), std::chrono::hours(1), values.time);
  reader.Each("Each", [&values](std::string_view name, MapReader& entry) -> Status {
    if (name.empty()) return InvalidArgument("a name is empty");
    entry.Bool("Flag", values.each[std::string(name)]);
    return OkStatus();
  });
  return reader.Finish();
}

std::string ValuesError(std::string_view yaml) {
  Values values;
  const Status status = ReadValues(yaml, values);
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << yaml;
  return std::string(Message(status));
}

TEST(MapReaderTest, ReadsTimes) {
  Values values;
  ASSERT_TRUE(ReadValues("Time: 1m30s500ms", values).ok());
  EXPECT_EQ(values.time, std::chrono::milliseconds(90'500));
  ASSERT_TRUE(ReadValues("Time:", values).ok());
  EXPECT_EQ(values.time, std::chrono::milliseconds(90'500));
  for (const char* const text : {"999ms", "61m", "5"}) {
    EXPECT_EQ(ValuesError(fmt::format("Time: {}", text)),
              fmt::format("f:1: top.Time: \"{}\" is not a time from 1s to 1h, as in 1m30s", text));
  }
}

TEST(MapReaderTest, ReadsNamesThatTheUserChooses) {
  Values values;
  ASSERT_TRUE(ReadValues("each: {a: {flag: true}, A: , b: {}}", values).ok());
  EXPECT_THAT(values.each, ElementsAre(Pair("A", false), Pair("a", true), Pair("b", false)));
  EXPECT_EQ(ValuesError("Each: {'': {Flag: 7}, x: {Flg: true}}\n"),
            "f:1: top.Each: a name is empty\n"
            "f:1: top.Each.x.Flg: unknown key; did you mean Flag?");
  EXPECT_EQ(ValuesError("Each: {x: 7}"), "f:1: top.Each.x: must be a map, not a single value");
  EXPECT_EQ(ValuesError("Each: [x]"), "f:1: top.Each: must be a map, not a list");
}

TEST(MapReaderTest, ReadsEveryTypeWithoutRegardToCaseOfKeys) {
  Values values;
  ASSERT_TRUE(ReadValues("flag: no\nNUMBER: 3\ntext: x\nchoice: JSON\nlist: [a, b]\nupper: c\n"
                         "inner: {FLAG: true}\n",
                         values)
                  .ok());
  EXPECT_FALSE(values.flag);
  EXPECT_EQ(values.number, 3);
  EXPECT_EQ(values.text, "x");
  EXPECT_EQ(values.choice, "json");
  EXPECT_THAT(values.list, ElementsAre("a", "b"));
  EXPECT_EQ(values.upper, "c from f:6: top.Upper");
  EXPECT_TRUE(values.inner);
}

TEST(MapReaderTest, KeepsDefaultsForAbsentAndNullKeys) {
  for (const char* yaml : {"", "{}", "Flag:\nNumber:\nText: ~\nChoice:\nList:\nUpper:\nInner:\n"}) {
    Values values;
    ASSERT_TRUE(ReadValues(yaml, values).ok()) << yaml;
    EXPECT_TRUE(values.flag);
    EXPECT_EQ(values.number, 7);
    EXPECT_EQ(values.text, "default");
    EXPECT_EQ(values.choice, "table");
    EXPECT_THAT(values.list, ElementsAre("default"));
    EXPECT_EQ(values.upper, "");
  }
}

TEST(MapReaderTest, ASingleValueIsAListOfOne) {
  Values values;
  ASSERT_TRUE(ReadValues("List: a,b", values).ok());
  EXPECT_THAT(values.list, ElementsAre("a,b"));
}

TEST(MapReaderTest, UnknownKeysGetTheClosestOrAllNames) {
  EXPECT_EQ(ValuesError("Text: x\nFlagg: true\n"),
            "f:2: top.Flagg: unknown key; did you mean Flag?");
  EXPECT_EQ(ValuesError("Inner:\n  other: 1\n"),
            "f:2: top.Inner.other: unknown key; known here: Flag");
}

TEST(MapReaderTest, WrongTypesNameBoth) {
  EXPECT_EQ(ValuesError("Flag: [1]"), "f:1: top.Flag: must be a single value, not a list");
  EXPECT_EQ(ValuesError("Inner: 1"), "f:1: top.Inner: must be a map, not a single value");
  EXPECT_EQ(ValuesError("List: {a: b}"),
            "f:1: top.List: must be a single value or a list of single values");
  EXPECT_EQ(ValuesError("List: [[a]]"),
            "f:1: top.List: must be a single value or a list of single values");
  EXPECT_EQ(ValuesError("- a"), "f:1: top: must be a map, not a list");
}

TEST(MapReaderTest, ImpossibleValuesSayWhatIsPossible) {
  EXPECT_EQ(ValuesError("Flag: perhaps"), "f:1: top.Flag: \"perhaps\" is not true or false");
  EXPECT_EQ(ValuesError("Number: 11"),
            "f:1: top.Number: \"11\" is not a whole number from 1 to 10");
  EXPECT_EQ(ValuesError("Number: 1.5"),
            "f:1: top.Number: \"1.5\" is not a whole number from 1 to 10");
  EXPECT_EQ(ValuesError("Choice: xml"), "f:1: top.Choice: \"xml\" is not one of table, json");
  EXPECT_EQ(ValuesError("Upper: bad"), "f:1: top.Upper: is bad");
}

TEST(MapReaderTest, TheSameKeyInAnotherCaseIsTwice) {
  EXPECT_EQ(ValuesError("Flag: yes\nflag: no\n"), "f:2: top.Flag: is given twice");
}

TEST(MapReaderTest, AllErrorsAreTold) {
  EXPECT_EQ(ValuesError("Flag: perhaps\nNumber: 99\nUpper: bad\nInner: {Flag: 2, x: 1}\ny: 1\n"),
            "f:1: top.Flag: \"perhaps\" is not true or false\n"
            "f:2: top.Number: \"99\" is not a whole number from 1 to 10\n"
            "f:3: top.Upper: is bad\n"
            "f:4: top.Inner.Flag: \"2\" is not true or false\n"
            "f:4: top.Inner.x: unknown key; known here: Flag\n"
            "f:5: top.y: unknown key; known here: Flag, Number, Text, Choice, List, Upper, "
            "Inner, Time, Each");
}

TEST(MapReaderTest, OfThousandsOfErrorsSomeAreTold) {
  std::string text;
  for (int i = 0; i < 9000; ++i)
    text += fmt::format("x{}: 1\n", i);
  const std::string error = ValuesError(text);
  EXPECT_EQ(std::count(error.begin(), error.end(), '\n'), 20);
  EXPECT_THAT(error, HasSubstr("f:20: "));
  EXPECT_THAT(error, EndsWith("there are more mistakes, which are not listed"));
}

TEST(MapReaderTest, CompletesWhatStandsThereWithTheDefaults) {
  const auto complete = [](std::string_view yaml) {
    const StatusOr<ConfigNode> root = ParseYaml(yaml, "f");
    ConfigNode node;
    MapReader reader(*root, "top", &node);
    Values values;
    reader.Bool("Flag", values.flag);
    reader.Int("Number", 1, 10, values.number);
    reader.Choice("Choice", {"table", "json"}, values.choice);
    reader.List("List", values.list);
    reader.Map("Inner", [&values](MapReader& inner) { inner.Bool("Flag", values.inner); });
    EXPECT_TRUE(reader.Finish().ok());
    std::string text;
    for (const ConfigNode::Entry& entry : node.entries) {
      text += entry.key + "=" + entry.value.text;
      for (const ConfigNode& item : entry.value.items)
        text += item.text + "/";
      for (const ConfigNode::Entry& inner : entry.value.entries)
        text += inner.key + "=" + inner.value.text;
      text += " ";
    }
    return text;
  };
  EXPECT_EQ(complete(""), "Flag=true Number=7 Choice=table List=default/ Inner=Flag=false ");
  EXPECT_EQ(complete("flag: no\nlist: [a, b]\ninner: {flag: 1}"),
            "Flag=false Number=7 Choice=table List=a/b/ Inner=Flag=true ");
}

}  // namespace
}  // namespace resmgr
