// SPDX-License-Identifier: Apache-2.0
#include "pkg/pipeline/field_owners.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace resmgr {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

FieldOwner Owner(Field field, std::string key, std::string stage) {
  return {.change = {.field = field, .key = std::move(key)}, .stage = std::move(stage)};
}

TEST(FieldOwnersTest, TheLastChangeOfAFieldCounts) {
  FieldOwners owners;
  owners.Add("id",
             {Owner(Field::kEnvironment, "A", "one"), Owner(Field::kEnvironment, "B", "one")});
  owners.Add("id", {Owner(Field::kEnvironment, "B", "two")});

  EXPECT_THAT(owners.Of(ContainerId("id")), ElementsAre(Owner(Field::kEnvironment, "A", "one"),
                                                        Owner(Field::kEnvironment, "B", "two")));
  EXPECT_THAT(owners.Of(ContainerId("other")), IsEmpty());
}

TEST(FieldOwnersTest, NamesOfOneProgramAreAlike) {
  EXPECT_TRUE(LookLikeOneProgram("koordlet.json", "00-koordlet_nri"));
  EXPECT_TRUE(LookLikeOneProgram("50-mine", "10-mine.json"));
  for (const char* const other : {"10-other", "", "00-", ".json", "10-,20-koordlet"})
    EXPECT_FALSE(LookLikeOneProgram("koordlet.json", other)) << other;
}

TEST(FieldOwnersTest, ValuesAreShownWhereTheyAreNoSecrets) {
  Adjustment adjustment(ResourceValues{.cpus = CpuSet{1, 2}, .cpu_shares = 512, .cpu_quota = -1});
  adjustment.Wide().memory_limit = 4096;
  adjustment.Wide().unified.Set("memory.high", "max");
  adjustment.Wide().unified.Remove("cpu.idle");
  adjustment.Wide().hugepage_limits.Set("2MB", 7);
  adjustment.Wide().environment.Set("TOKEN", "secret");
  adjustment.Wide().annotations.Set("note", "secret");
  adjustment.Wide().clear_mems = true;
  const auto shown = [&adjustment](Field field, std::string key = {}) {
    return ShownValue(adjustment, {.field = field, .key = std::move(key)});
  };
  EXPECT_EQ(shown(Field::kCpusetCpus), "1-2");
  EXPECT_EQ(shown(Field::kCpusetMems), "any");
  EXPECT_EQ(shown(Field::kCpuShares), "512");
  EXPECT_EQ(shown(Field::kCpuQuota), "none");
  EXPECT_EQ(shown(Field::kMemoryLimit), "4096");
  EXPECT_EQ(shown(Field::kUnified, "memory.high"), "max");
  EXPECT_EQ(shown(Field::kUnified, "cpu.idle"), "removed");
  EXPECT_EQ(shown(Field::kHugepageLimits, "2MB"), "7");
  for (const FieldChange& change : adjustment.Changes()) {
    EXPECT_EQ(ShownValue(adjustment, change).find("secret"), std::string::npos)
        << ToString(change.field);
  }
}

TEST(FieldOwnersTest, AFileAndItsFieldHaveOneOwner) {
  FieldOwners owners;
  owners.Add("id", {Owner(Field::kUnified, "cpu.weight", "one"),
                    Owner(Field::kUnified, "memory.high", "one")});
  owners.Add("id", {Owner(Field::kCpuShares, "", "two")});
  EXPECT_THAT(owners.Of(ContainerId("id")),
              ElementsAre(Owner(Field::kUnified, "memory.high", "one"),
                          Owner(Field::kCpuShares, "", "two")));
  owners.Add("id", {Owner(Field::kUnified, "cpu.weight.nice", "three")});
  EXPECT_THAT(owners.Of(ContainerId("id")),
              ElementsAre(Owner(Field::kUnified, "memory.high", "one"),
                          Owner(Field::kUnified, "cpu.weight.nice", "three")));
}

TEST(FieldOwnersTest, TakesTheBeginningOfAnIdThatOnlyOneHas) {
  FieldOwners owners;
  owners.Add("abc1", {Owner(Field::kArgs, "", "one")});
  owners.Add("abd1", {Owner(Field::kArgs, "", "one")});

  owners.Add("abc", {Owner(Field::kMounts, "/m", "two")});
  EXPECT_THAT(owners.Of(ContainerId("abc1")), SizeIs(2));

  owners.Forget("ab");
  owners.Forget("");
  EXPECT_FALSE(owners.empty());
  owners.Forget("abc");
  owners.Forget("abd");
  EXPECT_TRUE(owners.empty());
}

TEST(FieldOwnersTest, ForgetsWhatIsKnownForLongestWhereThereAreTooMany) {
  FieldOwners owners;
  for (size_t i = 0; i <= FieldOwners::kMostContainers; ++i)
    owners.Add("id" + std::to_string(100'000 + i), {Owner(Field::kArgs, "", "one")});

  EXPECT_THAT(owners.Of(ContainerId("id100000")), IsEmpty());
  EXPECT_THAT(owners.Of(ContainerId("id100001")), SizeIs(1));
}

TEST(FieldOwnersTest, KeepsABoundedNumberOfEachContainer) {
  FieldOwners owners;
  for (size_t i = 0; i <= FieldOwners::kMostOwners; ++i)
    owners.Add("id", {Owner(Field::kEnvironment, std::to_string(i), "one")});

  EXPECT_THAT(owners.Of(ContainerId("id")), SizeIs(FieldOwners::kMostOwners));
}

}  // namespace
}  // namespace resmgr
