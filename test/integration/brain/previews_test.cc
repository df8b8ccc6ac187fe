// SPDX-License-Identifier: Apache-2.0
// A preview changes nothing: neither the present state nor any later decision.
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "pkg/config/yaml_reader.h"
#include "pkg/policy/registry.h"
#include "pkg/resmgr/testing/test_node.h"
#include "policies/balloons/balloons_policy.h"
#include "policies/null/null_policy.h"
#include "policies/static-plus/static_plus_policy.h"
#include "policies/static/static_policy.h"
#include "policies/topology-aware/topology_aware_policy.h"
#include "test/integration/brain/default_policy.h"
#include "test/integration/brain/node_machines.h"
#include "test/support/sanitizer.h"
#include "test/support/seed.h"

namespace resmgr::test {
namespace {

constexpr int kPreviewSteps = kSanitized ? 20 : 40;

std::vector<PolicyFactory> AllPolicies() {
  return {StaticPolicyFactory(), StaticPlusPolicyFactory(), TopologyAwarePolicyFactory(),
          BalloonsPolicyFactory(), NullPolicyFactory()};
}

// A random node whose life depends only on its seed, with or without previews.
class PreviewLife : Draws {
 public:
  PreviewLife(const PolicyFactory& factory, const Machine& machine, uint64_t seed)
      : Draws(seed),
        node_(machine, [&factory](const Machine& its) { return MakeDefaultPolicy(factory, its); }) {
  }

  void Step() {
    const int64_t what = Number(1, 12);
    if (what <= 3 && !running_.empty()) {
      node_.Stop(TakeFrom(running_));
    } else if (what == 4 && !running_.empty()) {
      const ContainerId id = OneOf(running_);
      const auto update = node_.manager().AdmitUpdate(id, TestNode::Resources(Request()));
      if (update.ok()) node_.manager().UpdateSucceeded(*update);
    } else if (what == 5) {
      node_.Reconnect();
    } else if (what == 6) {
      EXPECT_TRUE(node_.manager().policy_changes().Rebalance().ok());
    } else if (what == 7) {
      RunOutside();
    } else {
      Create();
    }
    node_.runtime.AnswerAll();
  }

  // Describes places, pools and reasons, and the updates sent to the runtime.
  std::string Describe() {
    std::string text;
    node_.manager().snapshot().ForEachContainer([&text](const Pod&, const Container& container) {
      const Placement& placement = container.placement;
      text += fmt::format(
          "{} on {} ({}), mems {}, {}: {}\n", container.name,
          placement.cpus.value_or(CpuSet()).ToString(), placement.exclusive.ToString(),
          placement.mems.value_or(NodeSet()).ToString(), placement.pool, placement.reason);
    });
    for (const Zone& zone : node_.manager().policy().Zones(node_.manager().snapshot())) {
      text += fmt::format("{}: {} shared, {} exclusive, {}m asked for, {} bytes\n", zone.name,
                          zone.shared.ToString(), zone.exclusive.ToString(),
                          zone.shared_request.value, zone.memory_used.value);
    }
    for (const RuntimeContainer& held : node_.runtime.held.containers)
      text += held.name + " at " + node_.runtime.CpusOf(held.id) + '\n';
    return text;
  }

  void Preview(std::mt19937_64& random) {
    const std::string before = Describe();
    for (uint64_t count = random() % 4; count > 0; --count) {
      if (random() % 2 == 0) {
        EXPECT_TRUE(node_.manager().policy_changes().PreviewRebalance().ok());
      } else {
        const std::vector<PolicyFactory> policies = AllPolicies();
        const PolicyFactory& other = policies[random() % policies.size()];
        const std::unique_ptr<Policy> policy = MakeDefaultPolicy(other, node_.machine());
        const auto moves = node_.manager().policy_changes().Preview(*policy);
        EXPECT_TRUE(moves.ok()) << other.name << ": " << moves.status();
      }
    }
    EXPECT_EQ(Describe(), before);
    EXPECT_TRUE(node_.runtime.updates.empty()) << "a preview sends nothing";
  }

 private:
  QosClass Qos() { return Number(1, 3) == 1 ? QosClass::kBurstable : QosClass::kGuaranteed; }
  int64_t Request() {
    const int64_t whole = 1000 * Number(0, std::max(1, node_.machine().online().size() / 3));
    return Number(1, 3) != 1 ? whole : whole + Number(1, 999);
  }
  void Create() {
    const std::string name = fmt::format("c{}", ++names_);
    const QosClass qos = Qos();
    const StatusOr<ContainerId> id = node_.Create(name, qos, Request());
    if (!id.ok()) return;
    node_.runtime.AnswerAll();
    node_.Start(*id);
    running_.push_back(*id);
  }
  // Runs a container without the daemon's knowledge: there may be no room for exclusive CPUs, and
  // then it shares.
  void RunOutside() {
    const std::string name = fmt::format("outside{}", ++names_);
    const QosClass qos = Qos();
    const PodSandboxId pod = node_.AddPod(name, qos);
    const ContainerId id = node_.Hold(TestNode::Request(pod, name, Request()), {});
    node_.runtime.Find(id)->state = ContainerState::kRunning;
    running_.push_back(id);
    node_.Reconnect();
  }

  TestNode node_;
  std::vector<ContainerId> running_;
  int names_ = 0;
};

void PreviewOnAllMachines(const PolicyFactory& factory) {
  const uint64_t seed = SeedOr(1);
  SCOPED_TRACE(Repeat(seed));
  for (const auto& [name, machine] : AllMachines()) {
    SCOPED_TRACE(name);
    std::mt19937_64 previews(seed + 1);
    PreviewLife looked_at(factory, machine, seed);
    PreviewLife left_alone(factory, machine, seed);
    for (int step = 0; step < kPreviewSteps; ++step) {
      looked_at.Preview(previews);
      looked_at.Step();
      left_alone.Step();
      EXPECT_EQ(looked_at.Describe(), left_alone.Describe());
      ASSERT_FALSE(testing::Test::HasFailure()) << "step " << step;
    }
  }
}

TEST(PreviewsTest, StaticIsAsItWas) {
  PreviewOnAllMachines(StaticPolicyFactory());
}

TEST(PreviewsTest, StaticPlusIsAsItWas) {
  PreviewOnAllMachines(StaticPlusPolicyFactory());
}

TEST(PreviewsTest, TopologyAwareIsAsItWas) {
  PreviewOnAllMachines(TopologyAwarePolicyFactory());
}

TEST(PreviewsTest, BalloonsAreAsTheyWere) {
  PreviewOnAllMachines(BalloonsPolicyFactory());
}

}  // namespace
}  // namespace resmgr::test
