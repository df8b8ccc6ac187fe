// SPDX-License-Identifier: Apache-2.0
// A first start on a node that is full already: all containers may be everywhere, and each
// exclusive one waits for all others to leave its CPUs. The work grows with the containers that
// wait and with the answers, not with their product with all containers.
#include <cstdint>
#include <ctime>
#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/resmgr/testing/test_node.h"
#include "policies/static-plus/static_plus_policy.h"
#include "policies/static/static_policy.h"
#include "policies/topology-aware/topology_aware_policy.h"
#include "test/integration/brain/default_policy.h"
#include "test/support/machines/machines.h"

namespace resmgr::test {
namespace {

constexpr int kContainers = 500;
constexpr int kExclusiveEach = 5;  // one of so many is for exclusive CPUs

double ProcessorSeconds() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

struct FullNodeCase {
  std::string name;
  PolicyFactory (*factory)();
};

class FirstStartTest : public testing::TestWithParam<FullNodeCase> {
 protected:
  // Containers that run without any daemon so far.
  void Fill() {
    for (int i = 0; i < kContainers; ++i) {
      const bool exclusive = i % kExclusiveEach == 0;
      const std::string name = fmt::format("c{}", i);
      const PodSandboxId pod =
          node_.AddPod(name, exclusive ? QosClass::kGuaranteed : QosClass::kBurstable);
      const ContainerId id = node_.Hold(TestNode::Request(pod, name, exclusive ? 2000 : 300), {});
      node_.runtime.Find(id)->state = ContainerState::kRunning;
      ids_.push_back(id);
    }
  }

  TestNode node_{MakeMachine({.packages = 2, .nodes = 4, .cores = 32, .threads = 2}),
                 [](const Machine& its) { return MakeDefaultPolicy(GetParam().factory(), its); }};
  std::vector<ContainerId> ids_;
};

TEST_P(FirstStartTest, OfAFullNodeTakesLittle) {
  constexpr double kMostSeconds = 3;
  ASSERT_EQ(node_.machine().online().size(), 512);
  Fill();
  const double start = ProcessorSeconds();
  node_.Reconnect();
  node_.runtime.AnswerAll();
  const double took = ProcessorSeconds() - start;
  std::printf("%d containers take %.0f ms of the processor\n", kContainers, took * 1e3);
  EXPECT_LT(took, kMostSeconds);
  for (int i = 0; i < kContainers; i += kExclusiveEach) {
    const std::string placed = node_.Exclusive(ids_[static_cast<size_t>(i)]);
    EXPECT_NE(placed, "") << i;
    EXPECT_EQ(node_.runtime.CpusOf(ids_[static_cast<size_t>(i)]), placed) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Policies, FirstStartTest,
                         testing::Values(FullNodeCase{"Static", StaticPolicyFactory},
                                         FullNodeCase{"StaticPlus", StaticPlusPolicyFactory},
                                         FullNodeCase{"TopologyAware", TopologyAwarePolicyFactory}),
                         [](const auto& one) { return one.param.name; });

}  // namespace
}  // namespace resmgr::test
