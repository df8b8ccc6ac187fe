// SPDX-License-Identifier: Apache-2.0
#include "test/support/scheduler_model/topology_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/support/scheduler_model/topology_samples.h"

namespace resmgr::test {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

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
