// SPDX-License-Identifier: Apache-2.0
#include "pkg/model/resource_fields.h"

#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace resmgr {
namespace {

using testing::ElementsAre;

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

}  // namespace
}  // namespace resmgr
