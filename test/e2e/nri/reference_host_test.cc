// SPDX-License-Identifier: Apache-2.0
// cri-resmgr as a plugin of a runtime that is made with NRI's own library, through every event that
// there is.
#include "test/e2e/nri/reference_host.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/sys/temp_dir.h"
#include "test/support/containerd/child_process.h"
#include "test/support/status_matchers.h"

namespace resmgr::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kPeriod = 100'000;

// A pod "NAME" with the container "id-NAME".
nri_api::PodSandbox PodOf(const std::string& name, bool guaranteed) {
  nri_api::PodSandbox pod;
  pod.set_id("pod-" + name);
  pod.set_name(name);
  pod.set_namespace_("default");
  pod.set_uid("uid-" + name);
  pod.mutable_linux()->set_cgroup_parent(
      std::string(guaranteed ? "/kubepods/" : "/kubepods/burstable/") + "poduid-" + name);
  return pod;
}

nri_api::LinuxResources ResourcesOf(int64_t cpus, bool limited) {
  nri_api::LinuxResources resources;
  nri_api::LinuxCPU& cpu = *resources.mutable_cpu();
  cpu.mutable_shares()->set_value(static_cast<uint64_t>(cpus) * 1024);
  if (limited) {
    cpu.mutable_quota()->set_value(cpus * kPeriod);
    cpu.mutable_period()->set_value(kPeriod);
  }
  return resources;
}

template <typename Request>
Request About(const std::string& name, bool guaranteed, int64_t cpus) {
  Request request;
  *request.mutable_pod() = PodOf(name, guaranteed);
  nri_api::Container& container = *request.mutable_container();
  container.set_id("id-" + name);
  container.set_pod_sandbox_id("pod-" + name);
  container.set_name(name);
  *container.mutable_linux()->mutable_resources() = ResourcesOf(cpus, guaranteed);
  return request;
}

// "id-web 0,2-7", ...
template <typename Updates>
std::vector<std::string> Told(const Updates& updates) {
  std::vector<std::string> told;
  told.reserve(static_cast<size_t>(updates.size()));
  for (const nri_api::ContainerUpdate& update : updates)
    told.push_back(update.container_id() + " " + update.linux().resources().cpu().cpus());
  return told;
}

class ReferenceHostTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto host = ReferenceHost::Start(directory_.path());
    ASSERT_TRUE(host.ok()) << Describe(host.status());
    host_ = *std::move(host);
  }
  // Starts the daemon on CPUs 0 to 7, of which 0 is reserved.
  StatusOr<std::unique_ptr<DaemonProcess>> Daemon(const std::string& name) const {
    const std::filesystem::path path(directory_.path());
    return DaemonProcess::Start(
        {"-mode", "nri-plugin", "-nri-socket", host_->socket(), "-policy", "static",
         "-reserved-resources", "CPU=cpuset:0", "-topology", "synthetic:package:1 core:8 pu:1",
         "-relay-dir", path / (name + ".state"), "-config-socket", "disabled", "-admin-socket",
         "disabled", "-agent-socket", "disabled"},
        path / (name + ".log"));
  }
  void StartDaemon() {
    auto daemon = Daemon("daemon");
    ASSERT_TRUE(daemon.ok()) << Describe(daemon.status());
    daemon_ = *std::move(daemon);
    const Status synchronized = host_->ExpectSynchronized(++lives_);
    ASSERT_TRUE(synchronized.ok()) << Describe(synchronized) << daemon_->Log();
  }
  void TearDown() override {
    if (HasFailure() && daemon_ != nullptr) GTEST_LOG_(INFO) << daemon_->Log();
  }

  void Hold(const nri_api::SynchronizeRequest& inventory) {
    ASSERT_TRUE(host_->Tell("inventory", inventory).ok());
  }
  Status Event(std::string_view event, const std::string& name, bool guaranteed) {
    nri_api::StateChangeEvent told = About<nri_api::StateChangeEvent>(name, guaranteed, 1);
    if (event.ends_with("pod")) told.clear_container();
    return host_->Tell(event, told).status();
  }
  StatusOr<nri_api::CreateContainerResponse> Create(const std::string& name, bool guaranteed,
                                                    int64_t cpus) {
    RESMGR_RETURN_IF_ERROR(Event("run-pod", name, guaranteed));
    return host_->Ask<nri_api::CreateContainerResponse>(
        "create", About<nri_api::CreateContainerRequest>(name, guaranteed, cpus));
  }
  // Expects the calls that follow a creation.
  void ExpectStarted(const std::string& name, bool guaranteed) {
    for (const char* const event : {"post-create", "start", "post-start"}) {
      const Status status = Event(event, name, guaranteed);
      EXPECT_TRUE(status.ok()) << event << ": " << Describe(status);
    }
  }
  // Waits until the daemon asks for this by a call of its own.
  void ExpectUpdate(const std::string& wanted) {
    std::vector<std::string> all;
    while (std::ranges::find(all, wanted) == all.end()) {
      const auto updates = Ok(host_->Updates());
      for (const std::string& update : Told(updates))
        all.push_back(update);
    }
  }
  static std::string CpusOf(const StatusOr<nri_api::CreateContainerResponse>& created) {
    return created.ok() ? created->adjust().linux().resources().cpu().cpus()
                        : Describe(created.status());
  }

  const TempDir directory_;
  std::unique_ptr<ReferenceHost> host_;
  std::unique_ptr<DaemonProcess> daemon_;
  int lives_ = 0;
};

TEST_F(ReferenceHostTest, APodLivesThroughEveryEvent) {
  StartDaemon();
  EXPECT_EQ(CpusOf(Create("shared", false, 1)), "0-7");
  ExpectStarted("shared", false);
  const auto exclusive = Create("exclusive", true, 2);
  EXPECT_EQ(CpusOf(exclusive), "1-2");
  EXPECT_THAT(Told(exclusive->update()), ElementsAre("id-shared 0,3-7"));
  ExpectStarted("exclusive", true);

  auto resize = About<nri_api::UpdateContainerRequest>("exclusive", true, 3);
  *resize.mutable_linux_resources() = ResourcesOf(3, true);
  const auto resized = Must(host_->Ask<nri_api::UpdateContainerResponse>("update", resize));
  EXPECT_THAT(Told(resized.update()),
              ::testing::UnorderedElementsAre("id-exclusive 1-2", "id-shared 0,4-7"));
  // The container gets the others' CPU when they have left it.
  ExpectUpdate("id-exclusive 1-3");
  EXPECT_TRUE(Event("post-update", "exclusive", true).ok());

  const auto stopped = Must(host_->Ask<nri_api::StopContainerResponse>(
      "stop", About<nri_api::StopContainerRequest>("exclusive", true, 3)));
  EXPECT_THAT(Told(stopped.update()), ElementsAre("id-shared 0-7"));
  for (const char* const event : {"remove", "stop-pod", "remove-pod"}) {
    const Status status = Event(event, "exclusive", true);
    EXPECT_TRUE(status.ok()) << event << ": " << Describe(status);
  }
  EXPECT_EQ(CpusOf(Create("next", true, 7)), "1-7");
}

TEST_F(ReferenceHostTest, AContainerThatDoesNotFitIsRefusedWellInTime) {
  // A daemon that listed everything before it refuses could wait for a second until it may.
  constexpr std::chrono::milliseconds kWait{700};
  StartDaemon();
  // A busy machine delays some refusals, a daemon that waits delays all of them.
  std::chrono::steady_clock::duration least = std::chrono::hours(1);
  for (int i = 0; i < 50 && least >= kWait; ++i) {
    const auto start = std::chrono::steady_clock::now();
    const auto refused = Create(fmt::format("large{}", i), true, 8);
    least = std::min(least, std::chrono::steady_clock::now() - start);
    ASSERT_FALSE(refused.ok());
    EXPECT_THAT(std::string(Message(refused.status())), HasSubstr("cri-resmgr (static): needs"));
  }
  EXPECT_LT(least, kWait);
  // The host has kept the plugin.
  EXPECT_EQ(CpusOf(Create("small", true, 1)), "1");
}

TEST_F(ReferenceHostTest, ASecondDaemonEndsAtOnce) {
  StartDaemon();
  const auto second = Daemon("second");
  ASSERT_FALSE(second.ok());
  EXPECT_THAT(std::string(Message(second.status())), HasSubstr("another process holds"));
  EXPECT_EQ(CpusOf(Create("dsp", true, 1)), "1");
}

TEST_F(ReferenceHostTest, WhatRunsIsAdoptedAndPlacedAndStaysOverAKill) {
  nri_api::SynchronizeRequest inventory;
  for (const auto& [name, guaranteed, cpus] :
       {std::tuple("old", true, 2), std::tuple("web", false, 1)}) {
    const auto about = About<nri_api::CreateContainerRequest>(name, guaranteed, cpus);
    *inventory.add_pods() = about.pod();
    *inventory.add_containers() = about.container();
    inventory.mutable_containers(inventory.containers_size() - 1)
        ->set_state(nri_api::CONTAINER_RUNNING);
  }
  Hold(inventory);
  StartDaemon();
  ExpectUpdate("id-old 1-2");
  // The containers' present values.
  inventory.mutable_containers(0)->mutable_linux()->mutable_resources()->mutable_cpu()->set_cpus(
      "1-2");
  inventory.mutable_containers(1)->mutable_linux()->mutable_resources()->mutable_cpu()->set_cpus(
      "0,3-7");
  Hold(inventory);
  daemon_->Kill();
  StartDaemon();
  const auto late = Create("late", true, 1);
  EXPECT_EQ(CpusOf(late), "3");
  EXPECT_THAT(Told(late->update()), ::testing::Contains("id-web 0,4-7"));
}

TEST_F(ReferenceHostTest, AnInventoryOfManyIsTaken) {
  nri_api::SynchronizeRequest inventory;
  for (int i = 0; i < 500; ++i) {
    const auto about = About<nri_api::CreateContainerRequest>("many" + std::to_string(i), false, 1);
    *inventory.add_pods() = about.pod();
    nri_api::Container& container = *inventory.add_containers();
    container = about.container();
    container.set_state(nri_api::CONTAINER_RUNNING);
    container.add_env("LONG=" + std::string(2000, 'x'));
  }
  Hold(inventory);
  StartDaemon();
  const auto created = Create("exclusive", true, 1);
  EXPECT_EQ(CpusOf(created), "1");
}

}  // namespace
}  // namespace resmgr::test
