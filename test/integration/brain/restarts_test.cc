// SPDX-License-Identifier: Apache-2.0
// A restart, a reconnect and the same configuration again move no container: neither one with
// exclusive CPUs, nor one that shares, nor one that shares because there is no room.
#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "pkg/policy/registry.h"
#include "pkg/resmgr/testing/test_node.h"
#include "pkg/state/testing/crashing_file_system.h"
#include "policies/balloons/balloons_policy.h"
#include "policies/static-plus/static_plus_policy.h"
#include "policies/static/static_policy.h"
#include "policies/topology-aware/topology_aware_policy.h"
#include "test/integration/brain/default_policy.h"
#include "test/integration/brain/node_machines.h"
#include "test/support/draws.h"
#include "test/support/sanitizer.h"
#include "test/support/seed.h"

namespace resmgr::test {
namespace {

using enum QosClass;

// A node that fills up, with containers that come and go, some of them made at the runtime
// directly.
class FullNode : Draws {
 public:
  static constexpr int kMostContainers = 60;

  FullNode(const PolicyFactory& factory, const Machine& machine, bool remembers, uint64_t seed)
      : Draws(seed),
        factory_(factory),
        node_(machine, [this](const Machine& its) { return MakeDefaultPolicy(factory_, its); }),
        remembers_(remembers) {
    if (remembers_) node_.KeepState(files_);
  }

  // Some containers end on the way, which makes room and moves no other; some are made at the
  // runtime directly, and may have to share.
  void Fill() {
    const int containers = std::min(4 + 2 * node_.machine().online().size(), kMostContainers);
    for (int i = 0; i < containers; ++i) {
      if (Number(1, 6) == 1 && !running_.empty()) node_.Stop(TakeFrom(running_));
      Number(1, 4) == 1 ? RunOutside() : Run();
      Settle();
    }
  }
  // The number of Guaranteed containers with whole CPUs that have no exclusive ones.
  int SharersForWantOfRoom() const {
    int count = 0;
    for (const ContainerId& id : running_) {
      const Container& container = *node_.Known(id);
      if (!entitled_.contains(id.value())) continue;
      if (container.placement.exclusive.empty()) ++count;
    }
    return count;
  }
  void Restart() {
    if (remembers_) node_.FlushState();
    node_.Restart();
  }
  void Reconnect() { node_.Reconnect(); }
  void DeliverAgain() {
    std::optional<Status> outcome;
    node_.manager().SetPolicy(MakeDefaultPolicy(factory_, node_.machine()),
                              [&outcome](const Status& status) { outcome = status; });
    Settle();
    EXPECT_EQ(outcome, OkStatus());
  }
  void Settle() { node_.runtime.AnswerAll(); }

  // Each container's CPUs, and its exclusive ones.
  std::vector<std::string> Places() {
    Settle();
    std::vector<std::string> places;
    for (const ContainerId& id : running_) {
      places.push_back(fmt::format("{} at {}, {} alone", id.value(), node_.runtime.CpusOf(id),
                                   node_.Exclusive(id)));
    }
    return places;
  }

 private:
  struct Wish {
    QosClass qos = kBurstable;
    int64_t milli_cpu = 0;
  };
  Wish AnyWish() {
    const bool guaranteed = Number(1, 3) != 1;
    const bool whole = Number(1, 4) != 1;
    const int64_t most = std::max(1, node_.machine().online().size() / 4);
    return {guaranteed ? kGuaranteed : kBurstable,
            whole ? 1000 * Number(1, most) : Number(1, 1500)};
  }
  void Run() {
    const Wish wish = AnyWish();
    const StatusOr<ContainerId> id = node_.Create(Name(), wish.qos, wish.milli_cpu);
    if (!id.ok()) return;
    Settle();
    node_.Start(*id);
    Add(*id, wish);
  }
  // Runs a container that shares if there is no room for CPUs of its own.
  void RunOutside() {
    const Wish wish = AnyWish();
    const std::string name = Name();
    const PodSandboxId pod = node_.AddPod(name, wish.qos);
    const ContainerId id = node_.Hold(TestNode::Request(pod, name, wish.milli_cpu), {});
    node_.runtime.Find(id)->state = ContainerState::kRunning;
    Add(id, wish);
    node_.Reconnect();
  }
  void Add(const ContainerId& id, const Wish& wish) {
    running_.push_back(id);
    if (wish.qos == kGuaranteed && wish.milli_cpu % 1000 == 0) entitled_.emplace(id.value());
  }
  std::string Name() { return fmt::format("c{}", ++names_); }

  const PolicyFactory factory_;
  CrashingFileSystem files_{1};  // outlives the node, whose state is written on a thread
  TestNode node_;
  const bool remembers_;
  std::vector<ContainerId> running_;
  std::set<std::string, std::less<>> entitled_;
  int names_ = 0;
};

struct NobodyMoves {
  std::string name;
  PolicyFactory (*factory)();
  bool remembers = false;
};

class RestartsTest : public testing::TestWithParam<NobodyMoves> {
 protected:
  // Expects on all machines that no container moves.
  void ExpectNobodyMovesBy(void (FullNode::*act)()) {
    const uint64_t first = SeedOr(1);
    int sharers = 0;
    const std::vector<NamedMachine> machines = AllMachines();
    for (size_t at = 0; at < machines.size(); at += kStride) {
      const auto& [name, machine] = machines[at];
      for (uint64_t seed = first; seed < first + kLives; ++seed) {
        SCOPED_TRACE(name);
        SCOPED_TRACE(Repeat(seed));
        FullNode node(GetParam().factory(), machine, GetParam().remembers, seed);
        node.Fill();
        sharers += node.SharersForWantOfRoom();
        const std::vector<std::string> before = node.Places();
        (node.*act)();
        ASSERT_EQ(node.Places(), before);
        (node.*act)();
        ASSERT_EQ(node.Places(), before) << "the second time";
      }
    }
    EXPECT_GT(sharers, 0) << "some have to share for want of room";
  }

  static constexpr uint64_t kLives = kSanitized ? 1 : 4;
  static constexpr size_t kStride = kSanitized ? 2 : 1;
};

TEST_P(RestartsTest, ARestartMovesNoContainer) {
  ExpectNobodyMovesBy(&FullNode::Restart);
}

TEST_P(RestartsTest, AReconnectMovesNoContainer) {
  ExpectNobodyMovesBy(&FullNode::Reconnect);
}

TEST_P(RestartsTest, TheSameConfigurationAgainMovesNoContainer) {
  ExpectNobodyMovesBy(&FullNode::DeliverAgain);
}

INSTANTIATE_TEST_SUITE_P(
    All, RestartsTest,
    testing::Values(NobodyMoves{"Static", StaticPolicyFactory, true},
                    NobodyMoves{"StaticWithoutState", StaticPolicyFactory},
                    NobodyMoves{"StaticPlus", StaticPlusPolicyFactory, true},
                    NobodyMoves{"StaticPlusWithoutState", StaticPlusPolicyFactory},
                    NobodyMoves{"TopologyAware", TopologyAwarePolicyFactory, true},
                    NobodyMoves{"TopologyAwareWithoutState", TopologyAwarePolicyFactory},
                    NobodyMoves{"Balloons", BalloonsPolicyFactory, true},
                    NobodyMoves{"BalloonsWithoutState", BalloonsPolicyFactory}),
    [](const auto& one) { return one.param.name; });

}  // namespace
}  // namespace resmgr::test
