// SPDX-License-Identifier: Apache-2.0
// Two containerds behind one socket: pods of both, and restarts of each and of the daemon under
// them.
#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "test/support/containerd/child_process.h"
#include "test/support/containerd/containerd.h"
#include "test/support/cri_client/cri_client.h"
#include "test/support/cri_client/specs.h"
#include "test/support/status_matchers.h"

namespace resmgr::test {
namespace {

constexpr std::chrono::seconds kLong{20};

class TwoContainerdsTest : public testing::Test {
 protected:
  struct Running {
    Containerd* containerd = nullptr;
    std::string pod{};
    std::string container{};
  };

  void SetUp() override {
    auto first = Containerd::Start();
    ASSERT_TRUE(first.ok()) << Describe(first.status());
    first_ = *std::move(first);
    auto second = Containerd::Start();
    ASSERT_TRUE(second.ok()) << Describe(second.status());
    second_ = *std::move(second);
    std::ofstream(File("node.yaml"))
        << "runtimes: {other: {Socket: " << second_->socket().string() << "}}\n"
        << "runtimeClasses: {second: {Runtime: other}, there: {Runtime: other, Handler: runc}}\n";
    StartDaemon();
  }

  std::string File(const std::string& name) const { return first_->directory() / name; }
  std::string DaemonLog() const { return LastLines(File("relay.log")); }

  void StartDaemon() {
    StartProcess();
    WaitForLists();
  }
  void StartProcess() {
    auto daemon = DaemonProcess::Start({"-topology",
                                        "live",
                                        "-runtime-socket",
                                        first_->socket(),
                                        "-relay-socket",
                                        File("relay.sock"),
                                        "-relay-dir",
                                        File("relay-state"),
                                        "-config-socket",
                                        File("config.sock"),
                                        "-admin-socket",
                                        File("admin.sock"),
                                        "-agent-socket",
                                        "disabled",
                                        "-policy",
                                        "static",
                                        "-reserved-resources",
                                        "CPU=cpuset:0",
                                        "-config",
                                        File("node.yaml")},
                                       File("relay.log"));
    ASSERT_TRUE(daemon.ok()) << Describe(daemon.status());
    daemon_ = *std::move(daemon);
    client_ = std::make_unique<CriClient>(File("relay.sock"));
  }
  void WaitForLists() {
    const Status listed = WaitUntil("all runtimes are listed", kLong, [this] {
      cri::ListContainersResponse list;
      return client_->Unary("ListContainers", cri::ListContainersRequest(), &list).ok();
    });
    ASSERT_TRUE(listed.ok()) << Describe(listed) << DaemonLog();
  }

  // `cpus` of its own, or none.
  Running Run(const std::string& name, Containerd& containerd, int cpus) {
    const QosClass qos = cpus > 0 ? QosClass::kGuaranteed : QosClass::kBestEffort;
    const std::string uid = "uid-" + name;
    cri::PodSandboxConfig pod = MakePod(
        {.name = name, .uid = uid, .qos = qos, .cgroup_parent = containerd.CgroupParent(qos, uid)});
    pod.clear_hostname();
    pod.set_log_directory(containerd.directory() / "logs");
    Running running{.containerd = &containerd};
    const auto pod_id = client_->RunPod(pod, &containerd == second_.get() ? "second" : "");
    EXPECT_TRUE(pod_id.ok()) << Describe(pod_id.status()) << DaemonLog();
    if (!pod_id.ok()) return running;
    running.pod = *pod_id;
    cri::ContainerConfig container =
        cpus > 0 ? MakeGuaranteedContainer(name, cpus) : MakeBestEffortContainer(name);
    container.set_log_path(name + ".log");
    const auto id = client_->CreateContainer(*pod_id, pod, container);
    EXPECT_TRUE(id.ok()) << Describe(id.status()) << DaemonLog();
    if (!id.ok()) return running;
    running.container = *id;
    EXPECT_THAT(client_->StartContainer(*id), IsOk());
    return running;
  }
  void Remove(const Running& running) {
    EXPECT_THAT(client_->StopContainer(running.container), IsOk());
    EXPECT_THAT(client_->RemoveContainer(running.container), IsOk());
    EXPECT_THAT(client_->StopPod(running.pod), IsOk());
    EXPECT_THAT(client_->RemovePod(running.pod), IsOk());
  }
  // Whether the daemon knows that every container is where it should be. Killed before that it
  // sends the update again.
  bool AllSettled() const {
    const std::vector<std::string> words = {RESMGR_BINARY_DIR "/cmd/cri-resmgr-ctl/cri-resmgr-ctl",
                                            "-socket",
                                            File("admin.sock"),
                                            "-o",
                                            "json",
                                            "status"};
    const std::string output = File("status.json");
    std::filesystem::remove(output);
    if (!RunProgram(words, output, kLong).ok()) return false;
    const nlohmann::json status = nlohmann::json::parse(TextOf(output)).flatten();
    for (const auto& [name, value] : status.items()) {
      if (name.ends_with("/unsettled")) return value == 0;
    }
    return false;
  }
  // A thread of its own writes the state, the first time into a new file that must be on the disk
  // before it replaces the old one.
  void WaitUntilKept(const std::string& id) {
    const std::filesystem::path state = File("relay-state/state/state");
    EXPECT_THAT(WaitUntil("the state holds it", kLong,
                          [&] { return TextOf(state).find(id) != std::string::npos; }),
                IsOk());
  }
  static std::string CpusOf(const Running& running) {
    return running.containerd->CgroupCpus(running.container);
  }
  std::set<std::string> Listed() {
    cri::ListContainersResponse list;
    EXPECT_TRUE(client_->Unary("ListContainers", cri::ListContainersRequest(), &list).ok());
    std::set<std::string> ids;
    for (const cri::Container& container : list.containers())
      ids.insert(container.id());
    return ids;
  }

  std::unique_ptr<Containerd> first_;
  std::unique_ptr<Containerd> second_;
  std::unique_ptr<DaemonProcess> daemon_;
  std::unique_ptr<CriClient> client_;
};

TEST_F(TwoContainerdsTest, RestartsOfEachAndOfTheDaemonMoveNothing) {
  const Running shared = Run("shared", *first_, 0);
  const Running there = Run("there", *second_, 1);
  const Running shared_there = Run("shared-there", *second_, 0);
  ASSERT_FALSE(HasFailure());
  const std::set<std::string> all = {shared.container, there.container, shared_there.container};
  const auto places = [&] {
    return std::vector<std::string>{CpusOf(shared), CpusOf(there), CpusOf(shared_there)};
  };
  const Status settled = WaitUntil("the shared ones have left", kLong, [&] {
    return CpusOf(shared) == CpusOf(shared_there) && CpusOf(shared) != CpusOf(there) &&
           AllSettled();
  });
  ASSERT_TRUE(settled.ok()) << ::testing::PrintToString(places()) << DaemonLog();
  const std::vector<std::string> before = places();
  const size_t updates = first_->Updates() + second_->Updates();
  const auto expect_the_same = [&](const char* when) {
    SCOPED_TRACE(when);
    EXPECT_EQ(Listed(), all);
    EXPECT_EQ(places(), before);
    EXPECT_EQ(first_->Updates() + second_->Updates(), updates);
    for (const Running* running : {&shared, &there, &shared_there}) {
      const auto status = Ok(client_->ContainerStatus(running->container));
      EXPECT_EQ(status.state(), cri::CONTAINER_RUNNING);
    }
  };
  expect_the_same("at first");

  daemon_->Kill();
  StartDaemon();
  expect_the_same("after a restart of the daemon");

  for (Containerd* const containerd : {second_.get(), first_.get()}) {
    containerd->Kill();
    cri::ListContainersResponse list;
    const auto lists = client_->Unary("ListContainers", cri::ListContainersRequest(), &list);
    EXPECT_EQ(lists.error_code(), grpc::StatusCode::UNAVAILABLE) << "or the kubelet deletes them";
    ASSERT_TRUE(containerd->Restart().ok()) << containerd->Log();
    WaitForLists();
    expect_the_same("after a restart of a containerd");
  }

  // The second one comes back after the daemon: its container keeps its CPU.
  second_->Kill();
  daemon_->Kill();
  StartProcess();
  const Running late = Run("late", *first_, 0);
  EXPECT_EQ(CpusOf(late), CpusOf(shared)) << "not that of the one that cannot be asked";
  ASSERT_TRUE(second_->Restart().ok()) << second_->Log();
  WaitForLists();
  EXPECT_EQ(places(), before);
  for (const Running& running : {shared, there, shared_there, late})
    Remove(running);
  EXPECT_TRUE(Listed().empty());
}

// The alias of a handler leads to its runtime, which knows only its own name for it.
TEST_F(TwoContainerdsTest, AliasOfAHandlerOfTheSecondOne) {
  cri::PodSandboxConfig pod =
      MakePod({.name = "there",
               .uid = "uid-there",
               .cgroup_parent = second_->CgroupParent(QosClass::kBestEffort, "uid-there")});
  pod.clear_hostname();
  const std::string id = Ok(client_->RunPod(pod, "there"));
  const auto handler_at = [&id](CriClient& client) {
    cri::PodSandboxStatusRequest request;
    request.set_pod_sandbox_id(id);
    cri::PodSandboxStatusResponse reply;
    const grpc::Status status = client.Unary("PodSandboxStatus", request, &reply);
    return status.ok() ? reply.status().runtime_handler() : status.error_message();
  };
  CriClient second(second_->socket());
  EXPECT_EQ(handler_at(second), "runc");
  EXPECT_EQ(handler_at(*client_), "there");
  WaitUntilKept(id);
  daemon_->Kill();
  StartDaemon();
  EXPECT_EQ(handler_at(*client_), "there");
  EXPECT_THAT(client_->StopPod(id), IsOk());
  EXPECT_THAT(client_->RemovePod(id), IsOk());
}

}  // namespace
}  // namespace resmgr::test
