// SPDX-License-Identifier: Apache-2.0
// Rows of the description of NodeResourceTopologyMatch.
#include "test/support/scheduler_model/topology_match.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/support/scheduler_model/topology_samples.h"
#include "test/support/scheduler_model/topology_view.h"

namespace resmgr::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

using nlohmann::json;

constexpr auto kGuaranteed = PodQos::kGuaranteed;
constexpr auto kBurstable = PodQos::kBurstable;
constexpr auto kBestEffort = PodQos::kBestEffort;

const ResourceList& Allocatable() {
  static const ResourceList kAll = ResourcesOf({{"cpu", "16"},
                                                {"memory", "64Gi"},
                                                {"hugepages-2Mi", "1Gi"},
                                                {"ephemeral-storage", "100Gi"},
                                                {"example.com/nic", "4"}});
  return kAll;
}

// One question about a node of zones.
struct Question {
  std::string policy = "single-numa-node";
  std::string scope = "container";
  std::vector<json> available = {{{"cpu", "4"}, {"memory", "8Gi"}},
                                 {{"cpu", "6"}, {"memory", "8Gi"}}};
  PodView pod;
  bool fresh = true;
};

FilterAnswer Ask(const Question& question) {
  const TopologyView view =
      TopologyViewOf(SampleTopology(question.policy, question.scope, question.available));
  return FilterByTopology(
      {.allocatable = Allocatable(), .topology = &view, .fresh = question.fresh}, question.pod);
}

std::string Refusal(const Question& question) {
  const FilterAnswer answer = Ask(question);
  EXPECT_EQ(answer.verdict, FilterVerdict::kUnschedulable);
  return answer.reason;
}

SchedulerContainer SampleInit(const json& requests) {
  return SampleContainer(SchedulerContainerKind::kInit, requests);
}

SchedulerContainer SampleSidecar(const json& requests) {
  return SampleContainer(SchedulerContainerKind::kSidecar, requests);
}

TEST(TopologyFilterTest, BestEffortPodsPassEvenStaleNodes) {
  EXPECT_EQ(
      Ask({.pod = SamplePod(kBestEffort, {SampleApp(json::object())}), .fresh = false}).verdict,
      FilterVerdict::kPasses);
}

TEST(TopologyFilterTest, BestEffortPodsWithDevicesAreLookedAt) {
  const PodView pod = SamplePod(kBestEffort, {SampleApp({{"example.com/nic", "1"}})});
  EXPECT_EQ(Refusal({.pod = pod, .fresh = false}), "invalid node topology data");
  EXPECT_EQ(Refusal({.available = {{{"cpu", "4"}, {"example.com/nic", "0"}}}, .pod = pod}),
            "cannot align container");
}

TEST(TopologyFilterTest, ANodeWithoutObjectPassesUnlessItIsStale) {
  const PodView pod = SamplePod(kGuaranteed, {SampleApp({{"cpu", "99"}})});
  EXPECT_EQ(
      FilterByTopology({.allocatable = Allocatable(), .topology = nullptr, .fresh = true}, pod)
          .verdict,
      FilterVerdict::kPasses);
  EXPECT_EQ(
      FilterByTopology({.allocatable = Allocatable(), .topology = nullptr, .fresh = false}, pod)
          .reason,
      "invalid node topology data");
}

TEST(TopologyFilterTest, OtherPoliciesFilterNothing) {
  const PodView pod = SamplePod(kGuaranteed, {SampleApp({{"cpu", "99"}})});
  for (const char* const policy : {"none", "best-effort", "restricted", "unheard-of"}) {
    EXPECT_EQ(Ask({.policy = policy, .pod = pod}).verdict, FilterVerdict::kPasses) << policy;
  }
}

TEST(TopologyFilterTest, AContainerNeedsOneZoneThatHasAllOfIt) {
  EXPECT_THAT(
      Ask({.pod = SamplePod(kGuaranteed, {SampleApp({{"cpu", "6"}, {"memory", "8Gi"}})})}).zones,
      ElementsAre(1));
  EXPECT_EQ(Refusal({.pod = SamplePod(kGuaranteed, {SampleApp({{"cpu", "7"}})})}),
            "cannot align container");
  EXPECT_EQ(Refusal({.pod = SamplePod(kGuaranteed, {SampleApp({{"cpu", "6001m"}})})}),
            "cannot align container");
  EXPECT_EQ(
      Refusal({.pod = SamplePod(kGuaranteed, {SampleApp({{"cpu", "1"}, {"memory", "9Gi"}})})}),
      "cannot align container");
}

TEST(TopologyFilterTest, TheLowestZoneThatFitsIsTakenAndReduced) {
  const auto zones = [](const std::vector<const char*>& cpus) {
    std::vector<SchedulerContainer> containers;
    containers.reserve(cpus.size());
    for (const char* const cpu : cpus)
      containers.push_back(SampleApp({{"cpu", cpu}}));
    return Ask({.pod = SamplePod(kGuaranteed, std::move(containers))}).zones;
  };
  EXPECT_THAT(zones({"2", "2", "2"}), ElementsAre(0, 0, 1));
  EXPECT_THAT(zones({"3", "2", "1"}), ElementsAre(0, 1, 0));
  // 4 + 6 would fit if the first one had gone to the second zone.
  EXPECT_EQ(
      Refusal({.pod = SamplePod(kGuaranteed, {SampleApp({{"cpu", "1"}}), SampleApp({{"cpu", "6"}}),
                                              SampleApp({{"cpu", "4"}})})}),
      "cannot align container");
}

TEST(TopologyFilterTest, InitContainersAreTestedButTakeNothing) {
  EXPECT_THAT(
      Ask({.pod = SamplePod(kGuaranteed, {SampleInit({{"cpu", "6"}}), SampleInit({{"cpu", "6"}}),
                                          SampleApp({{"cpu", "6"}})})})
          .zones,
      ElementsAre(1, 1, 1));
  EXPECT_EQ(Refusal({.pod = SamplePod(kGuaranteed,
                                      {SampleInit({{"cpu", "7"}}), SampleApp({{"cpu", "1"}})})}),
            "cannot align init container");
}

TEST(TopologyFilterTest, SidecarsTakeTheirShare) {
  EXPECT_THAT(Ask({.pod = SamplePod(kGuaranteed,
                                    {SampleSidecar({{"cpu", "4"}}), SampleApp({{"cpu", "1"}})})})
                  .zones,
              ElementsAre(0, 1));
  EXPECT_EQ(Refusal({.pod = SamplePod(kGuaranteed,
                                      {SampleSidecar({{"cpu", "5"}}), SampleInit({{"cpu", "5"}}),
                                       SampleApp({{"cpu", "1"}})})}),
            "cannot align init container");
}

TEST(TopologyFilterTest, ThePodScopeNeedsOneZoneForTheEffectiveRequest) {
  const PodView pod =
      SamplePod(kGuaranteed, {SampleApp({{"cpu", "3"}}), SampleApp({{"cpu", "3"}})});
  EXPECT_THAT(Ask({.scope = "pod", .pod = pod}).zones, ElementsAre(1));
  EXPECT_EQ(Refusal({.scope = "pod",
                     .pod = SamplePod(kGuaranteed,
                                      {SampleApp({{"cpu", "4"}}), SampleApp({{"cpu", "4"}})})}),
            "cannot align pod");
}

TEST(TopologyFilterTest, BurstablePodsFitZonesThatListTheResource) {
  EXPECT_THAT(
      Ask({.pod = SamplePod(kBurstable, {SampleApp({{"cpu", "15"}, {"memory", "60Gi"}})})}).zones,
      ElementsAre(0));
  EXPECT_EQ(Refusal({.pod = SamplePod(kBurstable, {SampleApp({{"hugepages-2Mi", "2Mi"}})})}),
            "cannot align container");
  // Their devices have to fit as those of Guaranteed pods.
  EXPECT_THAT(
      Ask({.available = {{{"cpu", "4"}, {"example.com/nic", "0"}},
                         {{"cpu", "4"}, {"example.com/nic", "2"}}},
           .pod = SamplePod(kBurstable, {SampleApp({{"cpu", "9"}, {"example.com/nic", "1"}})})})
          .zones,
      ElementsAre(1));
}

TEST(TopologyFilterTest, ResourcesInNoZoneAreAcceptedUnlessTheKubeletAlignsThem) {
  EXPECT_THAT(Ask({.pod = SamplePod(kGuaranteed, {SampleApp({{"cpu", "1"},
                                                             {"ephemeral-storage", "1Gi"},
                                                             {"example.com/nic", "4"}})})})
                  .zones,
              ElementsAre(0));
  EXPECT_EQ(Refusal({.available = {{{"memory", "8Gi"}}},
                     .pod = SamplePod(kGuaranteed, {SampleApp({{"cpu", "1"}})})}),
            "cannot align container");
}

TEST(TopologyFilterTest, TheNodeHasToHaveTheResourceAtAll) {
  EXPECT_EQ(Refusal({.pod = SamplePod(kGuaranteed, {SampleApp({{"example.com/fpga", "1"}})})}),
            "cannot align container");
  EXPECT_EQ(
      Ask({.pod = SamplePod(kGuaranteed, {SampleApp({{"example.com/fpga", "0"}, {"cpu", "1"}})})})
          .verdict,
      FilterVerdict::kPasses);
}

TEST(TopologyFilterTest, AZoneThatDoesNotListWhatAnotherListsDoesNotFit) {
  EXPECT_THAT(
      Ask({.available = {{{"cpu", "4"}}, {{"cpu", "4"}, {"example.com/nic", "1"}}},
           .pod = SamplePod(kGuaranteed, {SampleApp({{"cpu", "1"}, {"example.com/nic", "1"}})})})
          .zones,
      ElementsAre(1));
}

FilterAnswer AskWithIds(const std::vector<int>& ids, const char* scope) {
  json object = SampleTopology("single-numa-node", scope, {});
  for (const int id : ids)
    object["zones"].push_back(SampleZone(id, 2, {{"cpu", "2"}}));
  const TopologyView view = TopologyViewOf(object);
  return FilterByTopology(
      {.allocatable = Allocatable(), .topology = &view, .fresh = true},
      SamplePod(kGuaranteed, {SampleApp({{"cpu", "2"}}), SampleApp({{"cpu", "2"}})}));
}

TEST(TopologyFilterTest, IdsWithGapsSubtractFromOtherZonesOrPanic) {
  EXPECT_EQ(AskWithIds({0, 2}, "container").verdict, FilterVerdict::kPanics);
  // The zone 2 is at place 1: what the first container takes there is missing in zone 1.
  EXPECT_THAT(AskWithIds({1, 2, 3}, "container").zones, ElementsAre(1, 1));
  EXPECT_EQ(AskWithIds({0, 64}, "container").verdict, FilterVerdict::kPanics);
  EXPECT_THAT(AskWithIds({0, 1}, "container").zones, ElementsAre(0, 1));
}

// One container that needs `cpus` of zones that have two each.
int ScoreOf(int zones, const char* most, int cpus, bool near) {
  json object = SampleTopology("best-effort", "container",
                               std::vector<json>(static_cast<size_t>(zones), {{"cpu", "2"}}));
  if (most != nullptr) {
    object["attributes"].push_back({{"name", "topologyManagerMaxNUMANodes"}, {"value", most}});
  }
  if (!near) {
    // The zone with the cheapest costs has no CPUs left.
    const std::string empty = "node-" + std::to_string(zones - 1);
    for (json& zone : object["zones"]) {
      for (json& cost : zone["costs"]) {
        if (zone["name"] == empty || cost["name"] == empty) cost["value"] = 1;
      }
    }
    object["zones"].back()["resources"][0]["available"] = "0";
  }
  const TopologyView view = TopologyViewOf(object);
  return LeastNumaNodesScore({.allocatable = Allocatable(), .topology = &view, .fresh = true},
                             SamplePod(kGuaranteed, {SampleApp({{"cpu", std::to_string(cpus)}})}));
}

TEST(LeastNumaNodesTest, FewZonesThatAreNearScoreHigh) {
  EXPECT_EQ(ScoreOf(8, "8", 2, false), 88);
  EXPECT_EQ(ScoreOf(8, "8", 2, true), 94);
  EXPECT_EQ(ScoreOf(8, "8", 4, false), 76);
  EXPECT_EQ(ScoreOf(8, "8", 4, true), 82);
  EXPECT_EQ(ScoreOf(8, "8", 16, true), 10);
  EXPECT_EQ(ScoreOf(2, "2", 2, true), 75);
  EXPECT_EQ(ScoreOf(2, "2", 4, true), 25);
  EXPECT_EQ(ScoreOf(2, nullptr, 4, true), 82);
  EXPECT_EQ(ScoreOf(2, "2", 5, true), 0);
}

int ScoreOfPod(const std::string& scope, const std::vector<json>& available, const PodView& pod) {
  const TopologyView view = TopologyViewOf(SampleTopology("restricted", scope, available));
  return LeastNumaNodesScore({.allocatable = Allocatable(), .topology = &view, .fresh = true}, pod);
}

TEST(LeastNumaNodesTest, PodsThatAreNotGuaranteedScoreBest) {
  EXPECT_EQ(
      ScoreOfPod("container", {{{"cpu", "1"}}}, SamplePod(kBurstable, {SampleApp({{"cpu", "9"}})})),
      100);
}

TEST(LeastNumaNodesTest, NoOrStaleObjectsScoreZero) {
  const PodView pod = SamplePod(kGuaranteed, {SampleApp({{"cpu", "1"}})});
  const TopologyView view = TopologyViewOf(SampleTopology("none", "container", {{{"cpu", "1"}}}));
  EXPECT_EQ(LeastNumaNodesScore({.allocatable = {}, .topology = nullptr, .fresh = true}, pod), 0);
  EXPECT_EQ(LeastNumaNodesScore({.allocatable = {}, .topology = &view, .fresh = false}, pod), 0);
}

TEST(LeastNumaNodesTest, EachContainerIsSubtractedBeforeTheNext) {
  const std::vector<json> two = {{{"cpu", "4"}}, {{"cpu", "4"}}};
  // 3 and 3 fit one zone each; the third 2 needs the rest of both.
  EXPECT_EQ(
      ScoreOfPod("container", two,
                 SamplePod(kGuaranteed, {SampleApp({{"cpu", "3"}}), SampleApp({{"cpu", "3"}})})),
      94);
  EXPECT_EQ(ScoreOfPod("container", two,
                       SamplePod(kGuaranteed, {SampleApp({{"cpu", "3"}}), SampleApp({{"cpu", "3"}}),
                                               SampleApp({{"cpu", "2"}})})),
            82);
  EXPECT_EQ(
      ScoreOfPod("pod", two,
                 SamplePod(kGuaranteed, {SampleApp({{"cpu", "3"}}), SampleApp({{"cpu", "3"}})})),
      82);
}

TEST(LeastNumaNodesTest, EveryZoneOfACombinationListsEveryResource) {
  const std::vector<json> one_device = {{{"cpu", "2"}}, {{"cpu", "2"}, {"example.com/nic", "1"}}};
  EXPECT_EQ(
      ScoreOfPod("container", one_device,
                 SamplePod(kGuaranteed, {SampleApp({{"cpu", "3"}, {"example.com/nic", "1"}})})),
      0);
  EXPECT_EQ(
      ScoreOfPod("container", one_device,
                 SamplePod(kGuaranteed, {SampleApp({{"cpu", "1"}, {"ephemeral-storage", "1"}})})),
      0);
  EXPECT_EQ(ScoreOfPod("container", one_device,
                       SamplePod(kGuaranteed, {SampleApp({{"ephemeral-storage", "1"}})})),
            100);
}

TEST(LeastNumaNodesTest, AMissingCostCountsAsTheFarthest) {
  json object = SampleTopology("none", "container", {{{"cpu", "1"}}, {{"cpu", "2"}}});
  object["zones"][1].erase("costs");
  const TopologyView view = TopologyViewOf(object);
  EXPECT_EQ(LeastNumaNodesScore({.allocatable = {}, .topology = &view, .fresh = true},
                                SamplePod(kGuaranteed, {SampleApp({{"cpu", "2"}})})),
            88);
}

json SoundTopology() {
  return SampleTopology("single-numa-node", "container",
                        {{{"cpu", "7"}, {"memory", "31Gi"}}, {{"cpu", "8"}, {"memory", "32Gi"}}});
}

TEST(TopologyViewTest, ReadsZonesOfTypeNode) {
  json object = SoundTopology();
  object["zones"].push_back({{"name", "pool-1"}, {"type", "pool"}, {"parent", "node-0"}});
  const TopologyView view = TopologyViewOf(object);
  ASSERT_EQ(view.zones.size(), 2u);
  EXPECT_EQ(view.zones[1].id, 1);
  EXPECT_EQ(view.zones[1].available.at("cpu"), ExactQuantity(8));
  EXPECT_EQ(view.zones[1].costs.at(0), 21);
  EXPECT_THAT(TopologyFaults(object), IsEmpty());
}

TEST(TopologyViewTest, AttributesWinOverTheFirstTopologyPolicy) {
  json object = SoundTopology();
  object["topologyPolicies"] = json::array({"RestrictedPodLevel", "None"});
  TopologyView view = TopologyViewOf(object);
  EXPECT_EQ(view.policy, ManagerPolicy::kSingleNumaNode);
  EXPECT_EQ(view.scope, ManagerScope::kContainer);
  object.erase("attributes");
  view = TopologyViewOf(object);
  EXPECT_EQ(view.policy, ManagerPolicy::kRestricted);
  EXPECT_EQ(view.scope, ManagerScope::kPod);
  object.erase("topologyPolicies");
  EXPECT_EQ(TopologyViewOf(object).policy, ManagerPolicy::kNone);
}

TEST(TopologyViewTest, MaxNumaNodesIsCutAndNonsenseIgnored) {
  const auto most = [](const char* value) {
    json object = SoundTopology();
    object["attributes"].push_back({{"name", "topologyManagerMaxNUMANodes"}, {"value", value}});
    return TopologyViewOf(object).max_numa_nodes;
  };
  EXPECT_EQ(most("2"), 2);
  EXPECT_EQ(most("5000"), 1024);
  EXPECT_EQ(most("1"), 8);
  EXPECT_EQ(most("many"), 8);
  EXPECT_EQ(TopologyViewOf(SoundTopology()).max_numa_nodes, 8);
}

TEST(TopologyViewTest, OverReserveSubtractsFromEachZoneButNotBelowZero) {
  TopologyView view = TopologyViewOf(SoundTopology());
  OverReserve(view, ResourcesOf({{"cpu", "7500m"}, {"example.com/nic", "1"}}));
  EXPECT_EQ(view.zones[0].available.at("cpu"), ExactQuantity());
  EXPECT_EQ(view.zones[1].available.at("cpu"), *ExactQuantity::Parse("500m"));
  EXPECT_FALSE(view.zones[0].available.contains("example.com/nic"));
}

TEST(TopologyFaultsTest, FindsIdsThatArePlacesOfOtherZones) {
  json gaps = SoundTopology();
  gaps["zones"][1]["name"] = "node-2";
  EXPECT_THAT(TopologyFaults(gaps), testing::Contains(HasSubstr("node-2 at place 1")));
  json backwards = SoundTopology();
  std::swap(backwards["zones"][0], backwards["zones"][1]);
  EXPECT_THAT(TopologyFaults(backwards), testing::Contains(HasSubstr("node-1 at place 0")));
  const std::vector<json> many(65, json({{"cpu", "1"}}));
  EXPECT_THAT(TopologyFaults(SampleTopology("none", "container", many)),
              testing::Contains(HasSubstr("64")));
}

TEST(TopologyFaultsTest, FindsMissingCostsAndQuantities) {
  json costs = SoundTopology();
  costs["zones"][0]["costs"].erase(1);
  EXPECT_THAT(TopologyFaults(costs), ElementsAre("node-0: no cost of node-1"));
  json resources = SoundTopology();
  resources["zones"][0]["resources"][0].erase("allocatable");
  EXPECT_THAT(TopologyFaults(resources), ElementsAre("node-0: cpu has no quantity allocatable"));
  resources["zones"][0]["resources"][0]["allocatable"] = "6";
  EXPECT_THAT(TopologyFaults(resources), ElementsAre("node-0: cpu: available above allocatable"));
  resources["zones"][0]["resources"][0]["allocatable"] = "9";
  EXPECT_THAT(TopologyFaults(resources), ElementsAre("node-0: cpu: allocatable above capacity"));
}

TEST(TopologyFaultsTest, FindsContradictionsAndUnknownValues) {
  json object = SoundTopology();
  object["topologyPolicies"] = json::array({"BestEffortContainerLevel"});
  EXPECT_THAT(TopologyFaults(object), ElementsAre(HasSubstr("contradict")));
  object["topologyPolicies"] = json::array({"Best"});
  EXPECT_THAT(TopologyFaults(object), testing::Contains(HasSubstr("unknown topology policy")));
  object = SoundTopology();
  object["attributes"][0]["value"] = "strict";
  EXPECT_THAT(TopologyFaults(object), ElementsAre("topologyManagerPolicy is strict"));
  object = SoundTopology();
  object["attributes"].push_back({{"name", "topologyManagerMaxNUMANodes"}, {"value", "1"}});
  EXPECT_THAT(TopologyFaults(object), ElementsAre("topologyManagerMaxNUMANodes is 1"));
}

TEST(TopologyFaultsTest, FindsZonesThatAreNoZones) {
  json object = SoundTopology();
  object["zones"][1]["name"] = "node-0";
  EXPECT_THAT(TopologyFaults(object), testing::Contains("node-0 twice"));
  object["zones"][1]["name"] = "numa-1";
  EXPECT_THAT(TopologyFaults(object), testing::Contains(HasSubstr("not node-N")));
  object["zones"][1].erase("type");
  EXPECT_THAT(TopologyFaults(object), ElementsAre("zone without name or type"));
  object.erase("zones");
  EXPECT_THAT(TopologyFaults(object), ElementsAre("no zones"));
}

}  // namespace
}  // namespace resmgr::test
