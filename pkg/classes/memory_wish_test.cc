// SPDX-License-Identifier: Apache-2.0
#include "pkg/classes/memory_wish.h"

#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/classes/class_report.h"
#include "pkg/classes/memory_kind.h"
#include "pkg/classes/testing/fake_host_files.h"
#include "pkg/sys/temp_dir.h"

namespace resmgr {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

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

// The rows of reference/classes.md 6.
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

class MemoryKindTest : public testing::Test {
 protected:
  MemoryKindTest() { files_.tree["sys/fs/cgroup/cgroup.controllers"] = "memory\n"; }

  ClassReport Report() {
    files_.tree.erase(kHigh);
    if (read_) files_.tree[kHigh] = *read_;
    ClassSubject subject{.container = "shop/p/main", .id = "id", .cgroup = "sys/fs/cgroup/c"};
    subject.chosen.memory = {
        .name = "silver", .source = "annotation x", .files = {{"memory.high", high_}}};
    const std::vector<ClassSubject> subjects = {subject};
    ClassPlan plan;
    MakeMemoryKind()->Plan({.subjects = subjects, .pools = {}, .config = config_, .host = keeper_},
                           plan);
    EXPECT_THAT(plan.values, IsEmpty()) << "it is the runtime's to write";
    return MakeReport(plan, subjects, {});
  }

  static constexpr const char* kHigh = "sys/fs/cgroup/c/memory.high";
  ClassesConfig config_{.memory = {{.name = "silver"}, {.name = "unused"}}};
  std::string high_ = "858993459";
  std::optional<std::string> read_ = "858992640\n";  // in whole pages
  TempDir directory_;
  test::FakeHostFiles files_;
  ClassJournal journal_{directory_.path() + "/classes", ""};
  HostKeeper keeper_{files_, journal_};
};

TEST_F(MemoryKindTest, WhatIsReadBackCounts) {
  ClassReport report = Report();
  ASSERT_EQ(report.classes.size(), 2U);
  EXPECT_TRUE(report.classes[0].active);
  EXPECT_THAT(report.classes[0].containers, ElementsAre("shop/p/main"));
  EXPECT_TRUE(report.classes[1].active);
  EXPECT_EQ(report.containers.at("id")[0].in_force, "memory.high 858992640");
  EXPECT_EQ(report.containers.at("id")[0].way, "at creation");
}

TEST_F(MemoryKindTest, AmountsHaveTheKernelsUnits) {
  read_ = "1073741824\n";
  for (const char* const text : {"1G", "1g", "1024M", "1048576k", "1073741824"}) {
    high_ = text;
    EXPECT_TRUE(Report().classes[0].active) << text;
  }
  for (const char* const text : {"1M", "G", "17179869184G", "1Gi", "max"}) {
    high_ = text;
    EXPECT_FALSE(Report().classes[0].active) << text;
  }
}

TEST_F(MemoryKindTest, WhatIsNotInForceIsInactive) {
  read_ = "max\n";
  EXPECT_EQ(Report().classes[0].reason,
            "memory.high is max and not 858993459, which is set at creation");
  read_ = std::nullopt;
  EXPECT_THAT(Report().classes[0].reason, HasSubstr("there is no sys/fs/cgroup/c/memory.high"));
  EXPECT_TRUE(Report().classes[1].active);
  files_.tree.clear();
  EXPECT_FALSE(Report().classes[1].active);
  EXPECT_THAT(Report().classes[0].reason, HasSubstr("cgroup v2"));
}

}  // namespace
}  // namespace resmgr
