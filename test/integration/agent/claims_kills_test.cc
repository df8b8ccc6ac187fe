// SPDX-License-Identifier: Apache-2.0
// Claims over kills of the daemon, the agent and the kubelet, over changes of the policy, and
// before disks that hang: none is forgotten, no CPU leaks, and nothing moves.
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "test/integration/agent/claims_fixture.h"
#include "test/support/hanging_disk/hanging_disk.h"
#include "test/support/nri_runtime/nri_runtime.h"
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

// Claims where the daemon is a plugin of the runtime's NRI: containers show them by the variables
// that the runtime made of CDI devices, and that users may type.
class ClaimsOnNriTest : public ClaimsTest {
 protected:
  ClaimsOnNriTest() {
    auto nri = NriRuntime::Start(Path("nri.sock"), {.name = "cri-o", .version = "1.34.0"});
    EXPECT_THAT(nri, IsOk());
    nri_ = *std::move(nri);
  }
  void StartOnNri() {
    StartAgent();
    StartDaemon(ClaimFlags({"-mode", "nri-plugin", "-nri-socket", Path("nri.sock")}));
    ASSERT_TRUE(nri_->AwaitSynchronized(1));
    ASSERT_TRUE(Registered()) << daemon_->Log();
  }
  // The CPUs of a new container of pod "uid-POD" with a variable of this claim, or why it is
  // refused.
  std::string Created(const std::string& pod, const std::string& claim) {
    nri_api::CreateContainerRequest request = NriCreation(pod, 0);
    request.mutable_container()->add_env(VariableOf(claim) + "=1-4");
    const auto created = nri_->CreateContainer(request);
    return created.ok() ? created->adjust().linux().resources().cpu().cpus()
                        : Describe(created.status());
  }

  std::unique_ptr<NriRuntime> nri_;
};

TEST_F(ClaimsOnNriTest, D10AVariableCountsForThePodsThatTheClaimIsReservedFor) {
  StartOnNri();
  Allocate("a", {.cpus = 4, .pods = {"uid-mine"}});
  ASSERT_THAT(Prepare("a"), IsOk()) << Logs();
  EXPECT_THAT(Created("neighbour", "a"), testing::HasSubstr("prepared for other pods"));
  EXPECT_EQ(Created("mine", "a"), CpusOf("a").ToString()) << Logs();
}

TEST_F(ClaimsOnNriTest, D10AVariableOfNoClaimIsIgnoredAndTold) {
  StartOnNri();
  Allocate("a", 4);
  EXPECT_THAT(CpuSet::Parse(Created("early", "a")), IsOk()) << "nothing is held yet";
  EXPECT_TRUE(Logged("default/early/early shows " + VariableOf("a"))) << Logs();
  ASSERT_THAT(Prepare("a"), IsOk()) << Logs();
  const auto cpus = CpuSet::Parse(Created("typed", "never"));
  ASSERT_THAT(cpus, IsOk());
  EXPECT_FALSE(cpus->Intersects(CpusOf("a")));
  EXPECT_TRUE(Logged("default/typed/typed shows " + VariableOf("never"))) << Logs();
}

// Row D14: CPUs of the node go offline, in a description of a machine that the daemon takes for its
// own.

// Hides the cgroups of the host, which would restrict the machine, from the program behind it.
constexpr char kAlone[] = "mount -t tmpfs none /sys/fs/cgroup && exec \"$0\" \"$@\"";

class ClaimsOfflineTest : public ClaimsTest {
 protected:
  static constexpr char kCpuDirectory[] = "/sys/devices/system/cpu";

  // A machine of one node, all of whose cores have one thread.
  ClaimsOfflineTest() {
    for (int cpu = 0; cpu < kCpus; ++cpu) {
      const std::string topology = fmt::format("{}/cpu{}/topology/", kCpuDirectory, cpu);
      Put(topology + "core_id", std::to_string(cpu));
      Put(topology + "physical_package_id", "0");
      for (const char* const name : {"core_cpus", "thread_siblings"})
        Put(topology + name, fmt::format("{:x}", 1 << cpu));
      for (const char* const name : {"package_cpus", "core_siblings"})
        Put(topology + name, "ff");
    }
    for (const char* const name : {"possible", "present"})
      Put(fmt::format("{}/{}", kCpuDirectory, name), "0-7");
    SetOnline("0-7");
    const std::string nodes = "/sys/devices/system/node/";
    Put(nodes + "online", "0");
    Put(nodes + "node0/cpumap", "ff");
    Put(nodes + "node0/distance", "10");
    Put(nodes + "node0/meminfo", "Node 0 MemTotal: 16384000 kB\nNode 0 MemFree: 16384000 kB");
  }
  // Renamed into its place: the daemon reads it once a second.
  void Put(const std::string& path, std::string_view text) const {
    const std::string file = Path("machine") + path;
    fs::create_directories(fs::path(file).parent_path());
    std::ofstream(file + ".new") << text << "\n";
    fs::rename(file + ".new", file);
  }
  void SetOnline(std::string_view cpus) const {
    Put(fmt::format("{}/online", kCpuDirectory), cpus);
  }
  static bool CanHideCgroups() {
    return std::system("unshare -m mount -t tmpfs none /sys/fs/cgroup 2>/dev/null") == 0;
  }
  void StartOnMachine() {
    StartAgent();
    auto daemon =
        DaemonProcess::Start(ClaimFlags({"-topology", "live"}), Path("daemon.log"),
                             {"/usr/bin/env", "HWLOC_FSROOT=" + Path("machine"),
                              "HWLOC_COMPONENTS=-x86", "unshare", "-m", "sh", "-c", kAlone});
    ASSERT_THAT(daemon, IsOk());
    daemon_ = *std::move(daemon);
    ASSERT_TRUE(Registered()) << Logs();
  }
};

TEST_F(ClaimsOfflineTest, D14AnOfflineCpuLowersTheCapacityAndIsNotOfItsClaim) {
  if (!CanHideCgroups()) GTEST_SKIP() << "no mount namespaces here";
  StartOnMachine();
  ASSERT_TRUE(SliceSays(kAllowed)) << Logs();
  const int64_t before = Generation();
  SetOnline("0-6");
  EXPECT_TRUE(SliceSays(kAllowed - 1)) << Logs();
  EXPECT_EQ(Generation(), before + 1);
  ASSERT_THAT(Give("a", 4), IsOk()) << Logs();
  const CpuSet claimed = CpusOf("a");
  ASSERT_EQ(claimed.size(), 4);
  const int lost = *claimed.begin();
  CpuSet left = CpuSet::Range(0, 6);
  left.Remove(lost);
  SetOnline(left.ToString());
  EXPECT_TRUE(SliceSays(kAllowed - 2)) << Logs();
  EXPECT_TRUE(Eventually([&] { return CpusOf("a").size() == 4 && !CpusOf("a").Contains(lost); }))
      << "the policy has another one; " << CpusOf("a").ToString();
  CriClient client = Relayed();
  const Running carrier = Run(client, MakeBestEffortPod("c"), Carrier("main", "a"));
  EXPECT_EQ(CpusAtRuntime(carrier.container), CpusOf("a"));
  EXPECT_EQ(ErrorOf("a"), "");
  // Besides the reserved one there are three.
  SetOnline("0,2-4");
  EXPECT_TRUE(Eventually([&] {
    return CpusOf("a") == CpuSet({2, 3, 4});
  })) << CpusOf("a").ToString();
  EXPECT_TRUE(Eventually([&] { return CpusAtRuntime(carrier.container) == CpuSet({2, 3, 4}); }));
  EXPECT_THAT(ErrorOf("a"), testing::HasSubstr("has lost CPUs"));
  EXPECT_THAT(client.StopContainer(carrier.container), IsOk());
  EXPECT_THAT(Unprepare("a"), IsOk());
  SetOnline("0-7");
  EXPECT_TRUE(SliceSays(kAllowed)) << Logs();
}

}  // namespace
}  // namespace resmgr::test
