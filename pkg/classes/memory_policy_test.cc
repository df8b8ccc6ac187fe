// SPDX-License-Identifier: Apache-2.0
#include "pkg/classes/memory_policy.h"

#include <initializer_list>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/classes/class_kinds.h"
#include "pkg/classes/testing/classed_pod.h"
#include "pkg/classes/testing/kind_bench.h"

namespace resmgr {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using Mode = MemoryPolicySettings::Mode;

// Two packages with two nodes each, two CPUs on a node.
Machine FourNodes() {
  Machine::Parts parts;
  for (int cpu = 0; cpu < 8; ++cpu)
    parts.cpus.push_back(
        {.id = cpu, .core = cpu, .numa = cpu / 2, .package = cpu / 4, .online = true});
  for (int node = 0; node < 4; ++node) {
    NumaNode made;
    made.id = node;
    made.memory = Bytes{int64_t{1} << 30};
    for (int other = 0; other < 4; ++other)
      made.distances.push_back(node == other ? 10 : node / 2 == other / 2 ? 21 : 31);
    parts.nodes.push_back(made);
  }
  parts.allowed = CpuSet::Parse("0-7").value();
  return Machine::Create(std::move(parts)).value();
}

class MemoryPolicyTest : public testing::Test {
 protected:
  MemoryPolicyTest() {
    config_.memory = {
        {.name = "spread", .policy = MemoryPolicyConfig{Mode::kInterleave, "all", {}}},
        {.name = "plain", .low = "1"}};
    config_.namespaces["memory"] = {"shop"};
  }
  StatusOr<MemoryPolicyWish> Wish(std::initializer_list<StringMap::value_type> annotations) const {
    return MemoryPolicyOf(PodWith(annotations), "main", config_);
  }
  static Pod PodWith(std::initializer_list<StringMap::value_type> annotations) {
    Pod pod;
    pod.namespace_name = "shop";
    pod.annotations = StringMap(annotations);
    return pod;
  }
  // The nodes for a container on the CPUs of node 1.
  std::string Nodes(const std::string& nodes) const {
    const auto settings = ResolveMemoryPolicy({Mode::kBind, nodes, {}}, CpuSet{2},
                                              NodeSet::Parse("1-2").value(), machine_);
    return settings.ok() ? settings->nodes : std::string(Message(settings.status()));
  }

  const Machine machine_ = FourNodes();
  ClassesConfig config_;
};

// The rows of reference/classes.md 7.
TEST_F(MemoryPolicyTest, NodesAreThoseOfTheContainer) {
  EXPECT_EQ(Nodes("cpu-nodes"), "1");
  EXPECT_EQ(Nodes("cpu-packages"), "0-1");
  EXPECT_EQ(Nodes("all"), "0-3");
  EXPECT_EQ(Nodes("max-dist:21"), "0-1");
  EXPECT_EQ(Nodes("max-dist:10"), "1");
  EXPECT_EQ(Nodes("max-dist:31"), "0-3");
  EXPECT_EQ(Nodes("allowed-mems"), "1-2");
  EXPECT_EQ(Nodes("2-9"), "2-3");
  EXPECT_EQ(Nodes("8"), "the machine has none of the nodes 8");
}

TEST_F(MemoryPolicyTest, TheNarrowestAnnotationCounts) {
  EXPECT_EQ(Wish({{"class.memory-policy.nri.io", "spread"}})->name, "spread");
  const MemoryPolicyConfig own{Mode::kPreferred, "0", {MemoryPolicySettings::Flag::kStaticNodes}};
  const char* const text = "{mode: MPOL_PREFERRED, nodes: 0, flags: [MPOL_F_STATIC_NODES]}";
  const MemoryPolicyWish wish = Wish({{"class.memory-policy.nri.io", "spread"},
                                      {"policy.memory-policy.nri.io/container.main", text},
                                      {"policy.memory-policy.nri.io/container.other", "x"}})
                                    .value();
  EXPECT_EQ(wish.policy, own);
  EXPECT_EQ(wish.source, "annotation policy.memory-policy.nri.io/container.main");
  EXPECT_EQ(Wish({{"class.memory-policy.nri.io", "spread"},
                  {"class.memory-policy.nri.io/container.main", ""}})
                ->policy,
            std::nullopt);
  EXPECT_EQ(Wish({}).value(), MemoryPolicyWish());
}

TEST_F(MemoryPolicyTest, WhatCannotBeIsRefused) {
  const auto error = [this](const char* key, const char* value) {
    return std::string(Message(Wish({{key, value}}).status()));
  };
  EXPECT_THAT(error("class.memory-policy.nri.io", "gold"), HasSubstr("no class \"gold\""));
  EXPECT_THAT(error("class.memory-policy.nri.io", "plain"), HasSubstr("with a policy"));
  EXPECT_EQ(error("mode.memory-policy.nri.io", "x"),
            "annotation mode.memory-policy.nri.io: there is no such annotation");
  EXPECT_THAT(error("policy.memory-policy.nri.io", "{mode: MPOL_BIND, nodes: ''}"),
              HasSubstr("\"\" is no list of nodes"));
  EXPECT_THAT(error("policy.memory-policy.nri.io", "{mode: bind}"), HasSubstr("needs nodes"));
  EXPECT_THAT(error("policy.memory-policy.nri.io", "{mode: local, nodes: 0}"),
              HasSubstr("not for the mode local"));
  EXPECT_THAT(error("policy.memory-policy.nri.io", "{mode: interlaeve, nodes: all}"),
              EndsWith("weighted-interleave; did you mean interleave?"));
  EXPECT_THAT(error("policy.memory-policy.nri.io", "{flags: [fast]}"),
              HasSubstr("is not one of static-nodes, relative-nodes, numa-balancing"));
  config_.namespaces.clear();
  EXPECT_THAT(Wish({{"mode.memory-policy.nri.io", "x"}})->note, HasSubstr("shop is not in"));
}

TEST_F(MemoryPolicyTest, OnlyADoorThatCanSetItTakesIt) {
  const test::ClassedPod pod{.pod = PodWith({{"class.memory-policy.nri.io", "spread"}})};
  ClassContext context;
  context.machine = &machine_;
  ChosenClasses chosen;
  const Status refused = MakeMemoryKind(context)->Choose(pod.container(), config_, chosen);
  EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(Message(refused)), HasSubstr("NRI 0.12"));
  context.door = [] { return CreationWays{.memory_policy = true}; };
  const auto kind = MakeMemoryKind(context);
  ASSERT_TRUE(kind->Choose(pod.container(), config_, chosen).ok());
  EXPECT_TRUE(chosen.any());
  Adjustment adjustment;
  kind->AtCreation(chosen, config_, false, adjustment);
  const MemoryPolicySettings expected{.mode = Mode::kInterleave, .nodes = "0-3"};
  EXPECT_EQ(adjustment.wide()->memory_policy, expected);
  test::KindBench bench;
  bench.subjects.push_back({.container = "shop/p/main", .id = "id", .chosen = chosen});
  EXPECT_EQ(bench.Run(*kind).containers.at("id").at(0).in_force, "interleave 0-3");
}

}  // namespace
}  // namespace resmgr
