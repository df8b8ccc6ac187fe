// SPDX-License-Identifier: Apache-2.0
// The private containerd of the end-to-end tests.
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/e2e/node.h"
#include "test/support/status_matchers.h"

namespace resmgr::test {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// Everything on the machine that names this containerd's directory.
std::vector<std::string> Traces(const std::filesystem::path& directory) {
  const std::string name = directory.filename();
  std::vector<std::string> traces;
  if (std::filesystem::exists(directory)) traces.push_back(directory);
  for (const auto& hierarchy : std::filesystem::directory_iterator("/sys/fs/cgroup")) {
    for (const auto& top : {hierarchy.path(), hierarchy.path() / name}) {
      if (top.filename() == name && std::filesystem::exists(top)) traces.push_back(top);
    }
  }
  std::ifstream mounts("/proc/self/mountinfo");
  for (std::string line; std::getline(mounts, line);) {
    if (line.find(name) != std::string::npos) traces.push_back(line);
  }
  for (const auto& process : std::filesystem::directory_iterator("/proc")) {
    const std::string command = TextOf(process.path() / "cmdline");
    if (command.find(name) != std::string::npos) traces.push_back(command);
  }
  return traces;
}

TEST(HarnessTest, LeavesNothingBehind) {
  auto node = Must(Node::OnContainerd({.relayed = false}));
  const std::filesystem::path directory = node->containerd().directory();
  const auto pod = Ok(node->Run(BestEffort("left")));
  EXPECT_THAT(Traces(directory), Not(IsEmpty()));

  node.reset();
  EXPECT_THAT(Traces(directory), IsEmpty());
}

TEST(HarnessTest, ContainersOutliveContainerd) {
  auto node = Must(Node::OnContainerd({.relayed = false}));
  Containerd& containerd = node->containerd();
  const auto pod = Ok(node->Run(BestEffort("survivor")));

  containerd.Kill();
  EXPECT_TRUE(containerd.AwaitAllowedCpus(pod.container_id).has_value());
  ASSERT_TRUE(node->RestartContainerd().ok()) << containerd.Log();
  const auto status = Ok(node->client().ContainerStatus(pod.container_id));
  EXPECT_EQ(status.state(), cri::CONTAINER_RUNNING);
}

// Stops them, or lets them go on.
void SignalShims(const std::filesystem::path& directory, int signal_number) {
  for (const auto& process : std::filesystem::directory_iterator("/proc")) {
    const std::string command = TextOf(process.path() / "cmdline");
    if (command.find("containerd-shim") == std::string::npos) continue;
    if (command.find(directory.filename().string() + "/") == std::string::npos) continue;
    ::kill(std::stoi(process.path().filename()), signal_number);
  }
}

// A shim is slow, as on a busy machine: containerd takes a shim for dead after five seconds.
TEST(HarnessTest, ContainersOutliveContainerdWhoseShimsAnswerLate) {
  auto node = Must(Node::OnContainerd({.relayed = false}));
  const Containerd& containerd = node->containerd();
  const auto pod = Ok(node->Run(BestEffort("survivor")));

  SignalShims(containerd.directory(), SIGSTOP);
  {
    const std::jthread late([&] {
      constexpr std::chrono::seconds kLate{7};
      std::this_thread::sleep_for(kLate);
      SignalShims(containerd.directory(), SIGCONT);
    });
    ASSERT_TRUE(node->RestartContainerd().ok()) << containerd.Log();
  }
  const auto status = Ok(node->client().ContainerStatus(pod.container_id));
  EXPECT_EQ(status.state(), cri::CONTAINER_RUNNING) << containerd.Log();
}

// The watch sees a container as it is: nothing before its start and after its end.
TEST(HarnessTest, TellsTheCpusOfRunningContainersOnly) {
  auto node = Must(Node::OnContainerd({.relayed = false}));
  const Containerd& containerd = node->containerd();
  CriClient& client = node->client();
  const cri::PodSandboxConfig config = node->PodConfig(BestEffort("pinned"));
  const auto pod = Ok(client.RunPod(config));
  cri::ContainerConfig container = Node::ContainerConfig(BestEffort("pinned"));
  container.mutable_linux()->mutable_resources()->set_cpuset_cpus("0");
  const auto id = Ok(client.CreateContainer(pod, config, container));

  EXPECT_EQ(containerd.AllowedCpus(id), std::nullopt);
  ASSERT_TRUE(client.StartContainer(id).ok());
  EXPECT_EQ(containerd.AwaitAllowedCpus(id), CpuSet{0});
  EXPECT_EQ(client.AllowedCpus(id).value_or(""), "0");
  ASSERT_TRUE(client.StopContainer(id).ok());
  EXPECT_EQ(containerd.AllowedCpus(id), std::nullopt);
}

TEST(HarnessTest, ServesASecondRuntimeHandler) {
  auto node = Must(Node::OnContainerd({.relayed = false}));
  CriClient& client = node->client();
  const auto pod = client.RunPod(node->PodConfig(BestEffort("second")), "second");
  EXPECT_TRUE(pod.ok()) << Describe(pod.status());
  const auto unknown = client.RunPod(node->PodConfig(BestEffort("third")), "third");
  EXPECT_THAT(std::string(Message(unknown.status())), HasSubstr("third"));
}

}  // namespace
}  // namespace resmgr::test
