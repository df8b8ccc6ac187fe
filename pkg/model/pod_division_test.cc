// SPDX-License-Identifier: Apache-2.0
#include "pkg/model/pod_division.h"

#include <deque>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/model/kubelet_resources.h"
#include "pkg/model/requirements.h"

namespace resmgr {
namespace {

using testing::ElementsAre;

constexpr int64_t kGibi = int64_t{1} << 30;

// A pod with resources of its own, and containers as a kubelet makes their requests of them.
class PodDivisionTest : public testing::Test {
 protected:
  void SetPod(QosClass qos, const Requirements& whole) {
    whole_ = whole;
    pod_.qos = qos;
    pod_.resources = KubeletResources(whole, QosClass::kBurstable, {}, {});
  }
  void Add(const std::string& name, Requirements own) {
    if (own.cpu_limit.value == 0) own.cpu_limit = whole_.cpu_limit;
    if (own.memory_limit.value == 0) own.memory_limit = whole_.memory_limit;
    Container& container = containers_.emplace_back();
    container.name = name;
    container.requested = KubeletResources(own, pod_.qos, own.memory_request, {});
    container.requirements = EstimateRequirements(container.requested, pod_.qos, {});
    members_.push_back({&container, container.requirements});
  }
  // Containers without requests of their own are in brackets.
  std::vector<std::string> Divided() {
    DivideAmong(pod_, members_);
    std::vector<std::string> requests;
    for (const PodMember& member : members_) {
      const auto request = std::to_string(member.needs.cpu_request.value);
      requests.push_back(member.needs.cpu_of_pod ? "(" + request + ")" : request);
    }
    return requests;
  }

  Pod pod_;
  Requirements whole_;
  std::deque<Container> containers_;
  std::vector<PodMember> members_;
};

TEST_F(PodDivisionTest, ContainersWithoutTheirOwnHaveThePodsTogether) {
  SetPod(QosClass::kGuaranteed, {{4000}, {4000}, {kGibi}, {kGibi}});
  for (const char* name : {"a", "b", "c"})
    Add(name, {});
  EXPECT_THAT(Divided(), ElementsAre("(4000)", "(0)", "(0)"));
  EXPECT_EQ(members_[0].needs.memory_request.value, kGibi);
  EXPECT_EQ(members_[1].needs.memory_request.value, 0);
  EXPECT_TRUE(members_[1].needs.memory_of_pod);
  EXPECT_EQ(members_[2].needs.cpu_limit.value, 4000);
}

TEST_F(PodDivisionTest, WhereOneHasNoneTheNextThatAsksForAllHasNoneEither) {
  SetPod(QosClass::kGuaranteed, {{4000}, {4000}, {kGibi}, {kGibi}});
  Add("a", {});
  Add("b", {});
  Divided();
  Add("c", {});
  EXPECT_THAT(Divided(), ElementsAre("(4000)", "(0)", "(0)"));
  EXPECT_TRUE(members_[2].needs.memory_of_pod);
}

TEST_F(PodDivisionTest, WhatAContainerHasOfItsOwnIsItsOwn) {
  SetPod(QosClass::kGuaranteed, {{4000}, {4000}, {kGibi}, {kGibi}});
  Add("shares", {});
  Add("own", {{1000}, {1000}, {kGibi / 4}, {kGibi / 4}});
  EXPECT_THAT(Divided(), ElementsAre("(3000)", "1000"));
  EXPECT_EQ(members_[0].needs.memory_request.value, kGibi / 4 * 3);
  EXPECT_EQ(members_[1].needs.memory_request.value, kGibi / 4);
}

TEST_F(PodDivisionTest, AShareOfALimitIsNoMoreThanThePodsRequest) {
  SetPod(QosClass::kBurstable, {{2000}, {4000}, {}, {kGibi}});
  Add("a", {});
  EXPECT_EQ(members_[0].needs.cpu_request.value, 4000) << "as its shares say";
  EXPECT_THAT(Divided(), ElementsAre("(2000)"));
  Add("b", {});
  EXPECT_THAT(Divided(), ElementsAre("(2000)", "(0)"));
}

TEST_F(PodDivisionTest, ContainersThatMakeUpTheirPodAreLeftAlone) {
  SetPod(QosClass::kGuaranteed, {{4000}, {4000}, {kGibi}, {kGibi}});
  Add("alone", {{4000}, {4000}, {kGibi}, {kGibi}});
  EXPECT_THAT(Divided(), ElementsAre("4000"));
  members_.clear();
  Add("a", {{1000}, {1000}, {kGibi / 2}, {kGibi / 2}});
  Add("b", {{3000}, {3000}, {kGibi / 2}, {kGibi / 2}});
  EXPECT_THAT(Divided(), ElementsAre("1000", "3000"));
  Add("debugger", {{}, {}, {kGibi / 8}, {kGibi / 8}});
  members_.back().needs = {};
  EXPECT_THAT(Divided(), ElementsAre("1000", "3000", "0"));
}

// An old kubelet does not report that a pod has grown.
TEST_F(PodDivisionTest, OwnRequestsAboveWhatIsKnownOfThePodStay) {
  SetPod(QosClass::kGuaranteed, {{4000}, {4000}, {kGibi}, {kGibi}});
  Add("a", {{2000}, {2000}, {kGibi / 2}, {kGibi / 2}});
  Add("b", {{3000}, {3000}, {kGibi / 2}, {kGibi / 2}});
  EXPECT_THAT(Divided(), ElementsAre("2000", "3000"));
}

TEST_F(PodDivisionTest, WhatIsKnownToBeItsOwnStays) {
  SetPod(QosClass::kGuaranteed, {{4000}, {4000}, {kGibi}, {kGibi}});
  pod_.annotations.Set("intel.com/resources",
                       R"({"containers":{"own":{"limits":{"cpu":4,"memory":"1Gi"}}}})");
  Add("own", {{4000}, {4000}, {kGibi}, {kGibi}});
  Add("debugger", {});
  EXPECT_THAT(Divided(), ElementsAre("4000", "(0)"));
  members_.clear();
  Add("kept", {{4000}, {4000}, {kGibi}, {kGibi}});
  members_.back().fixed = true;
  Add("new", {});
  EXPECT_THAT(Divided(), ElementsAre("4000", "(0)"));
}

TEST_F(PodDivisionTest, ALargePodIsToldByItsQuota) {
  SetPod(QosClass::kGuaranteed, {{300'000}, {300'000}, {kGibi}, {kGibi}});
  Add("a", {{150'000}, {150'000}, {kGibi / 2}, {kGibi / 2}});
  Add("b", {{150'000}, {150'000}, {kGibi / 2}, {kGibi / 2}});
  EXPECT_THAT(Divided(), ElementsAre("150000", "150000"));
  members_.clear();
  Add("c", {});
  Add("d", {});
  EXPECT_THAT(Divided(), ElementsAre("(300000)", "(0)"));
}

TEST_F(PodDivisionTest, APodThatIsNotKnownBoundsNothing) {
  SetPod(QosClass::kGuaranteed, {{4000}, {4000}, {kGibi}, {kGibi}});
  Add("a", {});
  Add("b", {});
  pod_.resources = {};
  EXPECT_THAT(Divided(), ElementsAre("4000", "4000"));
}

}  // namespace
}  // namespace resmgr
