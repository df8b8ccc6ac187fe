// SPDX-License-Identifier: Apache-2.0
// Placements that follow what containers use.
#include <memory>
#include <optional>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/resmgr/resource_manager.h"
#include "pkg/resmgr/testing/first_fit_policy.h"
#include "pkg/resmgr/testing/test_node.h"
#include "test/support/machines/machines.h"

namespace resmgr {
namespace {

using test::CpuList;
using test::FirstFitPolicy;
using test::TestNode;
using testing::IsEmpty;
using testing::SizeIs;

using enum QosClass;

// Puts containers that use a CPU or more on CPUs 6 and 7.
class FollowingPolicy final : public FirstFitPolicy {
 public:
  using FirstFitPolicy::FirstFitPolicy;

  bool follows = true;
  Status failure;
  int asked = 0;

  std::unique_ptr<Policy> Clone() const override {
    return std::make_unique<FollowingPolicy>(*this);
  }
  bool FollowsUse() const override { return follows; }
  StatusOr<Plan> FollowUse(const Snapshot& snapshot, const policy::MeasuredUse& use) override {
    ++asked;
    if (!failure.ok()) return failure;
    Plan plan;
    for (const auto& [key, one] : use.containers) {
      if (one.cpus < 1) continue;
      Placement placement = snapshot.FindContainer(key)->placement;
      placement.cpus = CpuSet{6, 7};
      plan.changes.push_back({key, std::move(placement)});
    }
    return plan;
  }
};

class FollowUseTest : public testing::Test {
 protected:
  test::FakeRuntimeClient& runtime() { return node_.runtime; }
  policy::MeasuredUse Uses(const ContainerId& id, double cpus) {
    policy::MeasuredUse use;
    use.containers[node_.Known(id)->key].cpus = cpus;
    return use;
  }

  FollowingPolicy* policy_ = nullptr;  // the node's
  TestNode node_{test::S1Ht(),         // CPUs 0-7
                 [this](const Machine& machine) {
                   auto policy = std::make_unique<FollowingPolicy>(machine);
                   policy_ = policy.get();
                   return policy;
                 }};
};

TEST_F(FollowUseTest, WhatThePolicyChangesIsSent) {
  const ContainerId id = node_.Run("a", kBurstable, 100);
  runtime().AnswerAll();
  node_.manager().FollowUse(Uses(id, 0.5));
  EXPECT_EQ(policy_->asked, 1);
  EXPECT_THAT(runtime().updates, IsEmpty());
  node_.manager().FollowUse(Uses(id, 1.5));
  ASSERT_THAT(runtime().updates, SizeIs(1));
  EXPECT_EQ(CpuList(runtime().updates[0].adjustment), "6-7");
  runtime().AnswerAll();
  EXPECT_EQ(node_.Placed(id), "6-7");
}

TEST_F(FollowUseTest, APolicyThatDoesNotFollowIsNotAsked) {
  policy_->follows = false;
  node_.manager().FollowUse(Uses(node_.Run("a", kBurstable, 100), 2));
  EXPECT_EQ(policy_->asked, 0);
}

TEST_F(FollowUseTest, AFailureLeavesAllWhereItIs) {
  const ContainerId id = node_.Run("a", kBurstable, 100);
  runtime().AnswerAll();
  policy_->failure = FailedPrecondition("no");
  node_.manager().FollowUse(Uses(id, 2));
  EXPECT_THAT(runtime().updates, IsEmpty());
  EXPECT_EQ(node_.Placed(id), "0-7");
}

TEST_F(FollowUseTest, APolicyThatIsTakingOverIsNotAsked) {
  const ContainerId id = node_.Run("a", kBurstable, 100);
  runtime().AnswerAll();
  auto next = std::make_unique<FollowingPolicy>(node_.machine());
  FollowingPolicy* const following = next.get();
  following->spoil = [key = node_.Known(id)->key](Plan& plan) {
    plan.changes = {{key, {}}};
    plan.changes.back().placement.cpus = CpuSet{3};
  };
  std::optional<Status> outcome;
  node_.manager().SetPolicy(std::move(next), [&](const Status& status) { outcome = status; });
  ASSERT_FALSE(outcome.has_value()) << "an update is under way";
  node_.manager().FollowUse(Uses(id, 2));
  EXPECT_EQ(following->asked, 0);
  runtime().AnswerAll();
  ASSERT_EQ(outcome, OkStatus());
  node_.manager().FollowUse(Uses(id, 2));
  EXPECT_EQ(following->asked, 1);
}

}  // namespace
}  // namespace resmgr
