// SPDX-License-Identifier: Apache-2.0
#include "pkg/resmgr/decider.h"

#include <memory>
#include <optional>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/policy/testing/test_snapshot.h"
#include "pkg/resmgr/resource_manager.h"
#include "pkg/resmgr/testing/test_node.h"
#include "test/support/machines/machines.h"

namespace resmgr {
namespace {

using test::CpuList;
using test::Cpus;
using test::FirstFitPolicy;
using test::TestNode;
using testing::IsEmpty;
using testing::SizeIs;
using enum QosClass;

// CPUs that go offline and come back; with the policies themselves: test/integration/brain.

class OnlineViewTest : public testing::Test {
 protected:
  ContainerKey Add(std::string_view cpus, std::string_view exclusive, std::string_view pool) {
    Container& container = snapshot_.Add("c", QosClass::kGuaranteed, 1000);
    container.placement.cpus = Cpus(cpus);
    container.placement.exclusive = Cpus(exclusive);
    container.placement.pool = pool;
    return container.key;
  }

  test::TestSnapshot snapshot_;
};

TEST_F(OnlineViewTest, NoContainerHasACpuThatIsOffline) {
  const ContainerKey untouched = Add("1", "1", "exclusive");
  const ContainerKey part = Add("2-3", "2-3", "exclusive");
  const ContainerKey shared = Add("0,4-7", "", "shared");
  const ContainerKey all = Add("0,3", "3", "exclusive");
  const OnlineView view(snapshot_, Cpus("0-2,4-6"), Cpus("0"));
  EXPECT_EQ(view.FindContainer(untouched), snapshot_.FindContainer(untouched));
  const Placement& less = view.FindContainer(part)->placement;
  EXPECT_EQ(less.cpus, Cpus("2"));
  EXPECT_EQ(less.exclusive, Cpus("2"));
  EXPECT_EQ(less.pool, "exclusive");
  EXPECT_EQ(view.FindContainer(shared)->placement.cpus, Cpus("0,4-6"));
  // The container has no place, although it also ran on other CPUs.
  const Placement& none = view.FindContainer(all)->placement;
  EXPECT_EQ(none.cpus, std::nullopt);
  EXPECT_EQ(none.exclusive, CpuSet());
  EXPECT_EQ(none.pool, "");
  EXPECT_EQ(snapshot_.FindContainer(part)->placement.exclusive, Cpus("2-3"));

  // A container that the policy leaves alone stays on the CPUs that the view showed.
  Plan plan;
  plan.Change(all).cpus = Cpus("5");
  view.Complete(plan);
  ASSERT_THAT(plan.changes, SizeIs(3));
  EXPECT_EQ(plan.Find(part)->cpus, Cpus("2"));
  EXPECT_EQ(plan.Find(shared)->cpus, Cpus("0,4-6"));
  EXPECT_EQ(plan.Find(all)->cpus, Cpus("5"));
  EXPECT_EQ(plan.Find(untouched), nullptr);
}

TEST_F(OnlineViewTest, CpusThatBecameReservedAreNoContainersOwn) {
  const ContainerKey own = Add("1-2", "1-2", "exclusive");
  const OnlineView view(snapshot_, Cpus("1-7"), Cpus("1"));
  EXPECT_EQ(view.FindContainer(own)->placement.exclusive, Cpus("2"));
}

TEST_F(OnlineViewTest, WithAllCpusOnlineNothingChanges) {
  Add("1-2", "1-2", "exclusive");
  const OnlineView view(snapshot_, Cpus("0-7"), {});
  Plan plan;
  view.Complete(plan);
  EXPECT_THAT(plan.changes, IsEmpty());
}

class OfflineTest : public testing::Test {
 protected:
  test::TestNode node_{test::S1Ht(), test::FirstFit};
};

TEST_F(OfflineTest, SharedContainersLeaveTheCpuAndComeBack) {
  const ContainerId shared = node_.Run("shared", QosClass::kBurstable, 100);
  node_.runtime.AnswerAll();
  EXPECT_EQ(node_.SetOffline({3}), OkStatus());
  EXPECT_EQ(node_.Placed(shared), "0-2,4-7");
  node_.runtime.AnswerAll();
  EXPECT_EQ(node_.runtime.CpusOf(shared), "0-2,4-7");
  EXPECT_EQ(node_.SetOffline({}), OkStatus());
  node_.runtime.AnswerAll();
  EXPECT_EQ(node_.runtime.CpusOf(shared), "0-7");
}

TEST_F(OfflineTest, WhatTheRuntimeRefusesIsTriedAgainAndNotTakenBack) {
  const ContainerId shared = node_.Run("shared", QosClass::kBurstable, 100);
  node_.runtime.AnswerAll();
  EXPECT_EQ(node_.SetOffline({3}), OkStatus());
  ASSERT_THAT(node_.runtime.updates, SizeIs(1));
  node_.runtime.Answer(0, Internal("runc update failed"));
  EXPECT_EQ(node_.Placed(shared), "0-2,4-7");
  EXPECT_TRUE(node_.RunUntil([&] { return !node_.runtime.updates.empty(); }));
}

TEST_F(OfflineTest, ARefusalSaysWhichCpusAreOffline) {
  EXPECT_EQ(node_.SetOffline({3, 4}), OkStatus());
  const StatusOr<ContainerId> refused = node_.Create("large", QosClass::kGuaranteed, 7000);
  EXPECT_THAT(Message(refused.status()), testing::HasSubstr("CPUs 3-4 are offline"));
  EXPECT_EQ(node_.SetOffline({}), OkStatus());
  EXPECT_TRUE(node_.Create("large", QosClass::kGuaranteed, 7000).ok());
}

TEST_F(OfflineTest, AChangeOfThePolicyComesFirst) {
  const ContainerId shared = node_.Run("shared", QosClass::kBurstable, 100);
  node_.runtime.AnswerAll();
  auto next = std::make_unique<FirstFitPolicy>(node_.machine());
  next->spoil = [key = node_.Known(shared)->key](Plan& plan) {
    plan.Change(key).cpus = Cpus("0-1");
  };
  std::optional<Status> changed;
  node_.manager().policy_changes().Set(std::move(next),
                                       [&](const Status& status) { changed = status; });
  EXPECT_EQ(node_.SetOffline({3}).code(), StatusCode::kFailedPrecondition);
  node_.runtime.AnswerAll();
  EXPECT_EQ(changed, OkStatus());
  EXPECT_EQ(node_.SetOffline({3}), OkStatus());
}

// Placements that follow what containers use.

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
  node_.manager().policy_changes().FollowUse(Uses(id, 0.5));
  EXPECT_EQ(policy_->asked, 1);
  EXPECT_THAT(runtime().updates, IsEmpty());
  node_.manager().policy_changes().FollowUse(Uses(id, 1.5));
  ASSERT_THAT(runtime().updates, SizeIs(1));
  EXPECT_EQ(CpuList(runtime().updates[0].adjustment), "6-7");
  runtime().AnswerAll();
  EXPECT_EQ(node_.Placed(id), "6-7");
}

TEST_F(FollowUseTest, APolicyThatDoesNotFollowIsNotAsked) {
  policy_->follows = false;
  node_.manager().policy_changes().FollowUse(Uses(node_.Run("a", kBurstable, 100), 2));
  EXPECT_EQ(policy_->asked, 0);
}

TEST_F(FollowUseTest, AFailureLeavesAllWhereItIs) {
  const ContainerId id = node_.Run("a", kBurstable, 100);
  runtime().AnswerAll();
  policy_->failure = FailedPrecondition("no");
  node_.manager().policy_changes().FollowUse(Uses(id, 2));
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
  node_.manager().policy_changes().Set(std::move(next),
                                       [&](const Status& status) { outcome = status; });
  ASSERT_FALSE(outcome.has_value()) << "an update is under way";
  node_.manager().policy_changes().FollowUse(Uses(id, 2));
  EXPECT_EQ(following->asked, 0);
  runtime().AnswerAll();
  ASSERT_EQ(outcome, OkStatus());
  node_.manager().policy_changes().FollowUse(Uses(id, 2));
  EXPECT_EQ(following->asked, 1);
}

}  // namespace
}  // namespace resmgr
