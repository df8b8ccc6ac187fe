// SPDX-License-Identifier: Apache-2.0
// Changes of the policy under running containers, and the state that restarts keep.
#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
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

using test::CpuList;
using test::FirstFitPolicy;
using test::HasCode;
using test::Must;
using test::TestNode;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Optional;
using testing::SizeIs;

using enum QosClass;

class PolicyChangeTest : public testing::Test {
 protected:
  ResourceManager& manager() { return node_.manager(); }
  test::FakeRuntimeClient& runtime() { return node_.runtime; }

  // The plan puts the container on these CPUs, if it still exists.
  void Put(Plan& plan, ContainerKey key, const CpuSet& cpus) {
    const Container* const container = manager().snapshot().FindContainer(key);
    if (container == nullptr || container->state == ContainerState::kExited) return;
    std::erase_if(plan.changes, [key](const PlacementChange& change) { return change.key == key; });
    plan.changes.push_back({key, {}});
    plan.changes.back().placement.cpus = cpus;
  }

  // A policy that wants this container on these CPUs and leaves all others where they are.
  std::unique_ptr<FirstFitPolicy> Moving(const ContainerId& id, const CpuSet& cpus) {
    auto policy = std::make_unique<FirstFitPolicy>(node_.machine());
    const ContainerKey key = node_.Known(id)->key;
    policy->spoil = [this, key, cpus](Plan& plan) { Put(plan, key, cpus); };
    return policy;
  }

  void SetPolicy(std::unique_ptr<Policy> policy) {
    outcome_.reset();
    manager().policy_changes().Set(std::move(policy),
                                   [this](const Status& status) { outcome_ = status; });
  }

  // A shared container, which a change of the policy moves to CPU 7.
  ContainerId RunAndMove() {
    const ContainerId shared = node_.Run("shared", kBurstable, 100);
    SetPolicy(Moving(shared, CpuSet{7}));
    return shared;
  }

  // The list that shows whether a container whose move failed still exists.
  void AnswerNextList() { ASSERT_TRUE(node_.AnswerNextList()); }

  test::CrashingFileSystem files_{1};  // outlives the node, whose state is written on a thread
  TestNode node_{test::S1Ht(),         // CPUs 0-7
                 test::FirstFit};
  std::optional<Status> outcome_;
};

TEST_F(PolicyChangeTest, LegallyPlacedContainersStay) {
  const ContainerId exclusive = node_.Run("exclusive", kGuaranteed, 2000);
  const ContainerId shared = node_.Run("shared", kBurstable, 100);
  runtime().AnswerAll();
  const size_t asked = runtime().history.size();
  auto policy = std::make_unique<FirstFitPolicy>(node_.machine());
  const Policy* const next = policy.get();
  SetPolicy(std::move(policy));
  EXPECT_EQ(outcome_, OkStatus());
  EXPECT_EQ(&static_cast<const ClaimedPolicy&>(manager().policy()).behind(), next);
  EXPECT_EQ(runtime().history.size(), asked);
  EXPECT_EQ(node_.Exclusive(exclusive), "1-2");
  EXPECT_EQ(node_.Placed(shared), "0,3-7");
}

TEST_F(PolicyChangeTest, NoContainerEntersCpusThatAnotherIsAboutToLeave) {
  const ContainerId first = node_.Run("first", kGuaranteed, 2000);
  const ContainerId second = node_.Run("second", kGuaranteed, 2000);
  runtime().AnswerAll();
  auto policy = Moving(first, CpuSet::Range(0, 7));
  policy->spoil = [next = std::move(policy->spoil), key = node_.Known(second)->key](Plan& plan) {
    next(plan);
    plan.changes.push_back({key, {}});
    plan.changes.back().placement.cpus = CpuSet::Range(0, 7);
  };
  SetPolicy(std::move(policy));
  ASSERT_THAT(runtime().updates, SizeIs(2));
  EXPECT_EQ(CpuList(runtime().updates[0].adjustment), "0-2,5-7");
  EXPECT_EQ(CpuList(runtime().updates[1].adjustment), "0,3-7");
  runtime().AnswerAll();
  EXPECT_EQ(outcome_, OkStatus());
  EXPECT_EQ(runtime().CpusOf(first), "0-7");
  EXPECT_EQ(runtime().CpusOf(second), "0-7");
}

// Each container wants the CPUs of the next one, so none can go first unless another one leaves.
class SwappedCpusTest : public PolicyChangeTest {
 protected:
  void Swap(std::function<void(Plan&)> more = [](Plan&) {}) {
    for (const char* const name : {"a", "b", "c"})
      ids_.push_back(node_.Run(name, kGuaranteed, 2000));
    if (full_) node_.Run("last", kGuaranteed, 1000);
    runtime().AnswerAll();
    if (with_claim_) {
      const auto grant = node_.Reserve({.uid = "u1",
                                        .namespace_name = "ns",
                                        .name = "claim",
                                        .parts = {{.device = "cpu", .cpus = 1}}});
      ASSERT_TRUE(grant.ok()) << grant.status();
      claimed_ = grant->All();
    }
    auto policy = std::make_unique<FirstFitPolicy>(node_.machine());
    policy->spoil = [this, more = std::move(more), done = false](Plan& plan) mutable {
      if (std::exchange(done, true)) return later_(plan);
      for (size_t i = 0; i < ids_.size(); ++i) {
        plan.changes.push_back({node_.Known(ids_[i])->key, {}});
        plan.changes.back().placement.cpus = NextOf(i);
        plan.changes.back().placement.exclusive = NextOf(i);
      }
      more(plan);
    };
    SetPolicy(std::move(policy));
  }
  const CpuSet& NextOf(size_t i) const { return places_[(i + 1) % places_.size()]; }
  bool Swapped() {
    for (size_t i = 0; i < ids_.size(); ++i)
      if (runtime().CpusOf(ids_[i]) != NextOf(i).ToString()) return false;
    return true;
  }
  // No pending update of one of them leads to CPUs on which another one is.
  void ExpectNoneMeet() {
    for (const auto& update : runtime().updates) {
      if (!std::ranges::count(ids_, update.id)) continue;
      const CpuSet next =
          update.adjustment.cpus.value_or(*CpuSet::Parse(runtime().CpusOf(update.id)));
      for (const ContainerId& other : ids_) {
        if (other == update.id) continue;
        EXPECT_FALSE(next.Intersects(*CpuSet::Parse(runtime().CpusOf(other))))
            << update.id.value() << " goes to " << next.ToString() << " where " << other.value()
            << " is";
      }
    }
  }

  const std::vector<CpuSet> places_{CpuSet{1, 2}, CpuSet{3, 4}, CpuSet{5, 6}};
  bool with_claim_ = false;
  bool full_ = false;                                // CPU 7 is exclusive to another container, too
  std::function<void(Plan&)> later_ = [](Plan&) {};  // changes the plans after the swap
  CpuSet claimed_;
  std::vector<ContainerId> ids_;
};

TEST_F(SwappedCpusTest, NeverOverlap) {
  Swap();
  for (int answers = 0; !runtime().updates.empty(); ++answers) {
    ASSERT_LT(answers, 20);
    ExpectNoneMeet();
    runtime().Answer(0);
  }
  EXPECT_EQ(outcome_, OkStatus());
  EXPECT_TRUE(Swapped());
}

// The one that moves aside does not run on CPUs of a claim, whose containers may come at any time.
TEST_F(SwappedCpusTest, StayOffTheCpusOfClaims) {
  with_claim_ = true;
  Swap();
  ASSERT_FALSE(claimed_.empty());
  for (int answers = 0; !runtime().updates.empty(); ++answers) {
    ASSERT_LT(answers, 20);
    for (const auto& update : runtime().updates)
      EXPECT_FALSE(update.adjustment.cpus.value_or(CpuSet()).Intersects(claimed_));
    runtime().Answer(0);
  }
  EXPECT_EQ(outcome_, OkStatus());
  EXPECT_TRUE(Swapped());
}

TEST_F(SwappedCpusTest, DoNotWaitForAnotherThatIsNeverMoved) {
  const ContainerId other = node_.Run("other", kBurstable, 100);
  runtime().AnswerAll();
  Swap([&](Plan& plan) { Put(plan, node_.Known(other)->key, CpuSet{0}); });
  EXPECT_TRUE(node_.RunUntil([&] {
    ExpectNoneMeet();
    for (size_t i = 0; i < runtime().updates.size(); ++i) {
      if (runtime().updates[i].id == other) continue;
      runtime().Answer(i);
      break;
    }
    return Swapped();
  }));
  ASSERT_THAT(runtime().updates, SizeIs(1));
  EXPECT_EQ(runtime().updates[0].id, other);
}

// No container can move aside, and the update of another one, which blocks none of them, is never
// answered.
class SwappedCpusOfFullNodeTest : public SwappedCpusTest {
 protected:
  void SwapBesideAnother() {
    full_ = true;
    other_ = node_.Run("other", kBurstable, 100);
    runtime().AnswerAll();
    const auto move_other = [this](Plan& plan) {
      Put(plan, node_.Known(other_)->key, CpuSet{0});
      plan.changes.back().placement.exclusive = CpuSet{0};
      plan.changes.back().placement.cpu_shares = 77;
    };
    later_ = move_other;
    Swap(move_other);
  }
  // The number of the pending update of another container than that one; nullopt: there is none.
  std::optional<size_t> NextUpdate() {
    const auto next = std::ranges::find_if(runtime().updates,
                                           [&](const auto& update) { return update.id != other_; });
    if (next == runtime().updates.end()) return std::nullopt;
    return static_cast<size_t>(next - runtime().updates.begin());
  }
  // Answers the updates that come before they wait for each other.
  void LetThemWait() {
    while (const auto next = NextUpdate())
      runtime().Answer(*next);
  }

  ContainerId other_;
};

TEST_F(SwappedCpusOfFullNodeTest, DoNotWaitForever) {
  SwapBesideAnother();
  EXPECT_TRUE(node_.RunUntil([&] {
    if (const auto next = NextUpdate()) runtime().Answer(*next);
    return Swapped();
  }));
}

// Searches before a disconnection say nothing about the updates after it.
TEST_F(SwappedCpusOfFullNodeTest, WaitAgainAfterAReconnect) {
  using Steady = std::chrono::steady_clock;
  const std::chrono::milliseconds period = TestNode::FastOptions().last_retry;
  SwapBesideAnother();
  LetThemWait();
  const Steady::time_point begin = Steady::now();
  ASSERT_TRUE(node_.RunUntil([&] { return Steady::now() - begin >= 7 * period; }));
  node_.Reconnect();
  const Steady::time_point connected = Steady::now();
  LetThemWait();
  ASSERT_TRUE(node_.RunUntil([&] { return NextUpdate().has_value(); }));
  EXPECT_GE(Steady::now() - connected, 10 * period);
}

// A container that the runtime cannot update stays on CPUs that others are to get. The change does
// not move it, so its failures do not end the change.
TEST_F(PolicyChangeTest, DoesNotWaitForAContainerThatItDoesNotMove) {
  const ContainerId app = node_.Run("app", kGuaranteed, 2000);
  const ContainerId stuck = node_.Run("stuck", kBurstable, 100);
  const ContainerId other = *node_.Create("other", kGuaranteed, 2000);
  ASSERT_EQ(node_.Exclusive(other), "3-4");
  runtime().Answer(0, Internal("cpu.idle"));
  auto policy = std::make_unique<FirstFitPolicy>(node_.machine());
  policy->spoil = [&](Plan& plan) {
    for (const auto& [id, cpus] : {std::pair(app, CpuSet{1, 2, 3}), std::pair(other, CpuSet{4})}) {
      Put(plan, node_.Known(id)->key, cpus);
      plan.changes.back().placement.exclusive = cpus;
    }
  };
  SetPolicy(std::move(policy));
  Status stucks_answer = Internal("cpu.idle");
  const auto answer = [&] {
    if (runtime().updates.empty()) return;
    runtime().Answer(0, runtime().updates[0].id == stuck ? stucks_answer : OkStatus());
  };
  ASSERT_TRUE(node_.RunUntil([&] {
    answer();
    return outcome_.has_value();
  }));
  EXPECT_EQ(outcome_, OkStatus());
  EXPECT_EQ(runtime().CpusOf(app), "1-2");
  EXPECT_EQ(runtime().CpusOf(other), "4");
  stucks_answer = OkStatus();
  EXPECT_TRUE(node_.RunUntil([&] {
    answer();
    return runtime().CpusOf(app) == "1-3";
  }));
}

TEST_F(PolicyChangeTest, EndsWhenTheRuntimeHasMovedAllContainers) {
  const ContainerId shared = RunAndMove();
  EXPECT_FALSE(outcome_.has_value());
  runtime().AnswerAll();
  EXPECT_EQ(outcome_, OkStatus());
  EXPECT_EQ(runtime().CpusOf(shared), "7");
}

TEST_F(PolicyChangeTest, APolicyThatRefusesChangesNothing) {
  const ContainerId shared = node_.Run("shared", kBurstable, 100);
  const Policy* const before = &manager().policy();
  SetPolicy(Moving(shared, CpuSet()));  // a plan that leaves it no CPU
  ASSERT_THAT(outcome_, Optional(HasCode(StatusCode::kInternal)));
  EXPECT_EQ(&manager().policy(), before);
  EXPECT_EQ(node_.Placed(shared), "0-7");
  EXPECT_THAT(runtime().updates, IsEmpty());
}

TEST_F(PolicyChangeTest, AMoveThatTheRuntimeRefusesBringsEverythingBack) {
  const ContainerId shared = node_.Run("shared", kBurstable, 100);
  const ContainerId other = node_.Run("other", kBurstable, 100);
  const Policy* const before = &manager().policy();
  auto policy = Moving(shared, CpuSet{7});
  const ContainerKey second = node_.Known(other)->key;
  policy->spoil = [this, first = std::move(policy->spoil), second](Plan& plan) {
    first(plan);
    Put(plan, second, CpuSet{6});
  };
  SetPolicy(std::move(policy));
  ASSERT_THAT(runtime().updates, SizeIs(2));
  runtime().Answer(1);
  EXPECT_FALSE(outcome_.has_value());
  runtime().Answer(0, Internal("the disk is on fire"));
  AnswerNextList();
  ASSERT_THAT(outcome_, Optional(HasCode(StatusCode::kAborted)));
  EXPECT_THAT(Message(*outcome_), HasSubstr("ns/shared/shared"));
  EXPECT_THAT(Message(*outcome_), HasSubstr("the disk is on fire"));
  EXPECT_EQ(&manager().policy(), before);
  ASSERT_TRUE(node_.RunUntil([&] {
    runtime().AnswerAll();
    return manager().Settled(node_.Known(shared)->key);
  }));
  EXPECT_EQ(runtime().CpusOf(shared), "0-7");
  EXPECT_EQ(runtime().CpusOf(other), "0-7");
}

// Most runtimes refuse to update a container that has just exited, before its exit is known here.
TEST_F(PolicyChangeTest, AMoveThatFailsBecauseItsContainerExitedDoesNotEndTheChange) {
  const ContainerId shared = RunAndMove();
  const Policy* const next = &manager().policy();
  node_.Crash(shared);
  runtime().Answer(0, Internal("cannot update a container that does not run"));
  EXPECT_FALSE(outcome_.has_value()) << "it is not known yet whether the container still runs";
  AnswerNextList();
  EXPECT_EQ(outcome_, OkStatus());
  EXPECT_EQ(&manager().policy(), next);
}

TEST_F(PolicyChangeTest, AMoveThatFailsBecauseItsContainerWasRemovedDoesNotEndTheChange) {
  const ContainerId shared = RunAndMove();
  runtime().Answer(0, Internal("its shim is gone"));
  runtime().Remove(shared);
  AnswerNextList();
  EXPECT_EQ(outcome_, OkStatus());
}

// The exit is reported before the list is there.
TEST_F(PolicyChangeTest, AnExitThatIsReportedAfterAFailedMoveLetsTheChangeGoOn) {
  const ContainerId shared = RunAndMove();
  runtime().Answer(0, Internal("cannot update a container that does not run"));
  node_.Stop(shared);
  EXPECT_EQ(outcome_, OkStatus());
  AnswerNextList();
  EXPECT_EQ(outcome_, OkStatus());
}

// A shim that hangs while its container exits gives no answer at all.
TEST_F(PolicyChangeTest, AMoveWithoutAnAnswerIsConfirmedByAListToo) {
  const ContainerId shared = RunAndMove();
  node_.Crash(shared);
  runtime().Answer(0, DeadlineExceeded("no answer within 10 s"));
  EXPECT_FALSE(outcome_.has_value());
  AnswerNextList();
  EXPECT_EQ(outcome_, OkStatus());
}

TEST_F(PolicyChangeTest, AFailedMoveThatNoListCanConfirmEndsTheChange) {
  RunAndMove();
  runtime().Answer(0, Internal("the disk is on fire"));
  ASSERT_TRUE(node_.AwaitList());
  runtime().FailList(Internal("no list either"));
  ASSERT_THAT(outcome_, Optional(HasCode(StatusCode::kAborted)));
}

TEST_F(PolicyChangeTest, AMoveThatWorksAtTheNextTryDoesNotEndTheChange) {
  const ContainerId shared = RunAndMove();
  runtime().Answer(0, Internal("busy"));
  ASSERT_TRUE(node_.RunUntil([this] { return !runtime().updates.empty(); }));
  runtime().Answer(0);
  EXPECT_EQ(outcome_, OkStatus());
  AnswerNextList();
  EXPECT_EQ(runtime().CpusOf(shared), "7");
  EXPECT_EQ(node_.Placed(shared), "7");
}

TEST_F(PolicyChangeTest, AFailureBeforeALostConnectionDoesNotEndTheChange) {
  RunAndMove();
  runtime().Answer(0, Internal("the connection breaks"));
  manager().RuntimeDisconnected();
  EXPECT_EQ(outcome_, OkStatus());
}

TEST_F(PolicyChangeTest, AContainerCreatedMeanwhileIsPlacedByTheFormerPolicyAfterARollback) {
  const ContainerId shared = RunAndMove();
  const ContainerId late = *node_.Create("late", kGuaranteed, 2000);
  ASSERT_FALSE(outcome_.has_value());
  runtime().Answer(0, Internal("no"));
  AnswerNextList();
  ASSERT_TRUE(outcome_.has_value());
  ASSERT_TRUE(node_.RunUntil([&] {
    runtime().AnswerAll();
    return manager().Settled(node_.Known(shared)->key);
  }));
  EXPECT_EQ(node_.Exclusive(late), "1-2");
  EXPECT_EQ(runtime().CpusOf(shared), "0,3-7");
}

TEST_F(PolicyChangeTest, WithoutAConnectionItIsDecidedNowAndPushedLater) {
  const ContainerId shared = node_.Run("shared", kBurstable, 100);
  manager().RuntimeDisconnected();
  SetPolicy(Moving(shared, CpuSet{7}));
  EXPECT_EQ(outcome_, OkStatus());
  EXPECT_EQ(node_.Placed(shared), "7");
}

TEST_F(PolicyChangeTest, ALostConnectionEndsTheChangeInForce) {
  RunAndMove();
  EXPECT_FALSE(outcome_.has_value());
  manager().RuntimeDisconnected();
  EXPECT_EQ(outcome_, OkStatus());
}

TEST_F(PolicyChangeTest, OneAtATime) {
  RunAndMove();
  SetPolicy(std::make_unique<FirstFitPolicy>(node_.machine()));
  ASSERT_THAT(outcome_, Optional(HasCode(StatusCode::kFailedPrecondition)));
}

TEST_F(PolicyChangeTest, AContainerThatGoesIsNotWaitedFor) {
  const ContainerId shared = RunAndMove();
  node_.Stop(shared);
  EXPECT_EQ(outcome_, OkStatus());
}

TEST_F(PolicyChangeTest, APreviewTellsTheMovesAndMakesNone) {
  const ContainerId shared = node_.Run("shared", kBurstable, 100);
  node_.Run("other", kBurstable, 100);
  const auto policy = Moving(shared, CpuSet{7});
  const auto moves = Must(manager().policy_changes().Preview(*policy));
  ASSERT_THAT(moves, SizeIs(1));
  EXPECT_EQ(moves.front().container, "ns/shared/shared");
  EXPECT_EQ(moves.front().from.cpus, (CpuSet{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(moves.front().to.cpus, CpuSet{7});
  EXPECT_EQ(node_.Placed(shared), "0-7");
  EXPECT_THAT(runtime().updates, IsEmpty());
}

// CPU shares and quota change what a container gets, too.
TEST_F(PolicyChangeTest, APreviewTellsChangesOfNumbersAlone) {
  const ContainerId shared = node_.Run("shared", kBurstable, 100);
  const ContainerKey key = node_.Known(shared)->key;
  auto policy = std::make_unique<FirstFitPolicy>(node_.machine());
  policy->spoil = [this, key](Plan& plan) {
    Put(plan, key, CpuSet{0, 1, 2, 3, 4, 5, 6, 7});
    plan.changes.back().placement.cpu_shares = 512;
    plan.changes.back().placement.cpu_quota = -1;
  };
  const auto moves = Must(manager().policy_changes().Preview(*policy));
  ASSERT_THAT(moves, SizeIs(1));
  EXPECT_EQ(moves.front().from.cpus, moves.front().to.cpus);
  EXPECT_EQ(moves.front().from.cpu_shares, std::nullopt);
  EXPECT_EQ(moves.front().to.cpu_shares, 512);
  EXPECT_EQ(moves.front().to.cpu_quota, -1);
  EXPECT_FALSE(moves.front().LosesExclusiveCpus());
  EXPECT_THAT(runtime().updates, IsEmpty());
}

// A policy that binds no container to CPUs

class LettingGoTest : public PolicyChangeTest {
 protected:
  std::unique_ptr<FirstFitPolicy> NotPinning() {
    auto policy = std::make_unique<FirstFitPolicy>(node_.machine());
    policy->spoil = [this](Plan& plan) {
      plan.changes.clear();
      node_.manager().snapshot().ForEachContainer([&plan](const Pod&, const Container& container) {
        plan.Change(container.key).reason = "not pinned";
      });
    };
    return policy;
  }
};

TEST_F(LettingGoTest, AllContainersAreReleased) {
  const ContainerId dsp = node_.Run("dsp", kGuaranteed, 2000);
  const ContainerId web = node_.Run("web", kBurstable, 100);
  runtime().AnswerAll();
  ASSERT_EQ(runtime().CpusOf(dsp), "1-2");
  ASSERT_EQ(runtime().Find(dsp)->resources.cpu_quota, -1);
  const auto policy = NotPinning();
  const auto moves = Must(manager().policy_changes().Preview(*policy));
  EXPECT_THAT(moves, SizeIs(2));
  EXPECT_EQ(moves.front().to.lifted_to, node_.machine().allowed());
  SetPolicy(NotPinning());
  EXPECT_FALSE(outcome_.has_value()) << "until the runtime has done it";
  ASSERT_TRUE(node_.RunUntil([&] {
    runtime().AnswerAll();
    return outcome_.has_value();
  }));
  EXPECT_EQ(outcome_, OkStatus());
  EXPECT_EQ(runtime().CpusOf(dsp), "0-7");
  EXPECT_EQ(runtime().CpusOf(web), "0-7");
  EXPECT_EQ(runtime().Find(dsp)->resources.cpu_quota, TestNode::Resources(2000).cpu_quota);
  EXPECT_FALSE(node_.Known(dsp)->placement.cpus.has_value()) << "these CPUs are not accounted for";
  EXPECT_TRUE(manager().Settled(node_.Known(dsp)->key));
}

TEST_F(LettingGoTest, AContainerThatAskedForCpusGetsThem) {
  const PodSandboxId pod = node_.AddPod("app", kBurstable);
  CreateRequest request = TestNode::Request(pod, "main", 100);
  request.resources.cpuset_cpus = "5-6";
  const ContainerId id = *node_.Create(request);
  node_.Start(id);
  runtime().AnswerAll();
  ASSERT_EQ(runtime().CpusOf(id), "0-7");
  SetPolicy(NotPinning());
  runtime().AnswerAll();
  EXPECT_EQ(runtime().CpusOf(id), "5-6");
}

// Neither a failure at the runtime nor a decision in between leaves it bound.
TEST_F(LettingGoTest, RestrictionsAreRememberedUntilTheyAreLifted) {
  const ContainerId dsp = node_.Run("dsp", kGuaranteed, 2000);
  manager().RuntimeDisconnected();
  SetPolicy(NotPinning());
  EXPECT_EQ(outcome_, OkStatus());
  node_.Reconnect();
  ASSERT_TRUE(node_.RunUntil([&] {
    runtime().AnswerAll();
    return runtime().CpusOf(dsp) == "0-7";
  }));
}

TEST_F(LettingGoTest, TheNextPolicyBindsAgain) {
  const ContainerId dsp = node_.Run("dsp", kGuaranteed, 2000);
  SetPolicy(NotPinning());
  runtime().AnswerAll();
  ASSERT_EQ(runtime().CpusOf(dsp), "0-7");
  outcome_.reset();
  SetPolicy(std::make_unique<FirstFitPolicy>(node_.machine()));
  runtime().AnswerAll();
  EXPECT_EQ(outcome_, OkStatus());
  EXPECT_EQ(runtime().CpusOf(dsp), "1-2");
}

// Previews

TEST_F(PolicyChangeTest, APreviewListsLostExclusiveCpusWithoutMoves) {
  const ContainerId dsp = node_.Run("dsp", kGuaranteed, 2000);
  auto policy = std::make_unique<FirstFitPolicy>(node_.machine());
  policy->spoil = [key = node_.Known(dsp)->key](Plan& plan) {
    plan.changes.clear();
    plan.Change(key).cpus = CpuSet{1, 2};
  };
  const auto moves = Must(manager().policy_changes().Preview(*policy));
  ASSERT_THAT(moves, SizeIs(1));
  EXPECT_TRUE(moves.front().LosesExclusiveCpus());
}

TEST_F(PolicyChangeTest, ExchangedExclusiveCpusAreNotLost) {
  ResourceManager::Move move;
  move.from.exclusive = CpuSet{1, 2};
  move.to.exclusive = CpuSet{5, 6};
  EXPECT_FALSE(move.LosesExclusiveCpus());
  move.to.exclusive = CpuSet{5};
  EXPECT_TRUE(move.LosesExclusiveCpus());
  move.from.exclusive = CpuSet();
  EXPECT_FALSE(move.LosesExclusiveCpus());
}

// The state

class RememberingTest : public PolicyChangeTest {
 protected:
  RememberingTest() { node_.KeepState(files_); }
};

TEST_F(RememberingTest, ARestartKnowsWhatTheRuntimeCannotTell) {
  static_cast<FirstFitPolicy&>(node_.policy()).spoil = [](Plan& plan) {
    for (PlacementChange& change : plan.changes)
      change.placement.cpu_shares = 2;
  };
  const ContainerId id = node_.Run("exclusive", kGuaranteed, 2000);
  runtime().AnswerAll();
  ASSERT_EQ(runtime().Find(id)->resources.cpu_shares, 2);
  const Placement before = node_.Known(id)->placement;
  const LinuxResources requested = node_.Known(id)->requested;
  node_.Restart();
  ASSERT_NE(node_.Known(id), nullptr);
  EXPECT_EQ(node_.Known(id)->requirements.cpu_request.value, 2000);
  EXPECT_EQ(node_.Known(id)->requested, requested);
  EXPECT_EQ(node_.Known(id)->placement.exclusive, before.exclusive);
  EXPECT_EQ(node_.Known(id)->placement.reason, before.reason);
}

TEST_F(RememberingTest, AnUpdateThatReachedTheRuntimeButNotTheDiskCounts) {
  const ContainerId id = node_.Run("app", kGuaranteed, 3000);
  node_.FlushState();
  RuntimeContainer& held = *runtime().Find(id);
  held.resources.cpu_shares = 1024;
  held.resources.cpuset_cpus = "3";
  node_.Restart();
  EXPECT_EQ(node_.Known(id)->requirements.cpu_request.value, 1000);
  EXPECT_EQ(node_.Known(id)->requested.cpu_shares, 1024);
  EXPECT_EQ(node_.Exclusive(id), "3");
  EXPECT_THAT(runtime().updates, IsEmpty());
}

TEST_F(RememberingTest, WhatTheRuntimeSaysOfTheCpusCounts) {
  const ContainerId id = node_.Run("exclusive", kGuaranteed, 2000);
  runtime().AnswerAll();
  runtime().Find(id)->resources.cpuset_cpus = "5-6";
  node_.Restart();
  EXPECT_EQ(node_.Placed(id), "5-6") << "nothing moves";
  EXPECT_EQ(node_.Exclusive(id), "5-6");
}

TEST_F(RememberingTest, AFailedUpdateIsNotRemembered) {
  const ContainerId id = node_.Run("app", kBurstable, 100);
  const auto admission = Must(manager().AdmitUpdate(id, TestNode::Resources(700)));
  manager().UpdateFailed(admission);
  node_.Restart();
  EXPECT_EQ(node_.Known(id)->requirements.cpu_request.value, 100);
}

TEST_F(RememberingTest, ASuccessfulUpdateIsRemembered) {
  const ContainerId id = node_.Run("app", kBurstable, 100);
  const auto admission = Must(manager().AdmitUpdate(id, TestNode::Resources(700)));
  runtime().Find(id)->resources.cpu_shares = TestNode::Resources(700).cpu_shares;
  manager().UpdateSucceeded(admission);
  node_.Restart();
  EXPECT_EQ(node_.Known(id)->requirements.cpu_request.value, 700);
}

}  // namespace
}  // namespace resmgr
