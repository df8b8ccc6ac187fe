// SPDX-License-Identifier: Apache-2.0
// In-place resize of running containers: the kubelet's requests, and the resulting CPUs.
#include <algorithm>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/e2e/node_fixture.h"

namespace resmgr::test {
namespace {

using ::testing::HasSubstr;

class ResizeTest : public NodeTest, public ::testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override { Open({.policy = GetParam()}); }

  static bool IsPlus() { return std::string_view(GetParam()) == "static-plus"; }
  // The CPUs of shared containers beside these exclusive ones.
  static CpuSet SharedBeside(const CpuSet& exclusive) {
    if (!IsPlus()) return All() - exclusive;
    const CpuSet shared = Unreserved() - exclusive;
    return shared.empty() ? CpuSet{0} : shared;
  }
};

TEST_P(ResizeTest, ASharedContainerGetsCpusOfItsOwnAndGivesThemBack) {
  const RunningPod neighbour = Run(Burstable("neighbour", MilliCpu{100}));
  RunningPod pod = Run(Sized("pod", {500}));
  EXPECT_EQ(CpuSetOf(pod), SharedBeside({}));

  for (int round = 0; round < 2; ++round) {
    Resize(Guaranteed("pod", 1), &pod);
    const Status alone = WaitUntil("it is alone", kPatience, [&] {
      const CpuSet own = CpuSetOf(pod);
      return own.size() == 1 && CpuSetOf(neighbour) == SharedBeside(own);
    });
    ASSERT_TRUE(alone.ok()) << CpusOf(pod) << " beside " << CpusOf(neighbour);
    EXPECT_FALSE(CpuSetOf(pod).Contains(0)) << "which is reserved";
    EXPECT_TRUE(HasQuota(pod, -1));
    node().Watch(pod);

    Resize(Sized("pod", {500}), &pod);
    ExpectOn(pod, SharedBeside({}));
    ExpectOn(neighbour, SharedBeside({}));
    EXPECT_TRUE(HasShares(pod, 512));
    EXPECT_TRUE(HasQuota(pod, 50000));
  }
}

TEST_P(ResizeTest, AnExclusiveContainerGrowsAsFarAsThereIsRoomAndKeepsItsCpus) {
  const int most = std::min(Unreserved().size(), 4);
  if (most < 2) GTEST_SKIP() << "beside a reserved CPU it takes two more to grow";
  const RunningPod neighbour = Run(BestEffort("neighbour"));
  RunningPod pod = Run(Guaranteed("pod", 1));
  CpuSet own = CpuSetOf(pod);
  for (int cpus = 2; cpus <= most; ++cpus) {
    Resize(Guaranteed("pod", cpus), &pod);
    const Status grown =
        WaitUntil("it has grown", kPatience, [&] { return CpuSetOf(pod).size() == cpus; });
    ASSERT_TRUE(grown.ok()) << CpusOf(pod);
    EXPECT_TRUE(own.IsSubsetOf(CpuSetOf(pod))) << own.ToString() << " to " << CpusOf(pod);
    own = CpuSetOf(pod);
    ExpectOn(neighbour, SharedBeside(own));
    EXPECT_TRUE(HasShares(pod, 1024 * cpus));
  }
  node().Watch(pod);

  Resize(Guaranteed("pod", 1), &pod);
  EXPECT_EQ(CpuSetOf(pod).size(), 1);
  EXPECT_TRUE(CpuSetOf(pod).IsSubsetOf(own));
  ExpectOn(neighbour, SharedBeside(CpuSetOf(pod)));
  node().Watch(pod);
}

TEST_P(ResizeTest, AResizeThatFitsNowhereIsRefusedAndChangesNothing) {
  const RunningPod neighbour = Run(BestEffort("neighbour"));
  RunningPod pod = Run(Guaranteed("pod", 1));
  const auto places = PlacesOf(pod, neighbour);
  const size_t updates = containerd().Updates();
  const Status refused = node().Resize(Guaranteed("pod", All().size()), &pod);
  EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument) << "one CPU is reserved";
  EXPECT_THAT(std::string(Message(refused)), HasSubstr("pod/pod"));
  node().Watch(pod);
  EXPECT_EQ(PlacesOf(pod, neighbour), places);
  EXPECT_EQ(containerd().Updates(), updates);
  EXPECT_TRUE(HasShares(pod, 1024));
  EXPECT_TRUE(HasQuota(pod, -1));
}

// A kubelet repeats all former values when it changes the memory.
TEST_P(ResizeTest, OnlyMoreMemoryLeavesTheCpusAlone) {
  const RunningPod neighbour = Run(BestEffort("neighbour"));
  RunningPod pod = Run(Guaranteed("pod", 1));
  const auto places = PlacesOf(pod, neighbour);
  for (const int64_t mebibytes : {64, 96, 80}) {
    Workload resized = Guaranteed("pod", 1);
    resized.memory_limit = Bytes{mebibytes << 20};
    Resize(resized, &pod);
    node().Watch(pod);
    EXPECT_EQ(containerd().CgroupMemoryLimit(pod.container_id), resized.memory_limit.value);
    EXPECT_EQ(PlacesOf(pod, neighbour), places);
    EXPECT_TRUE(HasShares(pod, 1024));
    EXPECT_TRUE(HasQuota(pod, -1)) << "the kubelet's quota is not taken over";
  }
}

TEST_P(ResizeTest, ASharedContainerThatIsResizedStaysWhereItIs) {
  RunningPod pod = Run(Burstable("pod", MilliCpu{250}));
  const RunningPod exclusive = Run(Guaranteed("exclusive", 1));
  const CpuSet own = CpuSetOf(exclusive);
  EXPECT_EQ(CpuSetOf(pod), SharedBeside(own));
  for (const int64_t milli : {750, 125}) {
    Resize(Burstable("pod", MilliCpu{milli}), &pod);
    EXPECT_EQ(CpuSetOf(pod), SharedBeside(own));
    EXPECT_TRUE(HasShares(pod, milli * 1024 / 1000));
  }
  EXPECT_EQ(CpuSetOf(exclusive), own);
}

TEST_P(ResizeTest, AFractionComesFromTheSharedCpus) {
  if (!IsPlus()) GTEST_SKIP() << "containers of the static policy are shared or exclusive";
  const RunningPod neighbour = Run(BestEffort("neighbour"));
  RunningPod pod = Run(Guaranteed("pod", 1));
  const CpuSet own = CpuSetOf(pod);
  Resize(Sized("pod", {1500}), &pod);
  ExpectOn(pod, own | SharedBeside(own));
  EXPECT_EQ(CpuSetOf(neighbour), SharedBeside(own)) << "not on the CPU that is the other's own";
  EXPECT_TRUE(HasQuota(pod, 150000));
  Resize(Sized("pod", {1250}), &pod);
  EXPECT_EQ(CpuSetOf(pod), own | SharedBeside(own)) << "another fraction of the same CPUs";
  EXPECT_TRUE(HasQuota(pod, 125000));
  EXPECT_TRUE(HasShares(pod, 1280));
  Resize(Guaranteed("pod", 1), &pod);
  ExpectOn(pod, own);
  EXPECT_TRUE(HasQuota(pod, -1));
  EXPECT_EQ(CpuSetOf(neighbour), SharedBeside(own));
}

INSTANTIATE_TEST_SUITE_P(Containerd, ResizeTest, ::testing::Values("static-plus"),
                         [](const auto&) { return "StaticPlus"; });
INSTANTIATE_TEST_SUITE_P(Long, ResizeTest, ::testing::Values("static"),
                         [](const auto&) { return "Static"; });

}  // namespace
}  // namespace resmgr::test
