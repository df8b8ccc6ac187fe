// SPDX-License-Identifier: Apache-2.0
// Pods whose cgroups are named as systemd names slices: their class shows in nothing else.
#include <string>
#include <tuple>

#include <gtest/gtest.h>

#include "test/e2e/node_fixture.h"

namespace resmgr::test {
namespace {

using Names = Containerd::CgroupNames;

class CgroupNamesTest : public NodeTest,
                        public ::testing::WithParamInterface<std::tuple<const char*, Names>> {
 protected:
  void SetUp() override {
    Open({.policy = std::get<0>(GetParam()), .cgroup_names = std::get<1>(GetParam())});
  }
};

TEST_P(CgroupNamesTest, TellTheClassOfAPod) {
  const bool plus = std::get<0>(GetParam()) == std::string_view("static-plus");
  const RunningPod shared = Run(BestEffort("shared"));
  const CpuSet everywhere = plus ? Unreserved() : All();
  EXPECT_EQ(CpuSetOf(shared), everywhere);

  const RunningPod exclusive = Run(Guaranteed("exclusive", 1));
  const CpuSet own = CpuSetOf(exclusive);
  EXPECT_EQ(own.size(), 1);
  const CpuSet rest = everywhere - own;
  EXPECT_EQ(CpuSetOf(shared), rest.empty() ? CpuSet{0} : rest);
  Remove(exclusive);
  ExpectOn(shared, everywhere);

  // A whole CPU in a Burstable pod is exclusive for one of the policies only.
  const RunningPod burstable = Run(Burstable("burstable", MilliCpu{1000}));
  EXPECT_EQ(CpuSetOf(burstable).size(), plus ? 1 : All().size());
}

std::string CaseName(const ::testing::TestParamInfo<CgroupNamesTest::ParamType>& param_info) {
  const auto& [policy, names] = param_info.param;
  return std::string(policy == std::string_view("static") ? "Static" : "StaticPlus") +
         (names == Names::kSystemd ? "Systemd" : "Cgroupfs");
}

INSTANTIATE_TEST_SUITE_P(Containerd, CgroupNamesTest,
                         ::testing::Combine(::testing::Values("static", "static-plus"),
                                            ::testing::Values(Names::kCgroupfs, Names::kSystemd)),
                         CaseName);

}  // namespace
}  // namespace resmgr::test
