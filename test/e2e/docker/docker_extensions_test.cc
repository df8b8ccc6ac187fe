// SPDX-License-Identifier: Apache-2.0
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/nri/testing/fake_plugin.h"
#include "pkg/sys/event_loop.h"
#include "pkg/sys/temp_dir.h"
#include "pkg/sys/unix_socket.h"
#include "test/e2e/docker/cli_transcript.h"
#include "test/e2e/docker/docker_node.h"
#include "test/e2e/docker/docker_pods.h"
#include "test/e2e/docker/docker_pods_fixture.h"
#include "test/support/containerd/child_process.h"
#include "test/support/extensions/extensions.h"
#include "test/support/status_matchers.h"

namespace resmgr::test {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

// Rows K24 and K25 in front of a real dockerd: hook servers that are processes decide about pods as
// dockershim makes them.
class DockerHooksTest : public DockerPodsTest {
 protected:
  void Open(const std::vector<std::string>& behaviour, DockerNode::Options options = {}) {
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
    DockerPodsTest::Open(options);
    AwaitServer();
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
    node_.reset();
    server_.reset();
  }
  bool Asked(std::string_view hook) {
    return WaitUntil("the hook is asked", kPodPatience,
                     [&] {
                       return TextOf(directory_ / "calls").find(std::string(hook) + " ") !=
                              std::string::npos;
                     })
        .ok();
  }

  const TempDir temporary_;
  const std::filesystem::path directory_ = temporary_.path();
  std::unique_ptr<ChildProcess> server_;
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

// An NRI plugin in mode docker in front of a real dockerd: its changes are in the container, and it
// gets the events.

using nri::test::FakePlugin;
using ::testing::Contains;
using ::testing::MatchesRegex;

class DockerNriTest : public DockerPodsTest {
 protected:
  ~DockerNriTest() override {
    OnLoop([this] { plugin_.reset(); });
    loop_.Stop();
    thread_.join();
    node_.reset();
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
    const std::string socket = directory_.File("nri.sock");
    DockerPodsTest::Open({.flags = {"-nri-host", socket}});
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
    mount.set_source(directory_.path());
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

  const TempDir directory_;
  EventLoop loop_;
  std::thread thread_{[this] { loop_.Run(); }};
  std::unique_ptr<FakePlugin> plugin_;  // used on the loop
};

TEST_F(DockerNriTest, WhatAPluginWantsIsInTheContainer) {
  ASSERT_NO_FATAL_FAILURE(Open());
  { std::ofstream(directory_.File("text")) << "of the plugin"; }
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

// Pods in front of a real dockerd beside other programs that change them: a hook server, an NRI
// plugin, files of CPUs. After any restart or kill no container has moved, no CPU is lost, and the
// extension's values stay set.

class DockerCombinationsTest
    : public DockerPodsTest,
      public ::testing::WithParamInterface<std::tuple<std::string, std::string>> {
 protected:
  const std::string& beside() const { return std::get<1>(GetParam()); }
  bool ChangesShares() const { return beside() != "CpuFiles"; }

  void OpenNode() {
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
  ~DockerCombinationsTest() override { plugin_.reset(); }
  std::string File(const std::string& name) const { return directory_.File(name); }

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

  const TempDir directory_;
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

using Combination = std::tuple<std::string, std::string>;  // policy and extension

std::string NameOfCombination(const ::testing::TestParamInfo<Combination>& info) {
  std::string name = std::get<0>(info.param) + std::get<1>(info.param);
  std::erase(name, '-');
  return name;
}

// Each policy and each extension once.
INSTANTIATE_TEST_SUITE_P(Dockerd, DockerCombinationsTest,
                         ::testing::Values(Combination{"static", "CpuFiles"},
                                           Combination{"static-plus", "Plugin"},
                                           Combination{"topology-aware", "HookServer"}),
                         NameOfCombination);
INSTANTIATE_TEST_SUITE_P(Long, DockerCombinationsTest,
                         ::testing::Values(Combination{"static", "HookServer"},
                                           Combination{"static", "Plugin"},
                                           Combination{"static-plus", "HookServer"},
                                           Combination{"static-plus", "CpuFiles"},
                                           Combination{"topology-aware", "Plugin"},
                                           Combination{"topology-aware", "CpuFiles"}),
                         NameOfCombination);

}  // namespace
}  // namespace resmgr::test
