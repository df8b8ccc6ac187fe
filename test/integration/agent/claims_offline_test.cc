// SPDX-License-Identifier: Apache-2.0
// Row D14: CPUs of the node go offline, in a description of a machine that the daemon takes for its
// own.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "test/integration/agent/claims_fixture.h"

namespace resmgr::test {
namespace {

namespace fs = std::filesystem;

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
