// SPDX-License-Identifier: Apache-2.0
#include "agent/selection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace resmgr::agent {
namespace {

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
