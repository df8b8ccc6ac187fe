// SPDX-License-Identifier: Apache-2.0
// Claims over kills of the daemon, the agent and the kubelet, over changes of the policy, and
// before disks that hang: none is forgotten, no CPU leaks, and nothing moves.
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <random>
#include <string>

#include <fmt/format.h>

#include "test/integration/agent/claims_fixture.h"
#include "test/support/hanging_disk/hanging_disk.h"
#include "test/support/seed.h"

namespace resmgr::test {
namespace {

namespace fs = std::filesystem;

constexpr const char* kPolicies[] = {"static", "static-plus", "topology-aware"};

class ClaimsKillsTest : public ClaimsTest {
 protected:
  int Draw(int below) { return std::uniform_int_distribution<int>(0, below - 1)(random_); }
  // One of these may end at any time.
  void KillOne() {
    switch (Draw(3)) {
      case 0:
        return KillDaemon();
      case 1:
        return StartAgent();
      default:
        return;
    }
  }
  // The configuration names another policy, which the daemon takes while it runs or at its start.
  void ChangePolicy() {
    Configure(fmt::format("{{Active: {}, ReservedResources: {{CPU: 1}}}}",
                          kPolicies[Draw(static_cast<int>(std::size(kPolicies)))]));
    daemon_->process().Signal(SIGHUP);
  }

  const uint64_t seed_ = SeedOr(42);
  std::minstd_rand random_{static_cast<std::minstd_rand::result_type>(seed_)};
};

TEST_F(ClaimsKillsTest, KillsAtAnyPointForgetNoClaimAndLeakNoCpu) {
  SCOPED_TRACE(Repeat(seed_));
  metadata_ = true;
  Configure("{Active: static, ReservedResources: {CPU: 1}}");
  StartAll();
  CriClient client = Relayed();
  const Running shared = Run(client, MakeBestEffortPod("s"), MakeBestEffortContainer("main"));
  const CpuSet before = CpusAtRuntime(shared.container);
  ASSERT_THAT(Give("whole", 2), IsOk()) << Logs();
  const CpuSet whole = CpusOf("whole");
  const Running carrier = Run(client, MakeBestEffortPod("c"), Carrier("main", "whole"));
  for (int round = 0; round < 8; ++round) {
    const std::string name = fmt::format("c{}", round);
    Allocate(name, 1 + Draw(3));
    // Its answer may be lost.
    const auto lost = kubelet_.Prepare(kDriver, {Claim(name)}, milliseconds(1 + Draw(20)));
    KillOne();
    ASSERT_THAT(Prepare(name), IsOk()) << lost.status() << Logs();
    const CpuSet cpus = CpusOf(name);
    EXPECT_EQ(CpusByMetadata(name), cpus) << Logs();
    ChangePolicy();
    KillOne();
    if (Draw(2) == 0) ChangePolicy();
    ASSERT_THAT(Prepare(name), IsOk()) << Logs();
    EXPECT_EQ(CpusOf(name), cpus) << Logs();
    EXPECT_EQ(CpusByMetadata(name), cpus) << Logs();
    const auto gone = kubelet_.Unprepare(kDriver, {Claim(name)}, milliseconds(1 + Draw(20)));
    KillOne();
    ASSERT_THAT(Unprepare(name), IsOk()) << gone.status() << Logs();
    EXPECT_EQ(CpusAtRuntime(carrier.container), whole) << Logs();
  }
  Configure("{Active: static, ReservedResources: {CPU: 1}}");
  KillDaemon();
  EXPECT_THAT(client.StopContainer(carrier.container), IsOk());
  EXPECT_THAT(Unprepare("whole"), IsOk()) << Logs();
  EXPECT_TRUE(Eventually([&] { return CpusAtRuntime(shared.container) == before; })) << Logs();
  EXPECT_TRUE(SliceSays(kAllowed)) << Logs();
  // Files of claims that ended while no daemon ran are removed beside calls.
  EXPECT_TRUE(Eventually([this] {
    return fs::is_empty(Host("/var/run/cdi")) && fs::is_empty(Host(kMetadata));
  })) << Logs();
}

// The directory whose disk hangs: of the state, of the files for the runtime, or of metadata.
class ClaimsDiskTest : public ClaimsTest, public testing::WithParamInterface<const char*> {
 protected:
  HangingDisk disk_;
};

INSTANTIATE_TEST_SUITE_P(Disks, ClaimsDiskTest,
                         testing::Values("state", "host/var/run/cdi",
                                         "host/var/lib/kubelet/plugins/cri-resmgr.intel.com"));

TEST_P(ClaimsDiskTest, AKillBeforeADiskThatHangsForgetsNothing) {
  metadata_ = true;
  Configure("{Active: static, ReservedResources: {CPU: 1}}");
  fs::create_directories(Path(GetParam()));
  if (!disk_.MountOn(Path(GetParam()))) GTEST_SKIP() << "cannot mount FUSE file systems here";
  StartAll();
  CriClient client = Relayed();
  const Running shared = Run(client, MakeBestEffortPod("s"), MakeBestEffortContainer("main"));
  const CpuSet before = CpusAtRuntime(shared.container);
  ASSERT_THAT(Give("a", 2), IsOk()) << Logs();
  const CpuSet cpus = CpusOf("a");
  Allocate("b", 2);
  disk_.Hang();
  EXPECT_NE(ErrorOf("b"), "");
  const auto late = kubelet_.Prepare(kDriver, {Claim("b")}, milliseconds(50));
  const auto release = kubelet_.Unprepare(kDriver, {Claim("a")}, milliseconds(50));
  daemon_->Kill();
  disk_.Answer();
  StartDaemonWithClaims();
  ASSERT_TRUE(Registered());
  ASSERT_THAT(Prepare("a"), IsOk()) << release.status() << Logs();
  ASSERT_THAT(Prepare("b"), IsOk()) << late.status() << Logs();
  EXPECT_EQ(CpusOf("a").size(), cpus.size());
  EXPECT_FALSE(CpusOf("a").Intersects(CpusOf("b")));
  for (const std::string name : {"a", "b"})
    EXPECT_THAT(Unprepare(name), IsOk()) << Logs();
  EXPECT_TRUE(Eventually([&] { return CpusAtRuntime(shared.container) == before; })) << Logs();
  EXPECT_TRUE(SliceSays(kAllowed)) << Logs();
  for (const std::string name : {"a", "b"}) {
    EXPECT_FALSE(fs::exists(CdiFile(name)));
    EXPECT_TRUE(Metadata(name).is_null());
  }
}

}  // namespace
}  // namespace resmgr::test
