// SPDX-License-Identifier: Apache-2.0
#include "pkg/resmgr/effect.h"

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

TEST(EffectTest, WhatThePlacementLeavesAloneIsAsRequested) {
  const Effect effect = DesiredEffect(Example());
  EXPECT_EQ(effect.cpu_quota, -1);
  EXPECT_EQ(effect.cpu_shares, 512);
  EXPECT_EQ(effect.cpu_period, std::nullopt);
}

TEST(EffectTest, IsDesiredSaysWhatComparingSays) {
  const Container container = Example();
  const std::vector<std::function<void(Effect&)>> changes = {
      [](Effect&) {},
      [](Effect& effect) {
        effect.cpus = CpuSet{1, 2};
      },
      [](Effect& effect) { effect.cpus.reset(); },
      [](Effect& effect) { effect.mems.reset(); },
      [](Effect& effect) { effect.mems = NodeSet{1}; },
      [](Effect& effect) { effect.cpu_shares = 2; },
      [](Effect& effect) { effect.cpu_shares.reset(); },
      [](Effect& effect) { effect.cpu_quota = 50'000; },
      [](Effect& effect) { effect.cpu_period = 100'000; },
      [](Effect& effect) { effect.exclusive = CpuSet(); },
  };
  for (const auto& change : changes) {
    Effect effect = DesiredEffect(container);
    change(effect);
    EXPECT_EQ(IsDesired(effect, container), effect == DesiredEffect(container));
  }
  EXPECT_TRUE(IsDesired(DesiredEffect(container), container));
  EXPECT_FALSE(IsDesired(Effect(), container));
}

}  // namespace
}  // namespace resmgr
