// SPDX-License-Identifier: Apache-2.0
#include "pkg/base/suggest.h"

#include <gtest/gtest.h>

namespace resmgr {
namespace {

const std::vector<std::string_view> kKnown = {"Active", "AvailableResources", "ReservedResources",
                                              "static", "static-plus"};

TEST(SuggestTest, FindsTypingMistakesWithoutRegardToCase) {
  EXPECT_EQ(ClosestName("actve", kKnown), "Active");
  EXPECT_EQ(ClosestName("RESERVEDRESOURCE", kKnown), "ReservedResources");
  EXPECT_EQ(ClosestName("staticplus", kKnown), "static-plus");
  EXPECT_EQ(ClosestName("mian", {"side", "main"}), "main") << "exchanged letters are one mistake";
  EXPECT_EQ(ClosestName("nmai", {"side", "main"}), "");
}

TEST(SuggestTest, FindsTheOnlyNameThatTheWordBegins) {
  EXPECT_EQ(ClosestName("avail", kKnown), "AvailableResources");
}

TEST(SuggestTest, StaysSilentWhenNothingIsNear) {
  EXPECT_EQ(ClosestName("controllers", kKnown), "");
  EXPECT_EQ(ClosestName("", kKnown), "");
  EXPECT_EQ(ClosestName(std::string(100'000, 'a'), kKnown), "");
  EXPECT_EQ(DidYouMean("controllers", kKnown), "");
}

TEST(SuggestTest, WritesTheHintWithItsPrefix) {
  EXPECT_EQ(DidYouMean("activ", kKnown, "-"), "; did you mean -Active?");
}

}  // namespace
}  // namespace resmgr
