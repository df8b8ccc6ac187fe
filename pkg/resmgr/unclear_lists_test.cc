// SPDX-License-Identifier: Apache-2.0
// The runtime fails to report all of its objects, or its report differs from the brain's knowledge.
#include <algorithm>
#include <chrono>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/resmgr/resource_manager.h"
#include "pkg/resmgr/testing/test_node.h"
#include "pkg/state/testing/failing_file_systems.h"
#include "test/support/machines/machines.h"
#include "test/support/status_matchers.h"

namespace resmgr {
namespace {

using test::FakeRuntimeClient;
using test::Must;
using test::TestNode;
using testing::Each;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;
using enum QosClass;

class UnclearListsTest : public testing::Test {
 protected:
  ResourceManager& manager() { return node_.manager(); }
  FakeRuntimeClient& runtime() { return node_.runtime; }

  // Expects that the daemon lists the runtime by itself.
  void ExpectLook() { ASSERT_TRUE(node_.AnswerNextList()); }

  test::CrashingFileSystem files_{1};
  TestNode node_{test::S1Ht(), test::FirstFit};
};

TEST_F(UnclearListsTest, ARestartTakesOverWhatItKnowsFromItsNotes) {
  node_.KeepState(files_);
  const ContainerId shared = node_.Run("shared", kBurstable, 100);
  const ContainerId app = node_.Run("app", kGuaranteed, 2000);
  node_.FlushState();
  runtime().history.clear();
  runtime().unclear = true;
  node_.Restart();
  EXPECT_TRUE(manager().synchronizer().ready());
  EXPECT_EQ(node_.Exclusive(app), "1-2");
  runtime().AnswerAll();
  EXPECT_EQ(runtime().CpusOf(app), "1-2");
  EXPECT_EQ(runtime().CpusOf(shared), "0,3-7");
  EXPECT_EQ(node_.Exclusive(node_.Run("next", kGuaranteed, 2000)), "3-4");
  runtime().AnswerAll();

  runtime().unclear = false;
  ExpectLook();
  runtime().AnswerAll();
  EXPECT_EQ(node_.Exclusive(app), "1-2");
  EXPECT_EQ(runtime().CpusOf(shared), "0,5-7");
  EXPECT_THAT(runtime().history, Each(Not(StartsWith(std::string(app.value()) + " cpus"))))
      << "it never moves";
}

TEST_F(UnclearListsTest, AnUnknownContainerIsLeftAloneUntilItsStateIsReported) {
  const ContainerId app = node_.Run("app", kGuaranteed, 2000);
  runtime().history.clear();
  runtime().unclear = true;
  node_.Restart();
  EXPECT_TRUE(manager().synchronizer().ready());
  EXPECT_EQ(node_.Known(app), nullptr);
  EXPECT_THAT(runtime().history, IsEmpty());
  runtime().unclear = false;
  ExpectLook();
  ASSERT_NE(node_.Known(app), nullptr);
  EXPECT_EQ(node_.Exclusive(app), "1-2");
  EXPECT_THAT(runtime().history, IsEmpty());
}

// Notes of a container whose pod is not clear yet are the only knowledge about it.
TEST_F(UnclearListsTest, NotesOutliveADaemonThatCouldNotUseThem) {
  node_.KeepState(files_);
  const ContainerId app = node_.Run("app", kGuaranteed, 2000);
  node_.FlushState();
  RuntimeInventory nothing;
  nothing.unclear.why = Internal("the shim hangs");
  const RuntimeInventory all = std::exchange(runtime().held, nothing);
  node_.Restart();
  runtime().held = all;
  runtime().unclear = true;
  node_.Restart();
  EXPECT_EQ(node_.Exclusive(app), "1-2");
}

TEST_F(UnclearListsTest, NotesOfWhatIsGoneAfterAReconnectAreForgotten) {
  node_.KeepState(files_);
  const ContainerId app = node_.Run("app", kGuaranteed, 2000);
  node_.FlushState();
  const RuntimeInventory all = runtime().held;
  runtime().Remove(app);
  node_.Reconnect();
  node_.FlushState();
  runtime().held = all;
  runtime().unclear = true;
  node_.Restart();
  EXPECT_EQ(node_.Known(app), nullptr) << "there are no notes to take it over by";
}

// Not only the first list after a connect does that.
TEST_F(UnclearListsTest, ALaterListErasesTheNotesOfRemovedContainers) {
  node_.KeepState(files_);
  const ContainerId app = node_.Run("app", kGuaranteed, 2000);
  node_.FlushState();
  const RuntimeInventory all = runtime().held;
  runtime().Remove(app);
  manager().synchronizer().ResyncSoon();
  ExpectLook();
  ASSERT_EQ(node_.Known(app), nullptr);
  node_.FlushState();
  runtime().held = all;
  runtime().unclear = true;
  node_.Restart();
  EXPECT_EQ(node_.Known(app), nullptr) << "there are no notes to take it over by";
}

TEST_F(UnclearListsTest, WhatIsKnownAlreadyStaysAsItIsAndItsEndIsSeen) {
  const ContainerId shared = node_.Run("shared", kBurstable, 100);
  const ContainerId app = node_.Run("app", kGuaranteed, 2000);
  runtime().history.clear();
  runtime().unclear = true;
  manager().synchronizer().ResyncSoon();
  ExpectLook();
  EXPECT_THAT(runtime().history, IsEmpty());
  EXPECT_EQ(node_.Exclusive(app), "1-2");
  node_.Crash(app);
  manager().synchronizer().ResyncSoon();
  ExpectLook();
  runtime().AnswerAll();
  EXPECT_EQ(runtime().CpusOf(shared), "0-7");
}

TEST_F(UnclearListsTest, ResyncsGoOnUntilTheRuntimeReportsTheState) {
  node_.KeepState(files_);
  node_.Run("app", kGuaranteed, 2000);
  node_.FlushState();
  runtime().unclear = true;
  node_.Restart();
  for (int i = 0; i < 3; ++i) {
    const size_t before = runtime().statuses;
    ExpectLook();
    EXPECT_EQ(runtime().statuses, before + 2) << "of the pod and of the container";
  }
  runtime().unclear = false;
  ExpectLook();
  const size_t before = runtime().statuses;
  manager().synchronizer().ResyncSoon();
  ExpectLook();
  EXPECT_EQ(runtime().statuses, before);
}

TEST_F(UnclearListsTest, ResyncsOfUnclearPodsBackOff) {
  node_.Run("app", kGuaranteed, 2000);
  runtime().unclear = true;
  node_.Restart();  // without notes of it
  int lists = 0;
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(200);
  ASSERT_TRUE(node_.RunUntil([&] {
    for (; !runtime().lists.empty(); ++lists)
      runtime().AnswerList();
    return lists >= 2 && std::chrono::steady_clock::now() > end;
  }));
  EXPECT_LE(lists, 10) << "every 4 ms would be 50";
}

TEST_F(UnclearListsTest, AListThatFailsIsAskedForAgain) {
  const ContainerId app = node_.Run("app", kGuaranteed, 2000);
  node_.Crash(app);
  manager().synchronizer().ResyncSoon();
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(node_.AwaitList());
    runtime().FailList(Internal("busy"));
  }
  ExpectLook();
  EXPECT_EQ(node_.Known(app)->state, ContainerState::kExited);
}

TEST_F(UnclearListsTest, AStartDoesNotExpireWhileListsFail) {
  const ContainerId shared = *node_.Create("shared", kBurstable, 100);
  const auto wait = manager().AdmitStart(shared, [](const Status&) {});
  runtime().BeginStart(shared);
  manager().StartUnclear(shared);
  ASSERT_TRUE(node_.Create("app", kGuaranteed, 2000).ok());
  // Far beyond the limit.
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(200);
  ASSERT_TRUE(node_.RunUntil([&] {
    while (!runtime().lists.empty())
      runtime().FailList(Internal("busy"));
    return std::chrono::steady_clock::now() > end;
  }));
  EXPECT_THAT(runtime().updates, IsEmpty()) << "it may be starting still";
  ASSERT_TRUE(node_.RunUntil([this] {
    runtime().AnswerLists();
    return !runtime().updates.empty();
  }));
}

// containerd does nothing then, and starts it all the same later.
TEST_F(UnclearListsTest, StoppingACreatedContainerKeepsItsCpus) {
  const ContainerId app = *node_.Create("app", kGuaranteed, 2000);
  manager().ContainerStopped(app);
  EXPECT_EQ(node_.Exclusive(app), "1-2");
  ExpectLook();
  node_.Start(app);
  EXPECT_EQ(node_.Exclusive(app), "1-2");
  EXPECT_EQ(node_.Exclusive(node_.Run("next", kGuaranteed, 2000)), "3-4");
}

TEST_F(UnclearListsTest, StoppingACreatedContainerFreesItsCpusWhereTheRuntimeSaysExited) {
  const ContainerId app = *node_.Create("app", kGuaranteed, 2000);
  node_.Stop(app);
  ExpectLook();
  EXPECT_EQ(node_.Known(app)->state, ContainerState::kExited);
  EXPECT_EQ(node_.Exclusive(node_.Run("next", kGuaranteed, 2000)), "1-2");
}

TEST_F(UnclearListsTest, AStartOfAnExitedContainerCausesAList) {
  const ContainerId app = *node_.Create("app", kGuaranteed, 2000);
  manager().ContainerExited(app);
  EXPECT_EQ(node_.Exclusive(node_.Run("next", kGuaranteed, 2000)), "1-2");
  node_.Start(app);
  ExpectLook();
  runtime().AnswerAll();
  EXPECT_EQ(node_.Exclusive(app), "3-4");
  EXPECT_EQ(runtime().CpusOf(app), "3-4");
}

TEST_F(UnclearListsTest, ContainersOfARuntimeThatWasNotAskedKeepTheirCpus) {
  const ContainerId away = node_.Run("away", kGuaranteed, 2000);
  const ContainerId here = node_.Run("here", kGuaranteed, 2000);
  runtime().AnswerAll();
  EXPECT_EQ(node_.Exclusive(away), "1-2");
  manager().RuntimeDisconnected();
  manager().RuntimeConnected();
  ASSERT_EQ(runtime().lists.size(), 1U);
  const FakeRuntimeClient::List list = std::exchange(runtime().lists, {}).front();
  // One of two runtimes was asked.
  RuntimeInventory told = runtime().held;
  for (const RuntimeContainer& container : told.containers) {
    if (container.id != away) continue;
    told.unclear.containers.insert(away);
    told.unclear.pods.insert(container.pod_id);
  }
  told.unclear.why = Unavailable("the runtime is away");
  std::erase_if(told.containers, [&](const auto& container) { return container.id == away; });
  std::erase_if(told.pods, [&](const Pod& pod) { return told.unclear.pods.contains(pod.id); });
  list.done(told);
  EXPECT_TRUE(manager().synchronizer().ready());
  EXPECT_EQ(node_.Exclusive(away), "1-2");
  EXPECT_EQ(node_.Exclusive(here), "3-4");
  EXPECT_EQ(node_.Exclusive(node_.Run("next", kGuaranteed, 2000)), "5-6");
}

// One of several runtimes is away when the daemon starts.

class KeptContainersTest : public testing::Test {
 protected:
  KeptContainersTest() { node_.KeepState(files_); }

  static ResourceManager::Options Options() {
    ResourceManager::Options options = TestNode::FastOptions();
    options.runtimes.runtimes["vm"].socket = "/run/vm.sock";
    options.runtimes.classes["kata"].runtime = "vm";
    return options;
  }

  ResourceManager& manager() { return node_.manager(); }
  FakeRuntimeClient& runtime() { return node_.runtime; }

  // Runs a container like TestNode::Run, in a pod of this handler.
  ContainerId RunAt(const std::string& handler, const std::string& name, QosClass qos,
                    int64_t milli_cpu, const LinuxResources& overhead = {}) {
    const PodSandboxId pod = node_.AddPod(name, qos);
    Pod& held = runtime().held.pods.back();
    held.runtime_handler = handler;
    held.overhead = overhead;
    manager().PodCreated(held);
    const StatusOr<ContainerId> id = node_.Create(TestNode::Request(pod, name, milli_cpu));
    EXPECT_TRUE(id.ok()) << id.status();
    if (!id.ok()) return ContainerId();
    runtime().AnswerAll();
    node_.Start(*id);
    return *id;
  }

  // The lists lack pods of the handler "kata" and their containers.
  void GoAway() {
    RuntimeInventory& held = runtime().held;
    const auto away = std::partition(held.pods.begin(), held.pods.end(),
                                     [](const Pod& pod) { return pod.runtime_handler != "kata"; });
    for (auto pod = away; pod != held.pods.end(); ++pod) {
      const auto theirs =
          std::partition(held.containers.begin(), held.containers.end(),
                         [&](const RuntimeContainer& one) { return one.pod_id != pod->id; });
      std::move(theirs, held.containers.end(), std::back_inserter(away_.containers));
      held.containers.erase(theirs, held.containers.end());
    }
    std::move(away, held.pods.end(), std::back_inserter(away_.pods));
    held.pods.erase(away, held.pods.end());
    held.unclear.why = Unavailable("no runtime vm");
    held.unclear.runtimes = {"vm"};
  }
  // Answers the updates as without a runtime.
  void RefuseUpdates() {
    while (!runtime().updates.empty())
      runtime().Answer(0, Unavailable("no runtime vm"));
  }
  void ComeBack() {
    RuntimeInventory& held = runtime().held;
    std::ranges::move(std::exchange(away_.pods, {}), std::back_inserter(held.pods));
    std::ranges::move(std::exchange(away_.containers, {}), std::back_inserter(held.containers));
    held.unclear = {};
    manager().RuntimeJoined();
    runtime().AnswerList();
  }
  // Its resize from a shared place to the CPUs 2-3 reaches the runtime, whose reply never comes.
  ContainerId ResizeWithoutReply() {
    const ContainerId former = RunAt("", "former", kGuaranteed, 1000);
    ContainerId there = RunAt("kata", "there", kGuaranteed, 500);
    node_.FlushState();
    const LinuxResources wanted = TestNode::Resources(2000);
    const auto resize = manager().AdmitUpdate(there, wanted);
    EXPECT_TRUE(resize.ok()) << resize.status();
    ResourceValues carried = resize->adjustment;
    if (!carried.cpu_shares) carried.cpu_shares = wanted.cpu_shares;
    if (!carried.cpu_quota) carried.cpu_quota = wanted.cpu_quota;
    runtime().Apply(there, carried);
    EXPECT_EQ(runtime().CpusOf(there), "2-3");
    runtime().AnswerAll();
    // A decision made anew would find another place.
    node_.Stop(former);
    node_.Remove(former);
    return there;
  }
  void RestartWithout() {
    node_.FlushState();
    GoAway();
    runtime().history.clear();
    node_.Restart();
  }

  test::CrashingFileSystem files_{1};
  RuntimeInventory away_;
  TestNode node_{test::S1Ht(), test::FirstFit, Options()};
};

TEST_F(KeptContainersTest, WhatAnAbsentRuntimeHadKeepsItsCpus) {
  const ContainerId there = RunAt("kata", "there", kGuaranteed, 2000);
  const ContainerId here = RunAt("", "here", kGuaranteed, 2000);
  RestartWithout();
  EXPECT_EQ(node_.Exclusive(there), "1-2");
  EXPECT_EQ(node_.Exclusive(here), "3-4");
  EXPECT_EQ(node_.Exclusive(RunAt("", "next", kGuaranteed, 2000)), "5-6");
  ComeBack();
  runtime().AnswerAll();
  EXPECT_EQ(node_.Exclusive(there), "1-2");
  EXPECT_THAT(runtime().history, Each(Not(StartsWith(std::string(there.value())))))
      << "it never moves";
}

TEST_F(KeptContainersTest, ASharedOneLeavesWhenItsRuntimeComes) {
  const ContainerId there = RunAt("kata", "there", kBurstable, 100);
  RestartWithout();
  const PodSandboxId pod = node_.AddPod("app", kGuaranteed);
  const auto app = Must(node_.Create(TestNode::Request(pod, "app", 2000)));
  RefuseUpdates();
  bool started = false;
  const auto wait = manager().AdmitStart(app, [&](const Status& status) { started = status.ok(); });
  EXPECT_NE(wait, nullptr) << "it runs on CPUs of the one that cannot be reached";
  ComeBack();
  EXPECT_TRUE(node_.RunUntil([&] {
    runtime().AnswerAll();
    return started;
  }));
  EXPECT_EQ(runtime().CpusOf(there), "0,3-7");
}

TEST_F(KeptContainersTest, ASharedOneIsOnlyWhereItsNotesSay) {
  RunAt("kata", "there", kBurstable, 100);
  const ContainerId ended = RunAt("", "ended", kGuaranteed, 2000);
  runtime().AnswerAll();
  RestartWithout();
  runtime().AnswerAll();
  node_.Remove(ended);
  // The shared container was sent an update to leave 1-2 before the restart.
  EXPECT_EQ(node_.Exclusive(RunAt("", "next", kGuaranteed, 2000)), "1-2");
}

TEST_F(KeptContainersTest, AResizeThatHadArrivedKeepsItsPlace) {
  const ContainerId there = ResizeWithoutReply();
  for (int restarts = 1; restarts <= 2; ++restarts) {
    SCOPED_TRACE(restarts);
    RestartWithout();
    EXPECT_EQ(node_.Known(there)->requirements.cpu_request, MilliCpu{500});
    RefuseUpdates();
    node_.FlushState();
  }
  runtime().history.clear();
  ComeBack();
  runtime().AnswerAll();
  EXPECT_EQ(node_.Known(there)->requirements.cpu_request, MilliCpu{2000});
  EXPECT_EQ(node_.Exclusive(there), "2-3");
  EXPECT_THAT(runtime().history, Each(Not(StartsWith(std::string(there.value())))))
      << "it never moves";
  node_.FlushState();
  EXPECT_FALSE(node_.Saved(there)->asked);
  EXPECT_EQ(node_.Saved(there)->placement.exclusive.ToString(), "2-3");
}

TEST_F(KeptContainersTest, AResizeWhosePlaceIsTakenMeanwhileGetsAnother) {
  const ContainerId there = ResizeWithoutReply();
  RestartWithout();
  const ContainerId next = *node_.Create("next", kGuaranteed, 2000);
  RefuseUpdates();
  ASSERT_EQ(node_.Exclusive(next), "1-2");
  ComeBack();
  EXPECT_EQ(node_.Exclusive(next), "1-2");
  EXPECT_EQ(node_.Exclusive(there), "3-4");
  EXPECT_TRUE(node_.RunUntil([&] {
    runtime().AnswerAll();
    return runtime().CpusOf(there) == "3-4";
  }));
}

TEST_F(KeptContainersTest, AResizeWhosePlaceAClaimHasMeanwhileGetsAnother) {
  const ContainerId there = ResizeWithoutReply();
  RestartWithout();
  manager().claims().Reserve({.uid = "u1", .parts = {{.device = "cpu", .cpus = 2}}},
                             [](const StatusOr<ClaimGrant>&) {});
  const std::vector<ClaimGrant> reserved = manager().claims().Held();
  ASSERT_EQ(reserved.at(0).All(), CpuSet::Range(1, 2));
  ComeBack();
  EXPECT_EQ(manager().claims().Held(), reserved);
  EXPECT_EQ(node_.Exclusive(there), "3-4");
}

TEST_F(KeptContainersTest, WhatIsGoneWhenItsRuntimeComesGivesItsCpusBack) {
  const ContainerId there = RunAt("kata", "there", kGuaranteed, 2000);
  RestartWithout();
  away_.containers.clear();
  ComeBack();
  EXPECT_EQ(node_.Known(there), nullptr);
  EXPECT_EQ(node_.Exclusive(RunAt("", "next", kGuaranteed, 2000)), "1-2");
}

TEST_F(KeptContainersTest, WhatARuntimeThatIsThereHasLostIsNotHeld) {
  const ContainerId here = RunAt("", "here", kGuaranteed, 2000);
  node_.FlushState();
  runtime().Remove(here);
  RestartWithout();
  EXPECT_EQ(node_.Known(here), nullptr);
  EXPECT_EQ(node_.Exclusive(RunAt("", "next", kGuaranteed, 2000)), "1-2");
}

TEST_F(KeptContainersTest, ItHoldsOverAnotherRestartAndFurtherLists) {
  const ContainerId there = RunAt("kata", "there", kGuaranteed, 2000);
  RestartWithout();
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(node_.ListAgain());
  }
  EXPECT_EQ(node_.Exclusive(there), "1-2");
  node_.FlushState();
  node_.Restart();
  EXPECT_EQ(node_.Exclusive(there), "1-2");
  node_.Reconnect();
  EXPECT_EQ(node_.Exclusive(there), "1-2");
  ComeBack();
  EXPECT_EQ(node_.Exclusive(there), "1-2");
  ASSERT_NE(node_.Known(there), nullptr);
  EXPECT_EQ(node_.Known(there)->state, ContainerState::kRunning);
}

TEST_F(KeptContainersTest, OneThatOnlyWasCreatedIsKnownToBeSo) {
  RunAt("", "here", kBurstable, 100);  // so that starts are noted
  const PodSandboxId pod = node_.AddPod("there", kGuaranteed);
  runtime().held.pods.back().runtime_handler = "kata";
  manager().PodCreated(runtime().held.pods.back());
  const auto there = Must(node_.Create(TestNode::Request(pod, "there", 2000)));
  runtime().AnswerAll();
  RestartWithout();
  EXPECT_EQ(node_.Exclusive(there), "1-2");
  ComeBack();
  EXPECT_EQ(node_.Known(there)->state, ContainerState::kCreated);
  node_.Start(there);
}

// It may still take effect, on the CPUs that the container had then.
TEST_F(KeptContainersTest, AStartUnderWayIsStillKnownWhenItsRuntimeComes) {
  RunAt("", "here", kGuaranteed, 1000);  // so that starts are noted
  const PodSandboxId pod = node_.AddPod("there", kBurstable);
  runtime().held.pods.back().runtime_handler = "kata";
  manager().PodCreated(runtime().held.pods.back());
  const auto there = Must(node_.Create(TestNode::Request(pod, "there", 100)));
  ASSERT_EQ(manager().AdmitStart(there, [](const Status&) {}), nullptr);
  for (int restarts = 1; restarts <= 2; ++restarts)
    RestartWithout();
  ComeBack();
  const auto app = Must(node_.Create("app", kGuaranteed, 2000));
  bool started = false;
  const auto wait = manager().AdmitStart(app, [&](const Status& status) { started = status.ok(); });
  EXPECT_FALSE(started) << "the other container may be coming up on its CPUs";
}

TEST_F(KeptContainersTest, OverheadOfItsPodsIsHeldAsItWasLast) {
  LinuxResources overhead = TestNode::Resources(500);
  RunAt("kata", "there", kGuaranteed, 2000, overhead);
  overhead = TestNode::Resources(250);
  manager().PodResourcesChanged(runtime().held.pods.back().id, overhead, {});
  RestartWithout();
  EXPECT_EQ(manager().snapshot().Overheads().promised, MilliCpu{250});
  away_.pods.back().overhead = overhead;
  ComeBack();
  EXPECT_EQ(manager().snapshot().Overheads().promised, MilliCpu{250}) << "once, not twice";
  away_.containers.clear();
}

}  // namespace
}  // namespace resmgr
