// SPDX-License-Identifier: Apache-2.0
// Rows K24 and K25 in front of a real dockerd: hook servers that are processes decide about pods as
// dockershim makes them.
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/e2e/docker/cli_transcript.h"
#include "test/e2e/docker/docker_node.h"
#include "test/e2e/docker/docker_pods.h"
#include "test/support/containerd/child_process.h"
#include "test/support/status_matchers.h"

namespace resmgr::test {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

class DockerHooksTest : public ::testing::Test {
 protected:
  void Open(const std::vector<std::string>& behaviour, DockerNode::Options options = {}) {
    char name[] = "/tmp/resmgr-hooks-XXXXXX";
    ASSERT_NE(::mkdtemp(name), nullptr);
    directory_ = name;
    std::filesystem::create_directory(directory_ / "d");
    const std::string socket = directory_ / "hook.sock";
    std::vector<std::string> argv = {RESMGR_BINARY_DIR
                                     "/test/support/hook_server/resmgr-hook-server",
                                     "-socket", socket, "-calls", directory_ / "calls"};
    argv.insert(argv.end(), behaviour.begin(), behaviour.end());
    auto server = ChildProcess::Start(argv, directory_ / "hook.log");
    ASSERT_THAT(server, IsOk());
    server_ = *std::move(server);
    std::ofstream(directory_ / "d" / "hook.json")
        << R"({"remote-endpoint": ")" << socket
        << R"(", "failure-policy": "Fail", "mode": "sparse",)"
        << R"("runtime-hooks": ["PreRunPodSandbox", "PreCreateContainer",)"
        << R"("PreUpdateContainerResources", "PostStopContainer"]})";
    options.flags.insert(options.flags.end(), {"-hook-dir", directory_ / "d"});
    auto node = DockerNode::Start(options);
    ASSERT_THAT(node, IsOk());
    node_ = *std::move(node);
    AwaitServer();
    pods_ = std::make_unique<DockerPods>(node_->socket(), node_->dockerd().CgroupParent());
    docker_ = std::make_unique<CliTranscript>(node_->socket(), node_->directory());
  }
  void AwaitServer() {
    ASSERT_THAT(WaitUntil("the hook server is ready", kPodPatience,
                          [this] {
                            const auto plugins = node_->Ctl("plugins");
                            return plugins.ok() && plugins->find("\"ready\"") != std::string::npos;
                          }),
                IsOk());
  }
  ~DockerHooksTest() override {
    if (HasFailure() && node_ != nullptr) GTEST_LOG_(INFO) << node_->daemon().Log();
    node_.reset();
    server_.reset();
    if (!directory_.empty()) std::filesystem::remove_all(directory_);
  }
  bool Asked(std::string_view hook) {
    return WaitUntil("the hook is asked", kPodPatience,
                     [&] {
                       return TextOf(directory_ / "calls").find(std::string(hook) + " ") !=
                              std::string::npos;
                     })
        .ok();
  }

  std::filesystem::path directory_;
  std::unique_ptr<ChildProcess> server_;
  std::unique_ptr<DockerNode> node_;
  std::unique_ptr<DockerPods> pods_;
  std::unique_ptr<CliTranscript> docker_;
};

TEST_F(DockerHooksTest, WhatAServerWantsIsInTheContainer) {
  ASSERT_NO_FATAL_FAILURE(Open(
      {"-sparse", "-env", "GPU=0,2", "-annotation", "mark=1", "-shares", "700", "-cpus", "1"}));
  DockerPod pod = BurstableDockerPod("web", 300);
  ASSERT_THAT(pods_->Run(pod), IsOk());
  EXPECT_EQ(pods_->CpusInside(pod).ToString(), "1");
  EXPECT_EQ(docker_->Run({"exec", pod.container_id, "sh", "-c", "echo $GPU"}).output, "0,2\n");
  const auto container = pods_->Inspect(pod.container_id);
  // K25: its answer has no cgroup parent.
  EXPECT_EQ(container["HostConfig"]["CgroupParent"], pods_->CgroupOf(pod));
  EXPECT_EQ(container["HostConfig"]["CpuShares"], 700);
  EXPECT_EQ(container["Config"]["Labels"]["annotation.mark"], "1");
  const auto sandbox = pods_->Inspect(pod.sandbox_id);
  EXPECT_EQ(sandbox["HostConfig"]["CgroupParent"], pods_->CgroupOf(pod));
  EXPECT_EQ(sandbox["Config"]["Labels"]["annotation.mark"], "1");

  // After kill -9 of the daemon the pod is known from dockerd alone.
  node_->daemon().process().Signal(SIGKILL);
  ASSERT_THAT(node_->daemon().process().Wait(kPodPatience), IsOk());
  ASSERT_THAT(node_->StartDaemon(), IsOk());
  AwaitServer();
  EXPECT_EQ(pods_->Update(pod, {{"CpuQuota", 20'000}}).status, 200);
  EXPECT_TRUE(Asked("PreUpdateContainerResources"));
  EXPECT_EQ(pods_->Inspect(pod.container_id)["HostConfig"]["CpuQuota"], 20'000);
  EXPECT_EQ(pods_->CpusInside(pod).ToString(), "1");
  EXPECT_THAT(pods_->Remove(pod), IsOk());
  EXPECT_TRUE(Asked("PostStopContainer"));
}

// The link by its own name and flags alone: policy null, and hook servers are asked.
TEST_F(DockerHooksTest, KoordRuntimeProxyIsThisMode) {
  ASSERT_NO_FATAL_FAILURE(
      Open({"-sparse", "-env", "GPU=0,2", "-shares", "700", "-cpus", "1"},
           {.flags = {"--runtime-hook-server-key", "skip", "--runtime-hook-server-val=yes"},
            .koord = true}));
  const std::string command =
      TextOf(fmt::format("/proc/{}/cmdline", node_->daemon().process().pid()));
  EXPECT_THAT(command.substr(0, command.find('\0')), EndsWith("/koord-runtime-proxy"));
  DockerPod pod = BurstableDockerPod("web", 300);
  ASSERT_THAT(pods_->Run(pod), IsOk());
  EXPECT_TRUE(Asked("PreRunPodSandbox"));
  EXPECT_TRUE(Asked("PreCreateContainer"));
  EXPECT_EQ(pods_->CpusInside(pod).ToString(), "1");
  EXPECT_EQ(docker_->Run({"exec", pod.container_id, "sh", "-c", "echo $GPU"}).output, "0,2\n");
  const auto container = pods_->Inspect(pod.container_id);
  EXPECT_EQ(container["HostConfig"]["CpuShares"], 700);
  EXPECT_EQ(container["HostConfig"]["CgroupParent"], pods_->CgroupOf(pod));
  EXPECT_THAT(pods_->Remove(pod), IsOk());
  EXPECT_TRUE(Asked("PostStopContainer"));

  // No server is asked about pods with that label.
  std::filesystem::resize_file(directory_ / "calls", 0);
  DockerPod skipped = BurstableDockerPod("skipped", 300);
  skipped.labels = {{"skip", "yes"}};
  ASSERT_THAT(pods_->Run(skipped), IsOk());
  EXPECT_EQ(pods_->Inspect(skipped.container_id)["HostConfig"]["CpuShares"], skipped.shares);
  EXPECT_EQ(TextOf(directory_ / "calls"), "");
}

// K24, for hook servers: a container outside of pods is the same as in front of dockerd.
TEST_F(DockerHooksTest, K24OtherContainersAreAsInFrontOfDockerd) {
  ASSERT_NO_FATAL_FAILURE(Open({"-env", "GPU=0,2", "-shares", "700"}));
  const std::string image(Dockerd::kBusyboxImage);
  const std::vector<CliTranscript::Arguments> commands = {
      {"run", "--rm", "--network", "none", image, "-c", "echo gpu=$GPU"},
      {"run", "-d", "--network", "none", "--name", "a.b-c_d", image, "-c", "sleep 1000"},
      {"exec", "a.b-c_d", "sh", "-c", "echo out; exit 7"},
      {"logs", "a.b-c_d"},
      {"inspect", "-f", "{{.HostConfig.CpuShares}}", "a.b-c_d"},
      {"rm", "-f", "a.b-c_d"},
      {"inspect", "no/such%2Fthing"}};
  for (const auto& command : commands) {
    const auto ours = docker_->Run(command);
    // Commands that only read are sent to dockerd itself as well.
    if (command[0] == "run" || command[0] == "rm") {
      EXPECT_EQ(ours.exit_code, 0) << ours.errors;
      continue;
    }
    CliTranscript beside(node_->dockerd().socket(), node_->directory());
    const auto theirs = beside.Run(command);
    EXPECT_EQ(ours.output, theirs.output);
    EXPECT_EQ(ours.errors, theirs.errors);
    EXPECT_EQ(ours.exit_code, theirs.exit_code);
  }
  EXPECT_EQ(TextOf(directory_ / "calls"), "");
}

TEST_F(DockerHooksTest, NoPodRunsWithoutAServerThatMayNotFail) {
  ASSERT_NO_FATAL_FAILURE(Open({}));
  server_->Signal(SIGKILL);
  ASSERT_THAT(server_->Wait(kPodPatience), IsOk());
  DockerPod pod{.name = "web"};
  const Status refused = pods_->RunSandbox(pod);
  EXPECT_THAT(std::string(Message(refused)), HasSubstr("hook.json"));
  EXPECT_EQ(docker_->Run({"ps", "-aq"}).output, "");
}

}  // namespace
}  // namespace resmgr::test
