// SPDX-License-Identifier: Apache-2.0
#include "test/bench/policy/kubelet_like.h"

#include <bit>
#include <map>
#include <memory>
#include <set>
#include <tuple>
#include <utility>

#include "pkg/allocator/cpu_allocator.h"

namespace resmgr::test {
namespace {

class KubeletLikePolicy : public Policy {
 public:
  explicit KubeletLikePolicy(const PolicyContext& context)
      : machine_(context.machine), shared_(context.available), reserved_(context.reserved) {}

  static StatusOr<std::unique_ptr<Policy>> Create(const PolicyContext& context) {
    return std::unique_ptr<Policy>(std::make_unique<KubeletLikePolicy>(context));
  }

  std::string_view name() const override { return "kubelet-like"; }
  std::unique_ptr<Policy> Clone() const override {
    return std::make_unique<KubeletLikePolicy>(*this);
  }
  StatusOr<Plan> Reconcile(const Snapshot& /*snapshot*/) override { return Plan{}; }
  std::vector<Zone> Zones(const Snapshot& /*snapshot*/) const override { return {}; }

  StatusOr<Plan> Allocate(const Snapshot& /*snapshot*/, const Pod& pod, const Container& container,
                          const Container* /*predecessor*/) override {
    const MilliCpu request = container.requirements.cpu_request;
    Plan plan;
    if (pod.qos != QosClass::kGuaranteed || !request.IsWhole()) {
      sharers_.insert(container.key);
      plan.Change(container.key).cpus = shared_;
      return plan;
    }
    const auto count = static_cast<int>(request.Whole());
    const CpuSet free = shared_ - reserved_;
    const CpuSet hinted = free & Hinted(free, count);
    RESMGR_ASSIGN_OR_RETURN(const CpuSet cpus, AllocateCpus(machine_, free, hinted, count,
                                                            {.prefer_align_by_uncore = true}));
    shared_ -= cpus;
    granted_[container.key] = cpus;
    Placement& placement = plan.Change(container.key);
    placement.cpus = cpus;
    placement.exclusive = cpus;
    TellSharers(plan);
    return plan;
  }

  StatusOr<Plan> Update(const Snapshot& /*snapshot*/, const Pod& /*pod*/,
                        const Container& /*container*/) override {
    return FailedPrecondition("containers are not resized");
  }

  StatusOr<Plan> Release(const Snapshot& /*snapshot*/, ContainerKey key) override {
    Plan plan;
    sharers_.erase(key);
    const auto granted = granted_.find(key);
    if (granted == granted_.end()) return plan;
    shared_ |= granted->second;
    granted_.erase(granted);
    TellSharers(plan);
    return plan;
  }

 private:
  // The CPUs of the nodes that the Topology Manager would choose; none without hints.
  CpuSet Hinted(const CpuSet& free, int count) const {
    const auto nodes = static_cast<unsigned>(machine_.nodes().size());
    int smallest = static_cast<int>(nodes) + 1;
    CpuSet best;
    std::tuple<bool, int> best_rank;
    std::vector<std::pair<int, CpuSet>> enough;
    for (unsigned mask = 1; mask < 1U << nodes; ++mask) {
      CpuSet cpus;
      for (unsigned i = 0; i < nodes; ++i) {
        if ((mask >> i & 1U) != 0) cpus |= machine_.nodes()[i].cpus;
      }
      const int width = std::popcount(mask);
      if (cpus.size() >= count) smallest = std::min(smallest, width);
      if (cpus.CountCommon(free) >= count) enough.emplace_back(width, std::move(cpus));
    }
    for (const auto& [width, cpus] : enough) {
      const std::tuple rank(width != smallest, width);
      if (!best.empty() && rank >= best_rank) continue;
      best = cpus;
      best_rank = rank;
    }
    return best;
  }

  void TellSharers(Plan& plan) const {
    if (sharers_.empty()) return;
    plan.shared.push_back({.cpus = shared_, .containers = {sharers_.begin(), sharers_.end()}});
  }

  const Machine& machine_;
  CpuSet shared_;
  const CpuSet reserved_;
  std::map<ContainerKey, CpuSet> granted_;
  std::set<ContainerKey> sharers_;
};

}  // namespace

PolicyFactory KubeletLikePolicyFactory() {
  return {.name = "kubelet-like",
          .description = "the kubelet's static policy with hints of a best-effort Topology Manager",
          .create = KubeletLikePolicy::Create};
}

}  // namespace resmgr::test
