// SPDX-License-Identifier: Apache-2.0
#include "agent/topology_object.h"

#include <functional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/base/json.h"
#include "pkg/base/parse.h"

namespace resmgr::agent {
namespace {

using testing::HasSubstr;

ViewZone AZone(int numa_id, std::vector<int> distances, int64_t allocatable, int64_t available) {
  return {.numa_id = numa_id,
          .distances = std::move(distances),
          .amounts = {
              {.name = "cpu", .capacity = 8, .allocatable = allocatable, .available = available},
              {.name = "memory", .capacity = 1024, .allocatable = 1024, .available = 512}}};
}

SchedulerView TwoZones() {
  SchedulerView view;
  view.zones = {AZone(0, {10, 21}, 7, 7), AZone(1, {21, 10}, 8, 8)};
  return view;
}

// Row N1 of the acceptance table.
TEST(TopologyObjectTest, IsWhatSchedulersRead) {
  SchedulerView view = TwoZones();
  view.zones[0].cpus = CpuSet{1, 2, 3};
  const Json object = TopologyObject("worker-1", "uid-1", view);
  const Json expected = *ParseJson(R"({
    "apiVersion": "topology.node.k8s.io/v1alpha2", "kind": "NodeResourceTopology",
    "metadata": {"name": "worker-1", "ownerReferences": [
      {"apiVersion": "v1", "kind": "Node", "name": "worker-1", "uid": "uid-1"}]},
    "topologyPolicies": ["BestEffortContainerLevel"],
    "attributes": [
      {"name": "topologyManagerPolicy", "value": "best-effort"},
      {"name": "topologyManagerScope", "value": "container"},
      {"name": "topologyManagerMaxNUMANodes", "value": "2"},
      {"name": "nodeTopologyPodsFingerprint", "value": "pfp0v001ef46db3751d8e999"},
      {"name": "nodeTopologyPodsFingerprintMethod", "value": "with-exclusive-resources"}],
    "zones": [
      {"name": "node-0", "type": "Node",
       "costs": [{"name": "node-0", "value": 10}, {"name": "node-1", "value": 21}],
       "attributes": [{"name": "cri-resource-manager.intel.com/numa-id", "value": "0"},
                      {"name": "cri-resource-manager.intel.com/cpus", "value": "1-3"},
                      {"name": "cri-resource-manager.intel.com/exclusive", "value": ""}],
       "resources": [
         {"name": "cpu", "capacity": "8", "allocatable": "7", "available": "7"},
         {"name": "memory", "capacity": "1024", "allocatable": "1024", "available": "512"}]},
      {"name": "node-1", "type": "Node",
       "costs": [{"name": "node-0", "value": 21}, {"name": "node-1", "value": 10}],
       "attributes": [{"name": "cri-resource-manager.intel.com/numa-id", "value": "1"},
                      {"name": "cri-resource-manager.intel.com/cpus", "value": ""},
                      {"name": "cri-resource-manager.intel.com/exclusive", "value": ""}],
       "resources": [
         {"name": "cpu", "capacity": "8", "allocatable": "8", "available": "8"},
         {"name": "memory", "capacity": "1024", "allocatable": "1024", "available": "512"}]}]})");
  EXPECT_EQ(object, expected) << JsonText(object, 1);
}

// Row N6.
TEST(TopologyObjectTest, ZonesHaveNoGapsInTheirNumbers) {
  SchedulerView view = TwoZones();
  view.zones[1].numa_id = 2;
  const Json object = TopologyObject("n1", "u", view);
  EXPECT_EQ(object["zones"][1]["name"], "node-1");
  EXPECT_EQ(object["zones"][1]["attributes"][0]["value"], "2");
}

TEST(TopologyObjectTest, SaysThatTheNodeRefusesOnlyWhereItDoes) {
  SchedulerView view = TwoZones();
  view.refuses = true;
  const Json object = TopologyObject("n1", "u", view);
  EXPECT_EQ(object["attributes"][0]["value"], "single-numa-node");
  EXPECT_EQ(object["attributes"][1]["value"], "pod");
  EXPECT_EQ(object["topologyPolicies"][0], "SingleNUMANodePodLevel");
}

TEST(TopologyObjectTest, TheFingerprintIsOfTheViewsPods) {
  SchedulerView view = TwoZones();
  view.pods = {{"default", "pod0"}};
  EXPECT_EQ(TopologyObject("n1", "u", view)["attributes"][3]["value"], "pfp0v00110399bf9eea6fbd3");
}

TEST(TopologyObjectTest, NodesHaveOneObjectEachUnderTheirName) {
  EXPECT_EQ(TopologyPath("n1"), "/apis/topology.node.k8s.io/v1alpha2/noderesourcetopologies/n1");
}

// The daemon cuts long names, and shows control characters as text, which makes them longer.
TEST(TopologyObjectTest, NamesOfPoolsAreTakenAsTheDaemonShowsThem) {
  SchedulerView view = TwoZones();
  for (const std::string& name :
       {std::string(300, 'x'), std::string(100, '\x01'), std::string(252, 'x') + "\u00e4" + "[0]"})
    view.pools.push_back({.name = Printable(name, 253), .cpus = {1}});
  EXPECT_EQ(CheckTopology(view), OkStatus());
  for (const std::string& name : {std::string("a\nb"), std::string(1025, 'x'), std::string()}) {
    SchedulerView wrong = TwoZones();
    wrong.pools = {{.name = name, .cpus = {1}}};
    EXPECT_FALSE(CheckTopology(wrong).ok());
  }
}

// Schedulers read zones of the type Node alone, and by their position.
TEST(TopologyObjectTest, PoolsFollowTheNumaNodesForPeople) {
  SchedulerView view = TwoZones();
  view.zones[0].cpus = {1, 2, 3};
  view.zones[1].cpus = {4, 5, 6, 7};
  view.pools = {{.name = "batch[0]", .cpus = {5, 6}, .exclusive = {6}},
                {.name = "socket #0", .cpus = {0, 1, 2, 3, 4}},
                {.name = "NUMA node #0", .cpus = {0, 1, 2, 3}},
                {.name = "reserved", .cpus = {0}}};
  EXPECT_TRUE(CheckTopology(view).ok());
  const Json zones = TopologyObject("n1", "u", view)["zones"];
  ASSERT_EQ(zones.size(), 6U);
  EXPECT_EQ(zones[1]["type"], "Node");
  const Json expected = *ParseJson(R"({
    "name": "pool:batch[0]", "type": "pool", "parent": "node-1",
    "attributes": [{"name": "cri-resource-manager.intel.com/cpus", "value": "5-6"},
                   {"name": "cri-resource-manager.intel.com/exclusive", "value": "6"}]})");
  EXPECT_EQ(zones[2], expected);
  EXPECT_FALSE(zones[3].contains("parent")) << "it lies in two";
  EXPECT_EQ(zones[4]["parent"], "node-0") << "the policy grants all but its reserved CPU";
  EXPECT_FALSE(zones[5].contains("parent"));
}

TEST(CheckTopologyTest, RefusesWhatIsNoObject) {
  EXPECT_TRUE(CheckTopology(TwoZones()).ok());
  using Spoil = std::function<void(SchedulerView&)>;
  const std::vector<std::pair<Spoil, const char*>> bad = {
      {[](auto& view) { view.zones[0].amounts[0].available = 9; }, "in this order"},
      {[](auto& view) { view.zones[0].amounts[0].available = -1; }, "in this order"},
      {[](auto& view) { view.zones[0].amounts[0].name = "a b"; }, "not a resource"},
      {[](auto& view) { view.zones[1].distances = {10}; }, "1 distances to 2 zones"},
      {[](auto& view) { view.zones[1].numa_id = -1; }, "not a NUMA node"},
      {[](auto& view) { view.zones.resize(65); }, "65 zones"},
      {[](auto& view) { view.pools.resize(257, {.name = "a"}); }, "257 pools"},
      {[](auto& view) { view.pools.resize(2, {.name = "a"}); }, "no name of a pool"},
      {[](auto& view) { view.pools = {{.name = "a\n"}}; }, "no name of a pool"},
      {[](auto& view) {
         view.pods = {{"a", "B/c"}};
       },
       "not the name of a pod"},
      {[](auto& view) {
         view.pods.resize(5000, {"a", "b"});
       },
       "5000 pods"},
      {[](auto& view) { view.zones[0].amounts.resize(17, view.zones[0].amounts[0]); },
       "17 resources"},
  };
  for (const auto& [spoil, message] : bad) {
    SchedulerView view = TwoZones();
    spoil(view);
    const Status status = CheckTopology(view);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << message;
    EXPECT_THAT(std::string(Message(status)), HasSubstr(message));
  }
}

}  // namespace
}  // namespace resmgr::agent
