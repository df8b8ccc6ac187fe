// SPDX-License-Identifier: Apache-2.0
// An NRI plugin in mode docker in front of a real dockerd: its changes are in the container, and it
// gets the events.
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/nri/testing/fake_plugin.h"
#include "pkg/sys/event_loop.h"
#include "pkg/sys/unix_socket.h"
#include "test/e2e/docker/cli_transcript.h"
#include "test/e2e/docker/docker_node.h"
#include "test/e2e/docker/docker_pods.h"
#include "test/support/status_matchers.h"

namespace resmgr::test {
namespace {

using nri::test::FakePlugin;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;

class DockerNriTest : public ::testing::Test {
 protected:
  ~DockerNriTest() override {
    if (HasFailure() && node_ != nullptr) GTEST_LOG_(INFO) << node_->daemon().Log();
    OnLoop([this] { plugin_.reset(); });
    loop_.Stop();
    thread_.join();
    node_.reset();
    if (!directory_.empty()) std::filesystem::remove_all(directory_);
  }

  void OnLoop(const std::function<void()>& task) {
    std::promise<void> done;
    loop_.Post([&] {
      task();
      done.set_value();
    });
    done.get_future().wait();
  }
  void Open() {
    char name[] = "/tmp/resmgr-nri-XXXXXX";
    ASSERT_NE(::mkdtemp(name), nullptr);
    directory_ = name;
    const std::string socket = directory_ / "nri.sock";
    auto node = DockerNode::Start({.flags = {"-nri-host", socket}});
    ASSERT_THAT(node, IsOk());
    node_ = *std::move(node);
    pods_ = std::make_unique<DockerPods>(node_->socket(), node_->dockerd().CgroupParent());
    ASSERT_THAT(WaitUntil("the host of plugins listens", kPodPatience,
                          [&] { return ConnectUnix(socket).ok(); }),
                IsOk());
    OnLoop([&] {
      plugin_ = std::make_unique<FakePlugin>(loop_, *ConnectUnix(socket));
      plugin_->create = [this](const nri::test::api::CreateContainerRequest&) { return Wanted(); };
    });
    ASSERT_THAT(WaitUntil("the plugin has what is there", kPodPatience,
                          [this] {
                            bool synchronized = false;
                            OnLoop([&] { synchronized = plugin_->synchronized; });
                            return synchronized;
                          }),
                IsOk());
  }
  nri::test::api::CreateContainerResponse Wanted() const {
    nri::test::api::CreateContainerResponse response;
    auto& adjust = *response.mutable_adjust();
    auto& variable = *adjust.add_env();
    variable.set_key("FROM_PLUGIN");
    variable.set_value("yes");
    auto& mount = *adjust.add_mounts();
    mount.set_destination("/of-plugin");
    mount.set_source(directory_.string());
    mount.set_type("bind");
    mount.add_options("rbind");
    mount.add_options("ro");
    (*adjust.mutable_annotations())["mark"] = "1";
    auto& resources = *adjust.mutable_linux()->mutable_resources();
    resources.mutable_cpu()->mutable_shares()->set_value(345);
    resources.mutable_pids()->set_limit(123);
    auto& limit = *adjust.add_rlimits();
    limit.set_type("RLIMIT_NOFILE");
    limit.set_hard(200);
    limit.set_soft(100);
    adjust.add_env()->set_key("-OF_IMAGE");
    auto& policy = *adjust.mutable_linux()->mutable_seccomp_policy();
    policy.set_default_action("SCMP_ACT_ALLOW");
    auto& call = *policy.add_syscalls();
    call.add_names("mkdir");
    call.add_names("mkdirat");
    call.set_action("SCMP_ACT_ERRNO");
    call.mutable_errno_ret()->set_value(EADDRNOTAVAIL);
    return response;
  }
  // The image of the pods has this variable from now on.
  static void SetInImage(CliTranscript& docker, const std::string& variable) {
    const std::string image(Dockerd::kBusyboxImage);
    docker.Run({"create", "--name", "changed", "--network", "none", image});
    EXPECT_EQ(docker.Run({"commit", "--change", "ENV " + variable, "changed", image}).exit_code, 0);
    docker.Run({"rm", "changed"});
  }
  std::vector<std::string> Told() {
    std::vector<std::string> told;
    OnLoop([&] { told = plugin_->told; });
    return told;
  }

  std::filesystem::path directory_;
  EventLoop loop_;
  std::thread thread_{[this] { loop_.Run(); }};
  std::unique_ptr<FakePlugin> plugin_;  // used on the loop
  std::unique_ptr<DockerNode> node_;
  std::unique_ptr<DockerPods> pods_;
};

TEST_F(DockerNriTest, WhatAPluginWantsIsInTheContainer) {
  ASSERT_NO_FATAL_FAILURE(Open());
  { std::ofstream(directory_ / "text") << "of the plugin"; }
  CliTranscript docker(node_->socket(), node_->directory());
  SetInImage(docker, "OF_IMAGE=yes");
  DockerPod pod = BurstableDockerPod("web", 300);
  ASSERT_THAT(pods_->Run(pod), IsOk());
  EXPECT_EQ(docker
                .Run({"exec", pod.container_id, "sh", "-c",
                      "echo $FROM_PLUGIN; cat /of-plugin/text; touch /of-plugin/x || echo ' ro'"})
                .output,
            "yes\nof the plugin ro\n");
  EXPECT_THAT(docker.Run({"exec", pod.container_id, "grep", "open files", "/proc/1/limits"}).output,
              MatchesRegex("Max open files +100 +200 +files +\n"));
  EXPECT_EQ(docker.Run({"exec", pod.container_id, "sh", "-c", "echo ${OF_IMAGE-not set}"}).output,
            "not set\n");
  const auto forbidden = docker.Run({"exec", pod.container_id, "mkdir", "/tmp/x"});
  EXPECT_THAT(forbidden.errors, HasSubstr("Cannot assign requested address"));
  const auto told = pods_->Inspect(pod.container_id);
  EXPECT_EQ(told["HostConfig"]["CpuShares"], 345);
  EXPECT_EQ(told["HostConfig"]["PidsLimit"], 123);
  EXPECT_EQ(told["Config"]["Labels"]["annotation.mark"], "1");
  EXPECT_THAT(pods_->Remove(pod), IsOk());
  EXPECT_THAT(Told(), Contains("RunPodSandbox web"));
  EXPECT_THAT(Told(), Contains("CreateContainer web/web"));
  EXPECT_THAT(Told(), Contains("StopContainer web/web"));
}

}  // namespace
}  // namespace resmgr::test
