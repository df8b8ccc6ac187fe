// SPDX-License-Identifier: Apache-2.0
#include "pkg/docker/json_text.h"

#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace resmgr::docker {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

std::vector<std::pair<std::string, std::string>> Members(std::string_view object) {
  std::vector<std::pair<std::string, std::string>> members;
  ForEachMember(object, [&members](std::string_view name, std::string_view value) {
    members.emplace_back(name, value);
  });
  return members;
}

std::vector<std::string> Elements(std::string_view list) {
  std::vector<std::string> elements;
  ForEachElement(list, [&elements](std::string_view value) { elements.emplace_back(value); });
  return elements;
}

TEST(JsonTextTest, TakesWhatJsonIs) {
  for (const std::string_view text :
       {"null", " true ", "-0.5e+10", R"("a\u00e9\\\"")", "[]", "{}", "[[],{}]", "[1,[2],3]",
        R"({"a":{},"b":[],"c":{"d":1}})", "[ 1 , 2 ]", "\"\xff\xfe\""}) {
    EXPECT_TRUE(CheckJson(text).ok()) << text;
  }
}

TEST(JsonTextTest, RefusesWhatItIsNot) {
  for (const std::string_view text :
       {"",           " ",           "{",     "[",   "[1",    "{\"a\"}", "{\"a\":}",
        "{\"a\":1,}", "[1,]",        "[,1]",  "{,}", "[,]",   "01",      "1.",
        "-",          "1e",          "+1",    "nul", "'a'",   "\"a",     "\"\n\"",
        R"("\x")",    R"("\u12g4")", "{} {}", "[]]", "{a:1}", "[1 2]",   "{\"a\":1 \"b\":2}",
        "[{]}",       "\"\\"}) {
    EXPECT_FALSE(CheckJson(text).ok()) << text;
  }
  const std::string deepest = std::string(kMaxJsonDepth, '[') + std::string(kMaxJsonDepth, ']');
  EXPECT_TRUE(CheckJson(deepest).ok());
  EXPECT_FALSE(CheckJson("[" + deepest + "]").ok());
}

TEST(JsonTextTest, FindsMembersAndElementsWhereTheyLie) {
  EXPECT_THAT(Members(R"({ "a" : 1, "b\"" :{"c": [1, 2]} ,"a":null })"),
              ElementsAre(Pair(R"("a")", "1"), Pair(R"("b\"")", R"({"c": [1, 2]})"),
                          Pair(R"("a")", "null")));
  EXPECT_THAT(Members("{ }"), ElementsAre());
  EXPECT_THAT(Elements(R"([ "a]" ,{"b":[]}, 1.50 ])"),
              ElementsAre(R"("a]")", R"({"b":[]})", "1.50"));
  EXPECT_THAT(Elements("[]"), ElementsAre());
}

TEST(JsonTextTest, DecodesTextsAndNumbers) {
  EXPECT_EQ(DecodeJsonText(R"("a\n\/\u00e9\ud83d\ude00")"), "a\n/\xC3\xA9\xF0\x9F\x98\x80");
  EXPECT_EQ(DecodeJsonText(R"("\ud83dx\udc00")"), "\xEF\xBF\xBDx\xEF\xBF\xBD");
  EXPECT_EQ(DecodeJsonText(EncodeJsonText("a\"\\\x01\xC3\xA9")), "a\"\\\x01\xC3\xA9");
  EXPECT_EQ(DecodeJsonInteger("-12"), -12);
  EXPECT_EQ(DecodeJsonInteger("1.5"), std::nullopt);
  EXPECT_EQ(DecodeJsonInteger("99999999999999999999"), std::nullopt);
}

TEST(JsonTextTest, NamesAreFieldsAsGoReadsThem) {
  EXPECT_TRUE(IsField(R"("CpusetCpus")", "CpusetCpus"));
  EXPECT_TRUE(IsField(R"("cpusetCPUS")", "CpusetCpus"));
  EXPECT_TRUE(IsField(R"("\u0043pu\u017fetCpus")", "CpusetCpus"));
  EXPECT_TRUE(IsField("\"Networ\xE2\x84\xAAMode\"", "NetworkMode"));
  EXPECT_FALSE(IsField(R"("CpusetCpu")", "CpusetCpus"));
}

}  // namespace
}  // namespace resmgr::docker
