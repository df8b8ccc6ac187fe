// SPDX-License-Identifier: Apache-2.0
#include "pkg/resmgr/adoption.h"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/resmgr/testing/test_node.h"
#include "pkg/state/testing/failing_file_systems.h"
#include "pkg/sys/temp_dir.h"
#include "test/support/machines/machines.h"

namespace resmgr {
namespace {

using test::FirstFitPolicy;
using test::TestNode;
using testing::IsEmpty;
using testing::Pair;
using testing::UnorderedElementsAre;
using enum QosClass;

class AdoptionTest : public ::testing::Test {
 protected:
  AdoptionTest() {
    Pod pod;
    pod.id = PodSandboxId("pod");
    inventory_.pods.push_back(pod);
  }

  void Report(const std::string& name, ContainerState state, const std::string& cpus) {
    RuntimeContainer container;
    container.id = ContainerId(name);
    container.pod_id = PodSandboxId("pod");
    container.name = name;
    container.state = state;
    container.resources.cpuset_cpus = cpus;
    inventory_.containers.push_back(container);
  }
  Adoption Adopted() {
    return Adopt(store_, inventory_, {}, store_.clock(), Bytes{0}, state_writer_, decider_);
  }
  // The CPUs that count as exclusive, by name.
  std::map<std::string, std::string> Exclusive() {
    const Adoption adoption = Adopted();
    std::map<std::string, std::string> exclusive;
    for (const auto& [key, resources] : adoption.in_force)
      exclusive[store_.Find(key)->container.name] = resources.exclusive.ToString();
    return exclusive;
  }

  // Saves the container as one that shares although it requests `cpus` CPUs.
  void SaveSharing(const std::string& name, int cpus, const CpuSet& on = {}) {
    Container container;
    if (!on.empty()) container.placement.cpus = on;
    container.requirements.cpu_request = MilliCpu{int64_t{1000} * cpus};
    container.placement.pool = "shared";
    state_.Put(ContainerId(name), container, QosClass::kBurstable);
  }
  std::string PoolAfterAdoption(const std::string& name) {
    Adopted();
    return store_.FindById(ContainerId(name))->container.placement.pool;
  }

  const TempDir dir_;
  EventLoop loop_;
  ContainerStore store_;
  StateStore state_{RealFileSystem(), dir_.path(), "machine", [](std::string_view) {}};
  StateWriter state_writer_{loop_, &state_, store_};
  const Machine machine_ = test::S1Ht();
  const Decider decider_{machine_, test::FirstFit(machine_), store_, nullptr};
  RuntimeInventory inventory_;
};

TEST_F(AdoptionTest, CpusOfOneRunningContainerCountAsExclusive) {
  Report("own", ContainerState::kRunning, "1-2");
  Report("mixed", ContainerState::kRunning, "0,3-4");
  Report("shared", ContainerState::kRunning, "0");
  Report("created", ContainerState::kCreated, "0-7");
  EXPECT_THAT(Exclusive(), UnorderedElementsAre(Pair("own", "1-2"), Pair("mixed", "3-4"),
                                                Pair("shared", ""), Pair("created", "5-7")));
}

TEST_F(AdoptionTest, WithoutACpusetNothingIsExclusive) {
  Report("free", ContainerState::kRunning, "");
  EXPECT_THAT(Exclusive(), UnorderedElementsAre(Pair("free", IsEmpty())));
}

// The move to CPUs of its own had reached the runtime, but not the disk.
TEST_F(AdoptionTest, APlaceOfJustTheRightSizeIsNewerThanTheState) {
  SaveSharing("app", 2);
  Report("app", ContainerState::kRunning, "1-2");
  Report("other", ContainerState::kRunning, "0,3");
  EXPECT_EQ(PoolAfterAdoption("app"), "");
}

TEST_F(AdoptionTest, APlaceThatHasTheRightSizeByChanceIsNot) {
  SaveSharing("app", 2);
  Report("app", ContainerState::kRunning, "1-2");
  Report("other", ContainerState::kCreated, "2-3");
  EXPECT_EQ(PoolAfterAdoption("app"), "shared");
}

TEST_F(AdoptionTest, TheStateTellsAPlaceThatHasTheRightSizeByChance) {
  SaveSharing("app", 2, {1, 2});
  SaveSharing("moved", 2, {1, 2});
  Report("app", ContainerState::kRunning, "1-2");
  Report("moved", ContainerState::kRunning, "4-5");
  EXPECT_EQ(PoolAfterAdoption("app"), "shared");
  EXPECT_EQ(PoolAfterAdoption("moved"), "");
}

// Two containers that are reported on the same CPUs share them: numbers that plugins set for one do
// not count as an update, although an update of the other was under way.
TEST_F(AdoptionTest, AnUpdateUnderWayOfAnotherDoesNotMakePluginsNumbersAnUpdate) {
  inventory_.pods.front().qos = QosClass::kBurstable;
  state_.PutNote(StateStore::PodNote::kOthers, PodSandboxId("node"), "1");
  Container container;
  container.requested.cpu_shares = 512;
  container.requirements.cpu_request = MilliCpu{500};
  container.placement.pool = "shared";
  state_.Put(ContainerId("app"), container, QosClass::kBurstable);
  Report("app", ContainerState::kRunning, "1-2");
  inventory_.containers.back().resources.cpu_shares = 2048;
  SaveSharing("other", 1);
  Report("other", ContainerState::kRunning, "1-2");
  state_.open_calls().Begin(OpenCalls::Kind::kUpdate, ContainerId("other"));
  Adopted();
  const Container& app = store_.FindById(ContainerId("app"))->container;
  EXPECT_EQ(app.requirements.cpu_request, MilliCpu{500});
  EXPECT_EQ(app.set_later.cpu_shares, 2048);
}

TEST_F(AdoptionTest, ExitedContainersAreNoUsersOfCpus) {
  SaveSharing("app", 2);
  Report("app", ContainerState::kRunning, "1-2");
  Report("other", ContainerState::kExited, "1-2");
  EXPECT_EQ(PoolAfterAdoption("app"), "");
}

// Restarts with notes that are older than the values in force: the disk was behind when the daemon
// was killed.

class StaleNotesTest : public testing::Test {
 protected:
  StaleNotesTest() { node_.KeepState(files_); }

  test::FakeRuntimeClient& runtime() { return node_.runtime; }
  // After the notes were written, and before the runtime's first report was noted.
  void RestartWithQuota(const ContainerId& id, std::optional<int64_t> quota) {
    node_.FlushState();
    runtime().Find(id)->resources.cpu_quota = quota;
    node_.Restart();
  }
  void AnswerAll() {
    ASSERT_TRUE(node_.RunUntil([this] {
      runtime().AnswerAll();
      return runtime().updates.empty();
    }));
  }
  void ListUntilReported(const ContainerId& id) {
    node_.manager().synchronizer().ResyncSoon();
    ASSERT_TRUE(node_.RunUntil([&] {
      runtime().AnswerLists();
      return node_.Known(id)->set_later.reported;
    }));
  }

  std::function<void(Plan&)> spoil_;   // of the next daemon's policy
  test::CrashingFileSystem files_{1};  // outlives the node, whose state is written on a thread
  TestNode node_{test::S1Ht(),         // CPUs 0-7
                 [this](const Machine& machine) {
                   auto policy = std::make_unique<FirstFitPolicy>(machine);
                   policy->spoil = spoil_;
                   return policy;
                 }};
};

// The policy lifts the quota on exclusive CPUs, and sets it again while the container shares
// others.
TEST_F(StaleNotesTest, TheQuotaThatTheClientAskedForIsNoPlugins) {
  const ContainerId app = node_.Run("app", kGuaranteed, 2000);
  AnswerAll();
  ASSERT_EQ(runtime().Find(app)->resources.cpu_quota, -1);
  RestartWithQuota(app, TestNode::Resources(2000).cpu_quota);
  EXPECT_EQ(node_.Known(app)->set_later.cpu_quota, std::nullopt);
  AnswerAll();
  EXPECT_EQ(runtime().Find(app)->resources.cpu_quota, -1) << "it would be throttled";
}

TEST_F(StaleNotesTest, AQuotaThatAPolicyMayHaveLiftedIsNoPlugins) {
  const ContainerId web = node_.Run("web", kGuaranteed, 1500);
  AnswerAll();
  const std::optional<int64_t> asked = TestNode::Resources(1500).cpu_quota;
  ASSERT_EQ(runtime().Find(web)->resources.cpu_quota, asked);
  RestartWithQuota(web, -1);
  EXPECT_EQ(node_.Known(web)->set_later.cpu_quota, std::nullopt);
  AnswerAll();
  EXPECT_EQ(runtime().Find(web)->resources.cpu_quota, asked);
}

// No notes had the client's request while the policy lifted the quota.
TEST_F(StaleNotesTest, TheLimitOfAContainerThatWasFoundWithoutNotesIsNoPlugins) {
  const CreateRequest request =
      TestNode::Request(node_.AddPod("app", kGuaranteed), "app", /*milli_cpu=*/2000);
  Admission admission;
  admission.adjustment.cpus = CpuSet{1, 2};
  admission.adjustment.cpu_quota = -1;
  const ContainerId app = node_.Hold(request, admission);
  runtime().Find(app)->state = ContainerState::kRunning;
  node_.Reconnect();
  AnswerAll();
  ASSERT_EQ(node_.Known(app)->requested.cpu_quota, -1);
  RestartWithQuota(app, request.resources.cpu_quota);
  EXPECT_EQ(node_.Known(app)->set_later.cpu_quota, std::nullopt);
  EXPECT_EQ(node_.Known(app)->requested.cpu_quota, request.resources.cpu_quota);
}

TEST_F(StaleNotesTest, AnotherQuotaIsAPlugins) {
  const ContainerId web = node_.Run("web", kGuaranteed, 1500);
  AnswerAll();
  RestartWithQuota(web, 70'000);
  EXPECT_EQ(node_.Known(web)->set_later.cpu_quota, 70'000);
  AnswerAll();
  EXPECT_EQ(runtime().Find(web)->resources.cpu_quota, 70'000);
}

// Our own numbers on one container do not show that other programs set those of the next one.
TEST_F(StaleNotesTest, AnUpdateOfAnotherContainerCountsAfterOurOwnQuotaWasFound) {
  const ContainerId app = node_.Run("app", kGuaranteed, 2000);
  AnswerAll();
  RestartWithQuota(app, TestNode::Resources(2000).cpu_quota);
  const ContainerId web = node_.Run("web", kBurstable, 500);
  AnswerAll();
  node_.FlushState();
  runtime().Find(web)->resources.cpu_shares = 1024;
  node_.Restart();
  EXPECT_EQ(node_.Known(web)->requirements.cpu_request.value, 1000);
}

// Numbers of a failed update stay if the client had named none before it. They do not show either
// that other programs set those of the next container.
TEST_F(StaleNotesTest, AFailedUpdateThatIsInForceIsNoPlugins) {
  CreateRequest request = TestNode::Request(node_.AddPod("bare", kBestEffort), "bare", 0);
  request.resources = {};
  const ContainerId bare = *node_.Create(request);
  node_.Start(bare);
  const ContainerId web = node_.Run("web", kBestEffort, 0);
  AnswerAll();
  const LinuxResources more = TestNode::Resources(1000);
  const StatusOr<Admission> update = node_.manager().AdmitUpdate(bare, more);
  ASSERT_TRUE(update.ok()) << update.status();
  runtime().Apply(bare, ReadValues(more));
  node_.manager().UpdateFailed(*update);
  AnswerAll();
  ListUntilReported(bare);
  EXPECT_EQ(runtime().Find(bare)->resources.cpu_shares, 1024);
  EXPECT_EQ(node_.Known(bare)->set_later.cpu_shares, std::nullopt);
  EXPECT_EQ(node_.Known(bare)->set_later.cpu_quota, std::nullopt);

  node_.FlushState();
  runtime().Find(web)->resources.cpu_shares = 1024;  // an update that is not on the disk
  node_.Restart();
  EXPECT_EQ(node_.Known(web)->requirements.cpu_request.value, 1000);
}

// The first list only shows that the container is new.
TEST_F(StaleNotesTest, AContainerMayBeElsewhereUntilTheFirstDecisionThatDoesNotFail) {
  const ContainerId shared = node_.Run("shared", kBurstable, 100);
  ASSERT_TRUE(node_.Create("app", kGuaranteed, 2000).ok());
  ASSERT_FALSE(runtime().updates.empty()) << "the shared one is to leave CPUs";
  node_.FlushState();
  bool broken = true;
  spoil_ = [&broken](Plan& plan) {
    if (broken) plan.changes.push_back({.key = ContainerKey{1000}, .placement = {}});
  };
  node_.Restart();
  ASSERT_NE(node_.Known(shared), nullptr);
  EXPECT_TRUE(node_.Known(shared)->may_be_elsewhere) << "nothing is decided yet";
  broken = false;
  ASSERT_TRUE(node_.AnswerNextList());
  EXPECT_FALSE(node_.Known(shared)->may_be_elsewhere);
  spoil_ = nullptr;
}

// Replies: their outcome is not lost with the gathered changes.

TEST_F(StaleNotesTest, TheOutcomeOfAnUpdateIsSavedBeforeTheReply) {
  const ContainerId app = node_.Run("app", kGuaranteed, 500);
  AnswerAll();
  node_.FlushState();
  const auto grown = node_.manager().AdmitUpdate(app, TestNode::Resources(1000));
  ASSERT_TRUE(grown.ok()) << grown.status();
  ASSERT_TRUE(node_.Saved(app)->asked);
  EXPECT_EQ(node_.Saved(app)->asked->place.placement.exclusive.ToString(), "1");
  EXPECT_EQ(node_.Saved(app)->placement.exclusive.ToString(), "");
  node_.manager().UpdateSucceeded(*grown);
  EXPECT_FALSE(node_.Saved(app)->asked);
  EXPECT_EQ(node_.Saved(app)->requirements.cpu_request.value, 1000);
  EXPECT_EQ(node_.Saved(app)->placement.exclusive.ToString(), "1");
}

TEST_F(StaleNotesTest, WhatAChangedPodLeavesItsContainersIsSavedBeforeTheReply) {
  const PodSandboxId pod = node_.AddPod("batch", kGuaranteed);
  node_.manager().PodResourcesChanged(pod, {}, TestNode::Resources(4000));
  const ContainerId a = *node_.Create(TestNode::Request(pod, "a", 4000));
  const ContainerId b = *node_.Create(TestNode::Request(pod, "b", 4000));
  node_.FlushState();
  const auto saved = [&] {
    return node_.Saved(a)->requirements.cpu_request.value +
           node_.Saved(b)->requirements.cpu_request.value;
  };
  ASSERT_EQ(saved(), 4000);
  node_.manager().PodResourcesChanged(pod, {}, TestNode::Resources(3000));
  EXPECT_EQ(saved(), 3000);
}

}  // namespace
}  // namespace resmgr
