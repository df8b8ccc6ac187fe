// SPDX-License-Identifier: Apache-2.0
#include "pkg/model/snapshot.h"

#include <cstdint>
#include <limits>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/kube/cpu_arithmetic.h"
#include "pkg/model/container_facts.h"

namespace resmgr {
namespace {

using testing::IsEmpty;
using testing::Pair;
using testing::UnorderedElementsAre;

LinuxResources AsKubeletsState(int64_t milli_cpu) {
  LinuxResources stated;
  stated.cpu_shares = SharesFromMilliCpu({milli_cpu});
  if (milli_cpu > 0) stated.cpu_quota = QuotaFromMilliCpu({milli_cpu});
  stated.cpu_period = kDefaultCpuPeriod;
  return stated;
}

TEST(OverheadTest, IsWhatTheRuntimeClassSays) {
  LinuxResources stated = AsKubeletsState(250);
  stated.memory_limit = 120 << 20;
  EXPECT_EQ(OverheadFrom(stated), (Overhead{{250}, {120 << 20}}));
  EXPECT_TRUE(OverheadFrom(LinuxResources()).empty());
}

// A larger overhead than the scheduler's would refuse pods that fit.
TEST(OverheadTest, IsNeverMoreThanTheSchedulerCounts) {
  for (int64_t milli_cpu = 0; milli_cpu <= 5000; ++milli_cpu) {
    const int64_t read = OverheadFrom(AsKubeletsState(milli_cpu)).cpu.value;
    EXPECT_LE(read, milli_cpu);
    EXPECT_EQ(read, milli_cpu < 3 ? 0 : milli_cpu);
  }
}

TEST(OverheadTest, QuotaOrSharesAloneAreEnough) {
  LinuxResources quota;
  quota.cpu_quota = 25'000;
  EXPECT_EQ(OverheadFrom(quota).cpu, MilliCpu{250});
  quota.cpu_period = 50'000;
  EXPECT_EQ(OverheadFrom(quota).cpu, MilliCpu{500});
  quota.cpu_shares = kMinShares;
  EXPECT_EQ(OverheadFrom(quota).cpu, MilliCpu{500});
  LinuxResources shares;
  shares.cpu_shares = 256;
  shares.cpu_quota = -1;
  EXPECT_EQ(OverheadFrom(shares).cpu, MilliCpu{250});
}

TEST(OverheadTest, AbsurdAmountsCannotOverflowSums) {
  LinuxResources stated;
  stated.cpu_quota = std::numeric_limits<int64_t>::max();
  stated.cpu_period = 1;
  stated.memory_limit = std::numeric_limits<int64_t>::max();
  const Overhead most = OverheadFrom(stated);
  EXPECT_LE(most.cpu.value, 1'000'000);
  EXPECT_LE(most.memory.value, int64_t{1} << 44);
  stated.cpu_quota = stated.memory_limit = std::numeric_limits<int64_t>::min();
  EXPECT_TRUE(OverheadFrom(stated).empty());
}

constexpr const char* kAnnotation =
    R"({"initContainers":{"proxy":{"requests":{"cpu":"100m"}}},
        "containers":{"db":{"limits":{"cpu":1,"hugepages-1Gi":"2Gi","example.com/nic":2}}}})";

// One pod with these containers.
class OnePod : public Snapshot {
 public:
  Overhead OverheadOf(const Pod&) const override { return {}; }
  HeldOverheads Overheads() const override { return {}; }
  Container& Add(std::string_view name, ContainerState state) {
    Container& container = containers.emplace_back();
    container.key = ContainerKey{containers.size()};
    container.pod_id = pod.id;
    container.name = name;
    container.state = state;
    return container;
  }
  const Pod* FindPod(const PodSandboxId&) const override { return &pod; }
  const Container* FindContainer(ContainerKey) const override { return nullptr; }
  void ForEachContainer(
      const std::function<void(const Pod&, const Container&)>& visit) const override {
    for (const Container& container : containers)
      visit(pod, container);
  }

  Pod pod;
  std::vector<Container> containers;
};

TEST(ContainerFactsTest, TheAnnotationWinsOverHugePageLimits) {
  Pod pod;
  Container container;
  container.name = "db";
  container.requested.hugepage_limits = {{"2MB", 4096}, {"1GB", 0}, {"odd", 1}};
  EXPECT_THAT(OtherResources(pod, container),
              UnorderedElementsAre(Pair("hugepages-2Mi", 4096), Pair("hugepages-odd", 1)));
  pod.annotations.Set("intel.com/resources", "no JSON");
  EXPECT_THAT(OtherResources(pod, container), testing::SizeIs(2));
  pod.annotations.Set("intel.com/resources", kAnnotation);
  EXPECT_THAT(
      OtherResources(pod, container),
      UnorderedElementsAre(Pair("hugepages-1Gi", int64_t{2} << 30), Pair("example.com/nic", 2)));
  container.name = "proxy";
  EXPECT_THAT(OtherResources(pod, container), IsEmpty()) << "named there with nothing of the kind";
}

TEST(ContainerFactsTest, RolesComeFromTheAnnotation) {
  OnePod node;
  node.containers.reserve(3);
  node.pod.annotations.Set("intel.com/resources", kAnnotation);
  const Container& proxy = node.Add("proxy", ContainerState::kRunning);
  EXPECT_EQ(RoleOf(node, node.pod, proxy), ContainerRole::kInit);
  const Container& db = node.Add("db", ContainerState::kCreating);
  EXPECT_EQ(RoleOf(node, node.pod, db), ContainerRole::kRegular);
  EXPECT_EQ(RoleOf(node, node.pod, proxy), ContainerRole::kSidecar);
  EXPECT_EQ(RoleOf(node, node.pod, node.Add("debugger", ContainerState::kRunning)),
            ContainerRole::kUnknown);
  node.containers[0].state = ContainerState::kExited;
  EXPECT_EQ(RoleOf(node, node.pod, proxy), ContainerRole::kInit);
  node.pod.annotations = {};
  EXPECT_EQ(RoleOf(node, node.pod, db), ContainerRole::kUnknown);
  EXPECT_EQ(ToString(ContainerRole::kSidecar), "sidecar");
}

}  // namespace
}  // namespace resmgr
