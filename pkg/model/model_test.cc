// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "pkg/model/container.h"
#include "pkg/model/plan.h"
#include "pkg/model/pod.h"
#include "pkg/model/resources.h"

namespace resmgr {
namespace {

TEST(PlacementTest, CarriesOnlyTheValuesThatItSets) {
  Placement placement;
  placement.pool = "shared";
  placement.reason = "a rule";
  EXPECT_TRUE(placement.values().empty());

  placement.cpu_quota = -1;
  const ResourceValues quota_only = placement.values();
  EXPECT_FALSE(quota_only.empty());
  EXPECT_EQ(quota_only.cpu_quota, -1);
  EXPECT_FALSE(quota_only.cpus.has_value());
}

TEST(ResourceValuesTest, RuntimesReadSetsAsKernelLists) {
  const ResourceValues values = {
      .cpus = CpuSet{0, 1, 2, 8}, .mems = NodeSet{1}, .cpu_shares = 2048, .cpu_period = 100'000};
  const LinuxResources resources = AsResources(values);
  EXPECT_EQ(resources.cpuset_cpus, "0-2,8");
  EXPECT_EQ(resources.cpuset_mems, "1");
  EXPECT_EQ(resources.cpu_shares, 2048);
  EXPECT_EQ(resources.cpu_period, 100'000);
  EXPECT_EQ(resources.cpu_quota, std::nullopt);
  EXPECT_EQ(ReadValues(resources), values);
}

TEST(ResourceValuesTest, ListsThatNameNoCpuAreNotSet) {
  LinuxResources resources;
  resources.cpuset_cpus = "";
  resources.cpuset_mems = "no list";
  EXPECT_TRUE(ReadValues(resources).empty());
}

TEST(ResourceValuesTest, DifferencesAreWhatIsWantedAndNotPresent) {
  const ResourceValues present = {
      .cpus = CpuSet{1}, .mems = NodeSet{0}, .cpu_shares = 2, .cpu_period = 100'000};
  EXPECT_TRUE(Difference(present, present).empty());
  EXPECT_TRUE(Difference({}, present).empty());
  const ResourceValues wanted = {.cpus = CpuSet{1, 2}, .cpu_shares = 2, .cpu_quota = -1};
  EXPECT_EQ(Difference(wanted, present), (ResourceValues{.cpus = CpuSet{1, 2}, .cpu_quota = -1}));
}

TEST(PlacementTest, EachPartOfADecisionCounts) {
  Placement a;
  a.cpus = CpuSet{1};
  a.pool = "shared";
  Placement b = a;
  b.lifted_to = CpuSet{5};
  EXPECT_TRUE(a.SameDecision(b)) << "no part of a policy's decision";
  EXPECT_EQ(b.EnforcedCpus(), CpuSet{1});
  b.pool = "reserved";
  EXPECT_FALSE(a.SameDecision(b));
  b = a;
  b.reason = "another rule";
  EXPECT_FALSE(a.SameDecision(b));
  EXPECT_EQ(a.values(), b.values());
  b = a;
  b.exclusive = CpuSet{1};
  EXPECT_FALSE(a.SameDecision(b));
  b = a;
  b.cpus.reset();
  b.lifted_to = CpuSet{5};
  EXPECT_FALSE(a.SameDecision(b));
  EXPECT_EQ(b.EnforcedCpus(), CpuSet{5});
}

TEST(PlanTest, FindsAChangeByItsKey) {
  Plan plan;
  plan.changes.push_back({ContainerKey{7}, {}});
  plan.changes.back().placement.pool = "shared";
  ASSERT_NE(plan.Find(ContainerKey{7}), nullptr);
  EXPECT_EQ(plan.Find(ContainerKey{7})->pool, "shared");
  EXPECT_EQ(plan.Find(ContainerKey{8}), nullptr);
}

TEST(PlanTest, SharedChangesLeaveWhatIsExclusive) {
  Container mixed;
  mixed.key = ContainerKey{3};
  mixed.placement.cpus = CpuSet{0, 1, 2};
  mixed.placement.exclusive = CpuSet{0};
  mixed.placement.pool = "exclusive";
  Container other;
  other.key = ContainerKey{4};
  Plan plan;
  EXPECT_TRUE(plan.empty());
  plan.shared.push_back({.cpus = CpuSet{2, 3}, .containers = {ContainerKey{1}, mixed.key}});
  plan.changes.push_back({ContainerKey{7}, {}});
  EXPECT_FALSE(plan.empty());
  EXPECT_EQ(plan.size(), 3u);
  const std::optional<Placement> placement = plan.NewPlacement(mixed);
  ASSERT_TRUE(placement.has_value());
  EXPECT_EQ(placement->cpus, (CpuSet{0, 2, 3}));
  EXPECT_EQ(placement->exclusive, CpuSet{0});
  EXPECT_EQ(placement->pool, "exclusive");
  EXPECT_FALSE(plan.NewPlacement(other).has_value());
}

TEST(LinuxResourcesTest, AnUpdateOverridesOnlyWhatItSets) {
  LinuxResources base;
  base.cpu_shares = 2048;
  base.cpu_quota = 200'000;
  base.cpuset_cpus = "0-3";
  base.hugepage_limits = {{"2MB", 1}, {"1GB", 2}};
  LinuxResources changes;
  changes.cpu_quota = -1;
  changes.memory_limit = 1 << 20;
  changes.cpuset_cpus = "";
  changes.hugepage_limits = {{"2MB", 7}};

  const LinuxResources merged = Merged(base, changes);
  EXPECT_EQ(merged.cpu_shares, 2048);
  EXPECT_EQ(merged.cpu_quota, -1);
  EXPECT_EQ(merged.memory_limit, 1 << 20);
  EXPECT_EQ(merged.cpuset_cpus, "");
  EXPECT_EQ(merged.hugepage_limits.at("2MB"), 7u);
  EXPECT_EQ(merged.hugepage_limits.at("1GB"), 2u);
  EXPECT_FALSE(merged.cpu_period.has_value());
}

TEST(NamesTest, AreThoseOfUsers) {
  EXPECT_EQ(ToString(ContainerState::kCreating), "creating");
  EXPECT_EQ(ToString(ContainerState::kExited), "exited");
  EXPECT_EQ(ToString(QosClass::kBestEffort), "BestEffort");
  Pod pod;
  pod.name = "web";
  pod.namespace_name = "shop";
  EXPECT_EQ(FullName(pod, "nginx"), "shop/web/nginx");
}

}  // namespace
}  // namespace resmgr
