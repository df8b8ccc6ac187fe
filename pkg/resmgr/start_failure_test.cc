// SPDX-License-Identifier: Apache-2.0
// Starts whose CPUs do not become free in time, under each start failure policy.
#include <memory>
#include <optional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <prometheus/collectable.h>
#include <prometheus/text_serializer.h>

#include "pkg/resmgr/resource_manager.h"
#include "pkg/resmgr/testing/first_fit_policy.h"
#include "pkg/resmgr/testing/test_node.h"
#include "test/support/captured_log.h"
#include "test/support/machines/machines.h"

namespace resmgr {
namespace {

using test::FakeRuntimeClient;
using test::FirstFitPolicy;
using test::TestNode;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

using enum QosClass;

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
  using Wait = std::unique_ptr<ResourceManager::StartWait>;
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
  ASSERT_TRUE(decided_.has_value());
  EXPECT_EQ(decided_->code(), StatusCode::kUnavailable);
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

}  // namespace
}  // namespace resmgr
