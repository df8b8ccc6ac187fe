// SPDX-License-Identifier: Apache-2.0
#include "pkg/resmgr/applied_resources.h"

#include <functional>
#include <vector>

#include <gtest/gtest.h>

namespace resmgr {
namespace {

Container Example() {
  Container container;
  container.placement.cpus = CpuSet{1, 2, 3};
  container.placement.mems = NodeSet{0};
  container.placement.exclusive = CpuSet{1};
  container.placement.cpu_quota = -1;
  container.requested.cpu_quota = 50'000;
  container.requested.cpu_shares = 512;
  return container;
}

TEST(AppliedResourcesTest, WhatThePlacementLeavesAloneIsAsRequested) {
  const AppliedResources resources = DesiredResources(Example());
  EXPECT_EQ(resources.cpu_quota, -1);
  EXPECT_EQ(resources.cpu_shares, 512);
  EXPECT_EQ(resources.cpu_period, std::nullopt);
}

TEST(AppliedResourcesTest, IsDesiredSaysWhatComparingSays) {
  const Container container = Example();
  const std::vector<std::function<void(AppliedResources&)>> changes = {
      [](AppliedResources&) {},
      [](AppliedResources& resources) {
        resources.cpus = CpuSet{1, 2};
      },
      [](AppliedResources& resources) { resources.cpus.reset(); },
      [](AppliedResources& resources) { resources.mems.reset(); },
      [](AppliedResources& resources) { resources.mems = NodeSet{1}; },
      [](AppliedResources& resources) { resources.cpu_shares = 2; },
      [](AppliedResources& resources) { resources.cpu_shares.reset(); },
      [](AppliedResources& resources) { resources.cpu_quota = 50'000; },
      [](AppliedResources& resources) { resources.cpu_period = 100'000; },
      [](AppliedResources& resources) { resources.exclusive = CpuSet(); },
  };
  for (const auto& change : changes) {
    AppliedResources resources = DesiredResources(container);
    change(resources);
    EXPECT_EQ(IsDesired(resources, container), resources == DesiredResources(container));
  }
  EXPECT_TRUE(IsDesired(DesiredResources(container), container));
  EXPECT_FALSE(IsDesired(AppliedResources(), container));
}

}  // namespace
}  // namespace resmgr
