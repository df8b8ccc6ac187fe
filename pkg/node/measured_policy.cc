// SPDX-License-Identifier: Apache-2.0
#include "pkg/node/measured_policy.h"

#include <chrono>
#include <utility>

#include "pkg/claims/claimed_policy.h"

namespace resmgr {
namespace {

class MeasuredPolicy final : public Policy {
 public:
  MeasuredPolicy(std::unique_ptr<Policy> policy, NodeMetrics& metrics)
      : policy_(std::move(policy)), metrics_(metrics) {}

  std::string_view name() const override { return policy_->name(); }
  std::unique_ptr<Policy> Clone() const override {
    return std::make_unique<MeasuredPolicy>(policy_->Clone(), metrics_);
  }
  StatusOr<Plan> Reconcile(const Snapshot& snapshot) override {
    return Timed(NodeMetrics::Operation::kReconcile, [&] { return policy_->Reconcile(snapshot); });
  }
  void Prepare(const Pod& pod) override { policy_->Prepare(pod); }
  StatusOr<Plan> Allocate(const Snapshot& snapshot, const Pod& pod, const Container& container,
                          const Container* predecessor) override {
    return Timed(NodeMetrics::Operation::kAllocate,
                 [&] { return policy_->Allocate(snapshot, pod, container, predecessor); });
  }
  StatusOr<Plan> Update(const Snapshot& snapshot, const Pod& pod,
                        const Container& container) override {
    return Timed(NodeMetrics::Operation::kUpdate,
                 [&] { return policy_->Update(snapshot, pod, container); });
  }
  StatusOr<Plan> LookAgain(const Snapshot& snapshot, ContainerKey key) override {
    return Timed(NodeMetrics::Operation::kUpdate,
                 [&] { return policy_->LookAgain(snapshot, key); });
  }
  StatusOr<Plan> Release(const Snapshot& snapshot, ContainerKey key) override {
    return Timed(NodeMetrics::Operation::kRelease, [&] { return policy_->Release(snapshot, key); });
  }
  StatusOr<Plan> Rebalance(const Snapshot& snapshot) override {
    return Timed(NodeMetrics::Operation::kRebalance, [&] { return policy_->Rebalance(snapshot); });
  }
  policy::SharedPools Shared(const Snapshot& snapshot) const override {
    return policy_->Shared(snapshot);
  }
  std::vector<std::string> TargetsOf(const Snapshot& snapshot, ContainerKey key) const override {
    return policy_->TargetsOf(snapshot, key);
  }
  StatusOr<Plan> MoveShared(const Snapshot& snapshot,
                            std::span<const policy::PoolMove> moves) override {
    return Timed(NodeMetrics::Operation::kRebalance,
                 [&] { return policy_->MoveShared(snapshot, moves); });
  }
  std::vector<std::string> Explain(ContainerKey key) const override {
    return policy_->Explain(key);
  }
  std::vector<std::string> Unheeded(const Pod& pod, const Container& container) const override {
    return policy_->Unheeded(pod, container);
  }
  std::vector<ConsideredPlace> Considered(ContainerKey key) const override {
    return policy_->Considered(key);
  }
  std::vector<std::string> WaysIn(const Snapshot& snapshot, const Pod& pod,
                                  const Container& container) const override {
    return policy_->WaysIn(snapshot, pod, container);
  }
  ClassNames ClassesOf(ContainerKey key) const override { return policy_->ClassesOf(key); }
  bool WantsHints() const override { return policy_->WantsHints(); }
  bool WantsPodResources() const override { return policy_->WantsPodResources(); }
  bool FollowsUse() const override { return policy_->FollowsUse(); }
  StatusOr<Plan> FollowUse(const Snapshot& snapshot, const policy::MeasuredUse& use) override {
    return Timed(NodeMetrics::Operation::kUpdate,
                 [&] { return policy_->FollowUse(snapshot, use); });
  }
  std::vector<Zone> Zones(const Snapshot& snapshot) const override {
    return policy_->Zones(snapshot);
  }

  const Policy& wrapped() const { return *policy_; }

 private:
  template <typename Decide>
  StatusOr<Plan> Timed(NodeMetrics::Operation operation, Decide decide) {
    const auto start = std::chrono::steady_clock::now();
    StatusOr<Plan> plan = decide();
    metrics_.Decided(operation, std::chrono::steady_clock::now() - start);
    return plan;
  }

  const std::unique_ptr<Policy> policy_;
  NodeMetrics& metrics_;
};

}  // namespace

std::unique_ptr<Policy> Measured(std::unique_ptr<Policy> policy, NodeMetrics& metrics) {
  if (policy == nullptr) return nullptr;
  return std::make_unique<MeasuredPolicy>(std::move(policy), metrics);
}

const Policy& Uncounted(const Policy& policy) {
  const auto* const claimed = dynamic_cast<const ClaimedPolicy*>(&policy);
  const Policy& decides = claimed == nullptr ? policy : claimed->behind();
  const auto* const measured = dynamic_cast<const MeasuredPolicy*>(&decides);
  return measured == nullptr ? decides : measured->wrapped();
}

std::unique_ptr<Policy> UncountedCopy(const Policy& policy) {
  const auto* const claimed = dynamic_cast<const ClaimedPolicy*>(&policy);
  const Policy& uncounted = Uncounted(policy);
  return claimed == nullptr ? uncounted.Clone() : claimed->CloneOn(uncounted);
}

}  // namespace resmgr
