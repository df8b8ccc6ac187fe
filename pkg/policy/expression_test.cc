// SPDX-License-Identifier: Apache-2.0
#include "pkg/policy/expression.h"

#include <optional>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/config/yaml_reader.h"

namespace resmgr {
namespace {

using testing::HasSubstr;

StatusOr<Expression> Parse(std::string_view text) {
  RESMGR_ASSIGN_OR_RETURN(const ConfigNode node, ParseYaml(text, "expression"));
  return Expression::Parse(node);
}

bool HoldsFor(std::string_view text, std::optional<std::string_view> value) {
  const StatusOr<Expression> expression = Parse(text);
  EXPECT_TRUE(expression.ok()) << expression.status();
  return expression.ok() && expression->HoldsFor(value);
}

TEST(ExpressionOperatorsTest, EachNameIsItsOperator) {
  struct Row {
    const char* name;
    const char* values;
    bool alike;  // holds for "ab"
    bool same;   // holds for "a*"
    bool without;
  };
  for (const Row& row : {Row{"Equals", "['a*']", false, true, false},
                         {"NotEqual", "['a*']", true, false, true},
                         {"In", "['a*']", false, true, false},
                         {"NotIn", "['a*']", true, false, true},
                         {"Exists", "[]", true, true, false},
                         {"NotExists", "[]", false, false, true},
                         {"NotExist", "[]", false, false, true},
                         {"alwaystrue", "[]", true, true, true},
                         {"Matches", "['a*']", true, true, false},
                         {"MatchesNot", "['a*']", false, false, true},
                         {"MatchesAny", "['a*']", true, true, false},
                         {"matchesnone", "['a*']", false, false, true}}) {
    const std::string text =
        fmt::format("{{key: name, operator: {}, values: {}}}", row.name, row.values);
    EXPECT_EQ(HoldsFor(text, "ab"), row.alike) << text;
    EXPECT_EQ(HoldsFor(text, "a*"), row.same) << text;
    EXPECT_EQ(HoldsFor(text, std::nullopt), row.without) << text;
  }
}

TEST(ExpressionValuesTest, AStarIsAnyValue) {
  EXPECT_TRUE(HoldsFor("{key: labels/a, operator: In, values: ['*']}", "x"));
  EXPECT_TRUE(HoldsFor("{key: labels/a, operator: Equals, values: ['*']}", "x"));
  EXPECT_FALSE(HoldsFor("{key: labels/a, operator: NotIn, values: [b, '*']}", "x"));
  EXPECT_FALSE(HoldsFor("{key: labels/a, operator: In, values: ['*']}", std::nullopt));
  EXPECT_TRUE(HoldsFor("{key: labels/a, operator: NotIn, values: ['*']}", std::nullopt));
  EXPECT_FALSE(HoldsFor("{key: labels/a, operator: In, values: ['a*']}", "ab")) << "no glob";
}

TEST(ExpressionValuesTest, EachIsOneText) {
  EXPECT_TRUE(HoldsFor("{key: name, operator: In, values: a}", "a"));
  EXPECT_TRUE(HoldsFor("{key: name, operator: In, values: ['']}", ""));
  for (const char* const values : {"[a, b: c]", "[[a]]", "[a, ~]", "{a: b}"}) {
    const StatusOr<Expression> read =
        Parse(fmt::format("{{key: name, operator: NotIn, values: {}}}", values));
    ASSERT_FALSE(read.ok()) << values;
    EXPECT_THAT(std::string(Message(read.status())), HasSubstr("list of single values")) << values;
  }
}

TEST(ExpressionValuesTest, GlobsHaveClasses) {
  EXPECT_TRUE(HoldsFor("{key: name, operator: Matches, values: ['web-[0-9]*']}", "web-12"));
  EXPECT_FALSE(HoldsFor("{key: name, operator: Matches, values: ['web-[0-9]']}", "web-x"));
  EXPECT_TRUE(HoldsFor("{key: name, operator: Matches, values: ['*[^ab]']}", "abc"));
  EXPECT_FALSE(HoldsFor("{key: name, operator: Matches, values: ['*[^ab]']}", "ca"));
  EXPECT_TRUE(HoldsFor("{key: name, operator: MatchesNone, values: ['[xy]?']}", "ab"));
  EXPECT_THAT(
      std::string(Message(Parse("{key: name, operator: Matches, values: ['web-[0-9']}").status())),
      HasSubstr("web-[0-9"));
}

TEST(ExpressionKeysTest, UnknownOnesAreErrors) {
  for (const char* const key : {"namespaces", "pod", "pod/labels", "container/name", "labels/",
                                ":pod/name:nam", "pod/tags/a"}) {
    EXPECT_FALSE(Parse(fmt::format("{{key: '{}', operator: Exists}}", key)).ok()) << key;
  }
  for (const char* const key : {"name", "pod/qosclass", "labels/a/b", "tags/x", ":pod/name:name",
                                ",-pod/name,labels/x", "pod/uid"}) {
    EXPECT_TRUE(Parse(fmt::format("{{key: '{}', operator: Exists}}", key)).ok()) << key;
  }
}

TEST(ExpressionKeysTest, FieldsAreReadWithoutRegardToCase) {
  EXPECT_TRUE(HoldsFor("{Key: name, Operator: In, Values: [a]}", "a"));
  EXPECT_FALSE(Parse("{Key: name, key: uid, operator: Exists}").ok());
}

}  // namespace
}  // namespace resmgr
