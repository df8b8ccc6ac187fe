// SPDX-License-Identifier: Apache-2.0
// Updates of our own that the runtime refuses: that the container has ended, which is not known
// yet, is the most common reason, and no reason for a warning.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/resmgr/history.h"
#include "pkg/resmgr/testing/test_node.h"
#include "pkg/state/testing/failing_file_systems.h"
#include "test/support/captured_log.h"
#include "test/support/machines/machines.h"

namespace resmgr {
namespace {

using test::FirstFitPolicy;
using test::TestNode;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using enum QosClass;

class MootCounter final : public Observer {
 public:
  explicit MootCounter(Observer& next) : next_(next) {}
  void OnFailed(const Act& act, const Status& why) override { next_.OnFailed(act, why); }
  void OnPushed(const Act& act) override {
    ++pushed;
    next_.OnPushed(act);
  }
  void OnMoot(size_t updates) override { moot += updates; }

  size_t pushed = 0;
  size_t moot = 0;

 private:
  Observer& next_;
};

class FailedUpdatesTest : public ::testing::Test {
 protected:
  test::FakeRuntimeClient& runtime() { return node_.runtime; }
  // Containers that have to make room for another one: their updates wait for an answer.
  std::vector<ContainerId> Push(size_t count) {
    std::vector<ContainerId> ids;
    for (size_t i = 0; i < count; ++i)
      ids.push_back(node_.Run(fmt::format("shared{}", i), kBurstable, 100));
    EXPECT_TRUE(node_.Create("app", kGuaranteed, 2000).ok());
    EXPECT_THAT(runtime().updates, SizeIs(count));
    return ids;
  }
  void AnswerNextList() { ASSERT_TRUE(node_.AnswerNextList()); }
  size_t FailuresInHistory() const {
    const auto last = history_.Last(history_.capacity());
    return static_cast<size_t>(std::ranges::count_if(
        last, [](const History::Entry* entry) { return entry->event == History::Event::kFailed; }));
  }
  ResourceManager::Options Options() {
    ResourceManager::Options options = TestNode::FastOptions();
    options.observer = &counter_;
    return options;
  }

  test::CapturedLog warnings_{"warning"};
  History history_;
  MootCounter counter_{history_};
  TestNode node_{test::S1Ht(),  // CPUs 0-7
                 test::FirstFit, Options()};
};

TEST_F(FailedUpdatesTest, ARaceWithAnExitIsNoWarning) {
  node_.Crash(Push(1)[0]);
  runtime().Answer(0, Internal("cannot update a container that does not run"));
  AnswerNextList();
  EXPECT_THAT(warnings_.lines, IsEmpty());
  EXPECT_EQ(FailuresInHistory(), 0u);
  EXPECT_EQ(counter_.moot, 1u);
}

TEST_F(FailedUpdatesTest, ARaceWithARemovalIsNoWarning) {
  const ContainerId id = Push(1)[0];
  runtime().Answer(0, Internal("its shim is gone"));
  runtime().Remove(id);
  AnswerNextList();
  EXPECT_THAT(warnings_.lines, IsEmpty());
  EXPECT_EQ(FailuresInHistory(), 0u);
  EXPECT_EQ(counter_.moot, 1u);
}

TEST_F(FailedUpdatesTest, AListThatStillShowsARemovedContainerDoesNotBringItBack) {
  const ContainerId id = Push(1)[0];
  node_.manager().synchronizer().ResyncSoon();
  ASSERT_TRUE(node_.AwaitList());
  const RuntimeInventory before = runtime().held;
  runtime().Answer(0, NotFound("no such container"));
  runtime().held = before;
  runtime().AnswerList();
  EXPECT_EQ(node_.Known(id), nullptr);
}

// Every answer counts once, whatever happened to its container.
TEST_F(FailedUpdatesTest, AnAnswerThatComesAfterTheEndIsMoot) {
  const std::vector<ContainerId> ids = Push(3);
  node_.Stop(ids[0]);
  runtime().Answer(0, OkStatus());
  EXPECT_EQ(counter_.moot, 1u);
  runtime().Answer(0, NotFound("no such container"));
  EXPECT_EQ(counter_.moot, 2u);
  runtime().Answer(0, OkStatus());
  EXPECT_EQ(counter_.pushed, 1u);
  EXPECT_EQ(counter_.moot, 2u);
  EXPECT_THAT(warnings_.lines, IsEmpty());
}

TEST_F(FailedUpdatesTest, ARaceWithAnExitThatIsToldMeanwhileIsNoWarning) {
  const ContainerId id = Push(1)[0];
  runtime().Answer(0, Internal("cannot update a container that does not run"));
  node_.Stop(id);
  AnswerNextList();
  EXPECT_THAT(warnings_.lines, IsEmpty());
}

// An NRI runtime has no lists, and reports the end by an event.
TEST_F(FailedUpdatesTest, ARaceWithAnExitThatIsToldLaterIsNoWarning) {
  runtime().lists_tell_news = false;
  const ContainerId id = Push(1)[0];
  runtime().Answer(0, Internal("cannot update a container that does not run"));
  AnswerNextList();
  EXPECT_THAT(warnings_.lines, IsEmpty());
  node_.Stop(id);
  ASSERT_TRUE(node_.RunUntil([this] { return counter_.moot > 0; }));
  EXPECT_THAT(warnings_.lines, IsEmpty());
  EXPECT_EQ(FailuresInHistory(), 0u);
}

TEST_F(FailedUpdatesTest, AFailureOfARunningContainerIsAWarningAlsoWithoutLists) {
  runtime().lists_tell_news = false;
  Push(1);
  runtime().Answer(0, Internal("the disk is on fire"));
  AnswerNextList();
  EXPECT_THAT(warnings_.lines, IsEmpty());
  ASSERT_TRUE(node_.RunUntil([this] { return !warnings_.lines.empty(); }));
  EXPECT_THAT(warnings_.lines,
              ElementsAre(HasSubstr("cannot update container ns/shared0/shared0: ")));
}

TEST_F(FailedUpdatesTest, AFailureOfARunningContainerIsAWarning) {
  Push(1);
  runtime().Answer(0, Internal("the disk is on fire"));
  AnswerNextList();
  EXPECT_THAT(warnings_.lines,
              ElementsAre(HasSubstr("cannot update container ns/shared0/shared0: ")));
  EXPECT_EQ(FailuresInHistory(), 1u);
}

TEST_F(FailedUpdatesTest, AListThatIsOlderThanTheFailureDoesNotDecide) {
  const ContainerId id = Push(1)[0];
  node_.manager().synchronizer().ResyncSoon();
  ASSERT_TRUE(node_.AwaitList());
  runtime().Answer(0, Internal("cannot update a container that does not run"));
  runtime().AnswerList();
  EXPECT_THAT(warnings_.lines, IsEmpty());
  node_.Crash(id);
  AnswerNextList();
  EXPECT_THAT(warnings_.lines, IsEmpty());
}

TEST_F(FailedUpdatesTest, AFailureIsAWarningWhereTheListFails) {
  Push(1);
  runtime().Answer(0, Internal("the disk is on fire"));
  ASSERT_TRUE(node_.AwaitList());
  runtime().FailList(Internal("no list either"));
  EXPECT_THAT(warnings_.lines, ::testing::Contains(HasSubstr("the disk is on fire")));
}

TEST_F(FailedUpdatesTest, ManyFailuresCauseTwoLists) {
  const std::vector<ContainerId> ids = Push(5);
  for (const ContainerId& id : ids) {
    node_.Crash(id);
    runtime().Answer(0, Internal("cannot update a container that does not run"));
  }
  AnswerNextList();  // of the first one
  AnswerNextList();  // of those that failed meanwhile
  EXPECT_THAT(warnings_.lines, IsEmpty());
  EXPECT_THAT(runtime().lists, IsEmpty());
}

// Administrators must learn about a hanging runtime, whatever happened to the container.
TEST_F(FailedUpdatesTest, NoAnswerIsAWarningAtOnce) {
  Push(1);
  runtime().Answer(0, DeadlineExceeded("no answer within 10 s"));
  EXPECT_THAT(warnings_.lines, ElementsAre(HasSubstr("no answer within 10 s")));
}

// Decisions that are taken back after they were sent to the runtime, and their bindings.

// The policy binds no memory.
class RollbackTest : public testing::Test {
 protected:
  RollbackTest() {
    node_.KeepState(files_);
    web_ = node_.Run("web", kBurstable, 100);
    other_ = node_.Run("other", kBurstable, 100);
    runtime().AnswerAll();
  }

  test::FakeRuntimeClient& runtime() { return node_.runtime; }
  ResourceManager& manager() { return node_.manager(); }
  std::optional<NodeSet> MemsOf(const ContainerId& id) { return node_.Known(id)->placement.mems; }
  std::string MemsInForce(const ContainerId& id) {
    return runtime().Find(id)->resources.cpuset_mems.value_or("");
  }

  // The plan binds the memory of the container to node 0.
  void Bind(Plan& plan, const ContainerId& id) {
    const Container& container = *node_.Known(id);
    Placement next = plan.NewPlacement(container).value_or(container.placement);
    next.mems = NodeSet{0};
    std::erase_if(plan.changes, [&](const auto& change) { return change.key == container.key; });
    plan.Change(container.key) = std::move(next);
  }
  void Settle() {
    ASSERT_TRUE(node_.RunUntil([this] {
      if (!runtime().lists.empty()) runtime().AnswerList();
      runtime().AnswerAll();
      return manager().Settled(node_.Known(web_)->key) &&
             manager().Settled(node_.Known(other_)->key);
    }));
  }
  void ExpectARestartDecidesTheSame() {
    const std::optional<NodeSet> before = MemsOf(web_);
    const std::string in_force = MemsInForce(web_);
    node_.FlushState();
    node_.Restart();
    EXPECT_EQ(MemsOf(web_), before);
    Settle();
    EXPECT_EQ(MemsInForce(web_), in_force);
  }

  test::CrashingFileSystem files_{1};  // outlives the node, whose state is written on a thread
  TestNode node_{test::M80(),          // memory nodes 0-3
                 test::FirstFit};
  ContainerId web_;
  ContainerId other_;
};

TEST_F(RollbackTest, AnAbortedChangeOfThePolicyLeavesNoMemoryBound) {
  auto next = std::make_unique<FirstFitPolicy>(node_.machine());
  next->spoil = [this](Plan& plan) {
    Bind(plan, web_);
    Bind(plan, other_);
  };
  std::optional<Status> outcome;
  manager().policy_changes().Set(std::move(next),
                                 [&outcome](const Status& status) { outcome = status; });
  ASSERT_EQ(runtime().updates.size(), size_t{2});
  ASSERT_EQ(runtime().updates[0].id, web_);
  runtime().Answer(0);
  ASSERT_EQ(MemsInForce(web_), "0");
  runtime().Answer(0, Internal("the disk is on fire"));
  ASSERT_TRUE(node_.AnswerNextList());
  ASSERT_TRUE(outcome.has_value());
  ASSERT_EQ(outcome->code(), StatusCode::kAborted);
  EXPECT_EQ(MemsOf(web_), node_.machine().allowed_nodes());
  Settle();
  EXPECT_EQ(MemsInForce(web_), "0-3");
  ExpectARestartDecidesTheSame();
}

TEST_F(RollbackTest, AnUpdateThatFailedLeavesNoMemoryBound) {
  auto& policy = static_cast<FirstFitPolicy&>(node_.policy());
  policy.spoil = [this](Plan& plan) { Bind(plan, web_); };
  const auto admission = manager().AdmitUpdate(web_, TestNode::Resources(700));
  ASSERT_TRUE(admission.ok()) << admission.status();
  policy.spoil = nullptr;
  ASSERT_EQ(admission->adjustment.mems, NodeSet{0});
  runtime().Apply(web_, admission->adjustment);
  manager().UpdateFailed(*admission);
  EXPECT_EQ(MemsOf(web_), node_.machine().allowed_nodes());
  Settle();
  EXPECT_EQ(MemsInForce(web_), "0-3");
  ExpectARestartDecidesTheSame();
}

}  // namespace
}  // namespace resmgr
