// SPDX-License-Identifier: Apache-2.0
#include "pkg/cri/id_owners.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace resmgr {
namespace {

using testing::ElementsAre;
using testing::Eq;
using testing::Optional;
using testing::SizeIs;
using Kind = IdOwners::Kind;

class IdOwnersTest : public testing::Test {
 protected:
  std::optional<IdOwners::Owner> Find(std::string_view id, Kind kind = Kind::kContainer) const {
    const auto owner = owners_.Find(kind, id);
    EXPECT_TRUE(owner.ok()) << Describe(owner.status());
    return owner.value_or(std::nullopt);
  }

  IdOwners owners_;
};

TEST_F(IdOwnersTest, FindsWholeIdsAndBeginnings) {
  owners_.Add(Kind::kContainer, "abc1", 0);
  owners_.Add(Kind::kContainer, "abc2", 0);
  owners_.Add(Kind::kContainer, "b", 1);
  owners_.Add(Kind::kContainer, "bb", 0);
  EXPECT_THAT(Find("abc1"), Optional(0U));
  EXPECT_THAT(Find("abc"), Optional(0U)) << "the runtime itself says that there are two";
  EXPECT_THAT(Find("b"), Optional(1U)) << "a whole id counts more than a beginning";
  EXPECT_THAT(Find("abc3"), Eq(std::nullopt));
  EXPECT_THAT(Find(""), Eq(std::nullopt));
  EXPECT_THAT(Find("abc1", Kind::kPodSandbox), Eq(std::nullopt));
}

TEST_F(IdOwnersTest, BeginningOfIdsOfTwoRuntimesIsRefused) {
  owners_.Add(Kind::kPodSandbox, "abc", 0);
  owners_.Add(Kind::kPodSandbox, "abd", 1);
  EXPECT_EQ(owners_.Find(Kind::kPodSandbox, "ab").status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(Find("abd", Kind::kPodSandbox), Optional(1U));
  owners_.Remove(Kind::kPodSandbox, "abd", 0);
  EXPECT_THAT(Find("abd", Kind::kPodSandbox), Optional(1U)) << "only its owner removes it";
  owners_.Remove(Kind::kPodSandbox, "abd", 1);
  EXPECT_THAT(Find("ab", Kind::kPodSandbox), Optional(0U));
}

TEST_F(IdOwnersTest, ListReplacesWhatIsOlder) {
  owners_.Add(Kind::kContainer, "gone", 0);
  owners_.Add(Kind::kContainer, "other", 1);
  const auto begin = owners_.BeginList();
  owners_.Add(Kind::kContainer, "new", 0);
  owners_.SetAll(Kind::kContainer, 0, {"listed"}, begin);
  EXPECT_THAT(Find("gone"), Eq(std::nullopt));
  EXPECT_THAT(Find("listed"), Optional(0U));
  EXPECT_THAT(Find("new"), Optional(0U)) << "created while the list was made";
  EXPECT_THAT(Find("other"), Optional(1U));
}

TEST_F(IdOwnersTest, TheFirstClaimCountsUntilItsOwnerGivesItBack) {
  std::vector<std::string> conflicts;
  owners_.OnConflict([&conflicts](const IdOwners::Conflict& conflict) {
    conflicts.push_back(fmt::format("{} {} {}", conflict.id, conflict.owner, conflict.claimant));
  });
  EXPECT_TRUE(owners_.Add(Kind::kContainer, "same", 0));
  EXPECT_FALSE(owners_.Add(Kind::kContainer, "same", 1));
  owners_.SetAll(Kind::kContainer, 1, {"same", "own"}, owners_.BeginList());
  EXPECT_THAT(Find("same"), Optional(0U));
  EXPECT_THAT(Find("own"), Optional(1U));
  EXPECT_THAT(conflicts, ElementsAre("same 0 1")) << "told once";
  EXPECT_TRUE(owners_.IsOfOther(Kind::kContainer, "same", 1));
  EXPECT_FALSE(owners_.IsOfOther(Kind::kContainer, "same", 0));
  // The claimant gives the id up, and claims it again.
  owners_.SetAll(Kind::kContainer, 1, {"own"}, owners_.BeginList());
  EXPECT_FALSE(owners_.Add(Kind::kContainer, "same", 1));
  EXPECT_THAT(conflicts, SizeIs(2));
  // The owner sends a complete list.
  owners_.SetAll(Kind::kContainer, 0, {}, owners_.BeginList());
  EXPECT_TRUE(owners_.Add(Kind::kContainer, "same", 1));
  EXPECT_THAT(Find("same"), Optional(1U));
  EXPECT_THAT(conflicts, SizeIs(2));
  // Another runtime has the pod's handler now.
  EXPECT_TRUE(owners_.Add(Kind::kPodUid, "uid", 0));
  EXPECT_TRUE(owners_.Add(Kind::kPodUid, "uid", 1));
  EXPECT_THAT(Find("uid", Kind::kPodUid), Optional(1U));
}

TEST_F(IdOwnersTest, ConflictsAreBounded) {
  size_t told = 0;
  owners_.OnConflict([&told](const IdOwners::Conflict&) { ++told; });
  const size_t many = IdOwners::kMostConflicts + 10;
  for (size_t i = 0; i < many; ++i)
    owners_.Add(Kind::kContainer, std::to_string(i), 0);
  for (int round = 0; round < 2; ++round)
    for (size_t i = 0; i < many; ++i)
      EXPECT_FALSE(owners_.Add(Kind::kContainer, std::to_string(i), 1));
  EXPECT_EQ(told, many + 10) << "beyond the bound each claim is told";
}

TEST_F(IdOwnersTest, IdsAreBounded) {
  owners_.Add(Kind::kContainer, std::string(IdOwners::kLongestId + 1, 'x'), 0);
  EXPECT_EQ(owners_.size(Kind::kContainer), 0U);
  for (size_t i = 0; i < IdOwners::kMostIds + 10; ++i)
    owners_.Add(Kind::kContainer, std::to_string(i), 0);
  EXPECT_EQ(owners_.size(Kind::kContainer), IdOwners::kMostIds);
  owners_.Remove(Kind::kContainer, "0", 0);
  EXPECT_TRUE(owners_.Add(Kind::kContainer, "0", 1));
  EXPECT_THAT(Find("0"), Optional(1U)) << "there is room again";
}

}  // namespace
}  // namespace resmgr
