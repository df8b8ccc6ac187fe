// SPDX-License-Identifier: Apache-2.0
// Handlers that are aliases: hook servers see the kubelet's handler, the runtime its own.
#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/integration/hooks/hook_rows_fixture.h"

namespace resmgr::test {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

class HookAliasesTest : public HookRowsTest {
 protected:
  HookAliasesTest() {
    std::ofstream(Path("node.yaml")) << "runtimeClasses:\n"
                                     << "  runc-told: {Handler: runc}\n"
                                     << "  runc-quiet: {Handler: runc, Hooks: false}\n";
  }
  std::vector<std::string> WithAliases() const { return {"-config", Path("node.yaml")}; }

  std::string RunPod(CriClient& client, const std::string& name, const std::string& handler) {
    const auto pod = client.RunPod(MakeBestEffortPod(name), handler);
    EXPECT_THAT(pod, IsOk());
    return pod.value_or("");
  }
  std::string HandlerAtRuntime(const std::string& pod) {
    return runtime_.WithStore(
        [&pod](CriStore& store) { return store.sandboxes().at(pod).runtime_handler; });
  }
  void Create(CriClient& client, const std::string& pod, const std::string& name) {
    EXPECT_THAT(
        client.CreateContainer(pod, MakeBestEffortPod(name), MakeBestEffortContainer("main")),
        IsOk());
  }
};

TEST_F(HookAliasesTest, ServersSeeTheAliasAlsoAfterARestart) {
  const auto server = Serve("a");
  PutFile("10.json", FileText(Path("a.sock"), std::string(kRunPodPoint) + "," + kCreatePoint));
  StartNode(WithAliases());
  AwaitServers(1);
  std::string told;
  std::string quiet;
  {
    CriClient client = Relayed();
    told = RunPod(client, "told", "runc-told");
    quiet = RunPod(client, "quiet", "runc-quiet");
    EXPECT_EQ(HandlerAtRuntime(told), "runc");
    EXPECT_EQ(HandlerAtRuntime(quiet), "runc");
    const auto asked = Asked<hook_api::PodSandboxHookRequest>("a", "PreRunPodSandbox");
    ASSERT_THAT(asked, SizeIs(1));
    EXPECT_EQ(asked[0].runtime_handler(), "runc-told");
    Create(client, quiet, "quiet");
    EXPECT_THAT(Calls("a", "PreCreateContainer"), IsEmpty());
  }
  // Terminated and not killed: a killed daemon may lack notes of its last milliseconds.
  ASSERT_TRUE(daemon_->Terminate().ok());
  StartDaemonWithHooks(WithAliases());
  AwaitServers(1);
  CriClient client = Relayed();
  for (const std::string& pod : {quiet, told}) {
    cri::ContainerConfig container = MakeBestEffortContainer("after");
    EXPECT_THAT(
        client.CreateContainer(pod, MakeBestEffortPod(pod == told ? "told" : "quiet"), container),
        IsOk());
  }
  const auto asked = Asked<hook_api::ContainerResourceHookRequest>("a", "PreCreateContainer");
  ASSERT_THAT(asked, SizeIs(1)) << "whose class has Hooks: false is the alias's";
  EXPECT_EQ(asked[0].pod_meta().name(), "told");
}

}  // namespace
}  // namespace resmgr::test
