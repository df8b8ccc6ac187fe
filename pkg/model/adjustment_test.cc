// SPDX-License-Identifier: Apache-2.0
#include "pkg/model/adjustment.h"

#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace resmgr {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::IsNull;

TEST(AdjustmentTest, AllocatesNothingForThePolicysFields) {
  Adjustment adjustment(ResourceValues{.cpus = CpuSet{1, 2}, .cpu_shares = 512});

  EXPECT_THAT(adjustment.wide(), IsNull());
  EXPECT_FALSE(adjustment.empty());
  EXPECT_THAT(adjustment.Changes(), ElementsAre(FieldChange{.field = Field::kCpusetCpus},
                                                FieldChange{.field = Field::kCpuShares}));
}

TEST(AdjustmentTest, IsEmptyWhereNothingWasSetInTheWidePart) {
  Adjustment adjustment;
  adjustment.Wide();

  EXPECT_TRUE(adjustment.empty());
  EXPECT_THAT(adjustment.Changes(), IsEmpty());
}

TEST(AdjustmentTest, ALaterValueWinsEntryByEntry) {
  Adjustment first(ResourceValues{.cpu_shares = 2, .cpu_quota = 3});
  first.Wide().environment.Set("A", "1");
  first.Wide().environment.Set("B", "1");
  first.Wide().memory_limit = 10;
  first.Wide().cdi_devices = {"vendor/a=0"};
  Adjustment later(ResourceValues{.cpu_shares = 4});
  later.Wide().environment.Set("B", "2");
  later.Wide().environment.Remove("C");
  later.Wide().cdi_devices = {"vendor/b=0"};

  first.Merge(std::move(later));

  EXPECT_EQ(first.values, (ResourceValues{.cpu_shares = 4, .cpu_quota = 3}));
  KeyedEdits<std::string> environment;
  environment.Set("A", "1");
  environment.Set("B", "2");
  environment.Remove("C");
  EXPECT_EQ(first.wide()->environment, environment);
  EXPECT_EQ(first.wide()->memory_limit, 10);
  EXPECT_THAT(first.wide()->cdi_devices, ElementsAre("vendor/a=0", "vendor/b=0"));
}

TEST(AdjustmentTest, OfAListAndItsClearingTheLaterOneWins) {
  Adjustment sum(ResourceValues{.cpus = CpuSet{1}});
  sum.Wide().clear_mems = true;
  EXPECT_THAT(sum.Changes(), ElementsAre(FieldChange{.field = Field::kCpusetCpus},
                                         FieldChange{.field = Field::kCpusetMems}));
  Adjustment clears_cpus;
  clears_cpus.Wide().clear_cpus = true;

  sum.Merge(std::move(clears_cpus));
  EXPECT_EQ(sum.values.cpus, std::nullopt);
  EXPECT_TRUE(sum.clears_cpus());
  EXPECT_TRUE(sum.clears_mems());

  sum.Merge(Adjustment(ResourceValues{.mems = NodeSet{1}}));
  EXPECT_TRUE(sum.clears_cpus());
  EXPECT_FALSE(sum.clears_mems());
  EXPECT_EQ(sum.values.mems, NodeSet{1});

  sum.Merge(Adjustment(ResourceValues{.cpus = CpuSet{2}, .cpu_shares = 3}));
  EXPECT_FALSE(sum.clears_cpus());
  EXPECT_EQ(*sum.wide(), WideAdjustment());
  EXPECT_EQ(sum.values, (ResourceValues{.cpus = CpuSet{2}, .mems = NodeSet{1}, .cpu_shares = 3}));
}

TEST(AdjustmentTest, WithinOneAdjustmentAListWinsOverItsClearing) {
  Adjustment both(ResourceValues{.cpus = CpuSet{1}});
  both.Wide().clear_cpus = true;
  EXPECT_FALSE(both.clears_cpus());
  EXPECT_THAT(both.Changes(), ElementsAre(FieldChange{.field = Field::kCpusetCpus}));

  Adjustment sum(ResourceValues{.cpus = CpuSet{2}});
  sum.Merge(std::move(both));
  EXPECT_EQ(sum.values.cpus, CpuSet{1});
  EXPECT_EQ(*sum.wide(), WideAdjustment());
}

TEST(AdjustmentTest, DropsListsAndTheirClearingsAndNothingElse) {
  Adjustment adjustment(ResourceValues{.cpus = CpuSet{1}, .cpu_shares = 2});
  adjustment.Wide().clear_mems = true;
  adjustment.Wide().memory_limit = 3;

  EXPECT_TRUE(adjustment.DropPlacement());
  EXPECT_THAT(adjustment.Changes(), ElementsAre(FieldChange{.field = Field::kCpuShares},
                                                FieldChange{.field = Field::kMemoryLimit}));
  EXPECT_FALSE(adjustment.DropPlacement());
}

TEST(AdjustmentTest, MergingIntoNothingTakesAll) {
  Adjustment first;
  Adjustment later;
  later.Wide().annotations.Remove("a");

  first.Merge(std::move(later));

  EXPECT_THAT(first.Changes(), ElementsAre(FieldChange{.field = Field::kAnnotations, .key = "a"}));
}

TEST(AdjustmentTest, ListsEveryKindOfChangeOnce) {
  Adjustment adjustment(ResourceValues{
      .cpus = CpuSet{0}, .mems = NodeSet{0}, .cpu_shares = 2, .cpu_quota = -1, .cpu_period = 100});
  WideAdjustment& wide = adjustment.Wide();
  wide.memory_limit = wide.memory_swap_limit = wide.oom_score_adj = 1;
  wide.hugepage_limits.Set("2MB", 1);
  wide.unified.Set("k", "v");
  wide.environment.Set("k", "v");
  wide.labels.Set("k", "v");
  wide.annotations.Set("k", "v");
  wide.blockio_class = wide.rdt_class = wide.cgroup_parent = "x";
  wide.args = {"program"};
  wide.mounts.Remove("/m");
  wide.devices.Set("/dev/x", {.container_path = "/dev/x"});
  wide.cdi_devices = {"c"};
  wide.resource_limits.Set("RLIMIT_CORE", {.type = "RLIMIT_CORE"});
  wide.hooks = {{.path = "/bin/hook"}};
  wide.seccomp_profile = "/profile.json";

  int expected = 0;
  for (const FieldChange& change : adjustment.Changes()) {
    EXPECT_EQ(static_cast<int>(change.field), expected++);
    EXPECT_THAT(ToString(change.field), testing::Not(IsEmpty()));
  }
  EXPECT_EQ(expected, static_cast<int>(Field::kSeccompProfile) + 1);
}

TEST(KeyedEditsTest, TheLastEditOfAKeyCounts) {
  KeyedEdits<std::string> edits;
  edits.Set("a", "1");
  edits.Set("b", "1");
  edits.Remove("a");
  edits.Set("b", "2");

  ASSERT_NE(edits.Find("a"), nullptr);
  EXPECT_EQ(edits.Find("a")->value, std::nullopt);
  EXPECT_EQ(edits.Find("b")->value, "2");
  EXPECT_EQ(edits.Find("c"), nullptr);
}

TEST(KeyedEditsTest, FindsEachOfManyKeys) {
  constexpr int kMany = 20'000;  // with a search of all for each, this would take seconds
  KeyedEdits<int> edits;
  for (int round = 0; round < 2; ++round)
    for (int i = 0; i < kMany; ++i)
      edits.Set(std::to_string(i), i + round);
  edits.Remove("7");

  EXPECT_EQ(std::distance(edits.begin(), edits.end()), kMany);
  EXPECT_EQ(edits.Find("0")->value, 1);
  EXPECT_EQ(edits.Find("7")->value, std::nullopt);
  EXPECT_EQ(edits.Find(std::to_string(kMany - 1))->value, kMany);
  EXPECT_EQ(edits.Find(std::to_string(kMany)), nullptr);
}

TEST(KeyedEditsTest, IsAnotherOneAfterACopy) {
  KeyedEdits<int> edits;
  for (int i = 0; i < 20; ++i)
    edits.Set(std::to_string(i), i);
  KeyedEdits<int> copy = edits;
  copy.Set("19", -1);
  copy.Set("20", 20);

  EXPECT_EQ(edits.Find("19")->value, 19);
  EXPECT_EQ(edits.Find("20"), nullptr);
  EXPECT_EQ(copy.Find("20")->value, 20);
}

}  // namespace
}  // namespace resmgr
