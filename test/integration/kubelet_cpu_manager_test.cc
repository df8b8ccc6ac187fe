// SPDX-License-Identifier: Apache-2.0
// A kubelet whose own CPU Manager is on, too.
#include <string>
#include <string_view>

#include "test/integration/control_fixture.h"

namespace resmgr::test {
namespace {

using testing::HasSubstr;

constexpr std::string_view kWarning = "set cpuManagerPolicy to none";

class KubeletCpuManagerTest : public ControlTest {
 protected:
  // Updates the container as the kubelet's CPU Manager does for each one.
  static Status Reconcile(CriClient& client, const Running& running, const std::string& cpus) {
    cri::LinuxContainerResources resources;
    resources.set_cpuset_cpus(cpus);
    return client.UpdateContainer(running.container, resources);
  }
};

TEST_F(KubeletCpuManagerTest, IsOverriddenAndReportedOnce) {
  StartWithMetrics({});
  CriClient client = Relayed();
  const Running exclusive = Run(client, MakeGuaranteedPod("g"), MakeGuaranteedContainer("main", 2));
  const Running shared = Run(client, MakeBestEffortPod("s"), MakeBestEffortContainer("main"));
  const CpuSet own = CpusAtRuntime(exclusive.container);
  const CpuSet rest = CpusAtRuntime(shared.container);

  EXPECT_THAT(Reconcile(client, exclusive, own.ToString()), IsOk());
  EXPECT_THAT(Reconcile(client, shared, rest.ToString()), IsOk());
  EXPECT_THAT(Counts(), HasSubstr("\ncri_resmgr_overridden_cpusets_total 0"));

  EXPECT_THAT(Reconcile(client, exclusive, rest.ToString()), IsOk());
  EXPECT_THAT(Reconcile(client, shared, own.ToString()), IsOk());
  EXPECT_EQ(CpusAtRuntime(exclusive.container), own);
  EXPECT_EQ(CpusAtRuntime(shared.container), rest);
  EXPECT_THAT(Counts(), HasSubstr("\ncri_resmgr_overridden_cpusets_total 2"));
  ASSERT_TRUE(Logged(kWarning));
  const std::string log = daemon_->Log();
  EXPECT_THAT(log, HasSubstr("an update asks for CPUs " + rest.ToString() +
                             " for container default/g/main, which gets " + own.ToString()));
  EXPECT_EQ(log.find(kWarning), log.rfind(kWarning)) << log;
}

}  // namespace
}  // namespace resmgr::test
