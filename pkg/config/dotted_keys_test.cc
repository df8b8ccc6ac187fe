// SPDX-License-Identifier: Apache-2.0
#include "pkg/config/dotted_keys.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/config/yaml_reader.h"

namespace resmgr {
namespace {

using ::testing::HasSubstr;

StatusOr<ConfigNode> Expand(std::string_view yaml) {
  RESMGR_ASSIGN_OR_RETURN(const ConfigNode root, ParseYaml(yaml, "f"));
  Problems problems;
  ConfigNode expanded = ExpandDottedKeys(root, problems);
  RESMGR_RETURN_IF_ERROR(problems.ToStatus());
  return expanded;
}

TEST(DottedKeysTest, BecomeNestedMaps) {
  const StatusOr<ConfigNode> root = Expand("a.b.c: 1\na.b.d: 2\n");
  ASSERT_TRUE(root.ok());
  ASSERT_EQ(root->entries.size(), 1U);
  const ConfigNode& b = root->entries[0].value.entries[0].value;
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
  const StatusOr<ConfigNode> root = Expand("a: {b.c: 1}");
  ASSERT_TRUE(root.ok());
  EXPECT_EQ(root->entries[0].value.entries[0].key, "b.c");
}

TEST(DottedKeysTest, TheOrderOfTheTextStays) {
  const StatusOr<ConfigNode> root = Expand("b: {z: 1}\na.y: 1\nc: 1\nb.x: 1\na.w: 1\n");
  ASSERT_TRUE(root.ok());
  std::string order;
  for (const ConfigNode::Entry& entry : root->entries) {
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
