// SPDX-License-Identifier: Apache-2.0
#include <cerrno>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/classes/class_kinds.h"
#include "pkg/classes/testing/classed_pod.h"
#include "pkg/classes/testing/kind_bench.h"

namespace resmgr {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class MemoryKindTest : public testing::Test {
 protected:
  MemoryKindTest() {
    bench_.files.tree["sys/fs/cgroup/cgroup.controllers"] = "memory\n";
    bench_.config.memory = {{.name = "silver"}, {.name = "unused"}};
    bench_.subjects.push_back(
        {.container = "shop/p/main", .id = "id", .cgroup = "sys/fs/cgroup/c"});
    Wants("858993459");
    bench_.files.tree[kHigh] = "858992640\n";  // in whole pages
  }
  void Wants(std::string_view high) {
    bench_.subjects[0].chosen.memory = {
        .name = "silver", .source = "annotation x", .files = {{"memory.high", std::string(high)}}};
  }
  ClassReport Report() { return bench_.Run(*kind_); }

  static constexpr const char* kHigh = "sys/fs/cgroup/c/memory.high";
  test::KindBench bench_;
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
  EXPECT_THAT(bench_.files.written, IsEmpty());
}

TEST_F(MemoryKindTest, WithoutTheControllerTheClassesAreAbsent) {
  bench_.files.tree["sys/fs/cgroup/cgroup.controllers"] = "cpu\n";
  bench_.config.absent = ClassesConfig::Absent::kRefuse;
  const ClassReport report = Report();
  ASSERT_EQ(report.classes.size(), 2U);
  for (const ClassState& one : report.classes) {
    EXPECT_FALSE(one.active);
    EXPECT_TRUE(one.absent);
    EXPECT_EQ(one.reason, "sys/fs/cgroup/cgroup.controllers has no memory");
  }
  ASSERT_TRUE(report.absent.contains("memory"));
  EXPECT_THAT(bench_.files.written, IsEmpty());
}

TEST_F(MemoryKindTest, AmountsHaveTheKernelsUnits) {
  bench_.files.tree[kHigh] = "1073741824\n";
  for (const char* const text : {"1G", "1g", "1024M", "1048576k", "1073741824"}) {
    Wants(text);
    EXPECT_TRUE(Report().classes[0].active) << text;
  }
  EXPECT_THAT(bench_.files.written, IsEmpty());
}

TEST_F(MemoryKindTest, ARunningContainerFollowsItsMemoryLimit) {
  (void)Report();
  Wants("429496729");
  EXPECT_TRUE(Report().classes[0].active);
  EXPECT_EQ(bench_.files.tree.at(kHigh), "429496729");
}

TEST_F(MemoryKindTest, WhatTheRuntimeHasSetEndsWithTheClass) {
  (void)Report();
  bench_.subjects.clear();
  (void)Report();
  EXPECT_EQ(bench_.files.tree.at(kHigh), "max\n") << "as without a class";
  EXPECT_THAT(bench_.files.written, ElementsAre(std::string(kHigh) + " max\n"));
}

TEST_F(MemoryKindTest, WhatTheKubeletMayHaveSetStays) {
  *context_.kubelet_sets_memory = true;
  (void)Report();
  bench_.subjects.clear();
  (void)Report();
  EXPECT_EQ(bench_.files.tree.at(kHigh), "858992640\n");
}

TEST_F(MemoryKindTest, AContainerThatAwaitsItsCgroupHasItsClass) {
  bench_.subjects[0].cgroup.clear();
  EXPECT_TRUE(Report().classes[0].active) << "containerd makes it at the start";
  bench_.subjects[0].running = true;
  EXPECT_EQ(Report().classes[0].reason, "the container has no cgroup");
}

TEST_F(MemoryKindTest, WhatTheRuntimeCouldNotSetIsWritten) {
  bench_.files.tree[kHigh] = "max\n";
  bench_.subjects[0].running = true;
  const ClassReport report = Report();
  EXPECT_EQ(bench_.files.tree.at(kHigh), "858993459");
  EXPECT_EQ(report.containers.at("id")[0].way, "after start");
}

TEST_F(MemoryKindTest, WhatCannotBeInForceIsInactive) {
  bench_.files.tree[kHigh] = "max\n";
  bench_.files.refuses[kHigh] = EBUSY;
  EXPECT_THAT(Report().classes[0].reason, HasSubstr("cannot write 858993459 to sys/fs/cgroup/c/"));
  bench_.files.tree.erase(kHigh);
  EXPECT_THAT(Report().classes[0].reason, HasSubstr("there is no sys/fs/cgroup/c/memory.high"));
  EXPECT_TRUE(Report().classes[1].active);
  bench_.files.tree.clear();
  EXPECT_FALSE(Report().classes[1].active);
  EXPECT_THAT(Report().classes[0].reason, HasSubstr("cgroup v2"));
}

TEST_F(MemoryKindTest, TheClassOfThePoolCountsWhereThePodChoosesNone) {
  bench_.config.memory = {{.name = "silver", .high = "1000", .low = "10"},
                          {.name = "half", .swap_limit_ratio = 0.5},
                          {.name = "near", .policy = MemoryPolicyConfig{}}};
  bench_.config.memory_files = {"memory.low"};
  bench_.config.namespaces["memory"] = {"shop"};
  test::ClassedPod classed;
  Pod& pod = classed.pod;
  pod.namespace_name = "shop";
  classed.placement.pool = "x[0]";
  Status status;
  const auto choose = [&](const char* of_pool) {
    classed.of_pool = {{"memory", of_pool}};
    ChosenClasses chosen;
    status = kind_->Choose(classed.container(), bench_.config, chosen);
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
  kind_->AtCreation(chosen, bench_.config, true, at_runtime);
  EXPECT_NE(at_runtime.wide()->unified.Find("memory.high"), nullptr);
  context_.door = [] { return CreationWays{.docker = true}; };
  Adjustment at_docker;
  MakeMemoryKind(context_)->AtCreation(chosen, bench_.config, true, at_docker);
  EXPECT_EQ(at_docker.wide()->unified.Find("memory.high"), nullptr);
  EXPECT_NE(at_docker.wide()->unified.Find("memory.low"), nullptr);
  EXPECT_NE(at_docker.wide()->unified.Find("memory.swap.max"), nullptr);
}

}  // namespace
}  // namespace resmgr
