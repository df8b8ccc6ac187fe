// SPDX-License-Identifier: Apache-2.0
// Pods in front of a real dockerd beside other programs that change them: a hook server, an NRI
// plugin, files of CPUs. After any restart or kill no container has moved, no CPU is lost, and the
// extension's values stay set.
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/e2e/docker/docker_pods_fixture.h"
#include "test/support/containerd/child_process.h"
#include "test/support/extensions/extensions.h"
#include "test/support/status_matchers.h"

namespace resmgr::test {
namespace {

class DockerCombinationsTest
    : public DockerPodsTest,
      public ::testing::WithParamInterface<std::tuple<std::string, std::string>> {
 protected:
  const std::string& beside() const { return std::get<1>(GetParam()); }
  bool ChangesShares() const { return beside() != "CpuFiles"; }

  void OpenNode() {
    ASSERT_NE(::mkdtemp(directory_.data()), nullptr);
    const std::string& policy = std::get<0>(GetParam());
    // topology-aware shares no reserved CPU, and two CPUs are all that machines may have.
    DockerNode::Options options{.policy = policy,
                                .reserved = policy == "topology-aware" ? "" : "cpuset:0"};
    if (beside() == "HookServer") options.flags = {"-hook-dir", File("hooks.d")};
    if (beside() == "Plugin") options.flags = {"-nri-host", File("nri.sock")};
    if (beside() == "CpuFiles") {
      std::ofstream(File("node.yaml")) << "cpuFiles: {Containers: all}\n";
      options.flags = {"-config", File("node.yaml")};
    }
    ASSERT_NO_FATAL_FAILURE(Open(options));
    if (beside() == "HookServer") {
      auto server = SharesHookServer::Start(File("hooks.d"), File("hooks.sock"), File("hooks.log"));
      ASSERT_THAT(server, IsOk());
      hook_server_ = *std::move(server);
    }
    if (beside() == "Plugin") plugin_ = std::make_unique<SharesPlugin>(File("nri.sock"));
    ExpectServing();
  }
  ~DockerCombinationsTest() override {
    plugin_.reset();
    std::filesystem::remove_all(directory_);
  }
  std::string File(const std::string& name) const { return directory_ + "/" + name; }

  void ExpectServing() {
    const Status serving = WaitUntil("all serve", kPodPatience, [this] {
      if (pods_->Ask("GET", "/containers/json?all=1").status != 200) return false;
      if (plugin_ != nullptr && !plugin_->synchronized()) return false;
      if (beside() != "HookServer") return true;
      const auto plugins = node_->Ctl("plugins");
      return plugins.ok() && plugins->find("\"ready\"") != std::string::npos;
    });
    ASSERT_THAT(serving, IsOk());
  }
  void Restart(int signal_number) {
    node_->daemon().process().Signal(signal_number);
    ASSERT_THAT(node_->daemon().process().Wait(kPodPatience), IsOk());
    ASSERT_THAT(node_->StartDaemon(), IsOk());
  }
  void RestartEngine() {
    node_->dockerd().Kill();
    ASSERT_THAT(node_->dockerd().Restart(), IsOk());
  }
  // CPUs at the process, CPUs and shares at dockerd.
  std::string InForce(const DockerPod& pod) const {
    const nlohmann::json config = pods_->Inspect(pod.container_id)["HostConfig"];
    return fmt::format("inside {} cpuset {} shares {}", pods_->CpusInside(pod).ToString(),
                       config.value("CpusetCpus", ""), config.value("CpuShares", int64_t{0}));
  }

  std::string directory_ = "/tmp/resmgr-docker-XXXXXX";
  std::unique_ptr<SharesHookServer> hook_server_;
  std::unique_ptr<SharesPlugin> plugin_;
};

TEST_P(DockerCombinationsTest, NothingMovesNothingLeaks) {
  OpenNode();
  if (HasFatalFailure()) return;
  const std::vector<DockerPod> all = {Run(BurstableDockerPod("shared", 300)),
                                      Run(GuaranteedDockerPod("exclusive", 1))};
  const CpuSet own = pods_->CpusInside(all[1]);
  EXPECT_EQ(own.size(), 1);
  std::map<std::string, std::string> before;
  for (const DockerPod& pod : all) {
    before[pod.name] = InForce(pod);
    const int64_t shares =
        pods_->Inspect(pod.container_id)["HostConfig"].value("CpuShares", int64_t{0});
    if (ChangesShares()) EXPECT_EQ(shares, kExtensionShares) << pod.name;
  }

  const std::vector<std::pair<std::string, std::function<void()>>> upsets = {
      {"SIGTERM", [this] { Restart(SIGTERM); }},
      {"kill -9", [this] { Restart(SIGKILL); }},
      {"dockerd is killed", [this] { RestartEngine(); }},
  };
  for (const auto& [what, upset] : upsets) {
    const ::testing::ScopedTrace trace(__FILE__, __LINE__, what);
    upset();
    if (HasFatalFailure()) return;
    ExpectServing();
    if (HasFatalFailure()) return;
    // A new container goes beside those that run.
    const DockerPod late = Run({.name = "late"});
    EXPECT_FALSE(pods_->CpusInside(late).Intersects(own));
    EXPECT_THAT(pods_->Remove(late), IsOk());
    for (const DockerPod& pod : all)
      EXPECT_EQ(InForce(pod), before[pod.name]) << pod.name;
  }

  EXPECT_THAT(node_->Ctl(DockerNode::Words{"uninstall", "-apply"}), IsOk());
  for (const DockerPod& pod : all) {
    const Status everywhere = WaitUntil("it may run everywhere", kPodPatience, [&] {
      return pods_->CpusInside(pod).size() > 1 && !(pods_->CpusInside(pod) & own).empty();
    });
    EXPECT_THAT(everywhere, IsOk()) << pod.name << ": " << InForce(pod);
  }
}

INSTANTIATE_TEST_SUITE_P(Dockerd, DockerCombinationsTest,
                         ::testing::Combine(::testing::Values("static", "static-plus",
                                                              "topology-aware"),
                                            ::testing::Values("HookServer", "Plugin", "CpuFiles")),
                         [](const auto& info) {
                           std::string name = std::get<0>(info.param) + std::get<1>(info.param);
                           std::erase(name, '-');
                           return name;
                         });

}  // namespace
}  // namespace resmgr::test
