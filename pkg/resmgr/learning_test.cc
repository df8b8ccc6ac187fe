// SPDX-License-Identifier: Apache-2.0
// The brain notices calls of other clients at the runtime, and changes that happen there by
// themselves.
#include <chrono>
#include <optional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/resmgr/event_filter.h"
#include "pkg/resmgr/resource_manager.h"
#include "pkg/resmgr/testing/first_fit_policy.h"
#include "pkg/resmgr/testing/test_node.h"
#include "test/support/captured_log.h"
#include "test/support/machines/machines.h"
#include "test/support/wait.h"

namespace resmgr {
namespace {

using std::chrono::milliseconds;
using test::FakeRuntimeClient;
using test::TestNode;
using testing::HasSubstr;
using testing::Not;

using enum QosClass;
using Kind = ContainerEvent::Kind;
using Refusal = ResourceManager::Refusal;

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
  // Time passes; true where no list was asked for meanwhile.
  bool NoListFor(milliseconds time) {
    bool over = false;
    const auto deadline = std::chrono::steady_clock::now() + time;
    node_.RunUntil([&] {
      over = std::chrono::steady_clock::now() >= deadline;
      return over || !runtime().lists.empty();
    });
    return over && runtime().lists.empty();
  }

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
  const CreateRequest before = request;
  const auto refused = manager().AdmitCreate(std::move(request), Refusal::kTentative);
  ASSERT_EQ(refused.status().code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(log_.Text(), Not(HasSubstr("refused")));
  // NOLINTNEXTLINE(bugprone-use-after-move): that is what is promised.
  EXPECT_EQ(request.pod_id, before.pod_id);
  EXPECT_EQ(request.name, before.name);
  EXPECT_EQ(request.labels, before.labels);
  EXPECT_EQ(request.resources, before.resources);

  std::optional<Status> listed;
  manager().Refresh([&listed](const Status& status) { listed = status; });
  ASSERT_TRUE(node_.AnswerNextList());
  ASSERT_TRUE(listed && listed->ok());
  const auto admitted = manager().AdmitCreate(std::move(request), Refusal::kFinal);
  ASSERT_TRUE(admitted.ok()) << admitted.status();
  EXPECT_EQ(test::CpuList(admitted->adjustment), "1-4");
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
  const auto admitted = manager().AdmitCreate(CreateRequest(request));
  ASSERT_TRUE(admitted.ok());
  const ContainerId id = node_.Hold(request, *admitted);
  runtime().Find(id)->name = "festive_bose";
  // The event comes before the answer of the call, which has the id.
  manager().OnContainerEvent({Kind::kCreated, std::string(id.value()), "festive_bose"});
  manager().CreateSucceeded(admitted->key, id);
  EXPECT_TRUE(node_.RunUntil([&] { return node_.Known(id)->name == "festive_bose"; }));
  runtime().Find(id)->name = "mine";
  manager().OnContainerEvent({Kind::kRenamed, std::string(id.value()), "mine"});
  EXPECT_EQ(node_.Known(id)->name, "mine");
  // Another attempt of that name takes its place; one of the former name does not.
  const auto other = manager().AdmitCreate(TestNode::Request(pod, "festive_bose", 100));
  ASSERT_TRUE(other.ok());
  EXPECT_NE(node_.Placed(id), "");
  node_.Remove(id);
  EXPECT_EQ(node_.Known(id), nullptr);
}

// Events wait for a moment, and the last name is the name.
TEST_F(LearningTest, ANameThatAnEarlierEventToldDoesNotComeBack) {
  const PodSandboxId pod = node_.AddPod("docker", kBestEffort);
  for (const bool known : {true, false}) {
    const CreateRequest request = TestNode::Request(pod, known ? "one" : "two", 100);
    const auto admitted = manager().AdmitCreate(CreateRequest(request));
    ASSERT_TRUE(admitted.ok());
    const ContainerId id = node_.Hold(request, *admitted);
    const std::string text(id.value());
    manager().OnContainerEvent({Kind::kCreated, text, request.name});
    if (known) manager().CreateSucceeded(admitted->key, id);
    runtime().Find(id)->name = "new-" + request.name;
    manager().OnContainerEvent({Kind::kRenamed, text, "new-" + request.name});
    if (!known) manager().CreateSucceeded(admitted->key, id);
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
  bool QuietFor(milliseconds time) {
    const auto deadline = std::chrono::steady_clock::now() + time;
    quiet_.RunUntil([&] {
      return std::chrono::steady_clock::now() >= deadline || !quiet_.runtime.lists.empty();
    });
    return quiet_.runtime.lists.empty();
  }
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
    quiet_.manager().Refresh([&told](const Status& status) { told += status.ok() ? 1 : 0; });
  }
  ASSERT_TRUE(QuietList());
  EXPECT_EQ(quiet_.runtime.lists.size(), 1u);
  EXPECT_EQ(told, 0);
  const auto asked = std::chrono::steady_clock::now();
  quiet_.runtime.AnswerList();
  EXPECT_EQ(told, 1000);
  quiet_.manager().Refresh([](const Status&) {});
  ASSERT_TRUE(QuietList());
  EXPECT_GE(std::chrono::steady_clock::now() - asked, milliseconds(20)) << "after a pause only";
}

TEST_F(QuietTest, WithoutAConnectionThereIsNothingToRefresh) {
  std::optional<Status> told;
  quiet_.manager().Refresh([&told](const Status& status) { told = status; });
  quiet_.manager().RuntimeDisconnected();
  ASSERT_TRUE(told.has_value());
  EXPECT_EQ(told->code(), StatusCode::kUnavailable);
}

TEST(EventFilterTest, AFloodOfEventsCausesOneList) {
  EventLoop loop;
  ContainerStore store;
  int looks = 0;
  LoopClock clock(loop);
  EventFilter filter(clock, store, {.look = [&] { ++looks; }, .rename = nullptr},
                     {.pause = milliseconds(1), .most = 100});
  for (int i = 0; i < 100'000; ++i)
    filter.Add({Kind::kCreated, fmt::format("{}", i)});
  EXPECT_EQ(filter.waiting(), 100u);
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
  node.manager().Resync();
  ASSERT_TRUE(lists.empty());
  std::optional<Status> listed;
  node.manager().Refresh([&listed](const Status& status) { listed = status; });
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
