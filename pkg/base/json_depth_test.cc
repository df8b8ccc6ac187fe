// SPDX-License-Identifier: Apache-2.0
#include "pkg/base/json_depth.h"

#include <string>

#include <gtest/gtest.h>

namespace resmgr {
namespace {

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
