// SPDX-License-Identifier: Apache-2.0
// One containerd with several RuntimeClass handlers, of which two are aliases that only we know.
#include <filesystem>
#include <regex>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "test/e2e/node_fixture.h"
#include "test/support/cri_client/cri_client.h"
#include "test/support/status_matchers.h"

namespace resmgr::test {
namespace {

using testing::HasSubstr;
using testing::UnorderedElementsAre;

constexpr const char* kClasses = R"(
runtimeClasses:
  second: {Pinning: sandbox}
  runc-pinned: {Handler: runc}
  quiet: {Handler: second, Pinning: none, Overhead: {cpu: 250m, memory: 64Mi}}
)";

class HandlersTest : public NodeTest {
 protected:
  HandlersTest() { Open({.config = kClasses}); }

  RunningPod RunWith(const std::string& handler, const Workload& workload) {
    RunningPod pod = node().NewPod(workload);
    const auto id = node().client().RunPod(pod.config, handler);
    EXPECT_THAT(id, IsOk()) << node().RelayLog();
    pod.pod_id = id.value_or("");
    const auto container =
        node().client().CreateContainer(pod.pod_id, pod.config, Node::ContainerConfig(workload));
    EXPECT_THAT(container, IsOk()) << node().RelayLog();
    pod.container_id = container.value_or("");
    EXPECT_THAT(node().client().StartContainer(pod.container_id), IsOk());
    return pod;
  }
  static cri::PodSandboxStatusResponse StatusBy(CriClient& client, const RunningPod& pod) {
    cri::PodSandboxStatusRequest request;
    request.set_pod_sandbox_id(pod.pod_id);
    request.set_verbose(true);
    cri::PodSandboxStatusResponse reply;
    EXPECT_TRUE(client.Unary("PodSandboxStatus", request, &reply).ok());
    return reply;
  }
  static std::string HandlerBy(CriClient& client, const RunningPod& pod) {
    return StatusBy(client, pod).status().runtime_handler();
  }
  std::vector<std::string> Listed() {
    cri::ListPodSandboxResponse list;
    EXPECT_TRUE(node().client().Unary("ListPodSandbox", cri::ListPodSandboxRequest(), &list).ok());
    std::vector<std::string> handlers;
    for (const auto& pod : list.items())
      handlers.push_back(pod.runtime_handler());
    return handlers;
  }
  // The overhead of all pods together besides their containers.
  nlohmann::json Overhead() {
    for (const nlohmann::json& pool : Ctl({"pools"})) {
      if (pool.contains("overhead")) return pool["overhead"];
    }
    return nullptr;
  }
  void RestartDaemon() {
    node().relay().Kill();
    ASSERT_THAT(node().StartRelay(), IsOk());
  }
};

// R01, with aliases: the handler that the client named decides which containers are bound, and not
// the handler behind it; the runtime gets its own names.
TEST_F(HandlersTest, R01EachHandlerIsTreatedAsItsClassSays) {
  const RunningPod pinned = RunWith("runc-pinned", Guaranteed("pinned", 1));
  const RunningPod shared = RunWith("", BestEffort("shared"));
  const RunningPod second = RunWith("second", BestEffort("second"));
  const RunningPod quiet = RunWith("quiet", BestEffort("quiet"));
  ASSERT_FALSE(HasFailure());
  // Unbound containers may run on any CPU.
  node().watch().Remove(second.container_id);
  node().watch().Remove(quiet.container_id);

  EXPECT_EQ(HandlerBy(node().runtime(), pinned), "runc");
  EXPECT_EQ(HandlerBy(node().runtime(), quiet), "second");
  const auto expect_all = [&](const char* when) {
    SCOPED_TRACE(when);
    EXPECT_THAT(Listed(), UnorderedElementsAre("runc-pinned", "", "second", "quiet"));
    EXPECT_EQ(HandlerBy(node().client(), quiet), "quiet");
    const auto status = StatusBy(node().client(), pinned);
    EXPECT_EQ(status.status().runtime_handler(), "runc-pinned");
    const auto names = [](const auto& told, const std::string& handler) {
      return told.info().at("info").find("\"runtimeHandler\":\"" + handler + '"') !=
             std::string::npos;
    };
    // containerd 2 does not name it there.
    EXPECT_EQ(names(status, "runc-pinned"), names(StatusBy(node().runtime(), pinned), "runc"));
    EXPECT_FALSE(names(status, "runc"));
    EXPECT_EQ(CpuSetOf(pinned).size(), 1U);
    ExpectOn(shared, All() - CpuSetOf(pinned));
    EXPECT_EQ(CpuSetOf(second), All()) << "no container cpuset for a sandbox of its own kernel";
    EXPECT_EQ(CpuSetOf(quiet), All());
    EXPECT_EQ(Overhead(), (nlohmann::json{{"cpu", 250}, {"memory", 64 << 20}}))
        << "as the class of the alias says";
  };
  expect_all("at first");
  const size_t updates = containerd().Updates();
  RestartDaemon();
  expect_all("after kill -9");
  node().containerd().Kill();
  ASSERT_THAT(node().RestartContainerd(), IsOk());
  expect_all("after a restart of containerd");
  EXPECT_EQ(containerd().Updates(), updates);

  const nlohmann::json runtimes = Ctl({"runtimes"});
  ASSERT_EQ(runtimes.size(), 1U);
  EXPECT_EQ(runtimes[0]["pods"], 4);
  EXPECT_EQ(runtimes[0]["containers"], 4);
  for (const RunningPod* const pod : {&pinned, &shared, &second, &quiet})
    Remove(*pod);
  EXPECT_THAT(Listed(), testing::IsEmpty());
  EXPECT_EQ(Overhead(), nullptr);
}

// Without the state, pods made with an alias are unknown: they count as pods of the runtime's
// handler, and running containers stay in place.
TEST_F(HandlersTest, LostStateLeavesTheRuntimesHandlers) {
  const RunningPod pinned = RunWith("runc-pinned", Guaranteed("pinned", 1));
  ASSERT_FALSE(HasFailure());
  const CpuSet before = CpuSetOf(pinned);
  node().relay().Kill();
  std::filesystem::remove_all(node().StateDirectory());
  ASSERT_THAT(node().StartRelay(), IsOk());
  EXPECT_EQ(HandlerBy(node().client(), pinned), "runc");
  EXPECT_EQ(CpuSetOf(pinned), before);
  Remove(pinned);
}

// R03: the runtime's own words.
TEST_F(HandlersTest, R03UnknownHandlerIsRefusedByTheRuntime) {
  const cri::PodSandboxConfig pod = node().PodConfig(BestEffort("unknown"));
  const auto refused = node().client().RunPod(pod, "nope");
  const auto directly = node().runtime().RunPod(pod, "nope");
  ASSERT_FALSE(refused.ok());
  // containerd 2 names the sandbox, each time another one.
  const auto words = [](const Status& status) {
    return std::regex_replace(std::string(Message(status)), std::regex("[0-9a-f]{64}"), "ID");
  };
  EXPECT_EQ(words(refused.status()), words(directly.status()));
  EXPECT_THAT(words(refused.status()), HasSubstr("nope"));
}

// R02: the overhead is stated by the kubelet, and read again from containerd.
TEST_F(HandlersTest, R02StatedOverheadIsRebuiltAfterARestart) {
  const Workload workload = BestEffort("vm");
  cri::PodSandboxConfig config = node().PodConfig(workload);
  auto& overhead = *config.mutable_linux()->mutable_overhead();
  overhead.set_cpu_shares(256);
  overhead.set_cpu_period(100'000);
  overhead.set_cpu_quota(25'000);
  overhead.set_memory_limit_in_bytes(120 << 20);
  const auto pod = Ok(node().client().RunPod(config, "second"));
  const nlohmann::json stated = {{"cpu", 250}, {"memory", 120 << 20}};
  EXPECT_EQ(Overhead(), stated);
  RestartDaemon();
  cri::ListPodSandboxResponse list;
  EXPECT_TRUE(node().client().Unary("ListPodSandbox", cri::ListPodSandboxRequest(), &list).ok());
  EXPECT_EQ(Overhead(), stated);
  EXPECT_THAT(node().client().StopPod(pod), IsOk());
  EXPECT_THAT(node().client().RemovePod(pod), IsOk());
  EXPECT_EQ(Overhead(), nullptr);
}

}  // namespace
}  // namespace resmgr::test
