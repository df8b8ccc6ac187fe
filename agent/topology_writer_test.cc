// SPDX-License-Identifier: Apache-2.0
#include "agent/topology_writer.h"

#include <functional>
#include <string>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/testing/fake_transport.h"
#include "agent/testing/topology_views.h"
#include "pkg/base/json.h"
#include "pkg/base/parse.h"
#include "pkg/kube/pod_fingerprint.h"
#include "pkg/sys/clock.h"

namespace resmgr::agent {
namespace {

using cri_resmgr::v1::TopologyZone;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using testing::HasSubstr;

constexpr char kObject[] = "noderesourcetopologies/n1";
constexpr char kNodeEvents[] = "/api/v1/namespaces/default/events";

// One zone with so many CPUs available, and these pods in it.
ShowTopologyRequest OneZone(int64_t available, const std::vector<PodName>& pods = {}) {
  ShowTopologyRequest view;
  AddAmount(AddZone(view, {10}), "cpu", 8, 8, available);
  for (const PodName& pod : pods)
    AddPod(view, pod.namespace_name, pod.name);
  return view;
}

class TopologyWriterTest : public testing::Test {
 protected:
  void SeeNode(const std::string& uid = "uid-1") {
    writer_.NodeSeen({{"metadata", {{"name", "n1"}, {"uid", uid}}}});
  }
  void Show(std::optional<ShowTopologyRequest> view) {
    EXPECT_EQ(writer_.Show(std::move(view)), OkStatus());
  }
  // The body of the request that is under way, once it is due.
  Json Body() {
    timers_.Advance(kSpread);
    return transport_.Has(kObject) ? ParseJson(transport_.Request(kObject).body).value_or(Json())
                                   : Json();
  }
  std::string Available() {
    const Json body = Body();
    return body.is_object() ? body["zones"][0]["resources"][0].value("available", "") : "nothing";
  }
  std::string Method() { return transport_.Request(kObject).method; }
  bool Answer(int status = 200, const Json& body = Json::object()) {
    return transport_.Answer(kObject, status, body);
  }
  // The node is seen and the first view is sent.
  void SendFirst() {
    SeeNode();
    Show(OneZone(8));
    ASSERT_EQ(Available(), "8");
  }
  // The same with the server's answer.
  void WriteFirst() {
    SendFirst();
    ASSERT_TRUE(Answer());
    timers_.Advance(seconds(2));
  }

  static constexpr milliseconds kSpread{5000};

  FakeTransport transport_;
  ManualClock timers_;
  TopologyWriter writer_{
      transport_, timers_,
      "n1",       {.spread = kSpread},
      1,          [] {
        return std::chrono::system_clock::from_time_t(1'767'323'045); }};
};

TEST_F(TopologyWriterTest, AppliesTheObjectWithoutForce) {
  SeeNode();
  Show(OneZone(8));
  EXPECT_EQ(transport_.sent(), 0) << "at some time within the spread";
  const Json body = Body();
  EXPECT_EQ(body["metadata"]["ownerReferences"][0]["uid"], "uid-1");
  const HttpRequest request = transport_.Request(kObject);
  EXPECT_EQ(request.method, "PATCH");
  EXPECT_EQ(request.content_type, "application/apply-patch+yaml");
  EXPECT_THAT(request.target, HasSubstr("/n1?fieldManager=cri-resmgr-agent"));
  EXPECT_THAT(request.target, testing::Not(HasSubstr("force")));
}

TEST_F(TopologyWriterTest, WaitsUntilTheNodeIsSeen) {
  Show(OneZone(8));
  EXPECT_EQ(Available(), "nothing");
  SeeNode();
  EXPECT_EQ(Available(), "8");
}

TEST_F(TopologyWriterTest, WhatTheServerHasIsNotWrittenAgain) {
  WriteFirst();
  Show(OneZone(8));
  SeeNode();
  timers_.Advance(minutes(60));
  EXPECT_EQ(transport_.sent(), 1);
}

// Nothing tells the agent that somebody deleted the object.
TEST_F(TopologyWriterTest, WhatTheServerHasIsWrittenAgainEveryOneAndAHalfHours) {
  WriteFirst();
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(transport_.Has(kObject));
    timers_.Advance(minutes(91));
    ASSERT_TRUE(transport_.Has(kObject)) << i;
    EXPECT_EQ(Available(), "8");
    ASSERT_TRUE(Answer());
  }
  Show(std::nullopt);
  timers_.Advance(seconds(10));
  ASSERT_TRUE(Answer(404));
  const int sent = transport_.sent();
  timers_.Advance(minutes(600));
  EXPECT_EQ(transport_.sent(), sent) << "it has no object now";
}

// A scheduler waits for changes by pods.
TEST_F(TopologyWriterTest, PodsAndTheirCpusAreWrittenSoon) {
  WriteFirst();
  Show(OneZone(5, {{"default", "pod0"}}));
  timers_.Advance(milliseconds(600));
  EXPECT_EQ(transport_.open(), 1U);
}

// Row N7.
TEST_F(TopologyWriterTest, ChangesOfOneMomentAreOneWriteOfTheLast) {
  WriteFirst();
  Show(OneZone(5));
  timers_.Advance(milliseconds(1));
  Show(OneZone(3));
  EXPECT_EQ(Available(), "3");
  ASSERT_TRUE(Answer());
  timers_.Advance(minutes(60));
  EXPECT_EQ(transport_.sent(), 2);
}

TEST_F(TopologyWriterTest, WritesAtMostOnceASecond) {
  WriteFirst();
  const int before = transport_.sent();
  for (int i = 0; i < 100; ++i) {
    Show(OneZone(i % 8));
    timers_.Advance(milliseconds(100));
    Answer();
  }
  EXPECT_LE(transport_.sent() - before, 10);
  EXPECT_GE(transport_.sent() - before, 5);
}

// An earlier request that the server may still carry out never ends up after a later one.
TEST_F(TopologyWriterTest, TheNextWriteWaitsForTheAnswer) {
  WriteFirst();
  Show(OneZone(5));
  ASSERT_EQ(Available(), "5");
  Show(OneZone(3));
  timers_.Advance(minutes(1));
  EXPECT_EQ(transport_.open(), 1U);
  EXPECT_EQ(Available(), "5");
  ASSERT_TRUE(Answer());
  EXPECT_EQ(Available(), "3");
}

// Row N8.
TEST_F(TopologyWriterTest, AfterAnOutageTheLastViewIsWrittenOnce) {
  WriteFirst();
  Show(OneZone(7));
  ASSERT_EQ(Available(), "7");
  for (int i = 0; i < 5; ++i) {
    transport_.Answer(kObject, Unavailable("away"));
    Show(OneZone(i));
    timers_.Advance(minutes(1));
  }
  // A former view may be under way once more.
  if (Available() != "4") transport_.Answer(kObject, Unavailable("away"));
  ASSERT_EQ(Available(), "4");
  ASSERT_TRUE(Answer());
  const int sent = transport_.sent();
  timers_.Advance(minutes(60));
  EXPECT_EQ(transport_.sent(), sent);
}

// Pods come and go while an API server is overloaded, too.
TEST_F(TopologyWriterTest, ChangesDoNotShortenTheWaitsOfAnOutage) {
  WriteFirst();
  const int before = transport_.sent();
  for (int i = 0; i < 120; ++i) {
    Show(OneZone(i % 8));
    timers_.Advance(seconds(1));
    transport_.Answer(kObject, Unavailable("away"));
  }
  EXPECT_LE(transport_.sent() - before, 30);
  timers_.Advance(minutes(5));
  EXPECT_EQ(Available(), "7") << "the last view";
}

// Row N9: pods come and go all the time.
TEST_F(TopologyWriterTest, WithoutTheDefinitionItIsAskedOnceInTenMinutesAndToldOnce) {
  testing::internal::CaptureStderr();
  SendFirst();
  ASSERT_TRUE(Answer(404));
  for (int second = 0; second < 600; ++second) {
    Show(OneZone(second % 8, {{"default", "pod" + std::to_string(second)}}));
    timers_.Advance(seconds(1));
  }
  EXPECT_EQ(transport_.sent(), 1);
  timers_.Advance(minutes(3));
  EXPECT_EQ(transport_.sent(), 2);
  EXPECT_EQ(Available(), "7") << "the last view";
  ASSERT_TRUE(Answer(404));
  timers_.Advance(minutes(13));
  EXPECT_EQ(transport_.sent(), 3);
  const std::string log = testing::internal::GetCapturedStderr();
  constexpr std::string_view kMissing = "has no CustomResourceDefinition";
  EXPECT_NE(log.find(kMissing), std::string::npos) << log;
  EXPECT_EQ(log.find(kMissing), log.rfind(kMissing)) << log;
  ASSERT_TRUE(Answer());
  EXPECT_FALSE(transport_.Has(kNodeEvents));
}

// An API server that has just started refuses everything until it knows the roles.
TEST_F(TopologyWriterTest, AMissingRightIsTriedAgainWithinSecondsAndThenEveryTenMinutes) {
  SendFirst();
  for (int round = 0; round < 2; ++round) {
    ASSERT_TRUE(Answer(403));
    EXPECT_FALSE(transport_.Has(kObject));
    timers_.Advance(seconds(6));
    ASSERT_TRUE(transport_.Has(kObject));
    for (int i = 0; i < 7; ++i) {
      ASSERT_TRUE(Answer(403));
      timers_.Advance(minutes(13));
      ASSERT_TRUE(transport_.Has(kObject));
    }
    ASSERT_TRUE(Answer(403));
    timers_.Advance(minutes(9));
    EXPECT_FALSE(transport_.Has(kObject));
    timers_.Advance(minutes(4));
    ASSERT_TRUE(Answer()) << "the pauses begin anew";
    Show(OneZone(round));
    ASSERT_EQ(Available(), std::to_string(round));
  }
  EXPECT_FALSE(transport_.Has(kNodeEvents));
}

TEST_F(TopologyWriterTest, AnotherWriterIsAnEventAndNoFight) {
  SendFirst();
  ASSERT_TRUE(Answer(409, {{"kind", "Status"},
                           {"message",
                            "Apply failed with 1 conflict: conflict with \"nfd-master\" using "
                            "topology.node.k8s.io/v1alpha2: .zones"}}));
  const Json event = ParseJson(transport_.Request(kNodeEvents).body).value_or(Json::object());
  EXPECT_EQ(event["reason"], "TopologyConflict");
  EXPECT_THAT(event["message"].get<std::string>(), HasSubstr("nfd-master"));
  Show(OneZone(3));
  timers_.Advance(minutes(9));
  EXPECT_FALSE(transport_.Has(kObject));
}

// The API server words several fields otherwise than one; whole-object writers have several.
TEST_F(TopologyWriterTest, AnotherWriterOfSeveralFieldsIsAnEventToo) {
  SendFirst();
  ASSERT_TRUE(Answer(409, {{"kind", "Status"},
                           {"message",
                            "Apply failed with 2 conflicts: conflicts with \"nfd-master\" using "
                            "topology.node.k8s.io/v1alpha2:\n- .attributes\n- .zones"}}));
  ASSERT_TRUE(transport_.Has(kNodeEvents));
  const Json event = ParseJson(transport_.Request(kNodeEvents).body).value_or(Json::object());
  EXPECT_EQ(event["reason"], "TopologyConflict");
  timers_.Advance(minutes(9));
  EXPECT_FALSE(transport_.Has(kObject));
}

// The definition is often installed together with the other program.
TEST_F(TopologyWriterTest, AConflictAfterAnotherRefusalIsAnEventToo) {
  SendFirst();
  ASSERT_TRUE(Answer(404));
  timers_.Advance(minutes(13));
  ASSERT_TRUE(
      Answer(409, {{"kind", "Status"},
                   {"message", "Apply failed with 1 conflict: conflict with \"x\": .zones"}}));
  EXPECT_TRUE(transport_.Has(kNodeEvents));
}

TEST_F(TopologyWriterTest, AWriteThatOnlyCameInBetweenIsNoConflict) {
  SendFirst();
  ASSERT_TRUE(Answer(409, {{"kind", "Status"}, {"message", "the object has been modified"}}));
  EXPECT_FALSE(transport_.Has(kNodeEvents));
  EXPECT_EQ(Available(), "8");
}

// Row N10.
TEST_F(TopologyWriterTest, WithoutAViewTheOwnObjectIsRemovedOnce) {
  WriteFirst();
  Show(std::nullopt);
  timers_.Advance(kSpread);
  ASSERT_EQ(Method(), "GET");
  ASSERT_TRUE(Answer(200, {{"metadata",
                            {{"uid", "object-uid"},
                             {"resourceVersion", "7"},
                             {"managedFields", Json::array({{{"manager", "cri-resmgr-agent"},
                                                             {"operation", "Apply"}}})}}}}));
  ASSERT_EQ(Method(), "DELETE");
  EXPECT_EQ(Body()["preconditions"]["uid"], "object-uid");
  ASSERT_TRUE(Answer());
  Show(std::nullopt);
  timers_.Advance(minutes(60));
  EXPECT_EQ(transport_.open(), 0U);
  Show(OneZone(2));
  EXPECT_EQ(Available(), "2");
}

TEST_F(TopologyWriterTest, ObjectsOfOthersAreNotRemoved) {
  SeeNode();
  Show(std::nullopt);
  timers_.Advance(kSpread);
  ASSERT_TRUE(Answer(200, {{"metadata",
                            {{"managedFields", Json::array({{{"manager", "nfd-master"},
                                                             {"operation", "Update"}}})}}}}));
  timers_.Advance(minutes(60));
  EXPECT_EQ(transport_.open(), 0U);
}

TEST_F(TopologyWriterTest, WithoutObjectAndViewThereIsNothingToDo) {
  SeeNode();
  Show(std::nullopt);
  timers_.Advance(kSpread);
  ASSERT_TRUE(Answer(404));
  timers_.Advance(minutes(60));
  EXPECT_EQ(transport_.sent(), 1);
}

TEST_F(TopologyWriterTest, ANodeThatWasMadeAnewGetsAnObjectOfItsOwn) {
  WriteFirst();
  SeeNode("uid-2");
  const Json body = Body();
  ASSERT_TRUE(body.is_object());
  EXPECT_EQ(body["metadata"]["ownerReferences"][0]["uid"], "uid-2");
}

TEST_F(TopologyWriterTest, ABadViewIsRefusedAndTheLastOneStays) {
  WriteFirst();
  EXPECT_EQ(writer_.Show(OneZone(9)).code(), StatusCode::kInvalidArgument);
  timers_.Advance(minutes(60));
  EXPECT_EQ(transport_.sent(), 1);
}

void AddBoth(TopologyZone& zone, int64_t allocatable, int64_t available) {
  AddAmount(zone, "cpu", 8, allocatable, available);
  AddAmount(zone, "memory", 1024, 1024, 512);
}

ShowTopologyRequest TwoZones() {
  ShowTopologyRequest view;
  AddBoth(AddZone(view, {10, 21}), 7, 7);
  AddBoth(AddZone(view, {21, 10}), 8, 8);
  return view;
}

// Row N1 of the acceptance table.
TEST(TopologyObjectTest, IsWhatSchedulersRead) {
  ShowTopologyRequest view = TwoZones();
  view.mutable_zones(0)->set_cpus("1-2,3");
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
                      {"name": "cri-resource-manager.intel.com/cpus", "value": "1-3"}],
       "resources": [
         {"name": "cpu", "capacity": "8", "allocatable": "7", "available": "7"},
         {"name": "memory", "capacity": "1024", "allocatable": "1024", "available": "512"}]},
      {"name": "node-1", "type": "Node",
       "costs": [{"name": "node-0", "value": 21}, {"name": "node-1", "value": 10}],
       "attributes": [{"name": "cri-resource-manager.intel.com/numa-id", "value": "1"}],
       "resources": [
         {"name": "cpu", "capacity": "8", "allocatable": "8", "available": "8"},
         {"name": "memory", "capacity": "1024", "allocatable": "1024", "available": "512"}]}]})");
  EXPECT_EQ(object, expected) << JsonText(object, 1);
}

// Row N6.
TEST(TopologyObjectTest, ZonesHaveNoGapsInTheirNumbers) {
  ShowTopologyRequest view = TwoZones();
  view.mutable_zones(1)->set_numa_id(2);
  const Json object = TopologyObject("n1", "u", view);
  EXPECT_EQ(object["zones"][1]["name"], "node-1");
  EXPECT_EQ(object["zones"][1]["attributes"][0]["value"], "2");
}

TEST(TopologyObjectTest, SaysThatTheNodeRefusesOnlyWhereItDoes) {
  ShowTopologyRequest view = TwoZones();
  view.set_refuses(true);
  const Json object = TopologyObject("n1", "u", view);
  EXPECT_EQ(object["attributes"][0]["value"], "single-numa-node");
  EXPECT_EQ(object["attributes"][1]["value"], "pod");
  EXPECT_EQ(object["topologyPolicies"][0], "SingleNUMANodePodLevel");
}

TEST(TopologyObjectTest, TheFingerprintIsOfTheViewsPods) {
  ShowTopologyRequest view = TwoZones();
  AddPod(view, "default", "pod0");
  EXPECT_EQ(TopologyObject("n1", "u", view)["attributes"][3]["value"], "pfp0v00110399bf9eea6fbd3");
}

TEST(TopologyObjectTest, NodesHaveOneObjectEachUnderTheirName) {
  EXPECT_EQ(TopologyPath("n1"), "/apis/topology.node.k8s.io/v1alpha2/noderesourcetopologies/n1");
}

// The daemon cuts long names, and shows control characters as text, which makes them longer.
TEST(TopologyObjectTest, NamesOfPoolsAreTakenAsTheDaemonShowsThem) {
  ShowTopologyRequest view = TwoZones();
  for (const std::string& name :
       {std::string(300, 'x'), std::string(100, '\x01'), std::string(252, 'x') + "\u00e4" + "[0]"})
    AddPool(view, Printable(name, 253), "1");
  EXPECT_EQ(CheckTopology(view), OkStatus());
  for (const std::string& name : {std::string("a\nb"), std::string(1025, 'x'), std::string()}) {
    ShowTopologyRequest wrong = TwoZones();
    AddPool(wrong, name, "1");
    EXPECT_FALSE(CheckTopology(wrong).ok());
  }
}

// Schedulers read zones of the type Node alone, and by their position.
TEST(TopologyObjectTest, PoolsFollowTheNumaNodesForPeople) {
  ShowTopologyRequest view = TwoZones();
  view.mutable_zones(0)->set_cpus("1-3");
  view.mutable_zones(1)->set_cpus("4-7");
  AddPool(view, "batch[0]", "5-6", "6");
  AddPool(view, "socket #0", "0-4");
  AddPool(view, "NUMA node #0", "0-3");
  AddPool(view, "reserved", "0");
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

void Repeat(int times, const std::function<void()>& act) {
  for (int i = 0; i < times; ++i)
    act();
}

TEST(CheckTopologyTest, RefusesWhatIsNoObject) {
  EXPECT_TRUE(CheckTopology(TwoZones()).ok());
  using Spoil = std::function<void(ShowTopologyRequest&)>;
  const std::vector<std::pair<Spoil, const char*>> bad = {
      {[](auto& view) { view.mutable_zones(0)->mutable_amounts(0)->set_available(9); },
       "in this order"},
      {[](auto& view) { view.mutable_zones(0)->mutable_amounts(0)->set_available(-1); },
       "in this order"},
      {[](auto& view) { view.mutable_zones(0)->mutable_amounts(0)->set_name("a b"); },
       "not a resource"},
      {[](auto& view) { view.mutable_zones(1)->mutable_distances()->Truncate(1); },
       "1 distances to 2 zones"},
      {[](auto& view) { view.mutable_zones(1)->set_numa_id(-1); }, "not a NUMA node"},
      {[](auto& view) { view.mutable_zones(0)->set_cpus("1-x"); }, "1-x"},
      {[](auto& view) { view.mutable_zones(0)->set_exclusive("1-x"); }, "1-x"},
      {[](auto& view) { AddPool(view, "a", "1-x"); }, "1-x"},
      {[](auto& view) { AddPool(view, "a", "1", "1-x"); }, "1-x"},
      {[](auto& view) { Repeat(63, [&] { AddZone(view, {}); }); }, "65 zones"},
      {[](auto& view) { Repeat(257, [&] { AddPool(view, "a", ""); }); }, "257 pools"},
      {[](auto& view) { Repeat(2, [&] { AddPool(view, "a", ""); }); }, "no name of a pool"},
      {[](auto& view) { AddPool(view, "a\n", ""); }, "no name of a pool"},
      {[](auto& view) { AddPod(view, "a", "B/c"); }, "not the name of a pod"},
      {[](auto& view) { Repeat(5000, [&] { AddPod(view, "a", "b"); }); }, "5000 pods"},
      {[](auto& view) { Repeat(15, [&] { AddAmount(*view.mutable_zones(0), "cpu", 8, 8, 8); }); },
       "17 resources"},
  };
  for (const auto& [spoil, message] : bad) {
    ShowTopologyRequest view = TwoZones();
    spoil(view);
    const Status status = CheckTopology(view);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << message;
    EXPECT_THAT(std::string(Message(status)), HasSubstr(message));
  }
}

}  // namespace
}  // namespace resmgr::agent
