// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "pkg/claims/claimed_policy.h"
#include "pkg/config/yaml_reader.h"
#include "pkg/policy/plan_check.h"
#include "pkg/policy/registry.h"
#include "pkg/policy/testing/test_snapshot.h"
#include "pkg/resmgr/decider.h"
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
              std::string_view section, const CpuSet& available = {})
      : factory_(factory),
        machine_(std::move(machine)),
        available_(available.empty() ? machine_.allowed() : available),
        reserved_(Cpus(reserved)),
        section_(section) {
    policy_ = MakePolicy(factory_, section_);
  }

  std::unique_ptr<ClaimedPolicy> MakePolicy(const PolicyFactory& factory,
                                            std::string_view section) const {
    const StatusOr<ConfigNode> config = ParseYaml(section, "test.yaml");
    EXPECT_TRUE(config.ok()) << config.status();
    StatusOr<std::unique_ptr<Policy>> policy = factory.create(
        {.machine = machine_, .available = available_, .reserved = reserved_, .section = &*config});
    EXPECT_TRUE(policy.ok()) << policy.status();
    return std::make_unique<ClaimedPolicy>(*std::move(policy), machine_, carriers_);
  }

  // A new policy that knows the claims as a journal tells them: all but their keys.
  void Restart() {
    HeldClaims held;
    for (const HeldClaim& before : policy_->held().all()) {
      HeldClaim& claim = held.Add(before.claim);
      for (const Container& part : before.parts) {
        Container& container = held.AddPart(claim, machine_);
        container.placement = part.placement;
        container.state = ContainerState::kRunning;
      }
    }
    policy_ = MakePolicy(factory_, section_);
    policy_->Hold(std::move(held));
  }

  StatusOr<ContainerKey> Create(std::string_view name, QosClass qos, int64_t milli_cpu) {
    return Place(snapshot_.Add(name, qos, milli_cpu).key, nullptr);
  }
  // In a pod of its own, or in that of `sibling`.
  StatusOr<ContainerKey> CreateCarrier(std::string_view name, std::vector<std::string> uids,
                                       ContainerKey sibling = {}) {
    Container& container = snapshot_.Add(name, QosClass::kGuaranteed, 1000);
    if (sibling != ContainerKey{}) {
      const Pod pod = snapshot_.PodOf(sibling);
      container.pod_id = pod.id;
      snapshot_.PodOf(container.key) = pod;
    }
    carriers_[container.key] = std::move(uids);
    return Place(container.key, nullptr);
  }
  // The next attempt of a carrier, which is dead.
  StatusOr<ContainerKey> CreateNextAttempt(const Container& former) {
    const Pod pod = snapshot_.PodOf(former.key);
    snapshot_.Remove(former.key);
    Container& container = snapshot_.Add(former.name, pod.qos, 1000);
    container.pod_id = pod.id;
    snapshot_.PodOf(container.key) = pod;
    carriers_[container.key] = carriers_.at(former.key);
    return Place(container.key, &former);
  }
  // Places a container that was added to the snapshot.
  StatusOr<ContainerKey> Start(ContainerKey key) { return Place(key, nullptr); }
  // Not OK: the refusal, which changes nothing.
  Status Resize(ContainerKey key, MilliCpu cpu) {
    Requirements& needs = snapshot_.At(key).requirements;
    const Requirements before = needs;
    needs.cpu_request = cpu;
    if (before.cpu_limit.value > 0) needs.cpu_limit = cpu;
    const StatusOr<Plan> plan = policy_->Update(snapshot_, snapshot_.PodOf(key), snapshot_.At(key));
    if (plan.ok()) {
      Apply(*plan);
    } else {
      needs = before;
    }
    return plan.status();
  }
  void Remove(ContainerKey key) {
    snapshot_.Remove(key);
    const StatusOr<Plan> plan = policy_->Release(snapshot_, key);
    ASSERT_TRUE(plan.ok()) << plan.status();
    Apply(*plan);
    carriers_.erase(key);
  }
  // The CPUs of its parts, or the refusal.
  StatusOr<ClaimGrant> Reserve(const Claim& claim) {
    const StatusOr<Plan> plan = policy_->Reserve(snapshot_, claim);
    if (!plan.ok()) return plan.status();
    Apply(*plan);
    return policy_->held().Find(claim.uid)->Grant();
  }
  Plan GiveBack(const std::string& uid) {
    const StatusOr<Plan> plan = policy_->GiveBack(snapshot_, uid);
    EXPECT_TRUE(plan.ok()) << plan.status();
    Apply(*plan);
    return *plan;
  }
  void Rebalance() {
    const StatusOr<Plan> plan = policy_->Rebalance(snapshot_);
    ASSERT_TRUE(plan.ok()) << plan.status();
    Apply(*plan);
  }
  StatusOr<Plan> Reconcile() {
    StatusOr<Plan> plan = policy_->Reconcile(snapshot_);
    if (plan.ok()) Apply(*plan);
    return plan;
  }
  // The same policy takes over without these CPUs, as the brain sees to where CPUs go offline.
  Status TakeOffline(const CpuSet& cpus) { return TakeOverOn(available_ - cpus); }
  // The same with CPUs that are back.
  Status TakeOverOn(const CpuSet& available) {
    available_ = available;
    std::unique_ptr<ClaimedPolicy> next = MakePolicy(factory_, section_);
    next->Hold(policy_->held());
    next->SetUsable(available_);
    const OnlineView view(snapshot_, available_, CpuSet());
    StatusOr<Plan> plan = next->Reconcile(view);
    if (!plan.ok()) return plan.status();
    view.Complete(*plan);
    policy_ = std::move(next);
    Apply(*plan);
    return OkStatus();
  }
  // Another policy takes over.
  Status Switch(const PolicyFactory& factory, std::string_view section) {
    std::unique_ptr<ClaimedPolicy> next = MakePolicy(factory, section);
    next->Hold(policy_->held());
    next->SetMustKeep(true);
    const StatusOr<Plan> plan = next->Reconcile(snapshot_);
    if (!plan.ok()) return plan.status();
    next->SetMustKeep(false);
    policy_ = std::move(next);
    Apply(*plan);
    return OkStatus();
  }

  // Every CPU belongs to one claim or one container at most, and carriers are on their claims.
  void Check() {
    CpuSet taken;
    for (const HeldClaim& held : policy_->held().all()) {
      for (const Container& part : held.parts) {
        EXPECT_FALSE(taken.Intersects(part.placement.exclusive)) << held.Title();
        taken |= part.placement.exclusive;
      }
    }
    const CpuSet claimed = taken;
    snapshot_.ForEachContainer([&](const Pod&, const Container& container) {
      const Placement& placement = container.placement;
      const auto carrier = carriers_.find(container.key);
      if (carrier != carriers_.end()) {
        CpuSet own;
        for (const HeldClaim* const held : policy_->held().Of(carrier->second))
          own |= held->Seen();
        if (!own.empty()) {
          EXPECT_EQ(placement.cpus, own);
          return;
        }
      }
      EXPECT_FALSE(taken.Intersects(placement.exclusive)) << container.name;
      taken |= placement.exclusive;
      if (placement.cpus) EXPECT_FALSE(claimed.Intersects(*placement.cpus)) << container.name;
    });
  }

  // All that can be seen of the state.
  std::string State() {
    std::string text;
    snapshot_.ForEachContainer([&](const Pod&, const Container& container) {
      text += fmt::format("{}: {}\n", static_cast<uint64_t>(container.key), Text(container));
    });
    for (const HeldClaim& held : policy_->held().all()) {
      for (const Container& part : held.parts)
        text += fmt::format("{}: {}\n", held.claim.uid, Text(part));
    }
    for (const Zone& zone : policy_->Zones(snapshot_)) {
      text += fmt::format("{}: {} own {} shared {}\n", zone.name, zone.cpus.ToString(),
                          zone.exclusive.ToString(), zone.shared.ToString());
    }
    return text;
  }
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
  static std::string Text(const Container& container) {
    const Placement& placement = container.placement;
    return fmt::format("{} own {} in {}", placement.cpus.value_or(CpuSet()).ToString(),
                       placement.exclusive.ToString(), placement.pool);
  }
  StatusOr<ContainerKey> Place(ContainerKey key, const Container* predecessor) {
    const StatusOr<Plan> plan =
        policy_->Allocate(snapshot_, snapshot_.PodOf(key), snapshot_.At(key), predecessor);
    if (!plan.ok()) {
      snapshot_.Remove(key);
      carriers_.erase(key);
      return plan.status();
    }
    Apply(*plan);
    snapshot_.At(key).state = ContainerState::kRunning;
    return key;
  }
  void Apply(const Plan& plan) {
    const Status status = CheckPlan(machine_, snapshot_, plan);
    EXPECT_TRUE(status.ok()) << status;
    snapshot_.Apply(plan);
    Check();
  }

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
