// SPDX-License-Identifier: Apache-2.0
// A restart, a reconnect and the same configuration again move no container: neither one with
// exclusive CPUs, nor one that shares, nor one that shares because there is no room.
#include <algorithm>
#include <cstdint>
#include <ctime>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/kube/cpu_arithmetic.h"
#include "pkg/policy/registry.h"
#include "pkg/resmgr/testing/test_node.h"
#include "pkg/state/testing/failing_file_systems.h"
#include "pkg/topology/machine_source.h"
#include "policies/balloons/balloons_policy.h"
#include "policies/static-plus/static_plus_policy.h"
#include "policies/static/static_policy.h"
#include "policies/topology-aware/topology_aware_policy.h"
#include "test/integration/brain/default_policy.h"
#include "test/integration/brain/node_machines.h"
#include "test/support/machines/machines.h"
#include "test/support/sanitizer.h"
#include "test/support/seed.h"

namespace resmgr::test {
namespace {

using testing::HasSubstr;

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
    node_.manager().policy_changes().Set(MakeDefaultPolicy(factory_, node_.machine()),
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
    const std::vector<NamedMachine>& machines = AllMachines();
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

// A first start on a node that is full already: all containers may be everywhere, and each
// exclusive one waits for all others to leave its CPUs. The work grows with the containers that
// wait and with the answers, not with their product with all containers.

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

// Huge pages of running containers over restarts, with and without saved state.

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

// Requests above 256 CPUs, which CPU shares do not distinguish, through a restart without saved
// state.

// 1024 CPUs.
class Node : public TestNode {
 public:
  explicit Node(const PolicyFactory& factory)
      : TestNode(
            MakeMachine({.packages = 8, .cores = 64, .threads = 2}),
            [factory](const Machine& machine) { return MakeDefaultPolicy(factory, machine); }) {}

  const Placement& At(const ContainerId& id) const { return Known(id)->placement; }
  int64_t QuotaInForce(const ContainerId& id) {
    return runtime.Find(id)->resources.cpu_quota.value_or(0);
  }
  void ResizeTo(const ContainerId& id, int64_t milli_cpu) {
    const LinuxResources changes = Resources(milli_cpu);
    const StatusOr<Admission> admission = manager().AdmitUpdate(id, changes);
    ASSERT_TRUE(admission.ok()) << admission.status();
    ResourceValues carried = admission->adjustment;
    if (!carried.cpu_shares) carried.cpu_shares = changes.cpu_shares;
    if (!carried.cpu_quota) carried.cpu_quota = changes.cpu_quota;
    runtime.Apply(id, carried);
    manager().UpdateSucceeded(*admission);
  }
};

class LargeRequestsTest : public testing::TestWithParam<PolicyFactory> {};

TEST_P(LargeRequestsTest, ARestartMovesNoContainer) {
  Node node(GetParam());
  const ContainerId large = node.Run("large", QosClass::kGuaranteed, 300'000);
  const ContainerId limit = node.Run("limit", QosClass::kGuaranteed, 256'000);
  const ContainerId below = node.Run("below", QosClass::kGuaranteed, 255'000);
  EXPECT_EQ(node.At(large).exclusive.size(), 300);
  EXPECT_EQ(node.QuotaInForce(large), 30'000'000) << "nothing else tells how many they are";
  EXPECT_EQ(node.QuotaInForce(limit), 25'600'000) << "that they are no more";
  EXPECT_EQ(node.QuotaInForce(below), kNoQuota);
  for (const ContainerId& id : {large, limit, below}) {
    const std::string before = node.Placed(id);
    node.Restart();
    EXPECT_EQ(node.Placed(id), before) << id.value();
    EXPECT_EQ(node.Exclusive(id), before) << id.value();
  }
  EXPECT_TRUE(node.runtime.history.empty()) << node.runtime.history.front();
}

TEST_P(LargeRequestsTest, AResizeThatOnlyTheQuotaTellsIsOne) {
  Node node(GetParam());
  const ContainerId large = node.Run("large", QosClass::kGuaranteed, 300'000);
  for (const int64_t cpus : {320, 257, 200, 310}) {
    node.ResizeTo(large, 1000 * cpus);
    EXPECT_EQ(node.At(large).exclusive.size(), cpus);
    EXPECT_EQ(node.QuotaInForce(large), cpus < 256 ? kNoQuota : 100'000 * cpus);
    const std::string before = node.Placed(large);
    node.Restart();
    EXPECT_EQ(node.Exclusive(large), before) << cpus;
  }
}

INSTANTIATE_TEST_SUITE_P(Policies, LargeRequestsTest,
                         testing::Values(StaticPolicyFactory(), StaticPlusPolicyFactory(),
                                         TopologyAwarePolicyFactory()),
                         [](const auto& param_info) {
                           std::string name(param_info.param.name);
                           std::erase(name, '-');
                           return name;
                         });

// Its request may be its limit or less: it gets CPUs of its own for the certain part, and the
// shared CPUs for the rest.
TEST(LargeBurstableRequestsTest, HaveSharedCpusForWhatTheSharesDoNotTell) {
  Node node(StaticPlusPolicyFactory());
  const ContainerId large = node.Run("large", QosClass::kBurstable, 300'000);
  EXPECT_EQ(node.At(large).exclusive.size(), 256);
  EXPECT_EQ(node.At(large).cpus->size(), 1023);
  EXPECT_EQ(node.QuotaInForce(large), 30'000'000);
  EXPECT_THAT(node.At(large).reason,
              HasSubstr("CPU request of 256000m, the most that CPU shares tell"));
  const ContainerId exact = node.Run("exact", QosClass::kBurstable, 256'000);
  EXPECT_EQ(node.At(exact).cpus->size(), 256) << "its limit allows no more";
  const std::string before = node.Placed(large);
  node.Restart();
  EXPECT_EQ(node.Placed(large), before);
  EXPECT_EQ(node.At(large).exclusive.size(), 256);
}

}  // namespace
}  // namespace resmgr::test
