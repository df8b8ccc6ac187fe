// SPDX-License-Identifier: Apache-2.0
#include "pkg/topology/cpu_set.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <random>
#include <set>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/support/seed.h"

namespace resmgr {
namespace {

using ::testing::HasSubstr;

std::string ParseError(std::string_view list) {
  const StatusOr<CpuSet> set = CpuSet::Parse(list);
  if (set.ok()) return "parsed as " + set->ToString();
  EXPECT_EQ(set.status().code(), StatusCode::kInvalidArgument);
  return std::string(Message(set.status()));
}

TEST(CpuSetTest, ParsesRangeWithGap) {
  const StatusOr<CpuSet> set = CpuSet::Parse("0-3,8,10-11");
  ASSERT_TRUE(set.ok());
  EXPECT_EQ(*set, (CpuSet{0, 1, 2, 3, 8, 10, 11}));
}

TEST(CpuSetTest, ParsesOverlappingItemsInAnyOrder) {
  EXPECT_EQ(*CpuSet::Parse("5,3-6,0"), (CpuSet{0, 3, 4, 5, 6}));
}

TEST(CpuSetTest, IgnoresWhiteSpaceAroundItems) {
  EXPECT_EQ(*CpuSet::Parse(" 0-1 , 4\n"), (CpuSet{0, 1, 4}));
  EXPECT_TRUE(CpuSet::Parse(" \n")->empty());
  EXPECT_TRUE(CpuSet::Parse("")->empty());
}

TEST(CpuSetTest, RefusesWhatIsNoList) {
  EXPECT_THAT(ParseError("0-3,x"), HasSubstr("list \"0-3,x\": 'x' is neither"));
  EXPECT_THAT(ParseError("1,,2"), HasSubstr("'' is neither"));
  EXPECT_THAT(ParseError(","), HasSubstr("'' is neither"));
  EXPECT_THAT(ParseError("-1"), HasSubstr("'-1' is neither"));
  EXPECT_THAT(ParseError("3-"), HasSubstr("'3-' is neither"));
  EXPECT_THAT(ParseError("0-10:2"), HasSubstr("'0-10:2' is neither"));
  EXPECT_THAT(ParseError("1 - 2"), HasSubstr("'1 - 2' is neither"));
  EXPECT_THAT(ParseError("5-3"), HasSubstr("'5-3' is a range that ends below its start"));
}

TEST(CpuSetTest, RefusesIdsAboveTheHighest) {
  EXPECT_EQ(*CpuSet::Parse("8191"), CpuSet{CpuSet::kMaxId});
  EXPECT_THAT(ParseError("8192"), HasSubstr("above 8191"));
  EXPECT_THAT(ParseError("0-4294967296"), HasSubstr("above 8191"));
}

TEST(CpuSetTest, PrintsRunsAsRanges) {
  EXPECT_EQ(CpuSet().ToString(), "");
  EXPECT_EQ(CpuSet{7}.ToString(), "7");
  EXPECT_EQ((CpuSet{0, 1, 3, 63, 64, 65, 1023}).ToString(), "0-1,3,63-65,1023");
  EXPECT_EQ((CpuSet{0, 1023, 1024, 8191}).ToString(), "0,1023-1024,8191");
  EXPECT_EQ(CpuSet::Range(0, CpuSet::kMaxId).ToString(), "0-8191");
  CpuSet longest = CpuSet::Range(0, CpuSet::kMaxId);
  for (int id = 2; id <= CpuSet::kMaxId; id += 3)
    longest.Remove(id);
  EXPECT_EQ(*CpuSet::Parse(longest.ToString()), longest);
}

TEST(CpuSetTest, ContainsNothingOutsideItsRange) {
  const CpuSet all = CpuSet::Range(0, CpuSet::kMaxId);
  EXPECT_FALSE(all.Contains(-1));
  EXPECT_FALSE(all.Contains(CpuSet::kBits));
  EXPECT_TRUE(all.Contains(CpuSet::kMaxId));
}

TEST(CpuSetTest, FirstAndNextAfterWalkOverWords) {
  const CpuSet set{3, 64, 1023, 5000};
  EXPECT_EQ(set.First(), 3);
  EXPECT_EQ(set.NextAfter(3), 64);
  EXPECT_EQ(set.NextAfter(64), 1023);
  EXPECT_EQ(set.NextAfter(1023), 5000);
  EXPECT_EQ(set.NextAfter(5000), -1);
  EXPECT_EQ(CpuSet().First(), -1);
}

TEST(CpuSetTest, LastIsTheHighest) {
  EXPECT_EQ(CpuSet().Last(), -1);
  EXPECT_EQ(CpuSet{0}.Last(), 0);
  EXPECT_EQ((CpuSet{3, 63}).Last(), 63);
  EXPECT_EQ((CpuSet{3, 64}).Last(), 64);
  EXPECT_EQ((CpuSet{0, 1023}).Last(), 1023);
  EXPECT_EQ((CpuSet{0, 1024}).Last(), 1024);
}

// Containers' records and plans are full of sets: high ids must not make them larger.
TEST(CpuSetTest, IsNoLargerThanTheWordsThatNeedNoAllocation) {
  EXPECT_EQ(sizeof(CpuSet), 1024 / 8 + sizeof(uint64_t));
  EXPECT_EQ(sizeof(NodeSet), 320 / 8 + sizeof(uint64_t));
}

TEST(CpuSetTest, MovesAndCopiesOwnTheirHighIds) {
  CpuSet set{1, 300, 8000};
  CpuSet copy = set;
  copy.Add(8001);
  EXPECT_EQ(set.ToString(), "1,300,8000");
  CpuSet moved = std::move(copy);
  EXPECT_EQ(moved.ToString(), "1,300,8000-8001");
  copy = CpuSet{300};
  EXPECT_EQ(copy.ToString(), "300");
  copy = std::move(moved);
  EXPECT_EQ(copy.ToString(), "1,300,8000-8001");
  set = copy;
  EXPECT_EQ(set, copy);
  CpuSet& self = set;
  set = self;
  EXPECT_EQ(set, copy);
  set &= CpuSet{1, 300};
  EXPECT_EQ(set, (CpuSet{1, 300}));
  set |= copy;
  EXPECT_EQ(set, copy);
  set &= CpuSet{1};
  EXPECT_EQ(set, CpuSet{1});
}

// Sets of NUMA nodes have fewer words of their own.
template <typename Set>
class IdSetTest : public testing::Test {};
using IdSets = testing::Types<CpuSet, NodeSet>;
TYPED_TEST_SUITE(IdSetTest, IdSets);

template <typename Set>
Set ToSet(const std::set<int>& ids) {
  Set set;
  for (const int id : ids)
    set.Add(id);
  return set;
}

template <typename Set>
std::vector<int> Visited(const Set& set) {
  std::vector<int> ids;
  for (const int id : set)
    ids.push_back(id);
  return ids;
}

// The same operations on a std::set must agree.
TYPED_TEST(IdSetTest, BehavesLikeASetOfNumbers) {
  const uint64_t seed = test::SeedOr(1);
  SCOPED_TRACE(test::Repeat(seed));
  std::mt19937 random(seed);
  const auto random_ids = [&random] {
    std::set<int> ids;
    const int count = std::uniform_int_distribution<int>(0, 80)(random);
    // Some of the sets are dense, so that runs cross word boundaries; the others differ in where
    // their words are.
    constexpr int kLast[] = {140, 140, 319, 1023, TypeParam::kMaxId};
    const int last = kLast[random() % std::size(kLast)];
    for (int i = 0; i < count; ++i)
      ids.insert(std::uniform_int_distribution<int>(0, last)(random));
    return ids;
  };
  const auto to_set = ToSet<TypeParam>;
  for (int round = 0; round < 400; ++round) {
    const std::set<int> a = random_ids();
    const std::set<int> b = random_ids();
    std::set<int> both;
    std::set<int> either;
    std::set<int> only_a;
    std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::inserter(both, both.end()));
    std::set_union(a.begin(), a.end(), b.begin(), b.end(), std::inserter(either, either.end()));
    std::set_difference(a.begin(), a.end(), b.begin(), b.end(),
                        std::inserter(only_a, only_a.end()));
    const TypeParam x = to_set(a);
    const TypeParam y = to_set(b);
    ASSERT_EQ(x & y, to_set(both));
    ASSERT_EQ(x | y, to_set(either));
    ASSERT_EQ(x - y, to_set(only_a));
    ASSERT_EQ(x.size(), static_cast<int>(a.size()));
    ASSERT_EQ(x.CountCommon(y), static_cast<int>(both.size()));
    ASSERT_EQ(x.Intersects(y), !both.empty());
    ASSERT_EQ(x.IsSubsetOf(y), only_a.empty());
    ASSERT_EQ(x.Last(), a.empty() ? -1 : *a.rbegin());
    TypeParam assigned = y;
    assigned = x;
    TypeParam moved = y;
    moved = TypeParam(x);
    ASSERT_EQ(moved, x);
    ASSERT_EQ(assigned, x);
    ASSERT_EQ(assigned == y, a == b);
    for (const int id : a)
      assigned.Remove(id);
    ASSERT_TRUE(assigned.empty()) << assigned.ToString();
    ASSERT_EQ(assigned, TypeParam());
    ASSERT_EQ(TypeParam(), assigned);
    ASSERT_TRUE(assigned.IsSubsetOf(y));
    ASSERT_EQ(std::vector<int>(a.begin(), a.end()), Visited(x));
    ASSERT_EQ(*TypeParam::Parse(x.ToString()), x) << x.ToString();
  }
}

}  // namespace
}  // namespace resmgr
