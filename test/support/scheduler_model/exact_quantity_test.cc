// SPDX-License-Identifier: Apache-2.0
#include "test/support/scheduler_model/exact_quantity.h"

#include <stdexcept>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace resmgr::test {
namespace {

ExactQuantity ExactOf(std::string_view text) {
  return ExactQuantity::Parse(text).value();
}

TEST(ExactQuantityTest, ReadsSuffixesAndExponents) {
  EXPECT_EQ(ExactOf("1500m"), ExactOf("1.5"));
  EXPECT_EQ(ExactOf("1Ki"), ExactQuantity(1024));
  EXPECT_EQ(ExactOf("1k"), ExactQuantity(1000));
  EXPECT_EQ(ExactOf("32Gi"), ExactQuantity(int64_t{32} << 30));
  EXPECT_EQ(ExactOf("3e2"), ExactQuantity(300));
  EXPECT_EQ(ExactOf("3E-1"), ExactOf("300m"));
  EXPECT_EQ(ExactOf("1E"), ExactQuantity(1'000'000'000'000'000'000));
  EXPECT_EQ(ExactOf("1000000n"), ExactOf("1m"));
  EXPECT_EQ(ExactOf("-2"), ExactQuantity(-2));
  EXPECT_EQ(ExactOf("+.5"), ExactOf("500m"));
  EXPECT_EQ(ExactOf("2."), ExactQuantity(2));
}

TEST(ExactQuantityTest, RefusesOtherTexts) {
  for (const char* const text : {"", "m", ".", "1.2.3", "1mm", "1 ", "Ki", "1ki", "e3", "0x1",
                                 "8Ei", "99999999999999999999"}) {
    EXPECT_EQ(ExactQuantity::Parse(text), std::nullopt) << text;
  }
}

TEST(ExactQuantityTest, RoundsUpToWholeUnitsAndBillionths) {
  EXPECT_EQ(ExactOf("1500m").Value(), 2);
  EXPECT_EQ(ExactOf("1n").Value(), 1);
  EXPECT_EQ(ExactOf("2").Value(), 2);
  EXPECT_EQ(ExactOf("-1500m").Value(), -1);
  EXPECT_EQ(ExactOf("0.0000000001"), ExactOf("1n"));
  EXPECT_EQ(ExactOf("0.1Gi").Value(), 107'374'183);
  EXPECT_FALSE(ExactOf("1500m").IsWhole());
  EXPECT_TRUE(ExactOf("1500").IsWhole());
}

TEST(ExactQuantityTest, ReadsNumbersOfJson) {
  EXPECT_EQ(ExactQuantity::Of(4), ExactQuantity(4));
  EXPECT_EQ(ExactQuantity::Of(1.5), ExactOf("1500m"));
  EXPECT_EQ(ExactQuantity::Of("4"), ExactQuantity(4));
  EXPECT_EQ(ExactQuantity::Of(nlohmann::json::array()), std::nullopt);
  EXPECT_THROW(ResourcesOf({{"cpu", true}}), std::invalid_argument);
}

TEST(ExactQuantityTest, CountsTheStepsThatReachIt) {
  EXPECT_EQ(ExactOf("1500m").StepsOf(ExactQuantity(1)), 2);
  EXPECT_EQ(ExactQuantity(6).StepsOf(ExactQuantity(2)), 3);
  EXPECT_EQ(ExactQuantity(0).StepsOf(ExactQuantity(2)), 0);
  EXPECT_EQ((ExactQuantity(7) - ExactQuantity(2) * 3).Text(), "1");
  EXPECT_EQ(ExactOf("1m").Text(), "1000000n");
}

}  // namespace
}  // namespace resmgr::test
