// SPDX-License-Identifier: Apache-2.0
// The time that the daemon's loop is held up by a picture of the node, of which one is made in a
// second at most: what the policy would grant to containers in each NUMA node (SchedulerView), and
// to claims of each device. The node has 512 CPUs and 500 containers, and holds claims.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "pkg/claims/claimed_policy.h"
#include "pkg/dra/driver.h"
#include "pkg/schedview/placeable.h"
#include "pkg/schedview/scheduler_view.h"
#include "policies/balloons/balloons_policy.h"
#include "policies/static-plus/static_plus_policy.h"
#include "policies/static/static_policy.h"
#include "policies/topology-aware/topology_aware_policy.h"
#include "test/bench/policy/node.h"

namespace resmgr::test {
namespace {

constexpr int kViewRounds = 25;
constexpr int kViewContainers = 500;
constexpr int kViewClaims = 8;

[[noreturn]] void FailViews(const Status& status) {
  std::fprintf(stderr, "%s\n", Describe(status).c_str());
  std::exit(1);
}

// Processor time of this thread.
double ViewMilliseconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return 1e3 * static_cast<double>(now.tv_sec) + 1e-6 * static_cast<double>(now.tv_nsec);
}

class ViewedNode {
 public:
  ViewedNode(const Machine& machine, const PolicyFactory& factory) : machine_(machine) {
    StatusOr<std::unique_ptr<Policy>> made =
        factory.create({.machine = machine_,
                        .available = machine_.allowed(),
                        .reserved = CpuSet{machine_.allowed().First()}});
    if (!made.ok()) FailViews(made.status());
    policy_ = std::make_unique<ClaimedPolicy>(*std::move(made), machine_, carriers_);
    for (int i = 0; i < kViewClaims; ++i) {
      const std::string uid = "claim-" + std::to_string(i);
      Apply(policy_->Reserve(snapshot_, {.uid = uid,
                                         .namespace_name = "ns",
                                         .name = uid,
                                         .parts = {{.device = "cpu", .cpus = 4}}}));
    }
    std::mt19937_64 random(7);
    for (int i = 0; i < kViewContainers; ++i) {
      const bool own = random() % 4 == 0;
      const int64_t milli_cpu = own ? 1000 + 1000 * static_cast<int64_t>(random() % 3) : 200;
      const ContainerKey key =
          snapshot_.Add("main", own ? QosClass::kGuaranteed : QosClass::kBurstable, milli_cpu).key;
      Apply(policy_->Allocate(snapshot_, snapshot_.PodOf(key), snapshot_.At(key), nullptr));
    }
  }

  double View() const {
    return Median([this] { return MakeSchedulerView(machine_, *policy_, snapshot_, false); });
  }
  double Claimable(DraDevices devices) const {
    const std::vector<ClaimPart> places = dra::DevicePlaces(machine_, devices);
    return Median([&] { return ClaimableCpus(*policy_, snapshot_, places, machine_, {}); });
  }

 private:
  void Apply(const StatusOr<Plan>& plan) {
    if (!plan.ok()) FailViews(plan.status());
    snapshot_.Apply(*plan);
  }
  template <typename Ask>
  static double Median(const Ask& ask) {
    std::vector<double> times;
    for (int round = 0; round < kViewRounds; ++round) {
      const double start = ViewMilliseconds();
      const auto answer = ask();
      times.push_back(ViewMilliseconds() - start);
    }
    std::ranges::sort(times);
    return times[times.size() / 2];
  }

  const Machine& machine_;
  const ClaimCarriers carriers_;
  std::unique_ptr<ClaimedPolicy> policy_;
  BenchSnapshot snapshot_;
};

}  // namespace

void MeasureViews() {
  const Machine machine =
      BenchMachine({.packages = 2, .nodes = 4, .l3s = 4, .cores = 32, .threads = 2});
  std::printf(
      "one picture, %d containers and %d claims on %d CPUs: processor milliseconds (medians of "
      "%d)\n%-16s %12s %14s %12s\n",
      kViewContainers, kViewClaims, machine.allowed().size(), kViewRounds, "", "view",
      "NUMA devices", "L3 devices");
  for (const PolicyFactory& factory : {StaticPolicyFactory(), StaticPlusPolicyFactory(),
                                       TopologyAwarePolicyFactory(), BalloonsPolicyFactory()}) {
    const ViewedNode node(machine, factory);
    std::printf("%-16.*s %12.2f %14.2f %12.2f\n", static_cast<int>(factory.name.size()),
                factory.name.data(), node.View(), node.Claimable(DraDevices::kNuma),
                node.Claimable(DraDevices::kL3));
  }
}

}  // namespace resmgr::test
