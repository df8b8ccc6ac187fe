// SPDX-License-Identifier: Apache-2.0
// The report of differences between a runtime's containers and its requests.
#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "test/integration/daemon_fixture.h"
#include "test/support/programs/programs.h"

namespace resmgr::test {
namespace {

class AuditTest : public DaemonTest {
 protected:
  nlohmann::json Ctl(std::vector<std::string> command) {
    command.insert(command.begin(), {Program("cri-resmgr-ctl"), "-socket", Path("admin.sock")});
    const auto ctl = ChildProcess::Start(command, Path("ctl.log"));
    EXPECT_TRUE(ctl.ok() && (*ctl)->Wait(kPatience).ok());
    const std::string text = TextOf(Path("ctl.log"));
    std::filesystem::remove(Path("ctl.log"));
    return nlohmann::json::parse(text, nullptr, false);
  }
};

// The container has other CPUs from its creation, as with CRI-O's workloads. Audits are a minute
// apart.
TEST_F(AuditTest, OtherCpusThanAskedForAreToldSoonAfterTheCreation) {
  CriClient client = Started();
  const std::string pod = Ok(client.RunPod(MakeGuaranteedPod("g")));
  const std::string id =
      Ok(client.CreateContainer(pod, MakeGuaranteedPod("g"), MakeGuaranteedContainer("main", 2)));
  ASSERT_EQ(CpusAtRuntime(id).ToString(), "1-2");
  cri::UpdateContainerResourcesRequest request;
  request.set_container_id(id);
  request.mutable_linux()->set_cpuset_cpus("6");
  cri::UpdateContainerResourcesResponse response;
  CriClient direct = Direct();
  ASSERT_TRUE(direct.Unary("UpdateContainerResources", request, &response).ok());
  EXPECT_THAT(client.StartContainer(id), IsOk());
  EXPECT_TRUE(Logged("container default/g/main has drifted: cpuset.cpus is 6 at the runtime"));
}

// The runtime still reports its former CPUs.
TEST_F(AuditTest, AnEndedContainerHasNoCpusBeforeAndAfterARestart) {
  CriClient client = Started();
  const Running ended = Run(client, MakeGuaranteedPod("g"), MakeGuaranteedContainer("main", 2));
  EXPECT_THAT(client.StopContainer(ended.container), IsOk());
  const auto cpus = [this, &ended] {
    const auto containers = Ctl({"containers", "-o", "json"});
    EXPECT_EQ(containers.size(), 1U);
    if (containers.empty()) return std::string("none");
    EXPECT_EQ(containers[0].value("id", ""), ended.container);
    EXPECT_EQ(containers[0].value("state", ""), "exited");
    return containers[0].value("cpus", "?") + "/" + containers[0].value("mems", "?");
  };
  EXPECT_EQ(cpus(), "/");
  ASSERT_THAT(daemon_->Terminate(), IsOk());
  StartDaemon(StaticFlags());
  ASSERT_TRUE(Eventually([this] { return Ctl({"containers", "-o", "json"}).size() == 1; }));
  EXPECT_EQ(cpus(), "/");
}

TEST_F(AuditTest, CallsOfTheOnlyRuntimeAreNotCounted) {
  StartBoth();
  const auto runtimes = Ctl({"runtimes", "-o", "json"});
  ASSERT_EQ(runtimes.size(), 1U);
  EXPECT_TRUE(runtimes[0]["calls"].is_null());
  EXPECT_TRUE(runtimes[0]["errors"].is_null());
}

}  // namespace
}  // namespace resmgr::test
