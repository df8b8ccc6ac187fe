// SPDX-License-Identifier: Apache-2.0
#include "pkg/model/requirements.h"

#include <deque>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/kube/cpu_arithmetic.h"
#include "pkg/kube/qos.h"

namespace resmgr {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kGiB = int64_t{1} << 30;

LinuxResources Kubelets(int64_t request_milli, int64_t limit_milli, int64_t memory_limit) {
  LinuxResources resources;
  resources.cpu_shares = SharesFromMilliCpu(MilliCpu{request_milli});
  resources.cpu_period = kDefaultCpuPeriod;
  resources.cpu_quota = QuotaFromMilliCpu(MilliCpu{limit_milli});
  resources.memory_limit = memory_limit;
  return resources;
}

// The score that a kubelet computes for a Burstable container.
int64_t OomScoreAdj(int64_t request, int64_t capacity) {
  return std::clamp<int64_t>(1000 - 1000 * request / capacity, 3, 999);
}

TEST(RequirementsTest, GuaranteedHasEqualRequestsAndLimits) {
  const Requirements needs =
      EstimateRequirements(Kubelets(2500, 2500, kGiB), QosClass::kGuaranteed, Bytes{0});
  EXPECT_EQ(needs, (Requirements{{2500}, {2500}, {kGiB}, {kGiB}}));
}

TEST(RequirementsTest, GuaranteedWithoutQuotaStillHasItsLimit) {
  LinuxResources resources = Kubelets(4000, 0, kGiB);
  EXPECT_EQ(EstimateRequirements(resources, QosClass::kGuaranteed, Bytes{0}).cpu_limit.value, 4000);
}

TEST(RequirementsTest, GuaranteedAboveTheLargestShareIsReadFromTheQuota) {
  const Requirements needs =
      EstimateRequirements(Kubelets(300'000, 300'000, kGiB), QosClass::kGuaranteed, Bytes{0});
  EXPECT_EQ(needs.cpu_request.value, 300'000);
  EXPECT_EQ(needs.cpu_limit.value, 300'000);
}

TEST(RequirementsTest, TheLargestShareMayStandForMoreThanItTells) {
  const auto may = [](QosClass qos, int64_t request, int64_t limit) {
    Container container;
    container.requested = Kubelets(request, limit, kGiB);
    container.requirements = EstimateRequirements(container.requested, qos, Bytes{0});
    return MayAskForMore(container);
  };
  EXPECT_TRUE(may(QosClass::kBurstable, 300'000, 300'000)) << "it may be the limit, or less";
  EXPECT_TRUE(may(QosClass::kBurstable, 256'000, 0));
  EXPECT_FALSE(may(QosClass::kBurstable, 256'000, 256'000)) << "the limit allows no more";
  EXPECT_FALSE(may(QosClass::kBurstable, 255'999, 300'000));
  EXPECT_FALSE(may(QosClass::kGuaranteed, 300'000, 300'000)) << "the limit is the request";
  EXPECT_TRUE(may(QosClass::kGuaranteed, 300'000, 0)) << "a kubelet that sets no quota";
  Container annotated;
  annotated.requested = Kubelets(300'000, 400'000, kGiB);
  annotated.requirements.cpu_request = MilliCpu{300'000};
  EXPECT_FALSE(MayAskForMore(annotated));
}

TEST(RequirementsTest, BurstableHasRequestFromSharesAndLimitFromQuota) {
  const Requirements needs =
      EstimateRequirements(Kubelets(900, 1700, kGiB), QosClass::kBurstable, Bytes{0});
  EXPECT_EQ(needs, (Requirements{{900}, {1700}, {0}, {kGiB}}));
}

TEST(RequirementsTest, NothingSetIsNothingNeeded) {
  for (const QosClass qos : {QosClass::kGuaranteed, QosClass::kBurstable, QosClass::kBestEffort}) {
    EXPECT_EQ(EstimateRequirements({}, qos, Bytes{kGiB}), Requirements{});
  }
}

TEST(RequirementsTest, HostileNumbersGiveNoNegativeNeeds) {
  LinuxResources resources;
  resources.cpu_shares = -4;
  resources.cpu_quota = -1;
  resources.cpu_period = -5;
  resources.memory_limit = -1;
  resources.oom_score_adj = -997;
  EXPECT_EQ(EstimateRequirements(resources, QosClass::kBurstable, Bytes{kGiB}), Requirements{});
}

TEST(RequirementsTest, MemoryRequestOfBurstableComesFromTheOomScore) {
  const int64_t capacity = 64 * kGiB + 12345;
  for (int64_t request = capacity / 400; request < capacity * 99 / 100; request += capacity / 777) {
    LinuxResources resources;
    resources.oom_score_adj = OomScoreAdj(request, capacity);
    const int64_t estimated =
        EstimateRequirements(resources, QosClass::kBurstable, Bytes{capacity}).memory_request.value;
    EXPECT_LE(estimated, request);
    EXPECT_GT(estimated, request - capacity / 1000 - 2);
  }
}

TEST(RequirementsTest, OnlyAMemoryRequestFromTheOomScoreIsAnEstimate) {
  LinuxResources resources = Kubelets(1000, 1000, kGiB);
  resources.oom_score_adj = 900;
  const auto estimated = [&resources](QosClass qos) {
    return EstimateRequirements(resources, qos, Bytes{64 * kGiB}).memory_estimated;
  };
  EXPECT_TRUE(estimated(QosClass::kBurstable));
  EXPECT_FALSE(estimated(QosClass::kGuaranteed));
  EXPECT_FALSE(estimated(QosClass::kBestEffort));
  resources.oom_score_adj = 999;
  EXPECT_FALSE(estimated(QosClass::kBurstable)) << "nothing is asked for";
}

TEST(RequirementsTest, MemoryRequestIsUnknownWithoutCapacityOrTellingScore) {
  LinuxResources resources;
  resources.oom_score_adj = 500;
  EXPECT_EQ(EstimateRequirements(resources, QosClass::kBurstable, Bytes{0}).memory_request.value,
            0);
  EXPECT_EQ(
      EstimateRequirements(resources, QosClass::kBestEffort, Bytes{kGiB}).memory_request.value, 0);
  for (const int64_t score : {-997, 0, 999, 1000}) {
    resources.oom_score_adj = score;
    EXPECT_EQ(
        EstimateRequirements(resources, QosClass::kBurstable, Bytes{kGiB}).memory_request.value, 0);
  }
}

TEST(RequirementsTest, MemoryRequestStaysWithinTheLimit) {
  LinuxResources resources;
  resources.oom_score_adj = 500;
  resources.memory_limit = 1000;
  EXPECT_EQ(EstimateRequirements(resources, QosClass::kBurstable, Bytes{kGiB}).memory_request.value,
            1000);
}

Pod PodWith(QosClass qos, std::string_view annotation) {
  Pod pod;
  pod.qos = qos;
  pod.annotations.Set("intel.com/resources", std::string(annotation));
  return pod;
}

TEST(RequirementsTest, TheAnnotationTellsMoreWhereItNamesTheContainer) {
  const Pod pod = PodWith(QosClass::kBurstable,
                          R"({"containers":{"web":{"requests":{"cpu":"1m","memory":"1Gi"},
                                       "limits":{"cpu":"5m","memory":"2Gi"}}}})");
  const LinuxResources resources = Kubelets(1, 5, 2 * kGiB);
  const ResolvedRequirements web = ResolveRequirements(resources, pod, Bytes{0}, "web");
  EXPECT_TRUE(web.annotation.ok());
  EXPECT_EQ(web.note, "");
  EXPECT_EQ(web.requirements, (Requirements{{1}, {5}, {kGiB}, {2 * kGiB}}));
  const ResolvedRequirements other = ResolveRequirements(resources, pod, Bytes{0}, "other");
  EXPECT_EQ(other.requirements, (Requirements{{0}, {10}, {0}, {2 * kGiB}}));
}

TEST(RequirementsTest, ARequestWithoutSharesContradictsNothing) {
  const Pod pod = PodWith(QosClass::kBurstable,
                          R"({"containers":{"web":{"requests":{"cpu":"1","memory":"1Gi"}}}})");
  EXPECT_EQ(ResolveRequirements({}, pod, Bytes{0}, "web").requirements,
            (Requirements{{1000}, {0}, {kGiB}, {0}}));
}

TEST(RequirementsTest, WhatWasResizedWinsOverAnOlderAnnotation) {
  const Pod pod = PodWith(QosClass::kGuaranteed,
                          R"({"containers":{"web":{"limits":{"cpu":"2","memory":"1Gi"}}}})");
  const ResolvedRequirements web =
      ResolveRequirements(Kubelets(4000, 4000, kGiB), pod, Bytes{0}, "web");
  EXPECT_EQ(web.requirements, (Requirements{{4000}, {4000}, {kGiB}, {kGiB}}));
  EXPECT_EQ(web.note, "; the request contradicts its annotation's CPU of 2000m (limit 2000m)");
}

TEST(RequirementsTest, AnAnnotationGivesNothingInABestEffortPod) {
  const Pod pod = PodWith(QosClass::kBestEffort,
                          R"({"containers":{"web":{"limits":{"cpu":"8","memory":"1Gi"}}}})");
  const ResolvedRequirements web =
      ResolveRequirements(Kubelets(0, 0, 0), pod, Bytes{64 * kGiB}, "web");
  EXPECT_EQ(web.requirements, Requirements());
  EXPECT_THAT(web.note, HasSubstr("its annotation's CPU of 8000m"));
  EXPECT_THAT(web.note, HasSubstr("its annotation's memory of 1073741824 bytes"));
}

TEST(RequirementsTest, WhatHasNoRequestOfItsOwnHasItsPods) {
  Pod pod = PodWith(QosClass::kGuaranteed,
                    R"({"containers":{"own":{"requests":{"cpu":"1"}},"none":{}}})");
  pod.resources = Kubelets(4000, 4000, kGiB);
  const ResolvedRequirements none =
      ResolveRequirements(Kubelets(4000, 4000, kGiB), pod, Bytes{0}, "none");
  EXPECT_EQ(none.note, "");
  EXPECT_TRUE(none.requirements.cpu_of_pod);
  EXPECT_TRUE(none.requirements.memory_of_pod);
  EXPECT_NE(WhyCpuIsOfPod(none.requirements), "");
  const ResolvedRequirements own =
      ResolveRequirements(Kubelets(1000, 4000, kGiB), pod, Bytes{0}, "own");
  EXPECT_EQ(own.requirements.cpu_request.value, 1000);
  EXPECT_EQ(own.requirements.cpu_limit.value, 4000);
  EXPECT_EQ(WhyCpuIsOfPod(own.requirements), "CPU limit above the request");
  pod.annotations = {};
  EXPECT_EQ(WhyCpuIsOfPod(
                ResolveRequirements(Kubelets(1000, 4000, kGiB), pod, Bytes{0}, "own").requirements),
            "CPU limit above the request")
      << "without the annotation, too";
}

TEST(RequirementsTest, UnusableAnnotationIsReportedAndTheEstimateTaken) {
  const Pod pod = PodWith(QosClass::kGuaranteed, "nonsense");
  const ResolvedRequirements web =
      ResolveRequirements(Kubelets(2000, 2000, kGiB), pod, Bytes{0}, "web");
  EXPECT_THAT(std::string(Message(web.annotation)), HasSubstr("intel.com/resources is not JSON"));
  EXPECT_EQ(web.requirements.cpu_request.value, 2000);
}

TEST(RequirementsTest, AClassIsDerivedFromWhatIsAskedFor) {
  LinuxResources resources;
  EXPECT_EQ(DerivedQos(resources), QosClass::kBestEffort);
  resources.cpu_shares = kMinShares;
  EXPECT_EQ(DerivedQos(resources), QosClass::kBestEffort);
  resources.cpu_shares = 2048;
  EXPECT_EQ(DerivedQos(resources), QosClass::kBurstable);
  resources.cpu_quota = 200'000;
  resources.cpu_period = 100'000;
  EXPECT_EQ(DerivedQos(resources), QosClass::kBurstable) << "no memory limit";
  resources.memory_limit = 1 << 30;
  EXPECT_EQ(DerivedQos(resources), QosClass::kGuaranteed);
  resources.cpu_shares.reset();
  EXPECT_EQ(DerivedQos(resources), QosClass::kGuaranteed) << "a request defaults to the limit";
  resources.cpu_shares = 1024;
  EXPECT_EQ(DerivedQos(resources), QosClass::kBurstable) << "a limit above the request";
}

constexpr Bytes kGi{int64_t{1} << 30};

Requirements Needs(int64_t cpu_request, int64_t cpu_limit, int64_t memory_request,
                   int64_t memory_limit) {
  return {{cpu_request}, {cpu_limit}, {memory_request}, {memory_limit}};
}

QosClass Qos(const std::vector<Requirements>& containers) {
  return QosOf(containers);
}

TEST(KubeletResourcesTest, TellsTheQosClass) {
  EXPECT_EQ(Qos({}), QosClass::kBestEffort);
  EXPECT_EQ(Qos({Needs(0, 0, 0, 0), Needs(0, 0, 0, 0)}), QosClass::kBestEffort);
  EXPECT_EQ(Qos({Needs(2000, 2000, 10, 10)}), QosClass::kGuaranteed);
  EXPECT_EQ(Qos({Needs(2000, 2000, 10, 10), Needs(1, 1, 1, 1)}), QosClass::kGuaranteed);
  EXPECT_EQ(Qos({Needs(2000, 2000, 10, 10), Needs(0, 0, 0, 0)}), QosClass::kBurstable);
  EXPECT_EQ(Qos({Needs(2000, 2000, 0, 0)}), QosClass::kBurstable);
  EXPECT_EQ(Qos({Needs(1000, 2000, 10, 10)}), QosClass::kBurstable);
  EXPECT_EQ(Qos({Needs(0, 0, 10, 0)}), QosClass::kBurstable);
}

TEST(KubeletResourcesTest, ScoresForTheOomKiller) {
  EXPECT_EQ(OomScoreAdj(QosClass::kGuaranteed, kGi, kGi), -997);
  EXPECT_EQ(OomScoreAdj(QosClass::kBestEffort, Bytes{0}, kGi), 1000);
  EXPECT_EQ(OomScoreAdj(QosClass::kBurstable, Bytes{0}, kGi), 999);
  EXPECT_EQ(OomScoreAdj(QosClass::kBurstable, Bytes{kGi.value / 4}, kGi), 750);
  EXPECT_EQ(OomScoreAdj(QosClass::kBurstable, Bytes{kGi.value / 1000}, kGi), 1000 - 0 - 1);
  EXPECT_EQ(OomScoreAdj(QosClass::kBurstable, kGi, kGi), 3);
  EXPECT_EQ(OomScoreAdj(QosClass::kBurstable, Bytes{INT64_MAX}, Bytes{1}), 3);
  EXPECT_EQ(OomScoreAdj(QosClass::kBurstable, kGi, Bytes{0}), 999);
}

TEST(KubeletResourcesTest, MakesTheFieldsOfARequest) {
  LinuxResources expected;
  expected.cpu_shares = 1536;
  expected.cpu_period = 100'000;
  expected.cpu_quota = 200'000;
  expected.memory_limit = kGi.value;
  expected.oom_score_adj = 875;
  EXPECT_EQ(KubeletResources(Needs(1500, 2000, kGi.value / 2, kGi.value), QosClass::kBurstable,
                             Bytes{kGi.value / 2}, Bytes{4 * kGi.value}),
            expected);
}

TEST(KubeletResourcesTest, WhatIsNotLimitedHasNoLimit) {
  const LinuxResources resources =
      KubeletResources(Needs(0, 0, 0, 0), QosClass::kBestEffort, Bytes{0}, kGi);
  EXPECT_EQ(resources.cpu_shares, 2);
  EXPECT_FALSE(resources.cpu_quota.has_value());
  EXPECT_FALSE(resources.memory_limit.has_value());
  EXPECT_EQ(resources.oom_score_adj, 1000);
}

TEST(KubeletResourcesTest, ALimitAloneGivesTheShares) {
  EXPECT_EQ(KubeletResources(Needs(0, 500, 0, 0), QosClass::kBurstable, Bytes{0}, kGi).cpu_shares,
            512);
}

TEST(KubeletResourcesTest, TheCgroupParentTellsClassAndUid) {
  for (const QosClass qos : {QosClass::kGuaranteed, QosClass::kBurstable, QosClass::kBestEffort}) {
    const auto parsed = ParsePodCgroup(CgroupParentOf(qos, PodUid("12-34")));
    ASSERT_TRUE(parsed.has_value());
    EXPECT_EQ(parsed->qos, qos);
    EXPECT_EQ(parsed->uid, PodUid("12-34"));
  }
}

// The way there and back again.
TEST(KubeletResourcesTest, TheEstimateUndoesTheArithmetic) {
  for (int64_t milli = 10; milli <= 64'000; milli += 7) {
    const Requirements guaranteed = Needs(milli, milli, kGi.value, kGi.value);
    EXPECT_EQ(EstimateRequirements(
                  KubeletResources(guaranteed, QosClass::kGuaranteed, kGi, Bytes{8 * kGi.value}),
                  QosClass::kGuaranteed, Bytes{8 * kGi.value}),
              guaranteed);
    const Requirements burstable = Needs(milli, 2 * milli, 0, kGi.value);
    EXPECT_EQ(
        EstimateRequirements(KubeletResources(burstable, QosClass::kBurstable, Bytes{0}, Bytes{0}),
                             QosClass::kBurstable, Bytes{0}),
        burstable);
  }
}

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

TEST_F(PodDivisionTest, TheOneThatHasTheRestKeepsIt) {
  SetPod(QosClass::kGuaranteed, {{4000}, {4000}, {kGibi}, {kGibi}});
  for (const char* name : {"a", "b"})
    Add(name, {});
  Divided();
  std::swap(members_[0], members_[1]);
  Add("own", {{1000}, {1000}, {kGibi / 4}, {kGibi / 4}});
  EXPECT_THAT(Divided(), ElementsAre("(0)", "(3000)", "1000"));
  EXPECT_EQ(members_[0].needs.memory_request.value, 0);
  EXPECT_EQ(members_[1].needs.memory_request.value, kGibi / 4 * 3);
}

TEST_F(PodDivisionTest, TheNextAttemptOfTheOneThatHadTheRestGetsIt) {
  SetPod(QosClass::kGuaranteed, {{4000}, {4000}, {kGibi}, {kGibi}});
  for (const char* name : {"a", "b"})
    Add(name, {});
  Divided();
  const Requirements first = members_[0].needs;
  members_.erase(members_.begin());
  ASSERT_THAT(Divided(), ElementsAre("(4000)"));
  Add("a", {});
  members_[1].former = &first;
  EXPECT_THAT(Divided(), ElementsAre("(0)", "(4000)"));
  EXPECT_EQ(members_[1].needs.memory_request.value, kGibi);
  // One that states its own CPUs now wants no share.
  members_.pop_back();
  Add("a", {{1000}, {1000}, {}, {}});
  members_[1].former = &first;
  EXPECT_THAT(Divided(), ElementsAre("(3000)", "1000"));
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

TEST_F(PodDivisionTest, MemoryThatAnAnnotationTellsIsItsOwn) {
  SetPod(QosClass::kGuaranteed, {{4000}, {4000}, {kGibi}, {kGibi}});
  pod_.annotations.Set("intel.com/resources",
                       R"({"containers":{"own":{"limits":{"cpu":1,"memory":"1Gi"}}}})");
  Add("shares", {});
  Divided();
  members_[0].needs.memory_of_pod = true;
  Add("own", {{1000}, {1000}, {kGibi}, {kGibi}});
  EXPECT_THAT(Divided(), ElementsAre("(3000)", "1000"));
  EXPECT_EQ(members_[0].needs.memory_request.value, 0);
  EXPECT_EQ(members_[1].needs.memory_request.value, kGibi);
  EXPECT_FALSE(members_[1].needs.memory_of_pod);
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
