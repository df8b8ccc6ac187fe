// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pkg/claims/claimed_policy.h"
#include "pkg/policy/registry.h"
#include "pkg/policy/testing/test_snapshot.h"
#include "test/support/machines/machines.h"

namespace resmgr::test {

// A claim in the namespace `ns`; its uid and its name are the same.
inline Claim ClaimOf(std::string_view uid, std::vector<ClaimPart> parts,
                     const ClaimOptions& options = {}) {
  return {.uid = std::string(uid),
          .namespace_name = "ns",
          .name = std::string(uid),
          .parts = std::move(parts),
          .options = options};
}

// A policy that holds CPUs for claims, with its containers, and the brain's part in the play: every
// plan is checked and carried out.
class ClaimedNode {
 public:
  // `available`: the CPUs that the policy may grant; empty: all that the machine allows.
  ClaimedNode(const PolicyFactory& factory, Machine machine, std::string_view reserved,
              std::string_view section, const CpuSet& available = {});

  std::unique_ptr<ClaimedPolicy> MakePolicy(const PolicyFactory& factory,
                                            std::string_view section) const;
  // A new policy that knows the claims as a journal tells them: all but their keys.
  void Restart();

  StatusOr<ContainerKey> Create(std::string_view name, QosClass qos, int64_t milli_cpu);
  // In a pod of its own, or in that of `sibling`.
  StatusOr<ContainerKey> CreateCarrier(std::string_view name, std::vector<std::string> uids,
                                       ContainerKey sibling = {});
  // The next attempt of a carrier, which is dead.
  StatusOr<ContainerKey> CreateNextAttempt(const Container& former);
  // Places a container that was added to the snapshot.
  StatusOr<ContainerKey> Start(ContainerKey key) { return Place(key, nullptr); }
  // Not OK: the refusal, which changes nothing.
  Status Resize(ContainerKey key, MilliCpu cpu);
  void Remove(ContainerKey key);
  // The CPUs of its parts, or the refusal.
  StatusOr<ClaimGrant> Reserve(const Claim& claim);
  Plan GiveBack(const std::string& uid);
  void Rebalance();
  StatusOr<Plan> Reconcile();
  // The same policy takes over without these CPUs, as the brain sees to where CPUs go offline.
  Status TakeOffline(const CpuSet& cpus) { return TakeOverOn(available_ - cpus); }
  // The same with CPUs that are back.
  Status TakeOverOn(const CpuSet& available);
  // Another policy takes over.
  Status Switch(const PolicyFactory& factory, std::string_view section);

  // Every CPU belongs to one claim or one container at most, and carriers are on their claims.
  void Check();
  // All that can be seen of the state.
  std::string State();
  std::string CpusOf(ContainerKey key) {
    return snapshot_.At(key).placement.cpus.value_or(CpuSet()).ToString();
  }
  std::string ExclusiveOf(ContainerKey key) {
    return snapshot_.At(key).placement.exclusive.ToString();
  }
  TestSnapshot& snapshot() { return snapshot_; }
  ClaimedPolicy& policy() { return *policy_; }
  const Machine& machine() const { return machine_; }

 private:
  // Adds a container to an existing pod.
  Container& AddTo(const Pod& pod, std::string_view name);
  StatusOr<ContainerKey> Place(ContainerKey key, const Container* predecessor);
  // Applies a plan that must be made.
  void CarryOut(const StatusOr<Plan>& plan);
  void Apply(const Plan& plan);

  const PolicyFactory factory_;
  const Machine machine_;
  CpuSet available_;
  const CpuSet reserved_;
  const std::string section_;
  ClaimCarriers carriers_;
  std::unique_ptr<ClaimedPolicy> policy_;
  TestSnapshot snapshot_;
};

}  // namespace resmgr::test
