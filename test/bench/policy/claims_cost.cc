// SPDX-License-Identifier: Apache-2.0
// The cost of claims for creations without claims: the policy alone, and the policy that holds CPUs
// for claims around it, with none held and with some. All are measured in turn within each round,
// by the processor time of the thread; beside them the policy alone once more, whose ratio is the
// noise.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pkg/claims/claimed_policy.h"
#include "policies/balloons/balloons_policy.h"
#include "policies/static-plus/static_plus_policy.h"
#include "policies/static/static_policy.h"
#include "policies/topology-aware/topology_aware_policy.h"
#include "test/bench/order.h"
#include "test/bench/policy/node.h"

namespace resmgr::test {
namespace {

constexpr int kClaimRounds = 400;
constexpr size_t kClaimPopulation = 300;
constexpr size_t kClaimCreations = 50;  // measured as one
constexpr int kClaimsHeld = 8;
constexpr double kMostRatio = 1.01;

enum class ClaimSide { kAlone, kAloneAgain, kNoneHeld, kSomeHeld };
constexpr std::array kClaimSides = {ClaimSide::kAlone, ClaimSide::kAloneAgain, ClaimSide::kNoneHeld,
                                    ClaimSide::kSomeHeld};
constexpr std::array kClaimNames = {"alone", "alone (A/A)", "no claims", "8 claims"};

[[noreturn]] void FailClaims(const Status& status) {
  std::fprintf(stderr, "%s\n", Describe(status).c_str());
  std::exit(1);
}

double ThreadMicroseconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return 1e6 * static_cast<double>(now.tv_sec) + 1e-3 * static_cast<double>(now.tv_nsec);
}

// A node around which containers come and go in batches, the same ones on each side.
class ClaimsNode {
 public:
  ClaimsNode(const Machine& machine, const PolicyFactory& factory, ClaimSide side)
      : machine_(machine) {
    StatusOr<std::unique_ptr<Policy>> made =
        factory.create({.machine = machine_,
                        .available = machine_.allowed(),
                        .reserved = CpuSet{machine_.allowed().First()}});
    if (!made.ok()) FailClaims(made.status());
    policy_ = *std::move(made);
    if (side == ClaimSide::kNoneHeld || side == ClaimSide::kSomeHeld) {
      auto claimed = std::make_unique<ClaimedPolicy>(std::move(policy_), machine_, carriers_);
      if (side == ClaimSide::kSomeHeld) HoldSome(*claimed);
      policy_ = std::move(claimed);
    }
    while (keys_.size() < kClaimPopulation)
      Create();
  }

  // Microseconds for one creation.
  double Batch() {
    const double start = ThreadMicroseconds();
    for (size_t i = 0; i < kClaimCreations; ++i)
      Create();
    const double took = ThreadMicroseconds() - start;
    while (keys_.size() > kClaimPopulation)
      Remove(random_() % keys_.size());
    return took / kClaimCreations;
  }

 private:
  void HoldSome(ClaimedPolicy& claimed) {
    for (int i = 0; i < kClaimsHeld; ++i) {
      const std::string uid = "claim-" + std::to_string(i);
      const StatusOr<Plan> plan =
          claimed.Reserve(snapshot_, {.uid = uid,
                                      .namespace_name = "ns",
                                      .name = uid,
                                      .parts = {{.device = "cpu", .cpus = 2}}});
      if (!plan.ok()) FailClaims(plan.status());
    }
  }

  // Every fourth one has CPUs of its own.
  void Create() {
    const bool own = random_() % 4 == 0;
    const ContainerKey key =
        snapshot_.Add("main", own ? QosClass::kGuaranteed : QosClass::kBurstable, own ? 1000 : 100)
            .key;
    const StatusOr<Plan> plan =
        policy_->Allocate(snapshot_, snapshot_.PodOf(key), snapshot_.At(key), nullptr);
    if (!plan.ok()) FailClaims(plan.status());
    snapshot_.Apply(*plan);
    keys_.push_back(key);
  }

  void Remove(size_t index) {
    const ContainerKey key = keys_[index];
    keys_.erase(keys_.begin() + static_cast<std::ptrdiff_t>(index));
    snapshot_.Remove(key);
    const StatusOr<Plan> plan = policy_->Release(snapshot_, key);
    if (!plan.ok()) FailClaims(plan.status());
    snapshot_.Apply(*plan);
  }

  const Machine& machine_;
  const ClaimCarriers carriers_;
  std::unique_ptr<Policy> policy_;
  BenchSnapshot snapshot_;
  std::vector<ContainerKey> keys_;
  std::mt19937_64 random_{11};
};

double MedianOf(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

bool MeasureClaimsOf(const PolicyFactory& factory, const Machine& machine) {
  std::vector<std::unique_ptr<ClaimsNode>> nodes;
  nodes.reserve(kClaimSides.size());
  for (const ClaimSide side : kClaimSides)
    nodes.push_back(std::make_unique<ClaimsNode>(machine, factory, side));
  std::array<std::vector<double>, kClaimSides.size()> times;
  std::array<std::vector<double>, kClaimSides.size()> ratios;
  constexpr int kWarm = 8;
  for (int round = -kWarm; round < kClaimRounds; ++round) {
    std::array<double, kClaimSides.size()> now{};
    for (const size_t side :
         bench::OrderOf(size_t{kWarm} + static_cast<size_t>(round), kClaimSides.size()))
      now.at(side) = nodes[side]->Batch();
    if (round < 0) continue;
    for (size_t side = 0; side < kClaimSides.size(); ++side) {
      times.at(side).push_back(now.at(side));
      ratios.at(side).push_back(now.at(side) / now[0]);
    }
  }
  for (size_t side = 0; side < kClaimSides.size(); ++side) {
    std::printf("%-16.*s %-12s %8.2f us %8.4f\n", static_cast<int>(factory.name.size()),
                factory.name.data(), kClaimNames.at(side), MedianOf(times.at(side)),
                MedianOf(ratios.at(side)));
  }
  return MedianOf(ratios[2]) <= kMostRatio;
}

}  // namespace

bool MeasureClaims() {
  const Machine machine =
      BenchMachine({.packages = 2, .nodes = 4, .l3s = 4, .cores = 32, .threads = 2});
  std::printf(
      "creations without claims, %d rounds of %zu, around %zu containers on 512 CPUs: processor "
      "time "
      "of one, and its ratio to the policy alone (medians of rounds)\n",
      kClaimRounds, kClaimCreations, kClaimPopulation);
  bool good = true;
  for (const PolicyFactory& factory : {StaticPolicyFactory(), StaticPlusPolicyFactory(),
                                       TopologyAwarePolicyFactory(), BalloonsPolicyFactory()})
    good &= MeasureClaimsOf(factory, machine);
  if (!good) std::printf("missed: a creation takes more than %.2f of the time\n", kMostRatio);
  return good;
}

}  // namespace resmgr::test
