// SPDX-License-Identifier: Apache-2.0
// Containers that begin with PMEM alone under the real daemon: its timer, the start that the
// runtime reports, and a daemon that is killed meanwhile.
#include <string>

#include "test/integration/daemon_fixture.h"

namespace resmgr::test {
namespace {

// Node 0 has CPUs 0-7, node 2 is the PMEM beside it.
class ColdStartTest : public DaemonTest {
 protected:
  void SetUp() override { StartRuntime(); }

  void StartHere() {
    StartDaemon(
        Flags({"-policy", "topology-aware", "-reserved-resources", "CPU=1", "-available-resources",
               "CPU=0-7", "-topology", RESMGR_SOURCE_DIR "/test/data/topology/xeon-2s-pmem.xml"}));
  }

  // Runs it; returns its id.
  std::string RunCold(const std::string& duration) {
    CriClient client = Relayed();
    cri::PodSandboxConfig pod = MakeGuaranteedPod("etl");
    (*pod.mutable_annotations())["cold-start.resource-policy.nri.io"] = "duration: " + duration;
    return Run(client, pod, MakeGuaranteedContainer("load", 2)).container;
  }

  std::string MemsOf(const std::string& container) {
    const auto found = runtime_.FindContainer(container);
    return found ? found->resources.cpuset_mems() : "";
  }
};

TEST_F(ColdStartTest, IsCreatedWithPmemAloneAndGetsTheRestInTime) {
  StartHere();
  const std::string id = RunCold("300ms");
  EXPECT_EQ(runtime_.FindContainer(id)->config.linux().resources().cpuset_mems(), "2");
  const CpuSet cpus = CpusAtRuntime(id);
  EXPECT_TRUE(Eventually([&] { return MemsOf(id) == "0,2"; })) << MemsOf(id);
  EXPECT_EQ(CpusAtRuntime(id), cpus);
}

TEST_F(ColdStartTest, EndsUnderANewDaemonWhenTheOldOneWasKilled) {
  StartHere();
  const std::string id = RunCold("1s");
  daemon_->Kill();
  StartHere();
  EXPECT_TRUE(Eventually([&] { return MemsOf(id) == "0,2"; })) << MemsOf(id);
}

TEST_F(ColdStartTest, IsNotCutShortByANewDaemon) {
  StartHere();
  const std::string id = RunCold("1h");
  daemon_->Kill();
  StartHere();
  // The daemon places new containers only after it has taken over the running ones.
  CriClient client = Relayed();
  const Running other = Run(client, MakeGuaranteedPod("web"), MakeGuaranteedContainer("main", 2));
  EXPECT_EQ(MemsOf(other.container), "0,2");
  EXPECT_EQ(MemsOf(id), "2");
}

}  // namespace
}  // namespace resmgr::test
