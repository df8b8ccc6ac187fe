// SPDX-License-Identifier: Apache-2.0
#include "pkg/model/adjustment.h"

#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/model/request.h"
#include "pkg/model/resource_fields.h"

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

constexpr size_t kFieldCount = kFieldNames.size();

template <typename T>
void SetSomething(std::optional<T>& value) {
  value.emplace();
}
template <typename T>
void SetSomething(KeyedEdits<T>& edits) {
  edits.Set("key", T());
}
template <typename T>
void SetSomething(std::vector<T>& list) {
  list.emplace_back();
}

// An adjustment that sets this field alone.
Adjustment With(Field field) {
  Adjustment adjustment;
  if (field == Field::kCpusetCpus) adjustment.values.cpus = CpuSet{1};
  if (field == Field::kCpusetMems) adjustment.values.mems = NodeSet{1};
  if (const NumberField* const number = NumberFieldOf(field)) NumberOf(adjustment, *number) = 7;
  ForEachWideField([field, &adjustment](Field row, auto member) {
    if (row == field && !NumberFieldOf(field)) SetSomething(adjustment.Wide().*member);
  });
  return adjustment;
}

std::vector<Field> FieldsOf(const Adjustment& adjustment) {
  std::vector<Field> fields;
  for (const FieldChange& change : adjustment.Changes())
    fields.push_back(change.field);
  return fields;
}

TEST(ResourceFieldsTest, EachFieldIsAChangeAndIsMerged) {
  for (size_t i = 0; i < kFieldCount; ++i) {
    const auto field = static_cast<Field>(i);
    SCOPED_TRACE(ToString(field));
    EXPECT_THAT(FieldsOf(With(field)), ElementsAre(field));
    Adjustment merged;
    merged.Merge(With(field));
    EXPECT_THAT(FieldsOf(merged), ElementsAre(field));
    Adjustment both = With(Field::kCpuShares);
    both.Merge(With(field));
    EXPECT_THAT(FieldsOf(both), testing::Contains(field));
  }
}

TEST(ResourceFieldsTest, NamesAndNumbersAreNotRepeated) {
  EXPECT_EQ(std::set(kFieldNames.begin(), kFieldNames.end()).size(), kFieldCount);
  std::set<uint32_t> numbers;
  std::set<std::string> names;
  for (const NumberField& number : kNumberFields) {
    numbers.insert(number.cri_number);
    names.insert(number.cri_name);
    EXPECT_TRUE(number.value != nullptr || number.changed != nullptr) << number.cri_name;
  }
  EXPECT_EQ(numbers.size(), kNumberFields.size());
  EXPECT_EQ(names.size(), kNumberFields.size());
}

TEST(ResourceFieldsTest, ANumberIsSaidAndTakenBackAlone) {
  for (const NumberField& number : kNumberFields) {
    SCOPED_TRACE(number.cri_name);
    const Adjustment adjustment = With(number.field);
    EXPECT_EQ(NumberIn(adjustment, number), 7);
    EXPECT_TRUE(adjustment.Says({.field = number.field}));
    for (const NumberField& other : kNumberFields) {
      const bool limit = number.field == Field::kCpuPeriod && other.field == Field::kCpuQuota;
      if (other.field == number.field || limit) continue;
      EXPECT_FALSE(adjustment.Says({.field = other.field})) << other.cri_name;
    }
  }
}

TEST(ResourceFieldsTest, ALaterNumberWins) {
  for (const NumberField& number : kNumberFields) {
    Adjustment merged = With(number.field);
    Adjustment later;
    NumberOf(later, number) = 8;
    merged.Merge(std::move(later));
    EXPECT_EQ(NumberIn(merged, number), 8) << number.cri_name;
    EXPECT_THAT(FieldsOf(merged), ElementsAre(number.field));
  }
}

struct Shown {
  CreateRequest create;
  ContainerDetails details;
};

Shown ShownWith(const Adjustment& so_far) {
  Shown shown;
  shown.create.labels = {{"l", "1"}, {"m", "1"}};
  shown.create.annotations = {{"a", "1"}};
  shown.create.resources.cpu_shares = 1024;
  shown.create.resources.hugepage_limits = {{"1GB", 1}, {"2MB", 2}};
  shown.details.environment = {{"A", "1"}, {"B", "1"}, {"C", "1"}, {"A", "again"}};
  shown.details.command = {"/bin/app"};
  shown.details.args = {"-v"};
  shown.details.mounts = {{.container_path = "/data", .host_path = "/old"}};
  shown.details.unified = {{"memory.high", "1"}};
  shown.details.cdi_devices = {"vendor/a=0"};
  Overlay(so_far, shown.create);
  Overlay(so_far, shown.details);
  return shown;
}

TEST(OverlayTest, NothingChangesNothing) {
  const Shown before = ShownWith(Adjustment());
  EXPECT_EQ(before.create.resources.cpu_shares, 1024);
  EXPECT_EQ(before.details.environment.size(), 4U);
}

TEST(OverlayTest, ShowsWhatThePolicyDecided) {
  const Shown shown = ShownWith(Adjustment({.cpus = CpuSet{2, 3}, .cpu_quota = -1}));

  EXPECT_EQ(shown.create.resources.cpuset_cpus, "2-3");
  EXPECT_EQ(shown.create.resources.cpu_quota, -1);
  EXPECT_EQ(shown.create.resources.cpu_shares, 1024);
}

TEST(OverlayTest, AFileTakesThePlaceOfTheField) {
  Adjustment so_far;
  so_far.Wide().unified.Set("cpu.weight", "7");
  const Shown shown = ShownWith(so_far);
  EXPECT_EQ(shown.create.resources.cpu_shares, std::nullopt);
  EXPECT_EQ(shown.details.unified, (StringMap{{"cpu.weight", "7"}, {"memory.high", "1"}}));
}

TEST(OverlayTest, ShowsThatAListIsCleared) {
  CreateRequest create;
  create.resources.cpuset_cpus = "1";
  create.resources.cpuset_mems = "0";
  Adjustment so_far({.mems = NodeSet{1}});
  so_far.Wide().clear_cpus = true;

  Overlay(so_far, create);

  EXPECT_EQ(create.resources.cpuset_cpus, std::nullopt);
  EXPECT_EQ(create.resources.cpuset_mems, "1");
}

TEST(OverlayTest, DetailsThatAreSharedAreCopiedWhereSomethingChanges) {
  ContainerDetails before;
  before.environment = {{"A", "1"}};
  const auto details = std::make_shared<const ContainerDetails>(before);
  EXPECT_EQ(Overlaid(Adjustment({.cpu_shares = 2}), details), details);

  Adjustment so_far;
  so_far.Wide().environment.Set("A", "2");
  const auto changed = Overlaid(so_far, details);
  EXPECT_EQ(changed->environment[0].value, "2");
  EXPECT_EQ(details->environment[0].value, "1");
}

TEST(OverlayTest, EditsEntriesInTheirPlace) {
  Adjustment so_far;
  WideAdjustment& wide = so_far.Wide();
  wide.environment.Set("A", "2");
  wide.environment.Remove("B");
  wide.environment.Set("D", "4");
  wide.mounts.Set("/data", {.container_path = "/data", .host_path = "/new"});
  wide.labels.Remove("l");
  wide.annotations.Set("b", "2");
  wide.hugepage_limits.Remove("1GB");
  wide.hugepage_limits.Set("2MB", 4);
  wide.unified.Set("memory.low", "3");

  const Shown shown = ShownWith(so_far);

  EXPECT_THAT(shown.details.environment,
              ElementsAre(EnvironmentVariable{"A", "2"}, EnvironmentVariable{"C", "1"},
                          EnvironmentVariable{"D", "4"}));
  EXPECT_THAT(shown.details.mounts,
              ElementsAre(Mount{.container_path = "/data", .host_path = "/new"}));
  EXPECT_EQ(shown.create.labels, (StringMap{{"m", "1"}}));
  EXPECT_EQ(shown.create.annotations, (StringMap{{"a", "1"}, {"b", "2"}}));
  EXPECT_THAT(shown.create.resources.hugepage_limits, ElementsAre(testing::Pair("2MB", 4)));
  EXPECT_EQ(shown.details.unified, (StringMap{{"memory.high", "1"}, {"memory.low", "3"}}));
}

TEST(OverlayTest, TakesTheRest) {
  Adjustment so_far;
  WideAdjustment& wide = so_far.Wide();
  wide.memory_limit = 10;
  wide.memory_swap_limit = 20;
  wide.oom_score_adj = -1;
  wide.args = {"wrapper"};
  wide.devices.Set("/dev/x", {.container_path = "/dev/x"});
  wide.cdi_devices = {"vendor/b=0"};
  wide.cgroup_parent = "/pods";
  wide.resource_limits.Set("RLIMIT_CORE", {.type = "RLIMIT_CORE", .hard = 1});
  wide.hooks = {{.path = "/bin/hook"}};
  wide.seccomp_profile = "/profile.json";

  const Shown shown = ShownWith(so_far);

  EXPECT_EQ(shown.create.resources.memory_limit, 10);
  EXPECT_EQ(shown.create.resources.oom_score_adj, -1);
  const ContainerDetails& details = shown.details;
  EXPECT_EQ(details.memory_swap_limit, 20);
  EXPECT_THAT(details.command, ElementsAre("wrapper"));
  EXPECT_TRUE(details.args.empty());
  EXPECT_THAT(details.devices, ElementsAre(Device{.container_path = "/dev/x"}));
  EXPECT_THAT(details.cdi_devices, ElementsAre("vendor/a=0", "vendor/b=0"));
  EXPECT_EQ(details.cgroup_parent, "/pods");
  EXPECT_THAT(details.resource_limits,
              ElementsAre(ResourceLimit{.type = "RLIMIT_CORE", .hard = 1}));
  EXPECT_THAT(details.hooks, ElementsAre(OciHook{.path = "/bin/hook"}));
  EXPECT_EQ(details.security.seccomp->path, "/profile.json");
}

TEST(OverlayTest, ASeccompPolicyInTheRequestIsInNoFile) {
  Adjustment so_far;
  so_far.Wide().seccomp_profile = "{}";
  EXPECT_EQ(ShownWith(so_far).details.security.seccomp,
            SeccompProfile{.kind = SeccompProfile::Kind::kLocalhost});
}

}  // namespace
}  // namespace resmgr
