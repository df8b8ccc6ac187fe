// SPDX-License-Identifier: Apache-2.0
// Classes that the section gives to containers with CPUs of their own, that share, and that are on
// reserved CPUs.
#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/config/yaml_reader.h"
#include "pkg/policy/testing/test_snapshot.h"
#include "policies/topology-aware/topology_aware_policy.h"
#include "test/support/machines/machines.h"

namespace resmgr {
namespace {

using testing::HasSubstr;
using enum QosClass;

class PoolClassesTest : public testing::Test {
 protected:
  void Make(std::string_view text) {
    section_ = ParseYaml(text, "a.yaml").value();
    StatusOr<std::unique_ptr<Policy>> policy =
        TopologyAwarePolicy::Create({.machine = machine_,
                                     .available = machine_.online(),
                                     .reserved = test::Cpus("0"),
                                     .section = &section_});
    ASSERT_TRUE(policy.ok()) << policy.status();
    policy_ = *std::move(policy);
  }
  ContainerKey Run(std::string_view name, QosClass qos, int64_t milli_cpu,
                   std::string_view namespace_name = "default", const StringMap& annotations = {}) {
    Container& container = snapshot_.Add(name, qos, milli_cpu);
    snapshot_.PodOf(container.key).namespace_name = std::string(namespace_name);
    snapshot_.PodOf(container.key).annotations = annotations;
    const auto plan =
        policy_->Allocate(snapshot_, snapshot_.PodOf(container.key), container, nullptr);
    EXPECT_TRUE(plan.ok()) << plan.status();
    if (plan.ok()) snapshot_.Apply(*plan);
    return container.key;
  }
  static std::string SectionError(std::string_view text) {
    const ConfigNode section = ParseYaml(text, "a.yaml").value();
    return std::string(Message(ReadTopologyAwareOptions(&section).status()));
  }

  const Machine machine_ = test::S1Ht();
  ConfigNode section_;
  test::TestSnapshot snapshot_;
  std::unique_ptr<Policy> policy_;
};

TEST_F(PoolClassesTest, AContainerHasThoseOfItsKindOfPool) {
  Make(
      "{PoolClasses: {exclusive: {cpuClass: fast, rdtClass: gold}, shared: {rdtClass: bronze}, "
      "reserved: {blockioClass: slow}}, SharedPoolCPUClass: plain}");
  EXPECT_EQ(policy_->ClassesOf(Run("own", kGuaranteed, 2000)),
            (ClassNames{{"cpu", "fast"}, {"rdt", "gold"}}));
  const ClassNames shared = {{"cpu", "plain"}, {"rdt", "bronze"}};
  EXPECT_EQ(policy_->ClassesOf(Run("some", kBurstable, 200)), shared);
  EXPECT_EQ(policy_->ClassesOf(Run("system", kBurstable, 100, "kube-system")),
            (ClassNames{{"blockio", "slow"}}));
  EXPECT_EQ(policy_->ClassesOf(ContainerKey{}), ClassNames());
  const std::vector<Zone> zones = policy_->Zones(snapshot_);
  EXPECT_EQ(zones.front().classes, shared);
  EXPECT_EQ(zones.back().classes, (ClassNames{{"blockio", "slow"}})) << zones.back().name;
}

TEST_F(PoolClassesTest, AnAnnotationOfCrioAddsTheSharedCpusOfThePool) {
  Make("{}");
  const ContainerKey own = Run("own", kGuaranteed, 2000, "ns");
  const Placement& alone = snapshot_.At(own).placement;
  EXPECT_EQ(alone.cpus, alone.exclusive);
  const ContainerKey mixed =
      Run("mixed", kGuaranteed, 2000, "ns", StringMap({{"cpu-shared.crio.io/mixed", "enable"}}));
  const Placement& placement = snapshot_.At(mixed).placement;
  EXPECT_EQ(placement.exclusive.size(), 2);
  const CpuSet shared = *placement.cpus - placement.exclusive;
  EXPECT_FALSE(shared.empty());
  EXPECT_FALSE(shared.Intersects(alone.exclusive));
}

TEST_F(PoolClassesTest, NamesAreListedWithTheirPlace) {
  std::vector<std::string> all;
  for (const NamedClass& one : TopologyAwareNamedClasses(
           ParseYaml("{DefaultExclusiveCPUClass: fast, ReservedPoolCPUClass: slow}", "f").value()))
    all.push_back(one.where + " " + one.name);
  EXPECT_EQ(all, (std::vector<std::string>{"PoolClasses.exclusive: cpuClass fast",
                                           "PoolClasses.reserved: cpuClass slow"}));
}

TEST_F(PoolClassesTest, WhatItCannotBeIsRefused) {
  EXPECT_EQ(SectionError("cpuClasses: [{name: fast, maxFreq: turbo}]"), "");
  EXPECT_THAT(SectionError("cpuClasses: [{name: fast, maxFreq: much}]"),
              HasSubstr("is no clock rate"));
  EXPECT_THAT(SectionError("controllableInterrupts: ['[']"),
              HasSubstr("controllableInterrupts: \"[\" has [ without ]"));
  EXPECT_THAT(SectionError("PodQoSSchedulingClasses: {}"), HasSubstr("PoolClasses"));
  EXPECT_THAT(SectionError("Control: {}"), HasSubstr("config convert"));
  EXPECT_THAT(SectionError("PoolClasses: {idle: {}}"), HasSubstr("idle"));
}

}  // namespace
}  // namespace resmgr
