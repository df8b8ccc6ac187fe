// SPDX-License-Identifier: Apache-2.0
#include <cerrno>
#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/classes/class_kind.h"
#include "pkg/classes/memory_wish.h"
#include "pkg/classes/testing/classed_pod.h"
#include "pkg/classes/testing/keeper_fixture.h"

namespace resmgr {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

class MemoryKindTest : public test::KeeperTest {
 protected:
  MemoryKindTest() {
    files_.tree["sys/fs/cgroup/cgroup.controllers"] = "memory\n";
    config_.memory = {{.name = "silver"}, {.name = "unused"}};
    subjects_.push_back({.container = "shop/p/main", .id = "id", .cgroup = "sys/fs/cgroup/c"});
    Wants("858993459");
    files_.tree[kHigh] = "858992640\n";  // in whole pages
  }
  void Wants(std::string_view high) {
    subjects_[0].chosen.memory = {
        .name = "silver", .source = "annotation x", .files = {{"memory.high", std::string(high)}}};
  }
  ClassReport Report() { return KeeperTest::Run({kind_.get()}, subjects_); }

  static constexpr const char* kHigh = "sys/fs/cgroup/c/memory.high";
  ClassContext context_;
  std::unique_ptr<ClassKind> kind_ = MakeMemoryKind(context_);
};

TEST_F(MemoryKindTest, WhatTheRuntimeHasSetIsNotWritten) {
  const ClassReport report = Report();
  ASSERT_EQ(report.classes.size(), 2U);
  EXPECT_TRUE(report.classes[0].active);
  EXPECT_THAT(report.classes[0].containers, ElementsAre("shop/p/main"));
  EXPECT_TRUE(report.classes[1].active);
  EXPECT_EQ(report.containers.at("id")[0].in_force, "858992640");
  EXPECT_EQ(report.containers.at("id")[0].way, "at creation");
  EXPECT_THAT(files_.written, IsEmpty());
}

TEST_F(MemoryKindTest, WithoutTheControllerTheClassesAreAbsent) {
  files_.tree["sys/fs/cgroup/cgroup.controllers"] = "cpu\n";
  config_.absent = ClassesConfig::Absent::kRefuse;
  const ClassReport report = Report();
  ASSERT_EQ(report.classes.size(), 2U);
  for (const ClassState& one : report.classes) {
    EXPECT_FALSE(one.active);
    EXPECT_TRUE(one.absent);
    EXPECT_EQ(one.reason, "sys/fs/cgroup/cgroup.controllers has no memory");
  }
  ASSERT_TRUE(report.absent.contains("memory"));
  EXPECT_THAT(files_.written, IsEmpty());
}

TEST_F(MemoryKindTest, AmountsHaveTheKernelsUnits) {
  files_.tree[kHigh] = "1073741824\n";
  for (const char* const text : {"1G", "1g", "1024M", "1048576k", "1073741824"}) {
    Wants(text);
    EXPECT_TRUE(Report().classes[0].active) << text;
  }
  EXPECT_THAT(files_.written, IsEmpty());
}

TEST_F(MemoryKindTest, ARunningContainerFollowsItsMemoryLimit) {
  (void)Report();
  Wants("429496729");
  EXPECT_TRUE(Report().classes[0].active);
  EXPECT_EQ(files_.tree.at(kHigh), "429496729");
}

TEST_F(MemoryKindTest, WhatTheRuntimeHasSetEndsWithTheClass) {
  (void)Report();
  subjects_.clear();
  (void)Report();
  EXPECT_EQ(files_.tree.at(kHigh), "max\n") << "as without a class";
  EXPECT_THAT(files_.written, ElementsAre(std::string(kHigh) + " max\n"));
}

// A class and the kubelet may want the same.
TEST_F(MemoryKindTest, WhatTheKubeletAskedForIsKnownToTheNextProcess) {
  *context_.kubelet_sets_memory = true;
  for (const char* const requested : {"1073741824", "858993459"}) {
    files_.tree[kHigh] = "858992640\n";
    subjects_ = {{.container = "shop/p/main",
                  .id = "id",
                  .cgroup = "sys/fs/cgroup/c",
                  .requested_memory = StringMap({{"memory.high", requested}})}};
    Wants("858993459");
    (void)Report();
    *context_.kubelet_sets_memory = false;
    subjects_[0].requested_memory = std::nullopt;
    (void)Report();
    subjects_.clear();
    (void)Report();
    EXPECT_TRUE(SameHostValue(kHigh, files_.tree.at(kHigh), requested));
  }
}

TEST_F(MemoryKindTest, WhatTheKubeletDidNotAskForEndsWithTheClass) {
  *context_.kubelet_sets_memory = true;
  subjects_[0].requested_memory = StringMap({{"memory.swap.max", "0"}});
  (void)Report();
  subjects_.clear();
  (void)Report();
  EXPECT_EQ(files_.tree.at(kHigh), "max\n");
}

TEST_F(MemoryKindTest, WhatTheKubeletMayHaveSetStays) {
  *context_.kubelet_sets_memory = true;
  (void)Report();
  subjects_.clear();
  (void)Report();
  EXPECT_EQ(files_.tree.at(kHigh), "858992640\n");
}

TEST_F(MemoryKindTest, AContainerThatAwaitsItsCgroupHasItsClass) {
  subjects_[0].cgroup.clear();
  EXPECT_TRUE(Report().classes[0].active) << "containerd makes it at the start";
  subjects_[0].running = true;
  EXPECT_EQ(Report().classes[0].reason, "the container has no cgroup");
}

TEST_F(MemoryKindTest, WhatTheRuntimeCouldNotSetIsWritten) {
  files_.tree[kHigh] = "max\n";
  subjects_[0].running = true;
  const ClassReport report = Report();
  EXPECT_EQ(files_.tree.at(kHigh), "858993459");
  EXPECT_EQ(report.containers.at("id")[0].way, "after start");
}

TEST_F(MemoryKindTest, WhatCannotBeInForceIsInactive) {
  files_.tree[kHigh] = "max\n";
  files_.refuses[kHigh] = EBUSY;
  EXPECT_THAT(Report().classes[0].reason, HasSubstr("cannot write 858993459 to sys/fs/cgroup/c/"));
  files_.tree.erase(kHigh);
  EXPECT_THAT(Report().classes[0].reason, HasSubstr("there is no sys/fs/cgroup/c/memory.high"));
  EXPECT_TRUE(Report().classes[1].active);
  files_.tree.clear();
  EXPECT_FALSE(Report().classes[1].active);
  EXPECT_THAT(Report().classes[0].reason, HasSubstr("cgroup v2"));
}

TEST_F(MemoryKindTest, TheClassOfThePoolCountsWhereThePodChoosesNone) {
  config_.memory = {{.name = "silver", .high = "1000", .low = "10"},
                    {.name = "half", .swap_limit_ratio = 0.5},
                    {.name = "near", .policy = MemoryPolicyConfig{}}};
  config_.memory_files = {"memory.low"};
  config_.namespaces["memory"] = {"shop"};
  test::ClassedPod classed;
  Pod& pod = classed.pod;
  pod.namespace_name = "shop";
  classed.placement.pool = "x[0]";
  Status status;
  const auto choose = [&](const char* of_pool) {
    classed.of_pool = {{"memory", of_pool}};
    ChosenClasses chosen;
    status = kind_->Choose(classed.container(), config_, chosen);
    return chosen;
  };
  const std::map<std::string, std::string> files = {{"memory.high", "1000"}, {"memory.low", "10"}};
  EXPECT_EQ(choose("silver").memory.files, files);
  EXPECT_EQ(choose("silver").memory.source, "pool x[0]");
  EXPECT_THAT(choose("half").note, HasSubstr("pool x[0]: the class \"half\" of memory is a part"));
  EXPECT_TRUE(status.ok()) << "the pod has not asked for it";
  EXPECT_THAT(choose("near").note, HasSubstr("the runtime can set no memory policy"));
  EXPECT_TRUE(status.ok());
  EXPECT_FALSE(choose("other").any());
  pod.annotations = StringMap({{"memory.low.memory-qos.nri.io", "20"}});
  EXPECT_EQ(choose("silver").memory.files.at("memory.high"), "1000");
  EXPECT_EQ(choose("silver").memory.files.at("memory.low"), "20");
  pod.annotations = StringMap({{"class.memory-qos.nri.io", ""}});
  EXPECT_FALSE(choose("silver").any()) << "it chooses none";
  pod.annotations = StringMap({{"class.memory-qos.nri.io", "gold"}});
  EXPECT_EQ(choose("silver").memory.files, files) << "a container that exists has that of its pool";
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
}

TEST_F(MemoryKindTest, TheKubeletsOwnValuesAreNoticed) {
  *context_.kubelet_sets_memory = true;
  EXPECT_TRUE(Report().classes[0].active);
  EXPECT_THAT(Report().classes[0].reason, HasSubstr("its gate MemoryQoS"));
}

TEST_F(MemoryKindTest, DockerdHasFieldsForSomeOfTheFiles) {
  ChosenClasses chosen;
  chosen.memory.files = {{"memory.high", "1"}, {"memory.low", "2"}, {"memory.swap.max", "3"}};
  Adjustment at_runtime;
  kind_->AtCreation(chosen, config_, true, at_runtime);
  EXPECT_NE(at_runtime.wide()->unified.Find("memory.high"), nullptr);
  context_.door = [] { return CreationWays{.docker = true}; };
  Adjustment at_docker;
  MakeMemoryKind(context_)->AtCreation(chosen, config_, true, at_docker);
  EXPECT_EQ(at_docker.wide()->unified.Find("memory.high"), nullptr);
  EXPECT_NE(at_docker.wide()->unified.Find("memory.low"), nullptr);
  EXPECT_NE(at_docker.wide()->unified.Find("memory.swap.max"), nullptr);
}

constexpr int64_t kGi = int64_t{1} << 30;

class MemoryWishTest : public testing::Test {
 protected:
  StatusOr<MemoryWish> Wish(std::initializer_list<StringMap::value_type> annotations,
                            int64_t limit = kGi) const {
    Pod pod;
    pod.namespace_name = "shop";
    pod.annotations = StringMap(annotations);
    return MemoryOf(pod, "main", limit, config_);
  }
  std::string ErrorOf(std::initializer_list<StringMap::value_type> annotations,
                      int64_t limit = kGi) const {
    return std::string(Message(Wish(annotations, limit).status()));
  }

  ClassesConfig config_{.memory = {{.name = "bronze", .swap_limit_ratio = 0.5},
                                   {.name = "silver", .swap_limit_ratio = 0.2},
                                   {.name = "kept", .low = "1048576", .min = "4096"}},
                        .memory_files = {"memory.swap.max"},
                        .namespaces = {{"memory", {"shop"}}}};
};

// memory.high and memory.swap.max of memory classes.
TEST_F(MemoryWishTest, AClassIsAPartOfTheLimit) {
  EXPECT_THAT(Wish({{"class.memory-qos.nri.io", "bronze"}})->files,
              ElementsAre(Pair("memory.high", "536870912"), Pair("memory.swap.max", "max")));
  EXPECT_EQ(Wish({{"class.memory-qos.nri.io/main", "silver"}})->files.at("memory.high"),
            "858993459");
  EXPECT_THAT(Wish({{"class.memory-qos.nri.io", "kept"}}, 0)->files,
              ElementsAre(Pair("memory.low", "1048576"), Pair("memory.min", "4096")));
}

TEST_F(MemoryWishTest, AFileWinsOverTheClassWhereItIsAllowed) {
  const MemoryWish wish =
      Wish({{"class.memory-qos.nri.io", "bronze"}, {"memory.swap.max.memory-qos.nri.io", "0"}})
          .value();
  EXPECT_EQ(wish.files.at("memory.swap.max"), "0");
  EXPECT_EQ(wish.name, "bronze");
  EXPECT_EQ(ErrorOf({{"memory.oom.group.memory-qos.nri.io", "1"}}),
            "annotation memory.oom.group.memory-qos.nri.io: memory.oom.group is not in "
            "classes.MemoryAnnotations");
}

TEST_F(MemoryWishTest, TheContainersOwnAnnotationWinsAndAnEmptyOneRemoves) {
  EXPECT_EQ(Wish({{"class.memory-qos.nri.io", "bronze"},
                  {"class.memory-qos.nri.io/main", "silver"},
                  {"class.memory-qos.nri.io/other", "what"}})
                ->name,
            "silver");
  EXPECT_THAT(
      Wish({{"class.memory-qos.nri.io", "bronze"}, {"class.memory-qos.nri.io/main", ""}})->files,
      IsEmpty());
  EXPECT_EQ(Wish({{"other", "1"}}).value(), MemoryWish());
}

TEST_F(MemoryWishTest, WhatCannotBeIsRefused) {
  EXPECT_EQ(ErrorOf({{"class.memory-qos.nri.io", "gold"}}),
            "annotation class.memory-qos.nri.io: there is no class \"gold\" of memory; there are: "
            "bronze, silver, kept");
  EXPECT_THAT(ErrorOf({{"class.memory-qos.nri.io", "bronze"}}, 0),
              HasSubstr("the container has none"));
  config_.namespaces["memory"] = {"kube-*"};
  const MemoryWish wish = Wish({{"class.memory-qos.nri.io", "gold"}}).value();
  EXPECT_EQ(wish.note,
            "annotation class.memory-qos.nri.io ignored: namespace shop is not in "
            "classes.AllowedNamespaces.memory");
  EXPECT_THAT(wish.files, IsEmpty());
}

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

class MemoryPolicyTest : public test::KeeperTest {
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
};

// The nodes of memory policies.
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
  const ClassSubject subject{
      .container = "shop/p/main", .id = "id", .chosen = chosen, .memory_policy = "interleave 0-3"};
  EXPECT_EQ(Run({kind.get()}, {subject}).containers.at("id").at(0).in_force, "interleave 0-3");
}

}  // namespace
}  // namespace resmgr
