// SPDX-License-Identifier: Apache-2.0
// Huge pages of running containers over restarts, with and without saved state.
#include <cstdint>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "pkg/resmgr/testing/test_node.h"
#include "pkg/state/testing/crashing_file_system.h"
#include "pkg/topology/machine_source.h"
#include "policies/topology-aware/topology_aware_policy.h"
#include "test/integration/brain/default_policy.h"

namespace resmgr::test {
namespace {

// Thirteen huge pages of 1 GiB, all on node 0. The parameter: the daemon keeps notes.
class HugePagesOverRestartsTest : public testing::TestWithParam<bool> {
 protected:
  HugePagesOverRestartsTest() {
    if (GetParam()) node_.KeepState(files_);
  }
  ContainerId Run(std::string_view name, uint64_t gibibytes) {
    CreateRequest request =
        TestNode::Request(node_.AddPod(name, QosClass::kGuaranteed), name, 1000);
    request.resources.hugepage_limits = {{"1GB", gibibytes << 30}, {"2MB", 0}};
    const StatusOr<ContainerId> id = node_.Create(request);
    EXPECT_TRUE(id.ok()) << id.status();
    node_.runtime.AnswerAll();
    node_.Start(*id);
    return *id;
  }
  std::string Mems(const ContainerId& id) const {
    return node_.Known(id)->placement.mems.value_or(NodeSet()).ToString();
  }
  void Restart() {
    if (GetParam()) node_.FlushState();
    node_.Restart();
    node_.runtime.AnswerAll();
  }

  CrashingFileSystem files_{1};
  TestNode node_{*LoadMachine(RESMGR_SOURCE_DIR "/test/data/topology/hugepages-2s.xml"),
                 [](const Machine& machine) {
                   return MakeDefaultPolicy(TopologyAwarePolicyFactory(), machine);
                 }};
};

TEST_P(HugePagesOverRestartsTest, AreHeldAndGivenBack) {
  const ContainerId first = Run("a", 8);
  const ContainerId second = Run("b", 5);
  EXPECT_EQ(Mems(first), "0");
  EXPECT_EQ(Mems(second), "0");
  Restart();
  EXPECT_EQ(Mems(first), "0");
  EXPECT_EQ(Mems(second), "0");
  const ContainerId late = Run("c", 1);
  EXPECT_EQ(Mems(late), "0-1") << "none is left";
  Restart();
  EXPECT_EQ(Mems(late), "0-1");
  node_.Stop(late);
  node_.Stop(first);
  node_.runtime.AnswerAll();
  EXPECT_EQ(Mems(Run("d", 8)), "0");
  EXPECT_EQ(Mems(Run("e", 1)), "0-1");
}

INSTANTIATE_TEST_SUITE_P(Notes, HugePagesOverRestartsTest, testing::Bool(),
                         [](const auto& param_info) {
                           return std::string(param_info.param ? "Kept" : "Lost");
                         });

}  // namespace
}  // namespace resmgr::test
