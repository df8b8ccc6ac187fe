// SPDX-License-Identifier: Apache-2.0
#include "pkg/claims/claim_options.h"

#include <gtest/gtest.h>

namespace resmgr {
namespace {

TEST(ClaimOptionsTest, EachCoreTypeIsReadByItsName) {
  for (const CoreKind kind : {CoreKind::kNormal, CoreKind::kPerformance, CoreKind::kEfficient})
    EXPECT_EQ(ParseCoreType(CoreTypeName(kind)), kind);
  EXPECT_EQ(ParseCoreType("performance"), CoreKind::kPerformance);
  EXPECT_EQ(ParseCoreType("efficient"), CoreKind::kEfficient);
  for (const char* const name : {"", "P-core", "normal", "e-cores"})
    EXPECT_FALSE(ParseCoreType(name)) << name;
}

TEST(ClaimOptionsTest, OptionsAreTheAnnotationsOfContainers) {
  const StringMap always{{"prefer-reserved-cpus.cri-resource-manager.intel.com/pod", "false"},
                         {"prefer-shared-cpus.cri-resource-manager.intel.com/pod", "false"}};
  EXPECT_EQ(AnnotationsFor({.whole_cores = true, .share_within_pod = true}), always);
  EXPECT_EQ(AnnotationsFor({.core_type = CoreKind::kEfficient, .l3 = true, .avoid_siblings = true}),
            (StringMap{{"prefer-reserved-cpus.cri-resource-manager.intel.com/pod", "false"},
                       {"prefer-shared-cpus.cri-resource-manager.intel.com/pod", "false"},
                       {"prefer-cpu-priority.cri-resource-manager.intel.com/pod", "low"},
                       {"alignment.cri-resource-manager.intel.com/pod", "l3"},
                       {"hide-hyperthreads.cri-resource-manager.intel.com/pod", "true"}}));
}

TEST(ClaimOptionsTest, ADescriptionNamesParametersAsUsersWriteThem) {
  EXPECT_EQ(DescribeOptions({}), "");
  EXPECT_EQ(DescribeOptions({.core_type = CoreKind::kPerformance, .l3 = true}),
            " (coreType p-core, l3)");
  EXPECT_EQ(DescribeOptions({.whole_cores = true, .avoid_siblings = true}),
            " (wholeCores, avoidSiblings)");
}

}  // namespace
}  // namespace resmgr
