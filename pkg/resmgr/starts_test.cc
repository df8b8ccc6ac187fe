// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <prometheus/collectable.h>
#include <prometheus/text_serializer.h>

#include "pkg/resmgr/resource_manager.h"
#include "pkg/resmgr/testing/test_node.h"
#include "pkg/state/testing/failing_file_systems.h"
#include "test/support/captured_log.h"
#include "test/support/machines/machines.h"
#include "test/support/status_matchers.h"

namespace resmgr {
namespace {

using test::FakeRuntimeClient;
using test::FirstFitPolicy;
using test::HasCode;
using test::TestNode;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::Optional;
using testing::SizeIs;
using testing::StartsWith;
using enum QosClass;

// Starts whose CPUs do not become free in time, under each start failure policy.

class StartFailureTest : public testing::Test {
 protected:
  ResourceManager::Options Options() {
    ResourceManager::Options options = TestNode::FastOptions();
    options.start_failure = FailurePolicy::kIgnore;
    options.metrics = &metrics_;
    return options;
  }
  std::string Counts() const {
    return prometheus::TextSerializer().Serialize(metrics_.collectable()->Collect());
  }
  FakeRuntimeClient& runtime() { return node_.runtime; }

  // Asks for a start that has to wait.
  using Wait = std::unique_ptr<StartWait>;
  Wait Ask(const ContainerId& id) {
    decided_.reset();
    Wait wait = node_.manager().AdmitStart(id, [this](const Status& status) { decided_ = status; });
    EXPECT_NE(wait, nullptr) << "nothing is in the way of " << id.value();
    return wait;
  }
  bool Decided() {
    return node_.RunUntil([this] { return decided_.has_value(); });
  }

  test::CapturedLog log_;
  Metrics metrics_{"1", {}};
  std::optional<Status> decided_;
  TestNode node_{test::S1Ht(),  // CPUs 0-7
                 test::FirstFit, Options()};
};

TEST_F(StartFailureTest, LetsAStartGoOntoCpusThatAnotherDoesNotLeave) {
  const ContainerId shared = node_.Run("shared", kBurstable, 100);
  const ContainerId app = *node_.Create("app", kGuaranteed, 2000);
  const auto wait = Ask(app);
  runtime().Answer(0, Internal("the disk is on fire"));
  ASSERT_TRUE(Decided());
  EXPECT_TRUE(decided_->ok()) << *decided_;
  EXPECT_THAT(
      log_.Text(),
      AllOf(HasSubstr("container ns/app/app is started anyway"), HasSubstr("StartFailurePolicy"),
            HasSubstr("container ns/shared/shared may still run on its exclusive "
                      "CPUs 1-2"),
            HasSubstr("the disk is on fire")));
  EXPECT_THAT(Counts(), AllOf(HasSubstr("held_starts_total{result=\"waited\"} 1"),
                              HasSubstr("held_starts_total{result=\"refused\"} 0"),
                              HasSubstr("held_starts_total{result=\"let_through\"} 1")));

  // The other one still has to go, and does.
  node_.Started(app);
  ASSERT_TRUE(node_.RunUntil([this] { return !runtime().updates.empty(); }));
  runtime().AnswerAll();
  EXPECT_EQ(runtime().CpusOf(shared), "0,3-7");
  EXPECT_EQ(runtime().CpusOf(app), "1-2");
}

TEST_F(StartFailureTest, AForcedStartCountsAsStarting) {
  node_.Run("shared", kBurstable, 100);
  const ContainerId app = *node_.Create("app", kGuaranteed, 2000);
  const auto wait = Ask(app);
  ASSERT_TRUE(Decided());
  ASSERT_TRUE(node_.manager().AdmitUpdate(app, TestNode::Resources(1000)).ok());
  EXPECT_EQ(runtime().updates.size(), 1u) << "the other's, which has no answer";
}

TEST_F(StartFailureTest, LetsAStartGoWhoseOwnPlacementIsNotInForce) {
  const ContainerId shared = *node_.Create("shared", kBurstable, 100);
  const ContainerId app = node_.Run("app", kGuaranteed, 1000);
  ASSERT_TRUE(node_.Create("other", kGuaranteed, 2000).ok());
  ASSERT_EQ(runtime().updates.size(), 1u);
  const auto wait = Ask(shared);
  ASSERT_TRUE(Decided());
  EXPECT_TRUE(decided_->ok()) << *decided_;
  EXPECT_THAT(log_.Text(), HasSubstr("container ns/shared/shared is started anyway"));
  EXPECT_THAT(log_.Text(), HasSubstr("its own placement on CPUs 0,4-7 is not in force"));
  runtime().BeginStart(shared);
  runtime().Answer(0);
  node_.Started(shared);
  EXPECT_EQ(runtime().CpusOf(shared), "0,2-7") << "an update during a start changes notes only";
  runtime().AnswerAll();
  EXPECT_EQ(runtime().CpusOf(shared), "0,4-7");
}

TEST_F(StartFailureTest, DoesNotLetThroughWhatComesInTime) {
  node_.Run("shared", kBurstable, 100);
  const ContainerId app = *node_.Create("app", kGuaranteed, 2000);
  const auto wait = Ask(app);
  runtime().Answer(0);
  ASSERT_TRUE(decided_ && decided_->ok());
  EXPECT_THAT(log_.Text(), Not(HasSubstr("is started anyway")));
  EXPECT_THAT(Counts(), HasSubstr("held_starts_total{result=\"let_through\"} 0"));
}

TEST_F(StartFailureTest, RefusesWithoutARuntime) {
  node_.Run("shared", kBurstable, 100);
  const ContainerId app = *node_.Create("app", kGuaranteed, 2000);
  const auto wait = Ask(app);
  node_.manager().RuntimeDisconnected();
  ASSERT_THAT(decided_, Optional(HasCode(StatusCode::kUnavailable)));
}

TEST_F(StartFailureTest, AChangedFailurePolicyAppliesToWaitingStarts) {
  node_.Run("shared", kBurstable, 100);
  const ContainerId app = *node_.Create("app", kGuaranteed, 2000);
  const auto first = Ask(app);
  node_.manager().SetStartFailurePolicy(FailurePolicy::kFail);
  ASSERT_TRUE(Decided());
  EXPECT_EQ(decided_->code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(Counts(), HasSubstr("held_starts_total{result=\"let_through\"} 0"));
}

TEST_F(StartFailureTest, AMilderFailurePolicyAppliesToWaitingStarts) {
  node_.manager().SetStartFailurePolicy(FailurePolicy::kFail);
  node_.Run("shared", kBurstable, 100);
  const ContainerId app = *node_.Create("app", kGuaranteed, 2000);
  const auto wait = Ask(app);
  node_.manager().SetStartFailurePolicy(FailurePolicy::kIgnore);
  ASSERT_TRUE(Decided());
  EXPECT_TRUE(decided_->ok()) << *decided_;
}

class UnpinnedTest : public StartFailureTest {
 protected:
  UnpinnedTest() {
    node_.manager().SetStartFailurePolicy(FailurePolicy::kFail);
    static_cast<FirstFitPolicy&>(node_.policy()).left_alone = {"loose"};
  }

  static constexpr std::string_view kTold = "container ns/loose/loose is not pinned";
  int TimesTold() const { return log_.Times(kTold); }
};

TEST_F(UnpinnedTest, NoStartWaitsForAnUnpinnedContainer) {
  node_.Run("loose", kBurstable, 100);
  EXPECT_EQ(TimesTold(), 0) << log_.Text();
  node_.Run("app", kGuaranteed, 2000);
  node_.Run("other", kGuaranteed, 1000);
  EXPECT_EQ(TimesTold(), 1) << log_.Text();
}

TEST_F(UnpinnedTest, AnUnpinnedContainerThatComesLaterIsLogged) {
  node_.Run("app", kGuaranteed, 2000);
  node_.Run("loose", kBurstable, 100);
  node_.Run("other", kGuaranteed, 1000);
  EXPECT_EQ(TimesTold(), 1) << log_.Text();
}

TEST_F(UnpinnedTest, NoGrowthWaitsForAnUnpinnedContainer) {
  node_.Run("loose", kBurstable, 100);
  const ContainerId app = node_.Run("app", kGuaranteed, 1000);
  const StatusOr<Admission> admission = node_.manager().AdmitUpdate(app, TestNode::Resources(3000));
  ASSERT_TRUE(admission.ok()) << admission.status();
  EXPECT_EQ(test::CpuList(admission->adjustment), "1-3");
}

TEST_F(UnpinnedTest, AnAdoptedUnpinnedContainerBlocksNoStart) {
  const ContainerId loose = node_.Run("loose", kBurstable, 100);
  node_.Restart();
  static_cast<FirstFitPolicy&>(node_.policy()).left_alone = {"loose"};
  node_.Reconnect();
  ASSERT_EQ(node_.Placed(loose), "");
  node_.Run("app", kGuaranteed, 2000);
}

// Starts and updates that the runtime is still busy with, or was when the connection or the daemon
// died. containerd does this: a container that is being started is listed as created, an update of
// it changes containerd's notes but not what it starts with; an update that loses its caller is
// taken back in the notes, while runc may carry it out all the same.

class UnclearCallsTest : public ::testing::Test {
 protected:
  explicit UnclearCallsTest(std::chrono::milliseconds start_limit = std::chrono::hours(1))
      : node_(test::S1Ht(), test::FirstFit, Options(start_limit)) {}

  // No time is over before a slow machine has checked what should happen until then.
  static ResourceManager::Options Options(std::chrono::milliseconds start_limit) {
    ResourceManager::Options options = TestNode::FastOptions();
    options.start_timeout = std::chrono::minutes(1);
    options.start_limit = start_limit;
    return options;
  }
  ResourceManager& manager() { return node_.manager(); }
  FakeRuntimeClient& runtime() { return node_.runtime; }

  void Remember() { node_.KeepState(files_); }

  // Begins a start that reaches the runtime.
  void BeginStart(const ContainerId& id) {
    std::optional<Status> decided;
    const auto wait = manager().AdmitStart(id, [&](const Status& status) { decided = status; });
    ASSERT_TRUE(decided.has_value() && decided->ok()) << id.value() << " has to wait";
    runtime().BeginStart(id);
  }
  // A resize that the runtime notes, and answers.
  void Resize(const ContainerId& id, int64_t milli_cpu) {
    const LinuxResources wanted = TestNode::Resources(milli_cpu);
    const auto resized = manager().AdmitUpdate(id, wanted);
    ASSERT_TRUE(resized.ok()) << resized.status();
    ResourceValues carried = resized->adjustment;
    carried.cpu_shares = wanted.cpu_shares;
    runtime().Apply(id, carried);
    manager().UpdateSucceeded(*resized);
  }
  // A start that waits, as `started_` tells.
  std::unique_ptr<StartWait> WaitToStart(const ContainerId& id) {
    started_ = false;
    return manager().AdmitStart(id, [this](const Status& status) { started_ = status.ok(); });
  }
  // Expects that the daemon lists the runtime by itself.
  void ExpectLook() { ASSERT_TRUE(node_.AnswerNextList()); }

  test::CrashingFileSystem files_{1};
  TestNode node_;
  bool started_ = false;
};

class LostStartTest : public UnclearCallsTest {
 protected:
  LostStartTest() : UnclearCallsTest(std::chrono::milliseconds(20)) {}
};

TEST_F(UnclearCallsTest, NothingIsSentToAContainerThatIsBeingStarted) {
  const ContainerId shared = *node_.Create("shared", kBurstable, 100);
  BeginStart(shared);
  const ContainerId app = *node_.Create("app", kGuaranteed, 2000);
  EXPECT_THAT(runtime().updates, IsEmpty()) << "it would be lost";
  const auto wait = WaitToStart(app);
  node_.Started(shared);
  EXPECT_EQ(runtime().CpusOf(shared), "0-7");
  EXPECT_FALSE(started_);
  runtime().AnswerAll();
  EXPECT_EQ(runtime().CpusOf(shared), "0,3-7");
  EXPECT_TRUE(started_);
}

TEST_F(UnclearCallsTest, AStartThatFailsLetsTheUpdatesGo) {
  const ContainerId shared = *node_.Create("shared", kBurstable, 100);
  BeginStart(shared);
  ASSERT_TRUE(node_.Create("app", kGuaranteed, 2000).ok());
  manager().StartFailed(shared);
  EXPECT_THAT(runtime().updates, SizeIs(1));
}

TEST_F(UnclearCallsTest, AResizeDuringAStartIsSentAgainAfterIt) {
  const ContainerId app = *node_.Create("app", kGuaranteed, 2000);
  BeginStart(app);
  Resize(app, 3000);
  EXPECT_THAT(runtime().updates, IsEmpty());
  node_.Started(app);
  EXPECT_EQ(runtime().CpusOf(app), "1-2");
  EXPECT_THAT(runtime().updates, SizeIs(1));
  runtime().AnswerAll();
  EXPECT_EQ(runtime().CpusOf(app), "1-3");
}

TEST_F(UnclearCallsTest, AStartWithoutAnAnswerIsFollowedUntilItIsKnown) {
  const ContainerId shared = *node_.Create("shared", kBurstable, 100);
  BeginStart(shared);
  manager().StartUnclear(shared);
  const ContainerId app = *node_.Create("app", kGuaranteed, 2000);
  const auto wait = WaitToStart(app);
  ExpectLook();
  EXPECT_FALSE(started_) << "it may still start on these CPUs";
  EXPECT_THAT(runtime().updates, IsEmpty());
  runtime().EndStart(shared);
  ExpectLook();
  EXPECT_THAT(runtime().updates, SizeIs(1));
  EXPECT_FALSE(started_);
  runtime().AnswerAll();
  EXPECT_TRUE(started_);
  EXPECT_EQ(runtime().CpusOf(shared), "0,3-7");
}

TEST_F(LostStartTest, Expires) {
  const ContainerId shared = *node_.Create("shared", kBurstable, 100);
  BeginStart(shared);
  manager().StartUnclear(shared);
  const ContainerId app = *node_.Create("app", kGuaranteed, 2000);
  ASSERT_TRUE(node_.RunUntil([this] {
    runtime().AnswerLists();
    return !runtime().updates.empty();
  }));
  runtime().AnswerAll();
  node_.Start(app);
  EXPECT_EQ(runtime().CpusOf(shared), "0,3-7");
}

// The kubelet tries again while the first start is under way: the first one counts.
TEST_F(UnclearCallsTest, ARefusedSecondStartDoesNotEndTheFirst) {
  const ContainerId shared = *node_.Create("shared", kBurstable, 100);
  BeginStart(shared);
  manager().StartUnclear(shared);
  BeginStart(shared);
  manager().StartFailed(shared);
  ASSERT_TRUE(node_.Create("app", kGuaranteed, 2000).ok());
  EXPECT_THAT(runtime().updates, IsEmpty());
  runtime().EndStart(shared);
  ExpectLook();
  EXPECT_THAT(runtime().updates, SizeIs(1));
}

TEST_F(UnclearCallsTest, AnAttemptThatMayStillStartKeepsItsCpus) {
  const PodSandboxId pod = node_.AddPod("app", kGuaranteed);
  const ContainerId first = *node_.Create(TestNode::Request(pod, "app", 2000));
  BeginStart(first);
  manager().StartUnclear(first);
  const ContainerId second = *node_.Create(TestNode::Request(pod, "app", 2000, 1));
  EXPECT_EQ(node_.Exclusive(first), "1-2");
  EXPECT_EQ(node_.Exclusive(second), "3-4");
}

// kill -9

TEST_F(UnclearCallsTest, AStartUnderWayAtAKillIsFollowed) {
  Remember();
  const ContainerId shared = *node_.Create("shared", kBurstable, 100);
  const ContainerId idle = *node_.Create("idle", kBurstable, 100);
  BeginStart(shared);
  node_.FlushState();
  node_.Restart();
  EXPECT_THAT(runtime().history, IsEmpty());
  const ContainerId app = *node_.Create("app", kGuaranteed, 2000);
  EXPECT_THAT(runtime().history, ElementsAre(StartsWith(idle.value())))
      << "only the one whose start is not noted is told";
  runtime().AnswerAll();
  const auto wait = WaitToStart(app);
  EXPECT_FALSE(started_);
  runtime().EndStart(shared);
  EXPECT_EQ(runtime().CpusOf(shared), "0-7");
  ExpectLook();
  runtime().AnswerAll();
  EXPECT_EQ(runtime().CpusOf(shared), "0,3-7");
  EXPECT_TRUE(started_);
}

TEST_F(UnclearCallsTest, WithoutNotesAnyCreatedContainerMayBeStarting) {
  const ContainerId shared = *node_.Create("shared", kBurstable, 100);
  BeginStart(shared);
  node_.Restart();
  ASSERT_TRUE(node_.Create("app", kGuaranteed, 2000).ok());
  EXPECT_THAT(runtime().history, IsEmpty());
  runtime().EndStart(shared);
  ExpectLook();
  runtime().AnswerAll();
  EXPECT_EQ(runtime().CpusOf(shared), "0,3-7");
}

// The report about it is newer than the values that it starts with.
TEST_F(UnclearCallsTest, WithoutNotesAStartMayBeOlderThanAResize) {
  const ContainerId app = *node_.Create("app", kGuaranteed, 2000);
  BeginStart(app);
  Resize(app, 3000);
  node_.Restart();
  runtime().EndStart(app);
  ASSERT_EQ(runtime().CpusOf(app), "1-2");
  ExpectLook();
  runtime().AnswerAll();
  EXPECT_EQ(runtime().CpusOf(app), "1-3");
}

TEST_F(UnclearCallsTest, WithoutNotesAContainerThatMayBeStartingMayComeAnywhere) {
  const ContainerId app = *node_.Create("app", kGuaranteed, 3000);
  BeginStart(app);
  Resize(app, 2000);
  node_.Restart();
  const ContainerId other = *node_.Create("other", kGuaranteed, 1000);
  ASSERT_EQ(node_.Exclusive(other), "3");
  const auto wait = WaitToStart(other);
  EXPECT_FALSE(started_) << "the runtime's notes say that the first one is on 1-2";
  runtime().EndStart(app);
  ASSERT_EQ(runtime().CpusOf(app), "1-3");
  ExpectLook();
  EXPECT_FALSE(started_);
  runtime().AnswerAll();
  EXPECT_EQ(runtime().CpusOf(app), "1-2");
  EXPECT_TRUE(started_);
}

// The kubelet's own start of it succeeded: there was no other.
TEST_F(UnclearCallsTest, WithoutNotesAStartThatSucceedsTellsWhereItIs) {
  const ContainerId app = *node_.Create("app", kGuaranteed, 2000);
  node_.Restart();
  const ContainerId other = *node_.Create("other", kGuaranteed, 2000);
  const auto wait = WaitToStart(other);
  EXPECT_FALSE(started_);
  node_.Start(app);
  EXPECT_TRUE(started_);
  EXPECT_THAT(runtime().history, IsEmpty());
}

// The daemon that found no notes is killed, too, and leaves some.
TEST_F(UnclearCallsTest, AStartThatMayBeUnderWayIsNotedForTheNextDaemon) {
  const ContainerId shared = *node_.Create("shared", kBurstable, 100);
  BeginStart(shared);
  Remember();
  node_.FlushState();
  node_.Restart();
  ASSERT_TRUE(node_.Create("app", kGuaranteed, 2000).ok());
  EXPECT_THAT(runtime().history, IsEmpty());
}

// The creation that caused the update failed.
TEST_F(UnclearCallsTest, AnUpdateThatWasTakenBackInTheNotesIsSentAgainAfterAKill) {
  Remember();
  const ContainerId shared = node_.Run("shared", kBurstable, 100);
  const PodSandboxId pod = node_.AddPod("app", kGuaranteed);
  ASSERT_TRUE(manager().AdmitCreate(TestNode::Request(pod, "app", 2000)).ok());
  ASSERT_THAT(runtime().updates, SizeIs(1));
  runtime().ApplyPart(shared, runtime().updates[0].adjustment, FakeRuntimeClient::Part::kForce);
  ASSERT_EQ(runtime().CpusOf(shared), "0,3-7");
  node_.FlushState();
  node_.Restart();
  runtime().AnswerAll();
  EXPECT_EQ(runtime().CpusOf(shared), "0-7");
}

// The container was about to grow when its neighbour left, and the next exclusive container came.
TEST_F(UnclearCallsTest, AGrowthThatMayHaveHappenedIsInTheWayOfAStart) {
  Remember();
  const ContainerId shared = node_.Run("shared", kBurstable, 100);
  const ContainerId former = node_.Run("former", kGuaranteed, 2000);
  ASSERT_EQ(runtime().CpusOf(shared), "0,3-7");
  node_.Stop(former);
  ASSERT_THAT(runtime().updates, SizeIs(1));
  const ResourceValues growth = runtime().updates[0].adjustment;
  const ContainerId app = *node_.Create("app", kGuaranteed, 2000);
  runtime().ApplyPart(shared, growth, FakeRuntimeClient::Part::kForce);
  ASSERT_EQ(runtime().CpusOf(shared), "0-7");
  node_.FlushState();
  node_.Restart();
  EXPECT_EQ(node_.Exclusive(app), "1-2");
  const auto wait = WaitToStart(app);
  EXPECT_FALSE(started_) << "the runtime's notes say that it is on 0,3-7";
  runtime().AnswerAll();
  EXPECT_EQ(runtime().CpusOf(shared), "0,3-7");
  EXPECT_TRUE(started_);
}

// containerd was killed after it noted the shrink and before runc was told.
TEST_F(UnclearCallsTest, AnUpdateThatWasOnlyNotedIsSentAgainAfterAReconnect) {
  const ContainerId shared = node_.Run("shared", kBurstable, 100);
  const ContainerId app = *node_.Create("app", kGuaranteed, 2000);
  runtime().ApplyPart(shared, runtime().updates[0].adjustment, FakeRuntimeClient::Part::kReport);
  node_.Reconnect();
  const auto wait = WaitToStart(app);
  EXPECT_FALSE(started_);
  runtime().AnswerAll();
  EXPECT_EQ(runtime().CpusOf(shared), "0,3-7");
  EXPECT_TRUE(started_);
}

TEST_F(UnclearCallsTest, NothingIsSentAfterAKillWhenNothingWasUnderWay) {
  Remember();
  node_.Run("shared", kBurstable, 100);
  const ContainerId app = node_.Run("app", kGuaranteed, 2000);
  Resize(app, 3000);
  runtime().AnswerAll();
  node_.FlushState();
  runtime().history.clear();
  node_.Restart();
  EXPECT_THAT(runtime().history, IsEmpty());
}

// A call of its client or of the daemon before may have ended after the first list.
TEST_F(UnclearCallsTest, TheRuntimeIsAskedOnceMoreAfterAConnect) {
  const ContainerId app = node_.Run("app", kGuaranteed, 2000);
  node_.Reconnect();
  node_.Crash(app);
  ExpectLook();
  EXPECT_EQ(node_.Known(app)->state, ContainerState::kExited);
}

}  // namespace
}  // namespace resmgr
