// SPDX-License-Identifier: Apache-2.0
#include "pkg/node/dra_problems.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/support/machines/machines.h"

namespace resmgr {
namespace {

using testing::HasSubstr;

void HoldOneOf(const std::string& driver, HeldClaims& held) {
  held.Add({.uid = "uid-" + driver,
            .namespace_name = "default",
            .name = "c",
            .parts = {{.device = "cpu-numa-0", .node = 0, .cpus = 1}},
            .driver = driver});
}

TEST(DraProblemsTest, ClaimsOfAFormerDriverCannotBeReleased) {
  HeldClaims held;
  const dra::Driver now{.name = "cpu.example.com"};
  HoldOneOf("cpu.example.com", held);
  HoldOneOf("", held);
  EXPECT_FALSE(HeldOfFormerDriver(held, now)) << "they may be its own";
  HoldOneOf("former.example.com", held);
  const std::optional<Problem> problem = HeldOfFormerDriver(held, now);
  ASSERT_TRUE(problem);
  EXPECT_EQ(problem->kind, "plugin");
  EXPECT_THAT(problem->message,
              HasSubstr("was former.example.com before, and CPUs of 1 claim stay held"));
  EXPECT_THAT(problem->next, HasSubstr("let the driver be former.example.com again"));
  EXPECT_FALSE(HeldOfFormerDriver({}, now));
}

TEST(DraProblemsTest, PlacesThatAPoolHasNoRoomForGetNoClaims) {
  const Machine caches = test::MakeMachine({.packages = 2, .nodes = 5, .l3s = 7, .cores = 7});
  EXPECT_FALSE(NoRoomForDevices(caches, DraDevices::kNuma));
  const std::optional<Problem> left = NoRoomForDevices(caches, DraDevices::kL3);
  ASSERT_TRUE(left);
  EXPECT_THAT(left->message, HasSubstr("of 6 further L3 caches"));
  EXPECT_EQ(left->next, "set dra.Devices to numa");
  const Machine nodes = test::MakeMachine({.packages = 65, .cores = 1});
  const std::optional<Problem> more = NoRoomForDevices(nodes, DraDevices::kNuma);
  ASSERT_TRUE(more);
  EXPECT_THAT(more->message, HasSubstr("of 1 further NUMA nodes"));
}

}  // namespace
}  // namespace resmgr
