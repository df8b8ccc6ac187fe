// SPDX-License-Identifier: Apache-2.0
// Pods that fit the node are never refused, as a scheduler sends them, on twenty machines.
#include <random>
#include <string>
#include <tuple>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/kube/cpu_arithmetic.h"
#include "policies/balloons/balloons_policy.h"
#include "policies/static-plus/static_plus_policy.h"
#include "policies/static/static_policy.h"
#include "policies/topology-aware/topology_aware_policy.h"
#include "test/support/machines/machines.h"
#include "test/support/seed.h"
#include "test/support/status_matchers.h"
#include "test/support/streams/pod_stream.h"

namespace resmgr::test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

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

// A reservation such as 750m: the scheduler counts the rest of the reserved CPUs.
TEST_P(StreamsTest, WhatFitsBesideAFractionalReservationIsNeverRefused) {
  const auto& [machine, policy] = GetParam();
  if (machine.reserved[0] == '\0') return;
  const uint64_t seed = SeedOr(1502);
  SCOPED_TRACE(Repeat(seed));
  std::mt19937_64 random(seed);
  for (int round = 0; round < 3; ++round) {
    const MilliCpu unreserved{std::uniform_int_distribution<int64_t>(1, 999)(random)};
    SCOPED_TRACE(unreserved.value);
    PodStream stream(machine.make(), Cpus(machine.reserved), policy.factory(), random(),
                     unreserved);
    const PodStream::Result result = stream.Run(kPods / 2);
    EXPECT_THAT(result.refusals, IsEmpty());
    EXPECT_THAT(result.defects, IsEmpty());
    EXPECT_GE(result.full, kPods / 100) << "all that may be asked for is to be asked for at times";
  }
}

INSTANTIATE_TEST_SUITE_P(
    Machines, StreamsTest,
    testing::Combine(testing::ValuesIn(StreamMachines()),
                     testing::Values(NamedPolicy{"Static", StaticPolicyFactory},
                                     NamedPolicy{"StaticPlus", StaticPlusPolicyFactory},
                                     NamedPolicy{"TopologyAware", TopologyAwarePolicyFactory},
                                     NamedPolicy{"Balloons", BalloonsPolicyFactory})),
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
      const auto made = Must(policy.factory().create(
          {.machine = machine, .available = machine.allowed(), .reserved = Cpus("0")}));
      TestSnapshot snapshot;
      std::vector<ContainerKey> keys(2);
      for (const bool guaranteed : {guaranteed_first, !guaranteed_first}) {
        Container& container = snapshot.Add(
            "c", guaranteed ? QosClass::kGuaranteed : QosClass::kBestEffort, guaranteed ? 1000 : 0);
        const auto plan =
            Must(made->Allocate(snapshot, snapshot.PodOf(container.key), container, nullptr));
        snapshot.Apply(plan);
        keys[guaranteed ? 0 : 1] = container.key;
      }
      EXPECT_EQ(snapshot.At(keys[0]).placement.exclusive.ToString(), "1");
      EXPECT_EQ(snapshot.At(keys[1]).placement.cpus->ToString(), "0");
    }
  }
}

// The same with 750m reserved: 1250m may be asked for.
TEST(SmallestNodeTest, AGuaranteedPodHasTheRestOfAFractionalReservation) {
  for (const NamedPolicy& policy : {NamedPolicy{"Static", StaticPolicyFactory},
                                    NamedPolicy{"StaticPlus", StaticPlusPolicyFactory},
                                    NamedPolicy{"TopologyAware", TopologyAwarePolicyFactory}}) {
    SCOPED_TRACE(policy.name);
    const Machine machine = MakeMachine({.cores = 2});
    const auto made = Must(policy.factory().create({.machine = machine,
                                                    .available = machine.allowed(),
                                                    .reserved = Cpus("0"),
                                                    .unreserved = MilliCpu{250}}));
    TestSnapshot snapshot;
    Container& container = snapshot.Add("c", QosClass::kGuaranteed, 1200);
    const auto plan =
        Must(made->Allocate(snapshot, snapshot.PodOf(container.key), container, nullptr));
    snapshot.Apply(plan);
    Container& rest = snapshot.Add("rest", QosClass::kGuaranteed, 50);
    const auto last = Must(made->Allocate(snapshot, snapshot.PodOf(rest.key), rest, nullptr));
    EXPECT_THAT(std::string(last.Find(rest.key)->reason), Not(HasSubstr("more is asked for")));
  }
}

// Overhead of a pod is promised to it, and the rest of the reserved CPU may be that.
TEST(SmallestNodeTest, OverheadFitsInTheRestOfAFractionalReservation) {
  for (const NamedPolicy& policy : {NamedPolicy{"Static", StaticPolicyFactory},
                                    NamedPolicy{"StaticPlus", StaticPlusPolicyFactory},
                                    NamedPolicy{"TopologyAware", TopologyAwarePolicyFactory}}) {
    SCOPED_TRACE(policy.name);
    const Machine machine = MakeMachine({.cores = 2});
    for (const int64_t unreserved : {250, 200}) {
      const auto made = Must(policy.factory().create({.machine = machine,
                                                      .available = machine.allowed(),
                                                      .reserved = Cpus("0"),
                                                      .unreserved = MilliCpu{unreserved}}));
      TestSnapshot snapshot;
      Container& container = snapshot.Add("c", QosClass::kGuaranteed, 1000);
      snapshot.PodOf(container.key).overhead.cpu_shares = SharesFromMilliCpu(MilliCpu{250});
      const auto plan = made->Allocate(snapshot, snapshot.PodOf(container.key), container, nullptr);
      EXPECT_EQ(plan.ok(), unreserved == 250) << plan.status();
    }
  }
}

}  // namespace
}  // namespace resmgr::test
