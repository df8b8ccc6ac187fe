// SPDX-License-Identifier: Apache-2.0
#include "pkg/resmgr/synchronizer.h"

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/resmgr/resource_manager.h"
#include "pkg/resmgr/testing/fake_runtime_client.h"
#include "pkg/resmgr/testing/test_node.h"
#include "pkg/sys/clock.h"
#include "test/support/captured_log.h"
#include "test/support/machines/machines.h"
#include "test/support/status_matchers.h"
#include "test/support/wait.h"

namespace resmgr {
namespace {

using std::chrono::milliseconds;
using test::FakeRuntimeClient;
using test::HasCode;
using test::Must;
using test::TestNode;
using test::WithCpus;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::Optional;
using testing::SizeIs;
using enum QosClass;

class SynchronizerTest : public testing::Test, private Synchronizer::Owner {
 protected:
  Synchronizer::Ready Note(const std::string& name) {
    return [this, name](const Status&) { ran_.push_back(name); };
  }
  void Connect() {
    synchronizer_.Connected();
    runtime_.AnswerList();
    ASSERT_TRUE(synchronizer_.ready());
  }

  ManualClock clock_;
  test::FakeRuntimeClient runtime_;
  std::function<void()> on_inventory_;
  std::vector<std::string> ran_;
  const BrainOptions options_{};
  Synchronizer synchronizer_{clock_, runtime_, *this, options_};

 private:
  void OnListing() override {}
  Status OnInventory(const RuntimeInventory&, const Synchronizer::Removed&, bool) override {
    if (const auto now = std::exchange(on_inventory_, nullptr)) now();
    return OkStatus();
  }
  bool Knows(const Pod&) const override { return false; }
  bool Knows(const RuntimeContainer&) const override { return false; }
  void OnListFailed(const Status&) override {}
};

// A start that waits for a list would otherwise never go on, and another one would go on before its
// list arrives.
TEST_F(SynchronizerTest, AListThatIsWantedWhileOneIsTakenOverComesAfterIt) {
  Connect();
  synchronizer_.ListNow(Note("first"));
  on_inventory_ = [this] { synchronizer_.ListNow(Note("second")); };
  runtime_.AnswerList();
  EXPECT_THAT(ran_, ElementsAre("first"));
  ASSERT_THAT(runtime_.lists, SizeIs(1));
  runtime_.AnswerList();
  EXPECT_THAT(ran_, ElementsAre("first", "second"));
  EXPECT_THAT(runtime_.lists, IsEmpty());
}

// The brain reads the runtime's lists, after a connect and later.

class SynchronizationTest : public test::ManagerFixture {};

TEST_F(SynchronizationTest, WhenReadyTellsHowTheConnectionIs) {
  std::vector<std::string> log;
  const auto note = [&log](const std::string& name) {
    return [&log, name](const Status& status) {
      log.push_back(name + std::string(CodeName(status.code())));
    };
  };
  manager().synchronizer().WhenReady(note("connected "));
  manager().RuntimeDisconnected();
  manager().synchronizer().WhenReady(note("lost "));
  manager().RuntimeConnected();
  manager().synchronizer().WhenReady(note("listing "));
  runtime().AnswerList();
  manager().RuntimeDisconnected();
  manager().RuntimeConnected();
  manager().synchronizer().WhenReady(note("waiting "));
  manager().RuntimeDisconnected();
  EXPECT_THAT(log,
              ElementsAre("connected OK", "lost UNAVAILABLE", "listing OK", "waiting UNAVAILABLE"));
}

TEST_F(SynchronizationTest, AFailedListIsTriedAgain) {
  manager().RuntimeDisconnected();
  manager().RuntimeConnected();
  std::optional<Status> ready;
  manager().synchronizer().WhenReady([&](const Status& status) { ready = status; });
  runtime().FailList(DeadlineExceeded("too slow"));
  ASSERT_THAT(ready, Optional(HasCode(StatusCode::kUnavailable)));
  EXPECT_THAT(std::string(Message(*ready)), HasSubstr("too slow"));
  ASSERT_TRUE(node_.AwaitList());
  manager().synchronizer().WhenReady([&](const Status& status) { ready = status; });
  runtime().AnswerList();
  EXPECT_TRUE(ready->ok());
}

TEST_F(SynchronizationTest, ARestartMovesNobody) {
  const ContainerId shared = node_.Run("shared", kBurstable, 100);
  const ContainerId a = node_.Run("a", kGuaranteed, 2000);
  const ContainerId b = node_.Run("b", kGuaranteed, 1000);
  node_.Stop(a);
  runtime().AnswerAll();
  runtime().history.clear();
  node_.Restart();
  EXPECT_THAT(runtime().history, IsEmpty());
  EXPECT_EQ(node_.Exclusive(b), "3");
  EXPECT_EQ(node_.Placed(shared), "0-2,4-7");
  EXPECT_EQ(node_.Known(a)->state, ContainerState::kExited);
  EXPECT_EQ(node_.Known(b)->state, ContainerState::kRunning);
}

TEST_F(SynchronizationTest, AReconnectPushesOnlyWhatDiffers) {
  const ContainerId shared = node_.Run("shared", kBurstable, 100);
  const ContainerId other = node_.Run("other", kBurstable, 100);
  const ContainerId app = node_.Run("app", kGuaranteed, 2000);
  runtime().history.clear();
  runtime().Find(other)->resources.cpuset_cpus = "0-7";  // changed by another program
  node_.Reconnect();
  EXPECT_THAT(runtime().history, ElementsAre(WithCpus(other, "0,3-7")));
  EXPECT_EQ(node_.Exclusive(app), "1-2");
  EXPECT_EQ(runtime().CpusOf(shared), "0,3-7");
}

TEST_F(SynchronizationTest, AReconnectFindsRemovedContainers) {
  const ContainerId shared = node_.Run("shared", kBurstable, 100);
  const ContainerId removed = node_.Run("removed", kGuaranteed, 1000);
  const ContainerId crashed = node_.Run("crashed", kGuaranteed, 1000);
  runtime().Remove(removed);
  node_.Crash(crashed);
  node_.Reconnect();
  runtime().AnswerAll();
  EXPECT_EQ(node_.Known(removed), nullptr);
  EXPECT_EQ(node_.Known(crashed)->state, ContainerState::kExited);
  EXPECT_EQ(runtime().CpusOf(shared), "0-7");
}

TEST_F(SynchronizationTest, WhatHappensDuringAListOverrulesIt) {
  const ContainerId stopped = node_.Run("stopped", kGuaranteed, 1000);
  const ContainerId removed = node_.Run("removed", kGuaranteed, 1000);
  const PodSandboxId pod = node_.AddPod("web", kGuaranteed);
  manager().RuntimeDisconnected();
  runtime().DropAll();
  manager().RuntimeConnected();
  const RuntimeInventory before = runtime().held;
  node_.Stop(stopped);
  node_.Remove(removed);
  const ContainerId fresh = *node_.Create(TestNode::Request(pod, "app", 1000));
  runtime().held = before;
  runtime().AnswerList();
  EXPECT_EQ(node_.Known(stopped)->state, ContainerState::kExited);
  EXPECT_EQ(node_.Known(removed), nullptr);
  ASSERT_NE(node_.Known(fresh), nullptr) << "younger than the list";
  EXPECT_EQ(policy().grants().size(), 1u);
}

TEST_F(SynchronizationTest, ACreationUnderWayIsLeftAloneByAList) {
  const PodSandboxId pod = node_.AddPod("web", kGuaranteed);
  const CreateRequest request = TestNode::Request(pod, "app", 2000);
  const Admission admission = *manager().AdmitCreate(CreateRequest(request));
  // The runtime has created it already, its answer is still on its way.
  RuntimeContainer early;
  early.id = ContainerId("early");
  early.pod_id = pod;
  early.name = "app";
  runtime().held.containers.push_back(early);
  node_.Reconnect();
  EXPECT_EQ(node_.KnownContainers(), 1u);
  manager().CreateSucceeded(admission.key, early.id);
  EXPECT_EQ(node_.Exclusive(early.id), "1-2");
  EXPECT_EQ(node_.KnownContainers(), 1u);
}

TEST_F(SynchronizationTest, ALostConnectionEndsWaits) {
  node_.Run("shared", kBurstable, 100);
  const ContainerId app = *node_.Create("app", kGuaranteed, 2000);
  const test::AskedStart start(manager(), app);
  manager().RuntimeDisconnected();
  EXPECT_EQ(start.answer().code(), StatusCode::kUnavailable);
}

TEST_F(SynchronizationTest, AnUnansweredShrinkIsSentAgainAfterAReconnect) {
  const ContainerId shared = node_.Run("shared", kBurstable, 100);
  const ContainerId app = *node_.Create("app", kGuaranteed, 2000);
  runtime().history.clear();
  node_.Reconnect();
  EXPECT_THAT(runtime().history, ElementsAre(testing::StartsWith(WithCpus(shared, "0,3-7"))));
  const test::AskedStart start(manager(), app);
  EXPECT_FALSE(start.answered());
  runtime().AnswerAll();
  EXPECT_TRUE(start.admitted());
}

TEST_F(SynchronizationTest, AnAnswerFromBeforeAReconnectIsVoid) {
  const ContainerId shared = node_.Run("shared", kBurstable, 100);
  ASSERT_TRUE(node_.Create("app", kGuaranteed, 2000).ok());
  const auto late = runtime().updates[0].done;
  node_.Reconnect();
  late(OkStatus());
  EXPECT_EQ(runtime().updates.size(), 1u);
  EXPECT_EQ(runtime().CpusOf(shared), "0-7");
}

TEST_F(SynchronizationTest, ARuntimeThatRefusesAnUpdateIsAskedWhatItHolds) {
  const ContainerId shared = node_.Run("shared", kBurstable, 100);
  const ContainerId app = *node_.Create("app", kGuaranteed, 2000);
  const test::AskedStart start(manager(), app);
  node_.Crash(shared);
  runtime().Answer(0, Internal("container is not running"));
  ASSERT_TRUE(node_.AnswerNextList());
  EXPECT_EQ(node_.Known(shared)->state, ContainerState::kExited);
  EXPECT_TRUE(start.admitted()) << "no container is in the way any more";
}

// The brain notices calls of other clients at the runtime, and changes that happen there by
// themselves.

using Kind = ContainerEvent::Kind;
using Refusal = ResourceManager::Refusal;

// Time passes; true where no list was asked for meanwhile.
bool NoListIn(TestNode& node, milliseconds time) {
  const auto deadline = std::chrono::steady_clock::now() + time;
  node.RunUntil(
      [&] { return std::chrono::steady_clock::now() >= deadline || !node.runtime.lists.empty(); });
  return node.runtime.lists.empty();
}

class LearningTest : public testing::Test {
 protected:
  LearningTest() {
    // The list that follows each connect.
    EXPECT_TRUE(node_.AnswerNextList());
  }
  static ResourceManager::Options Options() {
    ResourceManager::Options options = TestNode::FastOptions();
    options.list_period = milliseconds(20);
    return options;
  }
  FakeRuntimeClient& runtime() { return node_.runtime; }
  ResourceManager& manager() { return node_.manager(); }
  bool NoListFor(milliseconds time) { return NoListIn(node_, time); }

  test::CapturedLog log_;
  TestNode node_{test::S1Ht(),  // CPUs 0-7
                 test::FirstFit, Options()};
};

TEST_F(LearningTest, AListReleasesContainersThatOthersRemoved) {
  const ContainerId shared = node_.Run("shared", kBurstable, 100);
  const ContainerId app = node_.Run("app", kGuaranteed, 2000);
  runtime().Remove(app);
  std::erase_if(runtime().held.pods, [](const Pod& pod) { return pod.name == "app"; });
  ASSERT_TRUE(node_.AnswerNextList());
  runtime().AnswerAll();
  EXPECT_EQ(node_.Known(app), nullptr);
  EXPECT_EQ(runtime().CpusOf(shared), "0-7");
  // The next list is the same.
  EXPECT_TRUE(node_.AwaitList());
}

TEST_F(LearningTest, AListPlacesContainersThatOthersCreated) {
  node_.Run("app", kGuaranteed, 2000);
  Pod pod;
  pod.id = PodSandboxId("outside");
  pod.name = "outside";
  pod.namespace_name = "ns";
  pod.qos = kBestEffort;
  RuntimeContainer stranger;
  stranger.id = ContainerId("stranger");
  stranger.pod_id = pod.id;
  stranger.name = "stranger";
  stranger.state = ContainerState::kRunning;
  runtime().held.pods.push_back(pod);
  runtime().held.containers.push_back(stranger);
  ASSERT_TRUE(node_.AnswerNextList());
  runtime().AnswerAll();
  EXPECT_EQ(runtime().CpusOf(stranger.id), "0,3-7");
}

TEST_F(LearningTest, OnlyNewContainersAreAskedForTheirStatus) {
  const ContainerId shared = node_.Run("shared", kBurstable, 100);
  node_.Run("app", kGuaranteed, 2000);
  const size_t before = runtime().statuses;
  ASSERT_TRUE(node_.AnswerNextList());
  EXPECT_EQ(runtime().statuses, before);
  node_.Crash(shared);
  ASSERT_TRUE(node_.AnswerNextList());
  EXPECT_EQ(runtime().statuses, before + 1);
  EXPECT_EQ(node_.Known(shared)->state, ContainerState::kExited);
  node_.Reconnect();
  EXPECT_EQ(runtime().statuses, before + 5) << "everything is, after a connect";
}

TEST_F(LearningTest, ListsWithoutChangesAreNotLogged) {
  node_.Run("app", kGuaranteed, 2000);
  ASSERT_TRUE(node_.AnswerNextList());
  log_.lines.clear();
  ASSERT_TRUE(node_.AnswerNextList());
  EXPECT_THAT(log_.Text(), Not(HasSubstr("the runtime holds")));
}

TEST_F(LearningTest, ARefusalForWantOfCpusIsTentativeUntilEverythingIsListed) {
  const ContainerId big = node_.Run("big", kGuaranteed, 6000);
  runtime().Remove(big);  // by others
  CreateRequest request = TestNode::Request(node_.AddPod("app", kGuaranteed), "app", 4000);
  request.labels.Set("l", "1");
  request.pod_resources = TestNode::Resources(5000);
  const CreateRequest before = request;
  const auto refused = manager().AdmitCreate(std::move(request), Refusal::kTentative);
  ASSERT_EQ(refused.status().code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(log_.Text(), Not(HasSubstr("refused")));
  // NOLINTNEXTLINE(bugprone-use-after-move): that is what is promised.
  EXPECT_EQ(request.pod_id, before.pod_id);
  EXPECT_EQ(request.name, before.name);
  EXPECT_EQ(request.labels, before.labels);
  EXPECT_EQ(request.resources, before.resources);
  EXPECT_EQ(request.pod_resources, before.pod_resources);

  std::optional<Status> listed;
  manager().synchronizer().Refresh([&listed](const Status& status) { listed = status; });
  ASSERT_TRUE(node_.AnswerNextList());
  ASSERT_TRUE(listed && listed->ok());
  const auto admitted = Must(manager().AdmitCreate(std::move(request), Refusal::kFinal));
  EXPECT_EQ(test::CpuList(admitted.adjustment), "1-4");
}

TEST_F(LearningTest, AnUpdateIsRefusedTentativelyToo) {
  node_.Run("big", kGuaranteed, 6000);
  const ContainerId app = node_.Run("app", kGuaranteed, 1000);
  const auto refused = manager().AdmitUpdate(app, TestNode::Resources(2000), Refusal::kTentative);
  EXPECT_EQ(refused.status().code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(log_.Text(), Not(HasSubstr("refused")));
  EXPECT_EQ(node_.Placed(app), "7");
}

TEST_F(LearningTest, ACrashThatAnEventReportsIsNoticedSoon) {
  const ContainerId shared = node_.Run("shared", kBurstable, 100);
  const ContainerId app = node_.Run("app", kGuaranteed, 2000);
  node_.Crash(app);
  manager().OnContainerEvent({Kind::kStopped, std::string(app.value())});
  ASSERT_TRUE(node_.AnswerNextList());
  runtime().AnswerAll();
  EXPECT_EQ(runtime().CpusOf(shared), "0-7");
}

// dockerd makes names up for containers that are created without one.
TEST_F(LearningTest, AContainerHasTheNameThatAnEventTells) {
  const PodSandboxId pod = node_.AddPod("docker", kBestEffort);
  const CreateRequest request = TestNode::Request(pod, "unnamed-1", 100);
  const auto admitted = Must(manager().AdmitCreate(CreateRequest(request)));
  const ContainerId id = node_.Hold(request, admitted);
  runtime().Find(id)->name = "festive_bose";
  // The event comes before the answer of the call, which has the id.
  manager().OnContainerEvent({Kind::kCreated, std::string(id.value()), "festive_bose"});
  manager().CreateSucceeded(admitted.key, id);
  EXPECT_TRUE(node_.RunUntil([&] { return node_.Known(id)->name == "festive_bose"; }));
  runtime().Find(id)->name = "mine";
  manager().OnContainerEvent({Kind::kRenamed, std::string(id.value()), "mine"});
  EXPECT_EQ(node_.Known(id)->name, "mine");
  // Another attempt of that name takes its place; one of the former name does not.
  Must(manager().AdmitCreate(TestNode::Request(pod, "festive_bose", 100)));
  EXPECT_NE(node_.Placed(id), "");
  node_.Remove(id);
  EXPECT_EQ(node_.Known(id), nullptr);
}

// Events wait for a moment, and the last name is the name.
TEST_F(LearningTest, ANameThatAnEarlierEventToldDoesNotComeBack) {
  const PodSandboxId pod = node_.AddPod("docker", kBestEffort);
  for (const bool known : {true, false}) {
    const CreateRequest request = TestNode::Request(pod, known ? "one" : "two", 100);
    const auto admitted = Must(manager().AdmitCreate(CreateRequest(request)));
    const ContainerId id = node_.Hold(request, admitted);
    const std::string text(id.value());
    manager().OnContainerEvent({Kind::kCreated, text, request.name});
    if (known) manager().CreateSucceeded(admitted.key, id);
    runtime().Find(id)->name = "new-" + request.name;
    manager().OnContainerEvent({Kind::kRenamed, text, "new-" + request.name});
    if (!known) manager().CreateSucceeded(admitted.key, id);
    const auto later = std::chrono::steady_clock::now() + milliseconds(20);
    node_.RunUntil([later] { return std::chrono::steady_clock::now() >= later; });
    EXPECT_EQ(node_.Known(id)->name, "new-" + request.name);
  }
}

TEST_F(LearningTest, ARenameThatNoEventToldIsListed) {
  const ContainerId id = node_.Run("app", kGuaranteed, 1000);
  runtime().Find(id)->name = "mine";
  node_.Reconnect();
  EXPECT_EQ(node_.Known(id)->name, "mine");
}

class QuietTest : public LearningTest {
 protected:
  QuietTest() {
    // Ends the periodic lists.
    node_.manager().RuntimeDisconnected();
    runtime().DropAll();
  }
  static ResourceManager::Options Slow() {
    ResourceManager::Options options = TestNode::FastOptions();
    options.refresh_pause = milliseconds(50);
    return options;
  }
  TestNode quiet_{test::S1Ht(), test::FirstFit, Slow()};
  bool QuietList() { return quiet_.AwaitList(); }
  bool QuietFor(milliseconds time) { return NoListIn(quiet_, time); }
  // The one that follows each connect.
  void AwaitSecondList() {
    ASSERT_TRUE(QuietList());
    quiet_.runtime.AnswerList();
  }
};

TEST_F(QuietTest, EventsOfCallsThatPassedCauseNoList) {
  AwaitSecondList();
  const ContainerId app = *quiet_.Create("app", kGuaranteed, 2000);
  quiet_.manager().OnContainerEvent({Kind::kCreated, std::string(app.value())});
  quiet_.runtime.AnswerAll();
  quiet_.Start(app);
  quiet_.manager().OnContainerEvent({Kind::kStarted, std::string(app.value())});
  // Before the answer of the call.
  quiet_.manager().OnContainerEvent({Kind::kStopped, std::string(app.value())});
  quiet_.Stop(app);
  quiet_.manager().OnContainerEvent({Kind::kDeleted, std::string(app.value())});
  quiet_.Remove(app);
  quiet_.manager().OnContainerEvent({Kind::kStopped, "unknown"});
  EXPECT_TRUE(QuietFor(milliseconds(30)));
}

TEST_F(QuietTest, AnEventOfAnUnknownContainerCausesAList) {
  AwaitSecondList();
  quiet_.manager().OnContainerEvent({Kind::kCreated, "stranger"});
  EXPECT_TRUE(QuietList());
}

TEST_F(QuietTest, ConcurrentRefreshesShareOneList) {
  AwaitSecondList();
  int told = 0;
  for (int i = 0; i < 1000; ++i) {
    quiet_.manager().synchronizer().Refresh(
        [&told](const Status& status) { told += status.ok() ? 1 : 0; });
  }
  ASSERT_TRUE(QuietList());
  EXPECT_EQ(quiet_.runtime.lists.size(), 1u);
  EXPECT_EQ(told, 0);
  const auto asked = std::chrono::steady_clock::now();
  quiet_.runtime.AnswerList();
  EXPECT_EQ(told, 1000);
  quiet_.manager().synchronizer().Refresh([](const Status&) {});
  ASSERT_TRUE(QuietList());
  EXPECT_GE(std::chrono::steady_clock::now() - asked, milliseconds(20)) << "after a pause only";
}

TEST_F(QuietTest, WithoutAConnectionThereIsNothingToRefresh) {
  std::optional<Status> told;
  quiet_.manager().synchronizer().Refresh([&told](const Status& status) { told = status; });
  quiet_.manager().RuntimeDisconnected();
  ASSERT_THAT(told, Optional(HasCode(StatusCode::kUnavailable)));
}

TEST(EventFilterTest, AFloodOfEventsCausesOneList) {
  EventLoop loop;
  ContainerStore store;
  int looks = 0;
  LoopClock clock(loop);
  EventFilter filter(clock, store, {.look = [&] { ++looks; }, .rename = nullptr}, milliseconds(1));
  for (int i = 0; i < 100'000; ++i)
    filter.Add({Kind::kCreated, fmt::format("{}", i)});
  EXPECT_EQ(filter.waiting(), EventFilter::kMost);
  test::RunFor(loop, milliseconds(50));
  EXPECT_EQ(looks, 1);
  EXPECT_EQ(filter.waiting(), 0u);
}

// A creation that waits for a list would never be answered where another list took its place.
TEST(ResyncTest, WaitsForAListThatIsUnderWayAndFollowsIt) {
  ResourceManager::Options options = TestNode::FastOptions();
  options.refresh_pause = milliseconds(0);
  TestNode node(test::S1Ht(), test::FirstFit, options);
  auto& lists = node.runtime.lists;
  ASSERT_TRUE(node.RunUntil([&] { return !lists.empty(); }));
  node.runtime.AnswerList();
  // The next list may not begin so soon after a list.
  node.manager().synchronizer().ResyncSoon();
  ASSERT_TRUE(lists.empty());
  std::optional<Status> listed;
  node.manager().synchronizer().Refresh([&listed](const Status& status) { listed = status; });
  ASSERT_EQ(lists.size(), 1u);
  const auto later = std::chrono::steady_clock::now() + 5 * options.last_retry;
  node.RunUntil([&] { return std::chrono::steady_clock::now() >= later; });
  EXPECT_EQ(lists.size(), 1u);
  node.runtime.AnswerList();
  EXPECT_TRUE(listed && listed->ok());
  EXPECT_TRUE(node.RunUntil([&] { return !lists.empty(); }));
}

}  // namespace
}  // namespace resmgr
