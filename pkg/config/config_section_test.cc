// SPDX-License-Identifier: Apache-2.0
#include "pkg/config/config_section.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "pkg/base/failure_policy.h"
#include "pkg/config/known_words.h"
#include "pkg/config/print_config.h"
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
  std::optional<std::chrono::milliseconds> rest;
  std::map<std::string, bool, std::less<>> each;
  FailurePolicy policy = FailurePolicy::kFail;
};

void DescribeValues(ConfigSection& section, Values& values) {
  section.Bool("Flag", values.flag, "whether it is on");
  section.Int("Number", 1, 10, values.number, "how many");
  section.Text("Text", values.text, "what it says");
  section.Choice(
      "Choice",
      std::initializer_list<ConfigWord<std::string>>{{"table", "table"}, {"json", "json"}},
      values.choice, "how it looks");
  section.List("List", values.list, "what there is");
  section.Parse(
      "Upper", values.upper,
      [&values](std::string_view text) -> Status {
        values.upper = text;
        return text == "bad" ? InvalidArgument("is bad") : OkStatus();
      },
      "with a syntax of its own");
  section.Map("Inner", [&values](ConfigSection& inner) {
    inner.Bool("Flag", values.inner, "whether it is on inside");
  });
  section.Duration("Time", std::chrono::seconds(1), std::chrono::hours(1), values.time, "how long",
                   "never");
  section.Duration("Rest", std::chrono::seconds(1), std::chrono::hours(1), values.rest,
                   "how long it rests");
  section.Each<bool>(
      "Each", "NAME", values.each,
      [](std::string_view name) -> Status {
        return name.empty() ? InvalidArgument("a name is empty") : OkStatus();
      },
      [](std::string_view, ConfigSection& entry, bool& flag) {
        entry.Bool("Flag", flag, "whether this one is on");
        return OkStatus();
      },
      "one for each");
  section.Choice("Policy", {FailurePolicy::kFail, FailurePolicy::kIgnore}, values.policy,
                 "what happens if it fails");
  section.Refuse("Elsewhere", "belongs elsewhere");
}

Status ReadValues(std::string_view yaml, Values& values) {
  const StatusOr<ConfigNode> root = ParseYaml(yaml, "f");
  if (!root.ok()) return root.status();
  ConfigSection reader(*root, "top");
  DescribeValues(reader, values);
  return reader.Finish();
}

std::vector<ConfigKey> Described(Values values) {
  std::vector<ConfigKey> keys;
  ConfigSection writer(keys);
  DescribeValues(writer, values);
  EXPECT_EQ(writer.Finish(), OkStatus());
  return keys;
}

std::string ValuesError(std::string_view yaml) {
  Values values;
  const Status status = ReadValues(yaml, values);
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << yaml;
  return std::string(Message(status));
}

TEST(ConfigSectionTest, ReadsTimes) {
  Values values;
  ASSERT_TRUE(ReadValues("Time: 1m30s500ms", values).ok());
  EXPECT_EQ(values.time, std::chrono::milliseconds(90'500));
  ASSERT_TRUE(ReadValues("Time:", values).ok());
  EXPECT_EQ(values.time, std::chrono::milliseconds(90'500));
  ASSERT_TRUE(ReadValues("Time: never\nRest: 2s", values).ok());
  EXPECT_EQ(values.time.count(), 0);
  EXPECT_EQ(values.rest, std::chrono::seconds(2));
  EXPECT_EQ(ValuesError("Rest: never"),
            "f:1: top.Rest: \"never\" is not a time from 1s to 1h, as in 1m30s");
  for (const char* const text : {"999ms", "61m", "5"}) {
    EXPECT_EQ(ValuesError(fmt::format("Time: {}", text)),
              fmt::format("f:1: top.Time: \"{}\" is not a time from 1s to 1h, as in 1m30s, and not "
                          "\"never\"",
                          text));
  }
}

TEST(ConfigSectionTest, ReadsNamesThatTheUserChooses) {
  Values values;
  ASSERT_TRUE(ReadValues("each: {a: {flag: true}, A: , b: {}}", values).ok());
  EXPECT_THAT(values.each, ElementsAre(Pair("A", false), Pair("a", true), Pair("b", false)));
  EXPECT_EQ(ValuesError("Each: {'': {Flag: 7}, x: {Flg: true}}\n"),
            "f:1: top.Each: a name is empty\n"
            "f:1: top.Each.x.Flg: unknown key; did you mean Flag?");
  EXPECT_EQ(ValuesError("Each: {x: 7}"), "f:1: top.Each.x: must be a map, not a single value");
  EXPECT_EQ(ValuesError("Each: [x]"), "f:1: top.Each: must be a map, not a list");
}

TEST(ConfigSectionTest, ReadsEveryTypeWithoutRegardToCaseOfKeys) {
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
  EXPECT_EQ(values.upper, "c");
  EXPECT_TRUE(values.inner);
}

TEST(ConfigSectionTest, KeepsDefaultsForAbsentAndNullKeys) {
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

TEST(ConfigSectionTest, ASingleValueIsAListOfOne) {
  Values values;
  ASSERT_TRUE(ReadValues("List: a,b", values).ok());
  EXPECT_THAT(values.list, ElementsAre("a,b"));
}

TEST(ConfigSectionTest, UnknownKeysGetTheClosestOrAllNames) {
  EXPECT_EQ(ValuesError("Text: x\nFlagg: true\n"),
            "f:2: top.Flagg: unknown key; did you mean Flag?");
  EXPECT_EQ(ValuesError("Inner:\n  other: 1\n"),
            "f:2: top.Inner.other: unknown key; known here: Flag");
}

TEST(ConfigSectionTest, WrongTypesNameBoth) {
  EXPECT_EQ(ValuesError("Flag: [1]"), "f:1: top.Flag: must be a single value, not a list");
  EXPECT_EQ(ValuesError("Inner: 1"), "f:1: top.Inner: must be a map, not a single value");
  EXPECT_EQ(ValuesError("List: {a: b}"),
            "f:1: top.List: must be a single value or a list of single values");
  EXPECT_EQ(ValuesError("List: [[a]]"),
            "f:1: top.List: must be a single value or a list of single values");
  EXPECT_EQ(ValuesError("- a"), "f:1: top: must be a map, not a list");
}

TEST(ConfigSectionTest, ImpossibleValuesSayWhatIsPossible) {
  EXPECT_EQ(ValuesError("Flag: perhaps"), "f:1: top.Flag: \"perhaps\" is not true or false");
  EXPECT_EQ(ValuesError("Number: 11"),
            "f:1: top.Number: \"11\" is not a whole number from 1 to 10");
  EXPECT_EQ(ValuesError("Number: 1.5"),
            "f:1: top.Number: \"1.5\" is not a whole number from 1 to 10");
  EXPECT_EQ(ValuesError("Choice: xml"), "f:1: top.Choice: \"xml\" is not one of table, json");
  EXPECT_EQ(ValuesError("Upper: bad"), "f:1: top.Upper: is bad");
}

TEST(ConfigSectionTest, TheSameKeyInAnotherCaseIsTwice) {
  EXPECT_EQ(ValuesError("Flag: yes\nflag: no\n"), "f:2: top.Flag: is given twice");
}

TEST(ConfigSectionTest, AllErrorsAreTold) {
  EXPECT_EQ(ValuesError("Flag: perhaps\nNumber: 99\nUpper: bad\nInner: {Flag: 2, x: 1}\ny: 1\n"),
            "f:1: top.Flag: \"perhaps\" is not true or false\n"
            "f:2: top.Number: \"99\" is not a whole number from 1 to 10\n"
            "f:3: top.Upper: is bad\n"
            "f:4: top.Inner.Flag: \"2\" is not true or false\n"
            "f:4: top.Inner.x: unknown key; known here: Flag\n"
            "f:5: top.y: unknown key; known here: Flag, Number, Text, Choice, List, Upper, "
            "Inner, Time, Rest, Each, Policy, Elsewhere");
}

TEST(ConfigSectionTest, OfThousandsOfErrorsSomeAreTold) {
  std::string text;
  for (int i = 0; i < 9000; ++i)
    text += fmt::format("x{}: 1\n", i);
  const std::string error = ValuesError(text);
  EXPECT_EQ(std::count(error.begin(), error.end(), '\n'), 20);
  EXPECT_THAT(error, HasSubstr("f:20: "));
  EXPECT_THAT(error, EndsWith("there are more mistakes, which are not listed"));
}

TEST(ConfigSectionTest, MistypedWordsGetTheClosestOne) {
  EXPECT_EQ(ValuesError("Choice: jsonn"),
            "f:1: top.Choice: \"jsonn\" is not one of table, json; did you mean json?");
  EXPECT_EQ(ValuesError("Policy: ignor"),
            "f:1: top.Policy: \"ignor\" is not one of fail, ignore; did you mean ignore?");
  EXPECT_EQ(NotOneOf("none", {"", "sink", "isolate"}), "\"none\" is not one of sink, isolate")
      << "no empty word";
}

TEST(ConfigSectionTest, KeysThatBelongElsewhereSayWhere) {
  EXPECT_EQ(ValuesError("elsewhere: 1"), "f:1: top.Elsewhere: belongs elsewhere");
}

TEST(ConfigSectionTest, PrintsEveryKeyWithItsValue) {
  EXPECT_EQ(PrintNode(ValuesOf(Described({}))), R"(Flag: true
Number: 7
Text: default
Choice: table
List:
  - default
Upper: ""
Inner:
  Flag: false
Time: 90s
Each: {}
Policy: fail
)");
  Values values;
  ASSERT_TRUE(ReadValues("flag: no\nlist: [a, b]\ninner: {flag: 1}\ntext: 'yes'\ntime: never\n"
                         "rest: 1m\neach: {A: {flag: on}}\npolicy: Ignore",
                         values)
                  .ok());
  EXPECT_EQ(PrintNode(ValuesOf(Described(values))), R"(Flag: false
Number: 7
Text: "yes"
Choice: table
List:
  - a
  - b
Upper: ""
Inner:
  Flag: true
Time: never
Rest: 1m
Each:
  A:
    Flag: true
Policy: ignore
)");
}

TEST(ConfigSectionTest, AMapWithoutValuesIsNotPrinted) {
  std::vector<ConfigKey> keys;
  ConfigSection writer(keys);
  std::optional<std::chrono::milliseconds> unset;
  writer.Map("Inner", [&unset](ConfigSection& inner) {
    inner.Duration("Rest", std::chrono::seconds(1), std::chrono::hours(1), unset, "how long");
  });
  EXPECT_THAT(ValuesOf(keys).entries, testing::IsEmpty());
}

// A list of maps, and values that are kept as they are.
struct Lists {
  std::map<std::string, ConfigNode, std::less<>> raw;
  std::vector<Values> items;
};

void DescribeLists(ConfigSection& section, Lists& lists) {
  section.Raw("Raw", lists.raw, "anything");
  Values initial;
  initial.number = 5;
  section.Items<Values>(
      "Items", lists.items, initial,
      [](ConfigSection& item, Values& values) {
        item.Int("Number", 1, 10, values.number, "how many");
        if (values.number == 9) item.Fail("Number", "is 9");
        if (values.number == 8) item.Fail("Other", "is missing");
      },
      "several");
}

StatusOr<Lists> ReadLists(std::string_view text, std::vector<ConfigKey>* keys = nullptr) {
  const StatusOr<ConfigNode> node = ParseYaml(text, "f");
  return ReadSection<Lists>(&*node, "top", &DescribeLists, keys);
}

TEST(ConfigSectionTest, ListsOfMapsHaveTheirItems) {
  std::vector<ConfigKey> keys;
  const StatusOr<Lists> lists = ReadLists("items: [{number: 3}, {}]\nraw: {a: [b]}", &keys);
  ASSERT_TRUE(lists.ok()) << lists.status();
  ASSERT_EQ(lists->items.size(), 2U);
  EXPECT_EQ(lists->items[0].number, 3);
  EXPECT_EQ(lists->items[1].number, 5) << "as the initial item";
  EXPECT_EQ(PrintNode(ValuesOf(keys)),
            "Raw:\n  a:\n    - b\nItems:\n  -\n    Number: 3\n  -\n    Number: 5\n");
  EXPECT_EQ(LeavesOf(keys)[2].path, "Items[].Number");
  const auto schema = nlohmann::json::parse(ConfigSchema(keys))["properties"];
  EXPECT_EQ(schema["Items"]["items"]["properties"]["Number"]["maximum"], 10);
  EXPECT_FALSE(schema["Raw"].contains("type"));
  EXPECT_TRUE(ReadLists("items:")->items.empty());
}

TEST(ConfigSectionTest, MistakesInListsOfMapsHaveTheirPlaces) {
  const auto error = [](std::string_view text) {
    return std::string(Message(ReadLists(text).status()));
  };
  EXPECT_EQ(error("items: {a: 1}"), "f:1: top.Items: must be a list, not a map");
  EXPECT_EQ(error("items: [{}, 5]"), "f:1: top.Items[1]: must be a map, not a single value");
  EXPECT_EQ(error("items:\n- number: 11\n- nummer: 1\n"),
            "f:2: top.Items[0].Number: \"11\" is not a whole number from 1 to 10\n"
            "f:3: top.Items[1].nummer: unknown key; did you mean Number?");
  EXPECT_EQ(error("items:\n-\n  number: 9\n"), "f:3: top.Items[0].Number: is 9");
  EXPECT_EQ(error("items: [{number: 8}]"), "f:1: top.Items[0].Other: is missing");
}

TEST(ConfigSectionTest, LeavesHaveThePathsOfTheirKeys) {
  const std::vector<ConfigKey> keys = Described({});
  std::vector<std::string> paths;
  for (const ConfigLeaf& leaf : LeavesOf(keys))
    paths.push_back(leaf.path);
  EXPECT_THAT(paths, ElementsAre("Flag", "Number", "Text", "Choice", "List", "Upper", "Inner.Flag",
                                 "Time", "Rest", "Each", "Each.NAME.Flag", "Policy"));
}

TEST(ConfigSectionTest, SchemaHasTypesLimitsAndHelp) {
  const auto schema = nlohmann::json::parse(ConfigSchema(Described({})));
  EXPECT_EQ(schema["additionalProperties"], false);
  const auto& keys = schema["properties"];
  EXPECT_EQ(keys.size(), 11U);
  EXPECT_EQ(keys["Flag"],
            nlohmann::json::parse(R"({"type": "boolean", "description": "whether it is on"})"));
  EXPECT_EQ(keys["Number"]["minimum"], 1);
  EXPECT_EQ(keys["Number"]["maximum"], 10);
  EXPECT_EQ(keys["Time"]["pattern"], "^(never|(([0-9]+[.]?[0-9]*|[.][0-9]+)(h|m|s|ms))+)$");
  EXPECT_EQ(keys["Choice"]["enum"], nlohmann::json({"table", "json"}));
  EXPECT_EQ(keys["Inner"]["properties"]["Flag"]["type"], "boolean");
  EXPECT_EQ(keys["Each"]["additionalProperties"]["properties"]["Flag"]["type"], "boolean");
  EXPECT_EQ(keys["Policy"]["enum"], nlohmann::json({"fail", "ignore"}));
}

}  // namespace
}  // namespace resmgr
