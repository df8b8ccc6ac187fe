// SPDX-License-Identifier: Apache-2.0
#include "pkg/claims/held_claims.h"

#include <vector>

#include <gtest/gtest.h>

namespace resmgr {
namespace {

HeldClaim HeldOn(const CpuSet& cpus, int node) {
  HeldClaim held{.claim = {.uid = "u1", .namespace_name = "ns", .name = "c", .parts = {}}};
  Placement& place = held.parts.emplace_back().placement;
  place.exclusive = cpus;
  place.cpus = cpus;
  place.mems = NodeSet{node};
  place.counted_mems = NodeSet{node};
  return held;
}

// Its memory is counted nowhere: bound to one node it could be more than the node has left.
TEST(HeldClaimsTest, ACarrierIsBoundToNoMemory) {
  const HeldClaim held = HeldOn({4, 5}, 1);
  const Placement placement = PlacementOfCarrier(std::vector<const HeldClaim*>{&held});
  EXPECT_EQ(placement.cpus, CpuSet({4, 5}));
  EXPECT_EQ(placement.exclusive, CpuSet({4, 5}));
  EXPECT_EQ(placement.mems, std::nullopt);
  EXPECT_TRUE(placement.counted_mems.empty());
}

TEST(HeldClaimsTest, CpusThatAPodSharesAreExclusiveToNoContainer) {
  HeldClaim held = HeldOn({4, 5}, 1);
  held.claim.options.share_within_pod = true;
  const Placement placement = PlacementOfCarrier(std::vector<const HeldClaim*>{&held});
  EXPECT_EQ(placement.cpus, CpuSet({4, 5}));
  EXPECT_TRUE(placement.exclusive.empty());
}

// Earlier versions did not keep the driver.
TEST(HeldClaimsTest, AClaimWithoutADriverLearnsItWhenItIsPreparedAgain) {
  HeldClaims held;
  Claim claim{.uid = "u1", .namespace_name = "ns", .name = "c", .parts = {{.cpus = 2}}};
  held.Add(claim);
  claim.driver = "dra.cpu";
  EXPECT_TRUE(held.Renew(claim));
  EXPECT_EQ(held.Find("u1")->claim.driver, "dra.cpu");
  EXPECT_FALSE(held.Renew(claim));
}

}  // namespace
}  // namespace resmgr
