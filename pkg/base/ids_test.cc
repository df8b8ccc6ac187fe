// SPDX-License-Identifier: Apache-2.0
#include "pkg/base/ids.h"

#include <functional>
#include <initializer_list>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace resmgr {
namespace {

// Texts around the length that an id holds itself, and far from it.
std::vector<std::string> Texts() {
  std::vector<std::string> texts;
  for (const size_t size : std::initializer_list<size_t>{0, 1, 63, 64, 65, 300})
    texts.emplace_back(size, 'a');
  texts.emplace_back("with\0a zero", 11);
  return texts;
}

TEST(IdTest, HoldsTextsOfEverySize) {
  for (const std::string& text : Texts()) {
    const ContainerId id(text);
    EXPECT_EQ(id.value(), text);
    EXPECT_EQ(id.empty(), text.empty());
  }
  EXPECT_EQ(ContainerId().value(), "");
}

TEST(IdTest, CopiesAreTheirOwn) {
  for (const std::string& from : Texts()) {
    for (const std::string& to : Texts()) {
      ContainerId source(from);
      ContainerId copy(to);
      copy = source;
      const ContainerId constructed(source);
      source = ContainerId(to);
      EXPECT_EQ(copy.value(), from);
      EXPECT_EQ(constructed.value(), from);
      EXPECT_EQ(source.value(), to);
    }
  }
}

TEST(IdTest, MovesLeaveNothingBehind) {
  for (const std::string& from : Texts()) {
    for (const std::string& to : Texts()) {
      ContainerId source(from);
      ContainerId target(to);
      target = std::move(source);
      EXPECT_EQ(target.value(), from);
      EXPECT_TRUE(source.empty());  // NOLINT(bugprone-use-after-move): it is what is tested
      EXPECT_EQ(source.value(), "");
      const ContainerId constructed(std::move(target));
      EXPECT_EQ(constructed.value(), from);
      EXPECT_TRUE(target.empty());  // NOLINT(bugprone-use-after-move)
    }
  }
}

TEST(IdTest, OrderAndHashAreThoseOfTheText) {
  std::unordered_map<ContainerId, std::string> by_id;
  for (const std::string& a : Texts()) {
    by_id[ContainerId(a)] = a;
    for (const std::string& b : Texts()) {
      EXPECT_EQ(ContainerId(a) == ContainerId(b), a == b);
      EXPECT_EQ(ContainerId(a) < ContainerId(b), a < b);
    }
  }
  EXPECT_EQ(by_id.size(), Texts().size());
  for (const auto& [id, text] : by_id)
    EXPECT_EQ(id.value(), text);
}

TEST(OnlyOneThatBeginsWithTest, TakesTheWholeKeyOrTheOnlyOne) {
  const std::map<std::string, int, std::less<>> map = {{"ab", 1}, {"abc", 2}, {"abd", 3}, {"x", 4}};
  EXPECT_EQ(OnlyOneThatBeginsWith(map, "ab"), 1);
  EXPECT_EQ(OnlyOneThatBeginsWith(map, "abc"), 2);
  EXPECT_EQ(OnlyOneThatBeginsWith(map, "a"), 0);
  EXPECT_EQ(OnlyOneThatBeginsWith(map, "x"), 4);
  EXPECT_EQ(OnlyOneThatBeginsWith(map, "xy"), 0);
  EXPECT_EQ(OnlyOneThatBeginsWith(map, ""), 0);
  EXPECT_EQ(OnlyOneThatBeginsWith(map, "z"), 0);
}

}  // namespace
}  // namespace resmgr
