// SPDX-License-Identifier: Apache-2.0
#include "pkg/base/string_map.h"

#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace resmgr {
namespace {

TEST(StringMapTest, FindsByName) {
  const StringMap map = {{"b", "2"}, {"a", "1"}, {"", "empty name"}, {"c", ""}};
  EXPECT_EQ(map.size(), 4);
  EXPECT_EQ(map.find("a")->second, "1");
  EXPECT_EQ(map.find("b")->second, "2");
  EXPECT_EQ(map.find("")->second, "empty name");
  EXPECT_EQ(map.find("c")->second, "");
  EXPECT_EQ(map.find("d"), map.end());
  EXPECT_FALSE(map.contains("ab"));
}

TEST(StringMapTest, IsEmptyAtFirst) {
  const StringMap map;
  EXPECT_TRUE(map.empty());
  EXPECT_EQ(map.begin(), map.end());
  EXPECT_EQ(map.find(""), map.end());
  EXPECT_EQ(map, StringMap({}));
}

TEST(StringMapTest, IsEqualWhateverTheOrderAndHistory) {
  StringMap map = {{"b", "1"}, {"a", "2"}};
  map.Set("b", "3");
  EXPECT_EQ(map, StringMap({{"a", "2"}, {"b", "3"}}));
  EXPECT_FALSE(map == StringMap({{"a", "2"}}));
  EXPECT_FALSE(map == StringMap({{"a", "23"}, {"b", ""}}));
}

TEST(StringMapTest, IsWhatAnOrdinaryMapIs) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    std::map<std::string, std::string> expected;
    std::vector<std::pair<std::string, std::string>> entries;
    StringMap grown;
    for (auto i = random() % 40; i > 0; --i) {
      const std::string name(random() % 3, static_cast<char>('a' + random() % 4));
      const std::string value = std::to_string(random());
      expected[name] = value;
      entries.emplace_back(name, value);
      grown.Set(name, value);
    }
    std::vector<StringMap::value_type> views(entries.begin(), entries.end());
    const StringMap map(views);
    EXPECT_EQ(map, StringMap(expected.begin(), expected.end()));
    EXPECT_EQ(map, StringMap(entries.begin(), entries.end()));
    EXPECT_EQ(map, grown);
    ASSERT_EQ(map.size(), expected.size());
    auto next = expected.begin();
    for (const auto& [name, value] : map) {
      EXPECT_EQ(name, next->first);
      EXPECT_EQ(value, next->second);
      ++next;
    }
    for (const std::string name : {"", "a", "b", "bb", "ccc", "d", "zz"}) {
      const auto bound = expected.lower_bound(name);
      const auto found = map.lower_bound(name);
      ASSERT_EQ(found == map.end(), bound == expected.end());
      if (found != map.end()) {
        EXPECT_EQ(found->first, bound->first);
      }
      EXPECT_EQ(map.contains(name), expected.contains(name));
    }
  }
}

TEST(StringMapTest, KeepsItsTextsWhenItIsCopiedAndMoved) {
  for (const std::string value : {"short", "longer than what a string keeps in itself"}) {
    StringMap map = {{"name", value}};
    const StringMap copy = map;  // NOLINT(performance-unnecessary-copy-initialization)
    const StringMap moved = std::move(map);
    EXPECT_EQ(copy.find("name")->second, value);
    EXPECT_EQ(moved.find("name")->second, value);
  }
}

}  // namespace
}  // namespace resmgr
