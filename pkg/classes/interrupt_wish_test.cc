// SPDX-License-Identifier: Apache-2.0
#include "pkg/classes/interrupt_wish.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace resmgr {
namespace {

using testing::HasSubstr;

constexpr const char* kOfPod = "irq-affinity.resource-policy.nri.io/pod";

StatusOr<InterruptWish> ReadWish(std::string_view text) {
  InterruptWish wish;
  RESMGR_RETURN_IF_ERROR(ReadInterruptWish({{kOfPod, std::string(text)}}, "main", wish));
  return wish;
}

TEST(InterruptWishTest, ReadsTheListsAndTheMode) {
  const InterruptWish both = ReadWish("claim: ['*eth0*', 24]\nmask: ['*']\n").value();
  EXPECT_EQ(both, (InterruptWish{.claim = {"*eth0*", "24"}, .mask = {"*"}}));
  EXPECT_EQ(both.ToString(), "claim *eth0*, 24; mask *");
  EXPECT_FALSE(ReadWish("{claim: ['*'], mode: mask-first}")->mask_wins);
  EXPECT_TRUE(ReadWish("{claim: ['*'], mode: claim-first}")->mask_wins);
  EXPECT_EQ(ReadWish("{mask: nvme*}")->ToString(), "mask nvme*");
  EXPECT_FALSE(ReadWish("{}")->any());
  EXPECT_FALSE(ReadWish("")->any());
}

TEST(InterruptWishTest, TheNarrowestAnnotationCounts) {
  InterruptWish wish;
  ASSERT_TRUE(
      ReadInterruptWish({{kOfPod, "mask: ['*']"},
                         {"irq-affinity.resource-policy.nri.io/container.main", "claim: [24]"},
                         {"irq-affinity.resource-policy.nri.io/container.other", "mode: x"}},
                        "main", wish)
          .ok());
  EXPECT_EQ(wish, InterruptWish{.claim = {"24"}});
}

TEST(InterruptWishTest, MistakesAreNamed) {
  const auto error = [](std::string_view text) {
    return std::string(Message(ReadWish(text).status()));
  };
  EXPECT_THAT(error("{claims: [24]}"), HasSubstr("irq-affinity.claims: unknown key"));
  EXPECT_THAT(error("{mode: first}"), HasSubstr("irq-affinity.mode"));
  EXPECT_THAT(error("{mask: ['eth[']}"), HasSubstr("\"eth[\" has a [ without its ]"));
  EXPECT_THAT(error("[24]"), HasSubstr("irq-affinity"));
  EXPECT_NE(error("claim: [{"), "");
  std::string many = "claim: [a";
  for (int i = 0; i < 64; ++i)
    many += ", a";
  EXPECT_THAT(error(many + "]"), HasSubstr("irq-affinity.claim: has more than 64 globs"));
}

}  // namespace
}  // namespace resmgr
