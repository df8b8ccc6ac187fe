// SPDX-License-Identifier: Apache-2.0
// What fits the node is never refused: pods as a scheduler sends them, on twenty machines.
#include <string>
#include <tuple>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "policies/static-plus/static_plus_policy.h"
#include "policies/static/static_policy.h"
#include "policies/topology-aware/topology_aware_policy.h"
#include "test/support/machines/machines.h"
#include "test/support/seed.h"
#include "test/support/streams/pod_stream.h"
#include "test/support/streams/stream_machines.h"

namespace resmgr::test {
namespace {

using testing::IsEmpty;

constexpr int kPods = 500;

struct NamedPolicy {
  const char* name;
  PolicyFactory (*factory)();
};

using Case = std::tuple<StreamMachine, NamedPolicy>;

class StreamsTest : public testing::TestWithParam<Case> {};

TEST_P(StreamsTest, WhatFitsIsNeverRefused) {
  const auto& [machine, policy] = GetParam();
  const uint64_t seed = SeedOr(1501);
  SCOPED_TRACE(Repeat(seed));
  PodStream stream(machine.make(), Cpus(machine.reserved), policy.factory(), seed);
  const PodStream::Result result = stream.Run(kPods);
  EXPECT_THAT(result.refusals, IsEmpty());
  EXPECT_THAT(result.defects, IsEmpty());
  EXPECT_GE(result.pods, kPods);
  EXPECT_GE(result.full, kPods / 50) << "all CPUs are to be asked for at times";
}

INSTANTIATE_TEST_SUITE_P(
    Machines, StreamsTest,
    testing::Combine(testing::ValuesIn(StreamMachines()),
                     testing::Values(NamedPolicy{"Static", StaticPolicyFactory},
                                     NamedPolicy{"StaticPlus", StaticPlusPolicyFactory},
                                     NamedPolicy{"TopologyAware", TopologyAwarePolicyFactory})),
    [](const auto& param_info) {
      return fmt::format("{}{}", std::get<0>(param_info.param).name,
                         std::get<1>(param_info.param).name);
    });

// Two CPUs, of which one is reserved: the smallest node with a Guaranteed pod.
TEST(SmallestNodeTest, AGuaranteedPodOfOneCpuAndABestEffortPodBothRun) {
  for (const NamedPolicy& policy : {NamedPolicy{"Static", StaticPolicyFactory},
                                    NamedPolicy{"StaticPlus", StaticPlusPolicyFactory},
                                    NamedPolicy{"TopologyAware", TopologyAwarePolicyFactory}}) {
    for (const bool guaranteed_first : {true, false}) {
      SCOPED_TRACE(testing::Message() << policy.name << " " << guaranteed_first);
      const Machine machine = MakeMachine({.cores = 2});
      const auto made = policy.factory().create(
          {.machine = machine, .available = machine.allowed(), .reserved = Cpus("0")});
      ASSERT_TRUE(made.ok()) << made.status();
      TestSnapshot snapshot;
      std::vector<ContainerKey> keys(2);
      for (const bool guaranteed : {guaranteed_first, !guaranteed_first}) {
        Container& container = snapshot.Add(
            "c", guaranteed ? QosClass::kGuaranteed : QosClass::kBestEffort, guaranteed ? 1000 : 0);
        const auto plan =
            (*made)->Allocate(snapshot, snapshot.PodOf(container.key), container, nullptr);
        ASSERT_TRUE(plan.ok()) << plan.status();
        snapshot.Apply(*plan);
        keys[guaranteed ? 0 : 1] = container.key;
      }
      EXPECT_EQ(snapshot.At(keys[0]).placement.exclusive.ToString(), "1");
      EXPECT_EQ(snapshot.At(keys[1]).placement.cpus->ToString(), "0");
    }
  }
}

}  // namespace
}  // namespace resmgr::test
