// SPDX-License-Identifier: Apache-2.0
#include "pkg/model/unified_files.h"

#include <string>

#include <gtest/gtest.h>

namespace resmgr {
namespace {

Adjustment Translated(std::string_view file, std::string_view value) {
  Adjustment adjustment;
  adjustment.Wide().unified.Set(file, std::string(value));
  adjustment.TranslateFiles();
  return adjustment;
}

TEST(UnifiedFilesTest, KnowsTheFieldsThatFilesSay) {
  const auto field = [](std::string_view file, std::string_view value = "1") {
    const auto found = FieldOfFile(file, value);
    return found ? std::string(ToString(found->field)) + found->key : "";
  };
  EXPECT_EQ(field("cpuset.cpus"), "cpuset_cpus");
  EXPECT_EQ(field("cpuset.mems"), "cpuset_mems");
  EXPECT_EQ(field("cpu.max"), "cpu_quota");
  EXPECT_EQ(field("cpu.weight"), "cpu_shares");
  EXPECT_EQ(field("cpu.weight.nice"), "cpu_shares");
  EXPECT_EQ(field("cpu.idle"), "cpu_shares");
  EXPECT_EQ(field("cpu.idle", "0"), "");
  EXPECT_EQ(field("memory.max"), "memory_limit");
  EXPECT_EQ(field("memory.swap.max"), "memory_swap_limit");
  EXPECT_EQ(field("hugetlb.2MB.max"), "hugepage_limits2MB");
  for (const char* const file : {"", "memory.high", "cpu.max.burst", "cpuset.cpus.partition",
                                 "hugetlb.2MB.rsvd.max", "hugetlb.max", "hugetlb..max", "io.max"})
    EXPECT_EQ(field(file), "") << file;
}

TEST(UnifiedFilesTest, EveryCpusetFileIsAPlacement) {
  for (const char* const file : {"cpuset.cpus", "cpuset.mems", "cpuset.cpus.partition",
                                 "cpuset.cpus.exclusive", "cpuset.of.a.later.kernel"})
    EXPECT_TRUE(IsPlacementFile(file)) << file;
  for (const char* const file : {"", "cpuset", "cpu.max", "memory.high"})
    EXPECT_FALSE(IsPlacementFile(file)) << file;
}

TEST(UnifiedFilesTest, WhatAFieldCanSayBecomesTheField) {
  Adjustment adjustment = Translated("cpu.max", "50000 100000\n");
  EXPECT_EQ(adjustment.values, (ResourceValues{.cpu_quota = 50'000, .cpu_period = 100'000}));
  EXPECT_TRUE(adjustment.wide()->unified.empty());
  EXPECT_EQ(Translated("cpu.max", "max").values, ResourceValues{.cpu_quota = -1});
  EXPECT_EQ(Translated("cpu.max", "70000").values, ResourceValues{.cpu_quota = 70'000});
  EXPECT_EQ(Translated("cpuset.cpus", "1-2").values, ResourceValues{.cpus = (CpuSet{1, 2})});
  EXPECT_EQ(Translated("cpuset.mems", "1").values, ResourceValues{.mems = NodeSet{1}});
  EXPECT_EQ(Translated("memory.max", "4096").wide()->memory_limit, 4096);
  EXPECT_EQ(Translated("hugetlb.2MB.max", "7").wide()->hugepage_limits.Find("2MB")->value, 7);
}

TEST(UnifiedFilesTest, WhatNoFieldCanSayStaysAFileAndTheFieldGoes) {
  for (const char* const text :
       {"", "0", "-1", "x", "5 0", "5 x", "99999999999999999999", "5 6 7"}) {
    Adjustment adjustment(ResourceValues{.cpu_quota = 1, .cpu_period = 2});
    adjustment.Wide().unified.Set("cpu.max", text);
    adjustment.TranslateFiles();
    adjustment.YieldToFiles();
    EXPECT_EQ(adjustment.values, ResourceValues()) << text;
    EXPECT_EQ(adjustment.wide()->unified.Find("cpu.max")->value, text);
  }
  Adjustment adjustment(ResourceValues{.cpu_shares = 2});
  adjustment.Wide().memory_swap_limit = 3;
  adjustment.Wide().hugepage_limits.Set("2MB", 4);
  adjustment.Wide().unified.Set("cpu.weight", "100");
  adjustment.Wide().unified.Set("memory.swap.max", "0");
  adjustment.Wide().unified.Set("hugetlb.2MB.max", "max");
  adjustment.Wide().memory_limit = 5;
  adjustment.Wide().unified.Set("memory.max", "max");
  adjustment.TranslateFiles();
  adjustment.YieldToFiles();
  EXPECT_EQ(adjustment.wide()->memory_limit, std::nullopt);
  EXPECT_EQ(adjustment.wide()->unified.Find("memory.max")->value, "max");
  EXPECT_EQ(adjustment.values.cpu_shares, std::nullopt);
  EXPECT_EQ(adjustment.wide()->memory_swap_limit, std::nullopt);
  EXPECT_EQ(adjustment.wide()->hugepage_limits.Find("2MB")->value, std::nullopt);
  EXPECT_NE(adjustment.wide()->unified.Find("cpu.weight"), nullptr);
}

TEST(UnifiedFilesTest, ALaterFileWinsOverAFieldAndALaterFieldOverAFile) {
  Adjustment first(ResourceValues{.cpus = CpuSet{1}, .cpu_shares = 512});
  Adjustment second;
  second.Wide().unified.Set("cpu.weight", "7");
  first.Merge(std::move(second));
  EXPECT_EQ(first.values, ResourceValues{.cpus = CpuSet{1}});
  EXPECT_EQ(first.wide()->unified.Find("cpu.weight")->value, "7");
  Adjustment third;
  third.Wide().unified.Set("cpu.weight.nice", "1");
  first.Merge(std::move(third));
  EXPECT_EQ(first.wide()->unified.Find("cpu.weight")->value, std::nullopt);
  EXPECT_EQ(first.wide()->unified.Find("cpu.weight.nice")->value, "1");
  first.Merge(Adjustment(ResourceValues{.cpu_shares = 3}));
  EXPECT_EQ(first.values.cpu_shares, 3);
  EXPECT_EQ(first.wide()->unified.Find("cpu.weight.nice")->value, std::nullopt);
}

TEST(UnifiedFilesTest, NothingOfAPlacementIsLeftInFiles) {
  Adjustment adjustment(ResourceValues{.cpu_shares = 3});
  for (const char* const file : {"cpuset.cpus", "cpuset.cpus.partition", "memory.high"})
    adjustment.Wide().unified.Set(file, "1");
  adjustment.Wide().unified.Remove("cpuset.mems");
  EXPECT_TRUE(adjustment.DropPlacement());
  EXPECT_FALSE(adjustment.DropPlacement());
  EXPECT_EQ(adjustment.Changes(),
            (std::vector<FieldChange>{{.field = Field::kCpuShares},
                                      {.field = Field::kUnified, .key = "memory.high"}}));
}

TEST(UnifiedFilesTest, KeysOfTheKubeletGo) {
  Adjustment adjustment;
  adjustment.Wide().labels.Set("io.kubernetes.pod.uid", "x");
  adjustment.Wide().labels.Set("app", "x");
  adjustment.Wide().annotations.Remove("io.kubernetes.container.hash");
  EXPECT_TRUE(adjustment.DropKubeletsOwn());
  EXPECT_FALSE(adjustment.DropKubeletsOwn());
  EXPECT_EQ(adjustment.Changes(),
            (std::vector<FieldChange>{{.field = Field::kLabels, .key = "app"}}));
}

TEST(UnifiedFilesTest, ManyEditsAreFoundAfterSomeAreErased) {
  KeyedEdits<std::string> edits;
  for (int i = 0; i < 100; ++i)
    edits.Set(std::to_string(i), "v");
  EXPECT_TRUE(edits.EraseIf([](const auto& edit) { return edit.key.size() == 2; }));
  EXPECT_EQ(edits.Find("50"), nullptr);
  EXPECT_NE(edits.Find("9"), nullptr);
  for (int i = 50; i < 70; ++i)
    edits.Set(std::to_string(i), "w");
  EXPECT_EQ(edits.Find("69")->value, "w");
  EXPECT_EQ(edits.Find("5")->value, "v");
  EXPECT_TRUE(edits.EraseIf([](const auto& edit) { return edit.value == "w"; }));
  EXPECT_EQ(edits.Find("69"), nullptr);
  EXPECT_EQ(edits.Find("3")->value, "v");
}

}  // namespace
}  // namespace resmgr
