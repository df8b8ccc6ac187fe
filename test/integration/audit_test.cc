// SPDX-License-Identifier: Apache-2.0
// What is shown of what a runtime makes of containers, in place of what it was asked for.
#include <string>

#include "test/integration/daemon_fixture.h"

namespace resmgr::test {
namespace {

class AuditTest : public DaemonTest {};

// As CRI-O's workloads do it: the container has other CPUs as soon as it is there. Audits are a
// minute apart.
TEST_F(AuditTest, OtherCpusThanAskedForAreToldSoonAfterTheCreation) {
  StartBoth();
  CriClient client = Relayed();
  const auto pod = client.RunPod(MakeGuaranteedPod("g"));
  ASSERT_THAT(pod, IsOk());
  const auto id =
      client.CreateContainer(*pod, MakeGuaranteedPod("g"), MakeGuaranteedContainer("main", 2));
  ASSERT_THAT(id, IsOk());
  ASSERT_EQ(CpusAtRuntime(*id).ToString(), "1-2");
  cri::UpdateContainerResourcesRequest request;
  request.set_container_id(*id);
  request.mutable_linux()->set_cpuset_cpus("6");
  cri::UpdateContainerResourcesResponse response;
  CriClient direct = Direct();
  ASSERT_TRUE(direct.Unary("UpdateContainerResources", request, &response).ok());
  EXPECT_THAT(client.StartContainer(*id), IsOk());
  EXPECT_TRUE(Logged("container default/g/main has drifted: cpuset.cpus is 6 at the runtime"));
}

}  // namespace
}  // namespace resmgr::test
