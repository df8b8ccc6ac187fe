// SPDX-License-Identifier: Apache-2.0
#include "agent/config_source.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/selection.h"
#include "agent/testing/fake_transport.h"
#include "pkg/base/json.h"
#include "pkg/sys/clock.h"
#include "test/support/captured_log.h"

namespace resmgr::agent {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr char kLabel[] = "cri-resource-manager.intel.com/group";

class ConfigSourceTest : public testing::Test {
 protected:
  ConfigSourceTest() { source_.Start(); }

  static Json NodeObject(const std::string& group) {
    Json node = {{"metadata", {{"name", "n1"}, {"resourceVersion", "1"}}}};
    if (!group.empty()) node["metadata"]["labels"][kLabel] = group;
    return node;
  }
  static Json MapObject(const std::string& name, const std::string& value) {
    return {{"metadata", {{"name", name}, {"resourceVersion", "7"}}},
            {"data", {{"policy", value}, {"number", 5}}}};
  }
  static Json ListOf(const std::vector<Json>& items) {
    return {{"metadata", {{"resourceVersion", "1"}}}, {"items", items}};
  }
  static std::string Target(const std::string& name) { return "metadata.name%3D" + name; }

  void ListNode(const std::string& group) {
    ASSERT_TRUE(transport_.Answer(Target("n1"), 200, ListOf({NodeObject(group)})));
  }
  void Relabel(const std::string& group) {
    transport_.Stream(Target("n1"),
                      JsonText({{"type", "MODIFIED"}, {"object", NodeObject(group)}}) + "\n");
  }
  // "": an absent map.
  void ListMap(const std::string& suffix, const std::string& value) {
    const std::string name = "cfg." + suffix;
    std::vector<Json> items;
    if (!value.empty()) items.push_back(MapObject(name, value));
    ASSERT_TRUE(transport_.Answer(Target(name), 200, ListOf(items))) << name;
  }
  void ListMaps(const std::string& of_all, const std::string& of_node) {
    ListMap("default", of_all);
    ListMap("node.n1", of_node);
  }
  void Event(const std::string& type, const std::string& suffix, const std::string& value) {
    const std::string name = "cfg." + suffix;
    ASSERT_TRUE(transport_.Stream(
        Target(name), JsonText({{"type", type}, {"object", MapObject(name, value)}}) + "\n"))
        << name;
  }

  FakeTransport transport_;
  ManualClock timers_;
  std::vector<std::string> decisions_;
  int nodes_seen_ = 0;
  ConfigSource source_{
      transport_,
      timers_,
      {.node = "n1", .map_namespace = "ns", .map_name = "cfg", .group_label = kLabel, .retry = {}},
      [this](const std::optional<ConfigMap>& map) {
        if (map && !map->problem.empty()) {
          decisions_.push_back(map->problem);
        } else {
          decisions_.push_back(map ? map->name + "=" + map->data.at("policy") : "none");
        }
      },
      [this](const Json& /*node*/) { ++nodes_seen_; }};
};

TEST_F(ConfigSourceTest, SaysNothingBeforeEverythingIsSeen) {
  ListMap("default", "d");
  ListNode("g");
  ListMap("node.n1", "");
  EXPECT_THAT(decisions_, IsEmpty());
  ListMap("group.g", "g");
  EXPECT_THAT(decisions_, ElementsAre("cfg.group.g=g"));
}

TEST_F(ConfigSourceTest, SaysWhenThereIsNoMapAtAll) {
  ListMaps("", "");
  ListNode("");
  EXPECT_THAT(decisions_, ElementsAre("none"));
}

TEST_F(ConfigSourceTest, WaitsForTheNodeToExist) {
  ListMaps("d", "");
  transport_.Answer(Target("n1"), 200, ListOf({}));
  EXPECT_THAT(decisions_, IsEmpty());
  transport_.Stream(Target("n1"), JsonText({{"type", "ADDED"}, {"object", NodeObject("")}}) + "\n");
  EXPECT_THAT(decisions_, ElementsAre("cfg.default=d"));
}

TEST_F(ConfigSourceTest, FollowsEditsAndDeletions) {
  ListMaps("d1", "n1");
  ListNode("");
  Event("MODIFIED", "default", "d2");  // does not apply
  Event("MODIFIED", "node.n1", "n2");
  Event("DELETED", "node.n1", "n2");
  Event("MODIFIED", "default", "d3");
  Event("DELETED", "default", "d3");
  EXPECT_THAT(decisions_, ElementsAre("cfg.node.n1=n1", "cfg.node.n1=n2", "cfg.default=d2",
                                      "cfg.default=d3", "none"));
}

TEST_F(ConfigSourceTest, SaysNothingTwice) {
  ListMaps("d", "");
  ListNode("");
  Event("MODIFIED", "default", "d");
  Relabel("");
  EXPECT_THAT(decisions_, ElementsAre("cfg.default=d"));
}

// Values of labels may have capitals, names of ConfigMaps may not.
TEST_F(ConfigSourceTest, TellsThatAGroupCanHaveNoMap) {
  const test::CapturedLog log("can be called");
  ListMaps("d", "");
  ListNode("Fast_ones");
  ListMap("group.Fast_ones", "");
  EXPECT_THAT(decisions_, ElementsAre("cfg.default=d"));
  Relabel("fast-ones");
  EXPECT_THAT(log.lines,
              ElementsAre(testing::HasSubstr("no ConfigMap can be called cfg.group.Fast_ones")));
}

TEST_F(ConfigSourceTest, KeepsTheLastWordUntilTheNewGroupIsKnown) {
  ListMaps("d", "");
  ListNode("a");
  ListMap("group.a", "ga");
  Relabel("b");
  EXPECT_THAT(decisions_, ElementsAre("cfg.group.a=ga"));
  EXPECT_FALSE(transport_.Has(Target("cfg.group.a"))) << "the old group is not followed any more";
  ListMap("group.b", "");
  Relabel("");
  Relabel("a");
  ListMap("group.a", "ga");
  EXPECT_THAT(decisions_, ElementsAre("cfg.group.a=ga", "cfg.default=d", "cfg.group.a=ga"));
}

// kubectl stores a file with one byte that is not UTF-8 as binaryData; without `data` the daemon
// would get an empty configuration, which switches the policy off.
TEST_F(ConfigSourceTest, AMapWithBinaryDataOrWithoutDataIsAProblem) {
  ListMap("node.n1", "");
  ListNode("");
  Json map = MapObject("cfg.default", "d");
  map["binaryData"] = {{"policy.yaml", "//4="}};
  ASSERT_TRUE(transport_.Answer(Target("cfg.default"), 200, ListOf({map})));
  map.erase("binaryData");
  map.erase("data");
  transport_.Stream(Target("cfg.default"),
                    JsonText({{"type", "MODIFIED"}, {"object", map}}) + "\n");
  EXPECT_THAT(decisions_, ElementsAre(testing::HasSubstr("policy.yaml is in binaryData"),
                                      testing::HasSubstr("it has no data")));
}

TEST_F(ConfigSourceTest, TellsOfTheNodeBeforeItDecides) {
  ListMaps("d", "");
  ListNode("");
  EXPECT_EQ(nodes_seen_, 1);
  Relabel("");
  EXPECT_EQ(nodes_seen_, 2);
}

// Each group costs a list and a watch: 6,000 of them came in 8 s.
TEST_F(ConfigSourceTest, AStormOfLabelsCausesFewListsAndTheLastOneCounts) {
  ListMaps("d", "");
  ListNode("");
  const int before = transport_.sent();
  for (int i = 0; i < 600; ++i) {
    Relabel("g" + std::to_string(i));
    timers_.Advance(std::chrono::milliseconds(100));
  }
  EXPECT_LE(transport_.sent() - before, 5 + 60 / 10);
  timers_.Advance(std::chrono::seconds(10));
  ListMap("group.g599", "last");
  EXPECT_EQ(decisions_.back(), "cfg.group.g599=last");
}

TEST_F(ConfigSourceTest, AStormThatEndsWhereItBeganChangesNothing) {
  ListMaps("d", "");
  ListNode("a");
  ListMap("group.a", "ga");
  for (int i = 0; i < 20; ++i)
    Relabel("g" + std::to_string(i));
  Relabel("");
  timers_.Advance(std::chrono::minutes(1));
  EXPECT_THAT(decisions_, ElementsAre("cfg.group.a=ga", "cfg.default=d"));
}

ConfigMap Map(const std::string& name) {
  return {.name = name, .version = "1", .data = {{"policy", name}}};
}

// Every view there is, from the eight bits of `bits`.
ClusterView ViewOf(unsigned bits) {
  const auto seen = [&bits](const char* name) {
    Seen<ConfigMap> map{.complete = (bits & 1U) != 0, .value = {}};
    if (map.complete && (bits & 2U) != 0) map.value = Map(name);
    bits >>= 2U;
    return map;
  };
  ClusterView view;
  view.node_map = seen("node");
  view.group_map = seen("group");
  view.default_map = seen("default");
  view.node_seen = (bits & 1U) != 0;
  if ((bits & 2U) != 0) view.group.push_back('g');
  return view;
}
constexpr unsigned kViews = 1U << 8U;

TEST(SelectionTest, NamesMapsAsUsersKnowThem) {
  EXPECT_EQ(NodeMapName("cri-resmgr-config", "n1"), "cri-resmgr-config.node.n1");
  EXPECT_EQ(GroupMapName("cri-resmgr-config", "hpc"), "cri-resmgr-config.group.hpc");
  EXPECT_EQ(DefaultMapName("cri-resmgr-config"), "cri-resmgr-config.default");
}

struct Case {
  bool node = false;
  bool group = false;
  bool other = false;
  bool in_group = false;
  const char* winner = nullptr;
};

TEST(SelectionTest, NodeBeatsGroupBeatsDefault) {
  const Case cases[] = {
      {true, true, true, true, "node"},       {true, false, false, false, "node"},
      {false, true, true, true, "group"},     {false, true, true, false, "default"},
      {false, false, true, true, "default"},  // a group without its map
      {false, true, false, true, "group"},    {false, true, false, false, nullptr},
      {false, false, true, false, "default"}, {false, false, false, true, nullptr},
  };
  for (const Case& c : cases) {
    ClusterView view{.node_seen = true, .group = c.in_group ? "g" : ""};
    view.node_map.complete = view.group_map.complete = view.default_map.complete = true;
    if (c.node) view.node_map.value = Map("node");
    if (c.group) view.group_map.value = Map("group");
    if (c.other) view.default_map.value = Map("default");
    const ConfigMap* selected = Select(view);
    EXPECT_STREQ(selected == nullptr ? nullptr : selected->name.c_str(), c.winner);
  }
}

TEST(SelectionTest, ConcludesNothingFromAnIncompleteView) {
  int complete = 0;
  for (unsigned bits = 0; bits < kViews; ++bits) {
    const ClusterView view = ViewOf(bits);
    const bool known = view.node_seen && view.node_map.complete && view.default_map.complete &&
                       (view.group.empty() || view.group_map.complete);
    EXPECT_EQ(view.Complete(), known);
    EXPECT_TRUE(known || Select(view) == nullptr);
    complete += known ? 1 : 0;
  }
  EXPECT_GT(complete, 10);
}

// The winner is one unchanged map, there is a winner if there is a candidate, and taking the winner
// away never brings up one of higher rank.
TEST(SelectionTest, WinnerIsOneWholeMapAndDeletionFallsBack) {
  const auto rank = [](const ConfigMap* map) {
    if (map == nullptr) return 3;
    return map->name == "node" ? 0 : map->name == "group" ? 1 : 2;
  };
  for (unsigned bits = 0; bits < kViews; ++bits) {
    ClusterView view = ViewOf(bits);
    if (!view.Complete()) continue;
    const ConfigMap* winner = Select(view);
    const bool candidate = view.node_map.value || view.default_map.value ||
                           (!view.group.empty() && view.group_map.value);
    EXPECT_EQ(winner != nullptr, candidate);
    if (winner == nullptr) continue;
    const int before = rank(winner);
    EXPECT_EQ(*winner, Map(winner->name));
    (before == 0 ? view.node_map : before == 1 ? view.group_map : view.default_map).value.reset();
    EXPECT_GT(rank(Select(view)), before);
  }
}

}  // namespace
}  // namespace resmgr::agent
