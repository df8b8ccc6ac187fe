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

  int expected = 0;
  for (const FieldChange& change : adjustment.Changes()) {
    EXPECT_EQ(static_cast<int>(change.field), expected++);
    EXPECT_THAT(ToString(change.field), testing::Not(IsEmpty()));
  }
  EXPECT_EQ(expected, static_cast<int>(Field::kHooks) + 1);
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

}  // namespace
}  // namespace resmgr
