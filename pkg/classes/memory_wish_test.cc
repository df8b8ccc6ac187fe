// SPDX-License-Identifier: Apache-2.0
#include "pkg/classes/memory_wish.h"

#include <initializer_list>
#include <map>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

}  // namespace
}  // namespace resmgr
