// SPDX-License-Identifier: Apache-2.0
#include "pkg/claims/claim_place.h"

#include <gtest/gtest.h>

#include "test/support/machines/machines.h"

namespace resmgr {
namespace {

class ClaimPlaceTest : public testing::Test {
 protected:
  // L3 groups 0-3, 4-7, 8-11, 12-15, in nodes 0-7 and 8-15.
  const Machine machine_ = test::U16TwoNodes();
};

TEST_F(ClaimPlaceTest, IsTheNodeTheCacheOrTheMachine) {
  const auto node = PlaceOf({.node = 1, .cpus = 1}, machine_);
  ASSERT_TRUE(node.ok());
  EXPECT_EQ(node->cpus, test::Cpus("8-15"));
  EXPECT_EQ(node->name, "NUMA node 1");
  for (const int cpu : {4, 7}) {
    const auto cache = PlaceOf({.cpus = 1, .l3_of = cpu}, machine_);
    ASSERT_TRUE(cache.ok());
    EXPECT_EQ(cache->cpus, test::Cpus("4-7"));
  }
  const auto any = PlaceOf({.cpus = 1}, machine_);
  ASSERT_TRUE(any.ok());
  EXPECT_EQ(any->cpus, machine_.allowed());
  EXPECT_EQ(any->name, "");
}

TEST_F(ClaimPlaceTest, APlaceThatIsNotThereIsRefused) {
  EXPECT_EQ(PlaceOf({.node = 2, .cpus = 1}, machine_).status().code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(PlaceOf({.cpus = 1, .l3_of = 16}, machine_).status().code(),
            StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace resmgr
