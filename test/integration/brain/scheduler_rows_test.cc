// SPDX-License-Identifier: Apache-2.0
// Rows of the acceptance table of NodeResourceTopology that need other policies than static ones.
#include <cstdint>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/schedview/scheduler_view.h"
#include "policies/topology-aware/topology_aware_policy.h"
#include "test/integration/brain/claimed_node.h"

namespace resmgr::test {
namespace {

// Row N5: a policy that keeps CPUs for the requests of shared containers grants no others.
TEST(SchedulerRowsTest, RequestsOfSharedContainersAreNotAvailable) {
  ClaimedNode node(TopologyAwarePolicyFactory(), U16TwoNodes(), "0", "");
  const auto shared = node.Create("shared", QosClass::kBurstable, 2500);
  ASSERT_TRUE(shared.ok()) << shared.status();
  const SchedulerView view =
      MakeSchedulerView(node.machine(), node.policy(), node.snapshot(), false);
  std::vector<int64_t> kept;
  for (const ViewZone& zone : view.zones)
    kept.push_back(zone.amounts[0].allocatable - zone.amounts[0].available);
  EXPECT_THAT(kept, testing::UnorderedElementsAre(3, 0));
}

}  // namespace
}  // namespace resmgr::test
