// SPDX-License-Identifier: Apache-2.0
// Containers that have exited and are started again, as dockerd's may be.
#include <algorithm>
#include <chrono>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/resmgr/testing/test_node.h"
#include "pkg/state/testing/failing_file_systems.h"
#include "test/support/captured_log.h"
#include "test/support/machines/machines.h"
#include "test/support/sanitizer.h"
#include "test/support/status_matchers.h"

namespace resmgr {
namespace {

using test::HasCode;
using test::Must;
using testing::HasSubstr;
using testing::Optional;

using enum QosClass;
using Kind = ContainerEvent::Kind;

// A policy that binds no container, like null.
class NullLike : public test::FirstFitPolicy {
 public:
  using FirstFitPolicy::FirstFitPolicy;
  std::string_view name() const override { return "null"; }
  std::unique_ptr<Policy> Clone() const override { return std::make_unique<NullLike>(*this); }
  StatusOr<Plan> Reconcile(const Snapshot& snapshot) override {
    Plan plan;
    snapshot.ForEachContainer([&plan](const Pod&, const Container& container) {
      if (container.cpus_bound) plan.Change(container.key);
    });
    return plan;
  }
};

// Outlives the node, whose state is written on a thread.
struct Files {
  test::CrashingFileSystem files_{1};
};

class RevivalsTest : protected Files, public testing::Test {
 protected:
  RevivalsTest() {
    runtime().starts_exited = true;
    node_.Restart();
    EXPECT_TRUE(node_.AnswerNextList());  // the one that follows each connect
  }
  // No start goes on because other containers are late, and none ends before a slow machine has
  // checked it.
  static ResourceManager::Options Options() {
    ResourceManager::Options options = test::TestNode::FastOptions();
    options.start_timeout = std::chrono::minutes(1);
    options.start_limit = std::chrono::milliseconds(500);
    return options;
  }
  test::FakeRuntimeClient& runtime() { return node_.runtime; }
  ResourceManager& manager() { return node_.manager(); }
  void Pass(std::chrono::milliseconds time) {
    const auto until = std::chrono::steady_clock::now() + time;
    node_.RunUntil([until] { return std::chrono::steady_clock::now() >= until; });
  }
  // Asks for a start; `answer_` has the answer.
  void Ask(const ContainerId& id) {
    answer_.reset();
    wait_ = manager().AdmitStart(id, [this](const Status& status) { answer_ = status; });
  }
  // Returns a container of a pod that has run and exited.
  ContainerId Exited(std::string_view name, int64_t milli_cpu) {
    ContainerId id = node_.Run(name, kGuaranteed, milli_cpu);
    node_.Stop(id);
    runtime().AnswerAll();
    return id;
  }

  test::TestNode node_{test::S1Ht(),  // CPUs 0-7
                       test::FirstFit, Options()};
  std::optional<Status> answer_;
  std::unique_ptr<StartWait> wait_;
};

// The update may take effect after a newer one.
TEST_F(RevivalsTest, AnUpdateOfItsFormerLifeIsWaitedFor) {
  const ContainerId again = node_.Run("again", kBurstable, 100);
  ASSERT_TRUE(node_.Create("own", kGuaranteed, 1000).ok());
  ASSERT_EQ(runtime().updates.size(), 1u);
  node_.Stop(again);
  ASSERT_TRUE(node_.Create("more", kGuaranteed, 1000).ok());
  Ask(again);
  ASSERT_EQ(runtime().updates.size(), 1u) << "the former one is not answered";
  runtime().Answer(0);
  EXPECT_FALSE(answer_) << "that was of before";
  ASSERT_EQ(runtime().updates.size(), 1u);
  runtime().Answer(0);
  ASSERT_TRUE(answer_ && answer_->ok());
  EXPECT_EQ(runtime().CpusOf(again), "0,3-7");
}

TEST_F(RevivalsTest, AStartOfOneThatExitedIsNews) {
  const ContainerId again = Exited("again", 1000);
  runtime().Find(again)->state = ContainerState::kRunning;
  runtime().Apply(again, ResourceValues{.cpus = *CpuSet::Parse("2")});
  const ContainerId other = node_.Run("other", kGuaranteed, 2000);
  manager().OnContainerEvent({Kind::kStarted, std::string(again.value())});
  ASSERT_TRUE(node_.AnswerNextList());
  runtime().AnswerAll();
  EXPECT_EQ(runtime().CpusOf(other), "1-2");
  EXPECT_EQ(runtime().CpusOf(again), "3");
}

TEST_F(RevivalsTest, ItIsPlacedFirstAndThenStarted) {
  const ContainerId again = Exited("again", 1000);
  const ContainerId other = node_.Run("other", kGuaranteed, 2000);
  const ContainerId shared = node_.Run("shared", kBurstable, 100);
  Ask(again);
  EXPECT_FALSE(answer_) << "its place is not in force";
  EXPECT_EQ(node_.Placed(again), "3");
  runtime().AnswerAll();
  ASSERT_TRUE(answer_ && answer_->ok());
  EXPECT_EQ(runtime().CpusOf(again), "3");
  EXPECT_EQ(runtime().CpusOf(shared), "0,4-7");
  EXPECT_EQ(runtime().CpusOf(other), "1-2");
  node_.Started(again);
  runtime().AnswerLists();
  EXPECT_EQ(node_.Known(again)->state, ContainerState::kRunning);
  EXPECT_EQ(node_.Exclusive(again), "3");
}

TEST_F(RevivalsTest, ItIsRefusedWhereThereIsNoRoom) {
  const ContainerId again = Exited("again", 2000);
  const ContainerId other = node_.Run("other", kGuaranteed, 6000);
  Ask(again);
  ASSERT_TRUE(node_.AwaitList()) << "others may have left";
  runtime().AnswerList();
  ASSERT_THAT(answer_, Optional(HasCode(StatusCode::kResourceExhausted)));
  EXPECT_THAT(std::string(answer_->message()), HasSubstr("again"));
  EXPECT_EQ(node_.Known(again)->state, ContainerState::kExited);

  runtime().Remove(other);
  Ask(again);
  if (!answer_) ASSERT_TRUE(node_.AwaitList());
  runtime().AnswerLists();
  runtime().AnswerAll();
  ASSERT_TRUE(answer_ && answer_->ok());
  EXPECT_EQ(node_.Exclusive(again), "1-2");
}

// A list shows the former state of it until its start is carried out.
TEST_F(RevivalsTest, ListsDoNotEndItBeforeItsStartIsOver) {
  const ContainerId again = Exited("again", 1000);
  const ContainerId shared = node_.Run("shared", kBurstable, 100);
  Ask(again);
  ASSERT_TRUE(node_.ListAgain());
  EXPECT_EQ(node_.Exclusive(again), "1");
  runtime().AnswerAll();
  ASSERT_TRUE(answer_ && answer_->ok());
  ASSERT_TRUE(node_.ListAgain());
  EXPECT_EQ(node_.Exclusive(again), "1");
  EXPECT_EQ(runtime().CpusOf(shared), "0,2-7");
  // The container ended at once, which the list after its start shows.
  manager().StartSucceeded(again);
  ASSERT_TRUE(node_.AnswerNextList());
  runtime().AnswerAll();
  EXPECT_EQ(node_.Known(again)->state, ContainerState::kExited);
  EXPECT_EQ(runtime().CpusOf(shared), "0-7");
}

TEST_F(RevivalsTest, OneThatIsNotStartedGivesItsCpusBack) {
  const ContainerId again = Exited("again", 1000);
  const ContainerId shared = node_.Run("shared", kBurstable, 100);
  for (const bool refused : {true, false}) {
    Ask(again);
    if (refused) {
      runtime().AnswerAll();
      ASSERT_TRUE(answer_ && answer_->ok());
      EXPECT_EQ(runtime().CpusOf(shared), "0,2-7");
      manager().StartFailed(again);
      runtime().AnswerLists();
    } else {
      EXPECT_FALSE(answer_);
      wait_.reset();  // the client went away
    }
    runtime().AnswerAll();
    EXPECT_EQ(node_.Known(again)->state, ContainerState::kExited) << refused;
    EXPECT_EQ(runtime().CpusOf(shared), "0-7") << refused;
  }
}

TEST_F(RevivalsTest, AnotherStartOfItKeepsItsPlace) {
  const ContainerId again = Exited("again", 1000);
  const ContainerId shared = node_.Run("shared", kBurstable, 100);
  Ask(again);
  std::optional<Status> second;
  const auto wait = manager().AdmitStart(again, [&second](const Status& s) { second = s; });
  wait_.reset();
  EXPECT_EQ(node_.Exclusive(again), "1");
  runtime().AnswerAll();
  ASSERT_TRUE(second && second->ok());
  EXPECT_EQ(runtime().CpusOf(shared), "0,2-7");
}

// The container waits, runs by another client's start, and ends: it has no place when its wait is
// over.
TEST_F(RevivalsTest, OneThatEndsWhileItsStartWaitsDoesNotStartUnplaced) {
  const ContainerId shared = node_.Run("shared", kBurstable, 100);
  const ContainerId app = *node_.Create("app", kGuaranteed, 1000);
  Ask(app);
  ASSERT_FALSE(answer_) << "the other one is still on its CPUs";
  node_.Stop(app);
  manager().ContainerExited(app);
  runtime().AnswerAll();
  ASSERT_THAT(answer_, Optional(HasCode(StatusCode::kFailedPrecondition)));
  EXPECT_EQ(runtime().CpusOf(shared), "0-7");
}

TEST_F(RevivalsTest, AStartWithoutAnAnswerKeepsItsCpusForAWhile) {
  const ContainerId again = Exited("again", 1000);
  const ContainerId shared = node_.Run("shared", kBurstable, 100);
  Ask(again);
  runtime().AnswerAll();
  ASSERT_TRUE(answer_ && answer_->ok());
  manager().StartUnclear(again);
  EXPECT_EQ(node_.Exclusive(again), "1");
  ASSERT_TRUE(node_.AnswerNextList());
  EXPECT_EQ(node_.Exclusive(again), "1");
  EXPECT_TRUE(node_.RunUntil([&] {
    runtime().AnswerLists();
    return node_.Known(again)->state == ContainerState::kExited;
  }));
  runtime().AnswerAll();
  EXPECT_EQ(runtime().CpusOf(shared), "0-7");
}

// `docker restart`: one call, an end and a start.
TEST_F(RevivalsTest, OneThatIsRestartedKeepsItsCpus) {
  const ContainerId app = node_.Run("app", kGuaranteed, 1000);
  const ContainerId shared = node_.Run("shared", kBurstable, 100);
  Ask(app);
  ASSERT_TRUE(answer_ && answer_->ok());
  ASSERT_TRUE(node_.ListAgain());  // it runs still
  node_.Crash(app);
  manager().OnContainerEvent({Kind::kStopped, std::string(app.value())});
  ASSERT_TRUE(node_.AnswerNextList());
  runtime().AnswerAll();
  EXPECT_EQ(runtime().CpusOf(shared), "0,2-7");
  EXPECT_EQ(node_.Exclusive(app), "1");
  // The start failed.
  manager().StartFailed(app);
  ASSERT_TRUE(node_.AnswerNextList());
  runtime().AnswerAll();
  EXPECT_EQ(runtime().CpusOf(shared), "0-7");
}

TEST_F(RevivalsTest, ARestartWithoutAnAnswerKeepsItsCpusForAWhile) {
  const ContainerId app = node_.Run("app", kGuaranteed, 1000);
  const ContainerId shared = node_.Run("shared", kBurstable, 100);
  Ask(app);
  manager().StartUnclear(app);
  node_.Crash(app);
  ASSERT_TRUE(node_.ListAgain());
  runtime().AnswerAll();
  EXPECT_EQ(runtime().CpusOf(shared), "0,2-7");
  EXPECT_TRUE(node_.RunUntil([&] {
    runtime().AnswerLists();
    return node_.Known(app)->state == ContainerState::kExited;
  }));
}

// dockerd would start it there for ever.
TEST_F(RevivalsTest, WithoutAPolicyOneThatExitedIsNotBoundEither) {
  node_.KeepState(files_);
  node_.Restart();
  const ContainerId exited = Exited("exited", 1000);
  const ContainerId shared = node_.Run("shared", kBurstable, 100);
  ASSERT_EQ(runtime().CpusOf(exited), "1");
  node_.FlushState();
  node_.Restart();
  runtime().AnswerAll();
  const NullLike null(node_.machine());
  const auto planned = Must(manager().policy_changes().Preview(null));
  ASSERT_EQ(planned.size(), 2u);
  EXPECT_EQ(planned.back().container, "ns/exited/exited");
  EXPECT_EQ(planned.back().to.EnforcedCpus()->ToString(), "0-7");

  std::optional<Status> done;
  manager().policy_changes().Set(std::make_unique<NullLike>(node_.machine()),
                                 [&done](const Status& s) { done = s; });
  runtime().AnswerAll();
  EXPECT_FALSE(manager().policy_changes().AllReleased());
  ASSERT_TRUE(node_.RunUntil([this] { return !runtime().updates.empty(); }));
  runtime().Answer(0, Unavailable("not now"));
  ASSERT_TRUE(node_.RunUntil([this] { return !runtime().updates.empty(); })) << "once more";
  runtime().AnswerAll();
  EXPECT_EQ(runtime().CpusOf(exited), "0-7");
  EXPECT_EQ(runtime().CpusOf(shared), "0-7");
  EXPECT_TRUE(manager().policy_changes().AllReleased());
}

// dockerd neither updates nor starts one that it is removing.
TEST_F(RevivalsTest, OneThatIsBeingRemovedIsNotWaitedFor) {
  const ContainerId exited = Exited("exited", 1000);
  runtime().Find(exited)->dead = true;
  ASSERT_TRUE(node_.ListAgain());
  const NullLike null(node_.machine());
  const auto planned = Must(manager().policy_changes().Preview(null));
  EXPECT_EQ(planned.size(), 0u);
  manager().policy_changes().Set(std::make_unique<NullLike>(node_.machine()), [](const Status&) {});
  EXPECT_TRUE(manager().policy_changes().AllReleased());
  Pass(std::chrono::milliseconds(5));
  EXPECT_EQ(runtime().updates.size(), 0u);
  Ask(exited);
  ASSERT_THAT(answer_, Optional(HasCode(StatusCode::kFailedPrecondition)));
}

// The update fails for ever, as with a dockerd that cannot write its record of the container.
TEST_F(RevivalsTest, OneThatCannotBeFreedKeepsNothingWaiting) {
  const test::CapturedLog log;
  const ContainerId exited = Exited("exited", 1000);
  manager().policy_changes().Set(std::make_unique<NullLike>(node_.machine()), [](const Status&) {});
  const auto refuse = [this](const Status& status) {
    if (!runtime().updates.empty()) runtime().Answer(0, status);
  };
  int unreachable = 0;
  EXPECT_TRUE(node_.RunUntil([&] {
    if (!runtime().updates.empty()) ++unreachable;
    refuse(Unavailable("no dockerd"));
    return unreachable == 20;
  }));
  EXPECT_FALSE(manager().policy_changes().AllReleased())
      << "a dockerd that is away refuses nothing";
  EXPECT_TRUE(node_.RunUntil([&] {
    refuse(Internal("open config.v2.json: read-only file system"));
    return manager().policy_changes().AllReleased();
  }));
  EXPECT_THAT(log.Text(), HasSubstr("ns/exited/exited"));
  EXPECT_THAT(log.Text(), HasSubstr("read-only file system"));
  EXPECT_THAT(log.Text(), HasSubstr("remove the container"));
}

// Containers that end, are started again and restarted in any order, while updates, lists and
// starts are answered late: none runs on the exclusive CPUs of another running one.
class RandomRevivals : public RevivalsTest {
 protected:
  struct Start {
    ContainerId id;
    std::unique_ptr<StartWait> wait;
    std::optional<Status> answer;
  };

  size_t Any(size_t size) { return random_() % size; }
  bool Runs(const ContainerId& id) { return runtime().Find(id)->state == ContainerState::kRunning; }
  void AskFor(const ContainerId& id) {
    Start& start = starts_.emplace_back();
    start.id = id;
    start.wait =
        manager().AdmitStart(id, [&start](const Status& status) { start.answer = status; });
  }
  // Ends the oldest start.
  void EndStart() {
    if (starts_.empty()) return;
    Start& start = starts_.front();
    if (start.answer && start.answer->ok()) {
      if (Runs(start.id)) node_.Crash(start.id);  // it is restarted
      if (Any(4) != 0) {
        node_.Started(start.id);
        ++started_;
      } else {
        manager().StartFailed(start.id);
      }
    }
    starts_.pop_front();  // else the client went away, or was refused
  }
  void Step(const ContainerId& id) {
    const bool busy = std::ranges::any_of(starts_, [&](const Start& s) { return s.id == id; });
    switch (Any(8)) {
      case 0:
        return Runs(id) && !busy ? node_.Stop(id) : void();
      case 1:
        if (Runs(id) && !busy) node_.Crash(id);
        return manager().OnContainerEvent({Kind::kStopped, std::string(id.value())});
      case 2:
        return busy ? void() : AskFor(id);
      case 3:
        return runtime().updates.empty() ? void() : runtime().Answer(Any(runtime().updates.size()));
      case 4:
        return runtime().lists.empty() ? void() : runtime().AnswerList();
      case 5:
        return manager().synchronizer().ResyncSoon();
      case 6:
        return Any(5) == 0 ? StartDaemonAnew() : void();
      default:
        return EndStart();
    }
  }
  CpuSet CpusOf(const ContainerId& id) {
    return Runs(id) ? *CpuSet::Parse(runtime().CpusOf(id)) : CpuSet();
  }
  // The exclusive CPUs of a running container.
  CpuSet OwnOf(const ContainerId& id) { return *CpuSet::Parse(node_.Exclusive(id)) & CpusOf(id); }
  // While no daemon runs, other clients may start an exited container, on whatever CPUs it had.
  void StartDaemonAnew() {
    starts_.clear();
    std::map<ContainerId, CpuSet> own;
    // Skips containers that are being moved.
    for (const ContainerId& id : ids_) {
      if (OwnOf(id) == *CpuSet::Parse(node_.Exclusive(id))) own[id] = OwnOf(id);
    }
    node_.FlushState();
    node_.Restart([this] {
      const ContainerId& id = ids_[Any(ids_.size())];
      if (Runs(id) || Any(2) == 0) return;
      runtime().Find(id)->state = ContainerState::kRunning;
      intruders_.insert(id);
      ++intruded_;
    });
    for (const auto& [id, cpus] : own) {
      ASSERT_TRUE(intruders_.contains(id) || cpus.IsSubsetOf(*CpuSet::Parse(node_.Placed(id))))
          << id.value() << " was alone on " << cpus.ToString() << " and is to move to "
          << node_.Placed(id);
    }
  }
  // A container that other clients started shares CPUs with others until an update moves one of
  // them.
  void DropIntrudersThatAreApart() {
    std::erase_if(intruders_, [this](const ContainerId& id) {
      return std::ranges::none_of(ids_, [&](const ContainerId& other) {
        if (other == id) return false;
        return OwnOf(other).Intersects(CpusOf(id)) || OwnOf(id).Intersects(CpusOf(other));
      });
    });
  }
  void ExpectApart(int step) {
    DropIntrudersThatAreApart();
    for (const ContainerId& id : ids_) {
      const CpuSet own = intruders_.contains(id) ? CpuSet() : OwnOf(id);
      for (const ContainerId& other : ids_) {
        if (other == id || intruders_.contains(other)) continue;
        ASSERT_FALSE(own.Intersects(CpusOf(other))) << "step " << step << ": " << other.value()
                                                    << " is where " << id.value() << " is alone";
      }
    }
  }

  std::mt19937 random_{4711};
  std::vector<ContainerId> ids_;
  std::list<Start> starts_;
  int started_ = 0;
  std::set<ContainerId> intruders_;
  int intruded_ = 0;
};

TEST_F(RandomRevivals, NoneRunsWhereAnotherOneIsAlone) {
  node_.KeepState(files_);
  // Not all of them have room at once.
  for (int i = 0; i < 6; ++i) {
    ids_.push_back(node_.Run(fmt::format("own{}", i), kGuaranteed, 1000 + 1000 * (i % 2)));
    if (i % 2 == 1) node_.Stop(ids_.back());
    if (i < 4) ids_.push_back(node_.Run(fmt::format("shared{}", i), kBurstable, 100));
    runtime().AnswerAll();
  }
  constexpr int kSteps = test::kSanitized ? 8'000 : 20'000;
  for (int step = 0; step < kSteps; ++step) {
    Step(ids_[Any(ids_.size())]);
    if (step % 50 == 0) Pass(std::chrono::milliseconds(1));
    ExpectApart(step);
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(started_, 100);
  EXPECT_GT(intruded_, 20);
  starts_.clear();
  EXPECT_TRUE(node_.RunUntil([this] {
    runtime().AnswerLists();
    runtime().AnswerAll();
    DropIntrudersThatAreApart();
    return intruders_.empty();
  }));
}

// If the runtime refuses such starts, the container is not placed.
TEST_F(RevivalsTest, OtherRuntimesRefuseByThemselves) {
  runtime().starts_exited = false;
  node_.Restart();
  const ContainerId app = Exited("app", 1000);
  Ask(app);
  ASSERT_TRUE(answer_ && answer_->ok());
  EXPECT_EQ(node_.Known(app)->state, ContainerState::kExited);
  EXPECT_EQ(node_.Placed(app), "");
}

}  // namespace
}  // namespace resmgr
