// SPDX-License-Identifier: Apache-2.0
#include "pkg/log/source_filter.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace resmgr {
namespace {

// The sources among a, b and c that the list selects.
std::string Selected(std::string_view list) {
  const auto filter = SourceFilter::Parse(list);
  if (!filter.ok()) return std::string(CodeName(filter.status().code()));
  std::string selected;
  for (const std::string_view source : {"a", "b", "c"}) {
    if (filter->Contains(source)) selected += source;
  }
  return selected;
}

TEST(SourceFilterTest, NamesSelectThemselves) {
  EXPECT_EQ(Selected(""), "");
  EXPECT_EQ(Selected("a"), "a");
  EXPECT_EQ(Selected(" a , c ,"), "ac");
  EXPECT_EQ(Selected("A"), "");
}

TEST(SourceFilterTest, AllAndNone) {
  EXPECT_EQ(Selected("*"), "abc");
  EXPECT_EQ(Selected("All"), "abc");
  EXPECT_EQ(Selected("none"), "");
  EXPECT_EQ(Selected("a,none"), "");
  EXPECT_EQ(Selected("off:*"), "");
}

TEST(SourceFilterTest, NameWithState) {
  EXPECT_EQ(Selected("*,b:off"), "ac");
  EXPECT_EQ(Selected("a:true,b:no,c:1"), "ac");
}

TEST(SourceFilterTest, StateWithName) {
  EXPECT_EQ(Selected("on:a,off:b"), "a");
  EXPECT_EQ(Selected("on:*,off:b"), "ac");
}

TEST(SourceFilterTest, StateInFrontHoldsForTheNamesBehind) {
  EXPECT_EQ(Selected("*,off:a,b"), "c");
  EXPECT_EQ(Selected("*,off:a,b,on:a"), "ac");
}

TEST(SourceFilterTest, LaterItemsWin) {
  EXPECT_EQ(Selected("on:a,off:a"), "");
  EXPECT_EQ(Selected("off:a,*"), "");
  EXPECT_EQ(Selected("a:off,*"), "abc");
}

TEST(SourceFilterTest, RefusesWhatItCannotRead) {
  for (const std::string_view list : {"a:b", "on:", ":on", "a:", ":", "a,b:maybe"}) {
    EXPECT_EQ(Selected(list), "INVALID_ARGUMENT") << list;
  }
}

}  // namespace
}  // namespace resmgr
