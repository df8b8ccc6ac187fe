// SPDX-License-Identifier: Apache-2.0
#include "pkg/kube/crio_annotations.h"

#include <gtest/gtest.h>

namespace resmgr {
namespace {

TEST(CrioAnnotationsTest, TheContainersOwnOneWins) {
  const StringMap annotations({{"cpu-shared.crio.io", "enable"}, {"cpu-shared.crio.io/b", "no"}});
  EXPECT_EQ(FindCrioAnnotation(annotations, kCpuSharedAnnotation, "a")->first,
            "cpu-shared.crio.io");
  EXPECT_EQ(FindCrioAnnotation(annotations, kCpuSharedAnnotation, "b")->second, "no");
  EXPECT_FALSE(FindCrioAnnotation({}, kCpuSharedAnnotation, "a").has_value());
}

TEST(CrioAnnotationsTest, SharedCpusAreEnabledByThisWordAlone) {
  const auto wants = [](const char* value) {
    return WantsSharedCpus(StringMap({{"cpu-shared.crio.io/a", value}}), "a");
  };
  EXPECT_TRUE(wants("enable"));
  for (const char* const value : {"", "true", "disable", "Enable"})
    EXPECT_FALSE(wants(value)) << value;
  EXPECT_FALSE(WantsSharedCpus(StringMap({{"cpu-shared.crio.io/a", "enable"}}), "b"));
}

}  // namespace
}  // namespace resmgr
