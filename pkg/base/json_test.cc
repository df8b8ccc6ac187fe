// SPDX-License-Identifier: Apache-2.0
#include "pkg/base/json.h"

#include <string>

#include <gtest/gtest.h>

namespace resmgr {
namespace {

using nlohmann::json;

TEST(JsonTest, ReadsWhatItWrites) {
  const json value = {{"name", "c"}, {"cpus", {1, 2}}, {"none", nullptr}};
  EXPECT_EQ(ParseJson(JsonText(value)), value);
  EXPECT_EQ(JsonText(value), R"({"cpus":[1,2],"name":"c","none":null})");
  EXPECT_EQ(JsonText({{"a", 1}}, 1), "{\n \"a\": 1\n}");
  EXPECT_EQ(OrderedJsonText({{"z", 1}, {"a", 2}}), R"({"z":1,"a":2})");
}

TEST(JsonTest, RefusesWhatIsNotJson) {
  for (const char* text : {"", "{", "[1,]", "{} {}", "nul", "\"\xff\""})
    EXPECT_FALSE(ParseJson(text).has_value()) << text;
}

TEST(JsonTest, DepthIsBounded) {
  const auto nested = [](size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
  };
  EXPECT_TRUE(ParseJson(nested(kDeepestJson)).has_value());
  EXPECT_FALSE(ParseJson(nested(kDeepestJson + 1)).has_value());
  EXPECT_FALSE(ParseJson(nested(1'000'000)).has_value());
}

TEST(JsonTest, BytesThatAreNotUtf8AreReplaced) {
  EXPECT_EQ(JsonText("a\xff"), "\"a\xEF\xBF\xBD\"");
  EXPECT_EQ(OrderedJsonText("\xc3"), "\"\xEF\xBF\xBD\"");
}

TEST(JsonDepthTest, ListsAndObjectsCount) {
  EXPECT_TRUE(IsShallowJson("", 0));
  EXPECT_TRUE(IsShallowJson("7", 0));
  EXPECT_FALSE(IsShallowJson("[]", 0));
  EXPECT_TRUE(IsShallowJson(R"([{"a": []}, {}])", 3));
  EXPECT_FALSE(IsShallowJson(R"([{"a": []}, {}])", 2));
  EXPECT_FALSE(IsShallowJson(std::string(100'000, '['), 1'000));
}

TEST(JsonDepthTest, BracketsInStringsDoNot) {
  EXPECT_TRUE(IsShallowJson(R"(["[{[{"])", 1));
  EXPECT_TRUE(IsShallowJson(R"(["\"[[", "\\"])", 1));
  EXPECT_FALSE(IsShallowJson(R"(["\\", []])", 1));
}

// Brackets that close nothing must not make room for others.
TEST(JsonDepthTest, WhatIsNoJsonGainsNothing) {
  EXPECT_FALSE(IsShallowJson("]]]][[", 1));
}

}  // namespace
}  // namespace resmgr
