// SPDX-License-Identifier: Apache-2.0
#include "pkg/node/node_cpus.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/policy/testing/test_snapshot.h"
#include "pkg/resmgr/testing/first_fit_policy.h"
#include "pkg/topology/machine_source.h"

namespace resmgr {
namespace {

using testing::ElementsAre;

// CPU 0 is reserved, CPU 7 is not the policy's.
class ReservedAndShared final : public test::FirstFitPolicy {
 public:
  using FirstFitPolicy::FirstFitPolicy;
  std::vector<Zone> Zones(const Snapshot&) const override {
    return {{.name = "shared", .cpus = CpuSet{0, 1, 2, 3, 6}},
            {.name = "exclusive", .cpus = CpuSet{4, 5}},
            {.name = "reserved", .cpus = CpuSet{0}}};
  }
};

class NodeCpusTest : public testing::Test {
 protected:
  void Add(const CpuSet& exclusive, ContainerState state = ContainerState::kRunning) {
    Container& container = snapshot_.Add("pod", QosClass::kGuaranteed, 1000);
    container.state = state;
    container.placement.exclusive = exclusive;
  }

  const Machine machine_ = *LoadMachine("synthetic:package:2 numa:1 core:4 pu:1");
  const ReservedAndShared policy_{machine_};
  test::TestSnapshot snapshot_;
};

TEST_F(NodeCpusTest, CountsByNumaNode) {
  Add(CpuSet{4, 5});
  Add(CpuSet{});
  Add(CpuSet{2}, ContainerState::kExited);
  EXPECT_THAT(CpusByNumaNode(machine_, policy_, snapshot_),
              ElementsAre(NumaCpus{.node = 0, .allocatable = 3, .exclusive = 0, .free = 3},
                          NumaCpus{.node = 1, .allocatable = 3, .exclusive = 2, .free = 1}));
}

// A container that a former policy placed may have CPUs that this one has reserved.
TEST_F(NodeCpusTest, ExclusiveCpusThatAreReservedAreNoFreeOnes) {
  Add(CpuSet{0, 1});
  EXPECT_THAT(CpusByNumaNode(machine_, policy_, snapshot_),
              ElementsAre(NumaCpus{.node = 0, .allocatable = 3, .exclusive = 2, .free = 2},
                          NumaCpus{.node = 1, .allocatable = 3, .exclusive = 0, .free = 3}));
}

TEST_F(NodeCpusTest, IsCompactJson) {
  EXPECT_EQ(ToJson({{.node = 0, .allocatable = 3, .exclusive = 2, .free = 1},
                    {.node = 4, .allocatable = 8, .exclusive = 0, .free = 8}}),
            R"({"version":1,"numa":[{"id":0,"allocatable":3,"exclusive":2,"free":1},)"
            R"({"id":4,"allocatable":8,"exclusive":0,"free":8}]})");
  EXPECT_EQ(ToJson({}), R"({"version":1,"numa":[]})");
}

}  // namespace
}  // namespace resmgr
