// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "pkg/policy/plan_check.h"
#include "pkg/policy/testing/test_snapshot.h"

namespace resmgr::test {

// A policy with its snapshot, and the brain's part in the play: every plan is checked and carried
// out.
class CheckedPolicy {
 public:
  explicit CheckedPolicy(Machine machine) : machine_(std::move(machine)) {}

  // Not OK: the refusal, after which the container is removed.
  Status Place(ContainerKey key, const Container* predecessor = nullptr) {
    const StatusOr<Plan> plan =
        policy_->Allocate(snapshot_, snapshot_.PodOf(key), snapshot_.At(key), predecessor);
    if (plan.ok()) {
      Apply(*plan);
    } else {
      snapshot_.Remove(key);
    }
    return plan.status();
  }
  // For a container whose needs have changed.
  Status Update(ContainerKey key) {
    const StatusOr<Plan> plan = policy_->Update(snapshot_, snapshot_.PodOf(key), snapshot_.At(key));
    if (plan.ok()) Apply(*plan);
    return plan.status();
  }
  void Remove(ContainerKey key) {
    snapshot_.Remove(key);
    CarryOut(policy_->Release(snapshot_, key));
  }
  Plan Reconcile() { return CarryOut(policy_->Reconcile(snapshot_)); }
  Plan Rebalance() { return CarryOut(policy_->Rebalance(snapshot_)); }

  const Placement& PlacementOf(ContainerKey key) { return snapshot_.At(key).placement; }
  std::string CpusOf(ContainerKey key) {
    return PlacementOf(key).cpus.value_or(CpuSet()).ToString();
  }
  const Machine& machine() const { return machine_; }
  TestSnapshot& snapshot() { return snapshot_; }
  Policy& policy() { return *policy_; }

 protected:
  void SetPolicy(StatusOr<std::unique_ptr<Policy>> policy) {
    EXPECT_TRUE(policy.ok()) << policy.status();
    policy_ = *std::move(policy);
  }
  // The plan of a call that may not fail.
  Plan CarryOut(const StatusOr<Plan>& plan) {
    EXPECT_TRUE(plan.ok()) << plan.status();
    if (!plan.ok()) return {};
    Apply(*plan);
    return *plan;
  }

 private:
  void Apply(const Plan& plan) {
    const Status status = CheckPlan(machine_, snapshot_, plan);
    EXPECT_TRUE(status.ok()) << status;
    snapshot_.Apply(plan);
  }

  const Machine machine_;
  std::unique_ptr<Policy> policy_;
  TestSnapshot snapshot_;
};

}  // namespace resmgr::test
