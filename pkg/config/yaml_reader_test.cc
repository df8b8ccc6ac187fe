// SPDX-License-Identifier: Apache-2.0
#include "pkg/config/yaml_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/config/config_node.h"
#include "test/support/status_matchers.h"

namespace resmgr {
namespace {

using test::Must;
using testing::HasSubstr;
using testing::StartsWith;

ConfigNode Yaml(std::string_view text) {
  StatusOr<ConfigNode> node = ParseYaml(text, "test.yaml");
  EXPECT_TRUE(node.ok()) << Describe(node.status());
  return node.ok() ? *node : ConfigNode{};
}

std::string YamlError(std::string_view text) {
  const Status status = ParseYaml(text, "test.yaml").status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  return std::string(Message(status));
}

TEST(YamlReaderTest, ReadsMapsListsAndScalarsWithTheirPlaces) {
  const ConfigNode root = Yaml("a: 1\nb:\n  - x\n  - {c: 'null'}\n");
  ASSERT_EQ(root.kind, ConfigNode::Kind::kMap);
  ASSERT_EQ(root.entries.size(), 2U);
  EXPECT_EQ(root.entries[0].key, "a");
  EXPECT_EQ(root.entries[0].value.text, "1");
  EXPECT_EQ(root.entries[0].value.column, 4);
  const ConfigNode& list = root.entries[1].value;
  ASSERT_EQ(list.kind, ConfigNode::Kind::kList);
  ASSERT_EQ(list.items.size(), 2U);
  EXPECT_EQ(Where(list.items[0]), "test.yaml:3");
  const ConfigNode& quoted = list.items[1].entries[0].value;
  EXPECT_EQ(quoted.kind, ConfigNode::Kind::kScalar);
  EXPECT_EQ(quoted.text, "null");
  EXPECT_TRUE(quoted.quoted);
}

TEST(YamlReaderTest, NothingIsNull) {
  for (const char* text : {"", "\n", "# only a comment\n", "---\n", "~", "null"}) {
    EXPECT_EQ(Yaml(text).kind, ConfigNode::Kind::kNull) << text;
  }
  EXPECT_EQ(Yaml("a:\n").entries[0].value.kind, ConfigNode::Kind::kNull);
}

TEST(YamlReaderTest, ReadsJsonAndByteOrderMark) {
  EXPECT_EQ(Yaml(R"({"policy": {"Active": "static"}})").entries[0].value.entries[0].value.text,
            "static");
  EXPECT_EQ(Yaml("\xef\xbb\xbf"
                 "a: b\r\n")
                .entries[0]
                .value.text,
            "b");
}

TEST(YamlReaderTest, AliasesAreExpanded) {
  const ConfigNode root = Yaml("a: &x {k: v}\nb: *x\n");
  EXPECT_EQ(root.entries[1].value.entries[0].value.text, "v");
  EXPECT_EQ(Yaml("&x a: v\nb: *x\n").entries[1].value.text, "a") << "of a key";
}

// Else the map would lack keys in silence where unknown keys are names, or are ignored.
TEST(YamlReaderTest, RefusesMergeKeys) {
  EXPECT_EQ(YamlError("a: &x {k: v}\nb:\n  <<: *x\n"),
            "test.yaml:3: merge keys (<<) are not read: write the keys themselves");
  EXPECT_EQ(Yaml("'<<': 1\n").entries[0].key, "<<");
  EXPECT_EQ(Yaml("a: <<\n").entries[0].value.text, "<<");
}

TEST(YamlReaderTest, SyntaxErrorsHaveTheirLine) {
  EXPECT_THAT(YamlError("a: b\nc: [1, 2\n"), StartsWith("test.yaml:"));
  EXPECT_THAT(YamlError("a: b\n  c: d\n"), StartsWith("test.yaml:2: "));
}

TEST(YamlReaderTest, RefusesWhatIsAmbiguous) {
  EXPECT_EQ(YamlError("a: 1\nb: 2\na: 3\n"), "test.yaml:3: duplicate key \"a\"");
  EXPECT_THAT(YamlError("[a]: 1\n"), HasSubstr("a key must be a single value"));
  EXPECT_THAT(YamlError("null: 1\n"), HasSubstr("null has to be in quotes"));
  EXPECT_EQ(YamlError("a: 1\n---\nb: 2\n"), "test.yaml:2: only one document is allowed");
}

// As editors and templates leave it.
TEST(YamlReaderTest, AnEmptyDocumentAtTheEndIsNone) {
  EXPECT_EQ(Yaml("a: 1\n---\n").entries[0].key, "a");
  EXPECT_EQ(Yaml("---\na: 1\n---\n# nothing\n...\n").entries[0].key, "a");
  EXPECT_EQ(YamlError("a: 1\n---\n---\nb\n"), "test.yaml:3: only one document is allowed");
  EXPECT_EQ(YamlError("a: 1\n---\n[b]\n"), "test.yaml:2: only one document is allowed");
}

// Editors show them as spaces.
TEST(YamlReaderTest, NoBreakSpacesInKeysAreNamed) {
  EXPECT_EQ(YamlError("policy:\n\u00a0 Active: static\n"),
            "test.yaml:2: the key has a no-break space (U+00A0), which does not indent in YAML: "
            "write spaces");
  EXPECT_EQ(Yaml("'a\u00a0b': 1\n").entries[0].key, "a\u00a0b") << "in quotes it is meant";
}

TEST(YamlReaderTest, WrongIndentationIsCalledSo) {
  EXPECT_THAT(YamlError("policy:\n  Active: static\n ReservedResources: 1\n"),
              HasSubstr("test.yaml:3: wrong indentation: this line belongs neither to the keys"));
  EXPECT_THAT(YamlError("a:\n  - 1\n  b: 2\n"), HasSubstr("wrong indentation"));
}

TEST(YamlReaderTest, RefusesDeepNesting) {
  const auto nested = [](size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
  };
  EXPECT_TRUE(ParseYaml(nested(64), "").ok());
  EXPECT_THAT(YamlError(nested(65)), HasSubstr("nested too deeply"));
  EXPECT_THAT(YamlError(nested(10'000)), HasSubstr("nested too deeply"));
  std::string block;
  for (size_t i = 0; i < 100; ++i)
    block += std::string(i, ' ') + "a:\n";
  EXPECT_THAT(YamlError(block), HasSubstr("nested too deeply"));
  EXPECT_THAT(YamlError(std::string(10'001, '[')), StartsWith("test.yaml:1: "));
}

TEST(YamlReaderTest, RefusesAliasBombs) {
  std::string many = "a0: &a0 [x]\n";
  for (int i = 1; i < 30; ++i) {
    many += fmt::format("a{}: &a{} [*a{}, *a{}, *a{}, *a{}]\n", i, i, i - 1, i - 1, i - 1, i - 1);
  }
  EXPECT_THAT(YamlError(many), HasSubstr("too many values"));
  std::string wide = fmt::format("a: &a {}\nb: [*a", std::string(1 << 19, 'x'));
  for (int i = 0; i < 20; ++i)
    wide += ", *a";
  EXPECT_THAT(YamlError(wide + "]\n"), HasSubstr("too many values"));
  std::string deep = "a0: &a0 [x]\n";
  for (int i = 1; i < 80; ++i)
    deep += fmt::format("a{}: &a{} [*a{}]\n", i, i, i - 1);
  EXPECT_THAT(YamlError(deep), HasSubstr("nested too deeply"));
}

TEST(YamlReaderTest, WhatHasAnAnchorCounts) {
  // Each level is kept again: 40 kB would become 135 MB.
  std::string text = "a: ";
  for (int i = 0; i < 60; ++i)
    text += fmt::format("&a{} [", i);
  for (int i = 0; i < 19'000; ++i)
    text += "x,";
  EXPECT_THAT(YamlError(text + std::string(60, ']')), HasSubstr("too many values"));
  std::string long_text = "a: ";
  for (int i = 0; i < 60; ++i)
    long_text += fmt::format("&a{} [", i);
  long_text += std::string(500'000, 'x');
  EXPECT_THAT(YamlError(long_text + std::string(60, ']')), HasSubstr("too many values"));
}

TEST(YamlReaderTest, TextsThatBelongTogetherShareABudget) {
  YamlBudget budget;
  std::string text = "a: &a [";
  for (int i = 0; i < 4000; ++i)
    text += "x,";
  text += "]\nb: *a\n";
  EXPECT_TRUE(ParseYaml(text, "test.yaml", budget).ok());
  EXPECT_THAT(Message(ParseYaml(text, "test.yaml", budget).status()), HasSubstr("too many values"));
}

TEST(YamlReaderTest, ALineOfBracketsIsRefusedBeforeItIsRead) {
  for (const char* signs : {"[", "{", "[],", "{},", "{[", "]"}) {
    std::string text = "a: 1\nb: ";
    while (text.size() < 1'000'000)
      text += signs;
    EXPECT_EQ(YamlError(text),
              "test.yaml:2: too many values in one line: write it in several lines, with at most "
              "20000 brackets and commas in each")
        << signs;
  }
}

TEST(YamlReaderTest, RefusesAnAliasInsideItsOwnValue) {
  EXPECT_THAT(YamlError("a: &a [*a]\n"), StartsWith("test.yaml:1: "));
  EXPECT_THAT(YamlError("a: *unknown\n"), StartsWith("test.yaml:1: "));
}

TEST(YamlReaderTest, RefusesWhatIsNoText) {
  EXPECT_EQ(YamlError(std::string_view("a: b\nc: \0d\n", 11)),
            "test.yaml:2: byte 0x00 is not allowed in a text");
  EXPECT_THAT(YamlError("a: b\x04 c"), HasSubstr("byte 0x04"));
  EXPECT_THAT(YamlError("\xff\xfe"
                        "a"),
              HasSubstr("byte 0xff"));
}

TEST(YamlReaderTest, RefusesHugeTexts) {
  EXPECT_THAT(YamlError(std::string((1 << 20) + 1, ' ')), HasSubstr("more than 1048576"));
  std::string list = "[";
  for (int i = 0; i < 30'000; ++i)
    list += "a,";
  EXPECT_THAT(YamlError(list + "]"), HasSubstr("too many values"));
}

TEST(YamlReaderTest, ReadsSeveralDocuments) {
  const auto documents = Must(ParseYamlDocuments("a: &x 1\n---\n---\n- 2\n- 3\n", "test.yaml"));
  ASSERT_EQ(documents.size(), 3u);
  EXPECT_EQ(documents[0].entries[0].value.text, "1");
  EXPECT_EQ(documents[1].kind, ConfigNode::Kind::kNull);
  EXPECT_EQ(Where(documents[2]), "test.yaml:4");
  EXPECT_EQ(ParseYamlDocuments("", "test.yaml")->size(), 0u);
}

TEST(YamlReaderTest, SeveralDocumentsHaveLimitsAndAnchorsOfTheirOwn) {
  const auto error = [](std::string_view text) {
    return std::string(Message(ParseYamlDocuments(text, "test.yaml").status()));
  };
  EXPECT_THAT(error("a: &x 1\n---\nb: *x\n"), StartsWith("test.yaml:3: "));
  EXPECT_THAT(error("a: 1\n---\nb: [\n"), StartsWith("test.yaml:"));
  std::string many;
  for (size_t i = 0; i <= kMaxYamlDocuments; ++i)
    many += "---\na\n";
  EXPECT_EQ(error(many), "test.yaml:60001: more than 30000 documents are not allowed");
}

StatusOr<ConfigNode> Expand(std::string_view yaml) {
  RESMGR_ASSIGN_OR_RETURN(const ConfigNode root, ParseYaml(yaml, "f"));
  Problems problems;
  ConfigNode expanded = ExpandDottedKeys(root, problems);
  RESMGR_RETURN_IF_ERROR(problems.ToStatus());
  return expanded;
}

TEST(DottedKeysTest, BecomeNestedMaps) {
  const ConfigNode root = Must(Expand("a.b.c: 1\na.b.d: 2\n"));
  ASSERT_EQ(root.entries.size(), 1U);
  const ConfigNode& b = root.entries[0].value.entries[0].value;
  ASSERT_EQ(b.entries.size(), 2U);
  EXPECT_EQ(b.entries[0].key, "c");
  EXPECT_EQ(b.entries[1].value.text, "2");
  EXPECT_EQ(Where(b.entries[1].value), "f:2");
}

TEST(DottedKeysTest, JoinMapsThatStandBeforeOrBehind) {
  for (const char* yaml : {"a: {b: 1}\nA.c: 2\n", "a.c: 2\nA:\n  b: 1\n", "a:\na.b: 1\na.c: 2\n"}) {
    const StatusOr<ConfigNode> root = Expand(yaml);
    ASSERT_TRUE(root.ok()) << yaml;
    ASSERT_EQ(root->entries.size(), 1U) << yaml;
    EXPECT_EQ(root->entries[0].value.entries.size(), 2U) << yaml;
  }
}

TEST(DottedKeysTest, KeysBelowTheRootKeepTheirDots) {
  const ConfigNode root = Must(Expand("a: {b.c: 1}"));
  EXPECT_EQ(root.entries[0].value.entries[0].key, "b.c");
}

TEST(DottedKeysTest, TheOrderOfTheTextStays) {
  const ConfigNode root = Must(Expand("b: {z: 1}\na.y: 1\nc: 1\nb.x: 1\na.w: 1\n"));
  std::string order;
  for (const ConfigNode::Entry& entry : root.entries) {
    order += entry.key;
    for (const ConfigNode::Entry& member : entry.value.entries)
      order += member.key;
  }
  EXPECT_EQ(order, "bzxcayw");
}

TEST(DottedKeysTest, TheMapsThatTheyMakeAreBounded) {
  ConfigNode root;
  root.kind = ConfigNode::Kind::kMap;
  for (int i = 0; i < 5000; ++i)
    root.entries.push_back({fmt::format("a{}.b.c.d.e.f", i), i + 1, {}});
  Problems problems;
  static_cast<void>(ExpandDottedKeys(root, problems));
  EXPECT_THAT(Message(problems.ToStatus()), HasSubstr("too many values"));
}

TEST(DottedKeysTest, ContradictionsAreErrors) {
  EXPECT_EQ(Message(Expand("a: {b: 1}\na.b: 2\n").status()), "f:2: a.b: has two values");
  EXPECT_EQ(Message(Expand("a: 1\na.b: 2\n").status()),
            "f:2: a.b: is below a value that is not a map");
  EXPECT_EQ(Message(Expand("a.: 2\n").status()), "f:1: a.: unknown key");
  EXPECT_THAT(std::string(Message(Expand(std::string(2000, '.') + "a: 2").status())),
              HasSubstr("f:1: "));
}

}  // namespace
}  // namespace resmgr
