// SPDX-License-Identifier: Apache-2.0
#include "pkg/policy/plan_check.h"

#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/policy/testing/test_snapshot.h"
#include "test/support/machines/machines.h"

namespace resmgr {
namespace {

using test::Cpus;
using testing::HasSubstr;

class PlanCheckTest : public testing::Test {
 protected:
  PlanCheckTest() {
    first_ = snapshot_.Add("first", QosClass::kGuaranteed, 2000).key;
    second_ = snapshot_.Add("second", QosClass::kBurstable, 100).key;
    snapshot_.At(first_).placement.cpus = Cpus("2-3");
    snapshot_.At(first_).placement.exclusive = Cpus("2-3");
    snapshot_.At(second_).placement.cpus = Cpus("0-1,4-7");
  }

  static Plan Change(ContainerKey key, std::string_view cpus, std::string_view exclusive = "") {
    Plan plan;
    plan.changes.emplace_back();
    plan.changes.back().key = key;
    plan.changes.back().placement.cpus = Cpus(cpus);
    plan.changes.back().placement.exclusive = Cpus(exclusive);
    return plan;
  }
  std::string Complaint(const Plan& plan) const {
    const Status status = CheckPlan(machine_, snapshot_, plan);
    if (status.ok()) return "";
    EXPECT_EQ(status.code(), StatusCode::kInternal);
    return std::string(Message(status));
  }

  const Machine machine_ = test::S1Ht();  // CPUs 0-7
  test::TestSnapshot snapshot_;
  ContainerKey first_{};
  ContainerKey second_{};
};

TEST_F(PlanCheckTest, AcceptsDisjointPlacements) {
  EXPECT_EQ(Complaint(Plan()), "");
  EXPECT_EQ(Complaint(Change(second_, "0-1")), "");
  EXPECT_EQ(Complaint(Change(first_, "3-5,0", "")), "");
}

TEST_F(PlanCheckTest, LooksAtThePlacementsAfterThePlan) {
  Plan plan = Change(second_, "2-3");
  EXPECT_THAT(Complaint(plan), HasSubstr("container ns/second/second"));
  plan.changes.push_back(Change(first_, "4-5", "4-5").changes[0]);
  EXPECT_EQ(Complaint(plan), "") << "they change places";
}

TEST_F(PlanCheckTest, RefusesEmptyOfflineAndUnknown) {
  EXPECT_THAT(Complaint(Change(second_, "")), HasSubstr("leaves it no CPU"));
  EXPECT_THAT(Complaint(Change(second_, "7-9")), HasSubstr("CPUs 8-9 that are not online"));
  EXPECT_THAT(Complaint(Change(ContainerKey{99}, "1")), HasSubstr("does not exist (key 99)"));
  Plan plan = Change(second_, "1");
  plan.changes[0].placement.mems = NodeSet{};
  EXPECT_THAT(Complaint(plan), HasSubstr("no memory node"));
  plan.changes[0].placement.mems = NodeSet{0, 3};
  EXPECT_THAT(Complaint(plan), HasSubstr("memory nodes 3 that do not exist"));
}

TEST_F(PlanCheckTest, RefusesExclusiveCpusThatOthersUse) {
  EXPECT_THAT(Complaint(Change(second_, "3-5", "3")),
              HasSubstr("grants CPUs 3 exclusively a second time"));
  EXPECT_THAT(Complaint(Change(second_, "3-5")),
              HasSubstr("shares CPUs 3 that are exclusive to another one"));
  EXPECT_THAT(Complaint(Change(first_, "2", "2,5")),
              HasSubstr("its exclusive CPUs 5 are not among its CPUs"));
}

TEST_F(PlanCheckTest, RefusesAContainerTwice) {
  Plan plan = Change(second_, "0");
  plan.changes.push_back(Change(second_, "1").changes[0]);
  EXPECT_THAT(Complaint(plan), HasSubstr("twice"));
}

TEST_F(PlanCheckTest, ChecksSharedChangesOnceForAll) {
  const auto shared = [](std::string_view cpus, std::vector<ContainerKey> containers) {
    Plan plan;
    plan.shared.push_back({.cpus = Cpus(cpus), .containers = std::move(containers)});
    return plan;
  };
  EXPECT_EQ(Complaint(shared("0-1", {second_})), "");
  EXPECT_EQ(Complaint(shared("0-1", {first_, second_})), "") << "it has its own CPUs besides";
  EXPECT_THAT(Complaint(shared("", {second_})), HasSubstr("no CPU"));
  EXPECT_THAT(Complaint(shared("7-9", {second_})), HasSubstr("CPUs 8-9 that are not online"));
  EXPECT_THAT(Complaint(shared("1-2", {second_})), HasSubstr("CPUs 2 that are exclusive"));
  EXPECT_THAT(Complaint(shared("0-1", {ContainerKey{77}})), HasSubstr("key 77"));
  EXPECT_THAT(Complaint(shared("0-1", {ContainerKey{0}, second_})), HasSubstr("key 0"));
  EXPECT_THAT(Complaint(shared("0-1", {second_, second_})), HasSubstr("twice"));

  Plan plan = Change(first_, "2-5", "2-5");
  EXPECT_THAT(Complaint(plan), HasSubstr("container ns/second/second"));
  plan.shared = shared("0-1,6-7", {second_}).shared;
  EXPECT_EQ(Complaint(plan), "");
  plan.shared[0].containers.push_back(first_);
  EXPECT_THAT(Complaint(plan), HasSubstr("twice"));
}

}  // namespace
}  // namespace resmgr
