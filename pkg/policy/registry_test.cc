// SPDX-License-Identifier: Apache-2.0
#include "pkg/policy/registry.h"

#include <array>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/support/machines/machines.h"

namespace resmgr {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::array<PolicyFactory, 2> kFactories = {{
    {.name = "strict",
     .description = "refuses what is not available",
     .create = [](const PolicyContext& context) -> StatusOr<std::unique_ptr<Policy>> {
       return InvalidArgument("{} CPUs are too few", context.available.size());
     }},
    {.name = "absent",
     .description = "makes nothing",
     .create = [](const PolicyContext&) -> StatusOr<std::unique_ptr<Policy>> {
       return std::unique_ptr<Policy>();
     }},
}};

TEST(PolicyRegistryTest, ListsInTheOrderOfTheList) {
  const PolicyRegistry registry(kFactories);
  EXPECT_THAT(registry.Names(), ElementsAre("strict", "absent"));
  ASSERT_NE(registry.Find("absent"), nullptr);
  EXPECT_EQ(registry.Find("absent")->description, "makes nothing");
  EXPECT_EQ(registry.Find("Absent"), nullptr);
}

TEST(PolicyRegistryTest, CreatesByNameWithTheContext) {
  const PolicyRegistry registry(kFactories);
  const Machine machine = test::S1Ht();
  const PolicyContext context{.machine = machine, .available = CpuSet{1, 2}, .reserved = {}};
  EXPECT_TRUE(registry.Create("absent", context).ok());
  EXPECT_EQ(Message(registry.Create("strict", context).status()), "2 CPUs are too few");
}

TEST(PolicyRegistryTest, NamesThePoliciesThatThereAre) {
  const Machine machine = test::S1Ht();
  const Status status =
      PolicyRegistry(kFactories)
          .Create("balloons", {.machine = machine, .available = {}, .reserved = {}})
          .status();
  EXPECT_EQ(status.code(), StatusCode::kNotFound);
  EXPECT_THAT(std::string(Message(status)),
              HasSubstr("no policy balloons, there are: strict, absent"));
}

}  // namespace
}  // namespace resmgr
