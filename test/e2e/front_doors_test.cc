// SPDX-License-Identifier: Apache-2.0
// Rules that hold for each door: the relay in front of containerd, or a plugin of containerd's NRI,
// with the client speaking to containerd itself.
#include "test/e2e/front_doors.h"

#include <csignal>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace resmgr::test {
namespace {

using ::testing::HasSubstr;

class CpuFileTest : public FrontDoorsTest {
 protected:
  static std::string ExpectedCpuFile(const CpuSet& cpus, const CpuSet& exclusive) {
    return CpuFileOf(cpus, exclusive, TheMachine().node_ids().ToString());
  }
  void ExpectCpuFile(const RunningPod& pod, const CpuSet& cpus, const CpuSet& exclusive) {
    const std::string expected = ExpectedCpuFile(cpus, exclusive);
    const Status told =
        WaitUntil("the file follows", kPatience, [&] { return CpuFile(pod) == expected; });
    EXPECT_TRUE(told.ok()) << CpuFile(pod) << "in place of " << expected << node().RelayLog();
  }
};

TEST_P(FrontDoorsTest, ExclusiveContainersHaveTheirCpusAndSharedOnesLeaveThem) {
  OpenDoor();
  if (HasFatalFailure() || IsSkipped()) return;
  const RunningPod shared = Run(Burstable("shared", MilliCpu{300}));
  ExpectOn(shared, All());
  for (const char* const name : {"first", "second"}) {
    const RunningPod exclusive = Run(Guaranteed(name, 1));
    const CpuSet own = Inside(exclusive);
    EXPECT_EQ(own.size(), 1);
    EXPECT_TRUE((own - Unreserved()).empty());
    EXPECT_EQ(Inside(shared), All() - own);
    Remove(exclusive);
    ExpectOn(shared, All());
  }
  Remove(shared);
}

TEST_P(CpuFileTest, AContainerReadsItsCpusAndEachChange) {
  OpenDoor("static", "cpuFiles: {Containers: all}\n");
  if (HasFatalFailure() || IsSkipped()) return;
  const RunningPod shared = Run(Burstable("shared", MilliCpu{300}));
  EXPECT_EQ(CpuFile(shared), ExpectedCpuFile(All(), {})) << "from its first instruction on";
  const RunningPod exclusive = Run(Guaranteed("exclusive", 1));
  const CpuSet own = Inside(exclusive);
  EXPECT_EQ(CpuFile(exclusive), ExpectedCpuFile(own, own));
  ExpectCpuFile(shared, All() - own, {});
  RestartDaemon(SIGKILL);
  Remove(exclusive);
  ExpectOn(shared, All());
  ExpectCpuFile(shared, All(), {});
  RestartDaemon(SIGTERM);
  RunningPod resized = Run(Sized("resized", MilliCpu{500}));
  EXPECT_EQ(CpuFile(resized), ExpectedCpuFile(All(), {}));
  Resize(Guaranteed("resized", 1), &resized);
  const Status alone =
      WaitUntil("it has one CPU", kPatience, [&] { return CpuSetOf(resized).size() == 1; });
  ASSERT_TRUE(alone.ok()) << CpusOf(resized);
  ExpectCpuFile(resized, CpuSetOf(resized), CpuSetOf(resized));
  ExpectCpuFile(shared, All() - CpuSetOf(resized), {});
  Remove(resized);
  Remove(shared);
}

TEST_P(FrontDoorsTest, AResizeIsDecided) {
  OpenDoor();
  if (HasFatalFailure() || IsSkipped()) return;
  RunningPod pod = Run(Sized("pod", MilliCpu{500}));
  ExpectOn(pod, All());
  Resize(Guaranteed("pod", 1), &pod);
  const Status alone =
      WaitUntil("it has one CPU", kPatience, [&] { return CpuSetOf(pod).size() == 1; });
  EXPECT_TRUE(alone.ok()) << CpusOf(pod) << node().RelayLog();
  EXPECT_EQ(Inside(pod).size(), 1);
  Resize(Sized("pod", MilliCpu{500}), &pod);
  ExpectOn(pod, All());
  EXPECT_TRUE(HasShares(pod, 512));
}

TEST_P(FrontDoorsTest, AContainerThatDoesNotFitIsRefusedAndChangesNothing) {
  OpenDoor();
  if (HasFatalFailure() || IsSkipped()) return;
  const RunningPod shared = Run(BestEffort("shared"));
  const auto refused = node().Run(Guaranteed("large", All().size()));
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(std::string(Message(refused.status())), HasSubstr("cri-resmgr (static): needs"));
  ExpectOn(shared, All());
  Remove(Run(Guaranteed("small", 1)));
}

// Delivers a configuration as an agent does when a ConfigMap changes.
TEST_P(FrontDoorsTest, PoliciesThatAreDeliveredTakeOverWhatRuns) {
  OpenDoor("");
  if (HasFatalFailure() || IsSkipped()) return;
  const RunningPod shared = Run(Burstable("shared", MilliCpu{300}));
  EXPECT_EQ(Inside(shared), All());
  ASSERT_TRUE(node().Deliver("Active: static").ok()) << node().RelayLog();
  const RunningPod exclusive = Run(Guaranteed("exclusive", 1));
  const CpuSet own = Inside(exclusive);
  EXPECT_EQ(own.size(), 1);
  ExpectOn(shared, All() - own);

  const Status refused = node().Deliver("Active: no-such-policy");
  EXPECT_THAT(std::string(Message(refused)), HasSubstr("no-such-policy"));
  ASSERT_TRUE(node().Deliver("Active: static-plus").ok()) << node().RelayLog();
  EXPECT_EQ(Inside(exclusive), own);
  Remove(exclusive);
  // This keeps shared containers off the reserved CPU while there are others.
  ExpectOn(shared, Unreserved());
}

INSTANTIATE_TEST_SUITE_P(Containerd, FrontDoorsTest,
                         ::testing::Values(Door::kRelay, Door::kNriPlugin), NameOf);
INSTANTIATE_TEST_SUITE_P(Containerd, CpuFileTest, ::testing::Values(Door::kRelay, Door::kNriPlugin),
                         NameOf);

}  // namespace
}  // namespace resmgr::test
