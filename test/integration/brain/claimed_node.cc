// SPDX-License-Identifier: Apache-2.0
#include "test/integration/brain/claimed_node.h"

#include <gtest/gtest.h>

#include "pkg/config/yaml_reader.h"
#include "pkg/policy/plan_check.h"
#include "pkg/resmgr/decider.h"

namespace resmgr::test {
namespace {

std::string Text(const Container& container) {
  const Placement& placement = container.placement;
  return fmt::format("{} own {} in {}", placement.cpus.value_or(CpuSet()).ToString(),
                     placement.exclusive.ToString(), placement.pool);
}

}  // namespace

ClaimedNode::ClaimedNode(const PolicyFactory& factory, Machine machine, std::string_view reserved,
                         std::string_view section, const CpuSet& available)
    : factory_(factory),
      machine_(std::move(machine)),
      available_(available.empty() ? machine_.allowed() : available),
      reserved_(Cpus(reserved)),
      section_(section),
      policy_(MakePolicy(factory_, section_)) {}

std::unique_ptr<ClaimedPolicy> ClaimedNode::MakePolicy(const PolicyFactory& factory,
                                                       std::string_view section) const {
  const StatusOr<ConfigNode> config = ParseYaml(section, "test.yaml");
  EXPECT_TRUE(config.ok()) << config.status();
  StatusOr<std::unique_ptr<Policy>> policy = factory.create(
      {.machine = machine_, .available = available_, .reserved = reserved_, .section = &*config});
  EXPECT_TRUE(policy.ok()) << policy.status();
  return std::make_unique<ClaimedPolicy>(*std::move(policy), machine_, carriers_);
}

void ClaimedNode::Restart() {
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

StatusOr<ContainerKey> ClaimedNode::Create(std::string_view name, QosClass qos, int64_t milli_cpu) {
  return Place(snapshot_.Add(name, qos, milli_cpu).key, nullptr);
}

Container& ClaimedNode::AddTo(const Pod& pod, std::string_view name) {
  Container& container = snapshot_.Add(name, pod.qos, 1000);
  container.pod_id = pod.id;
  snapshot_.PodOf(container.key) = pod;
  return container;
}

StatusOr<ContainerKey> ClaimedNode::CreateCarrier(std::string_view name,
                                                  std::vector<std::string> uids,
                                                  ContainerKey sibling) {
  const Container& container = sibling == ContainerKey{}
                                   ? snapshot_.Add(name, QosClass::kGuaranteed, 1000)
                                   : AddTo(Pod(snapshot_.PodOf(sibling)), name);
  carriers_[container.key] = std::move(uids);
  return Place(container.key, nullptr);
}

StatusOr<ContainerKey> ClaimedNode::CreateNextAttempt(const Container& former) {
  const Pod pod = snapshot_.PodOf(former.key);
  snapshot_.Remove(former.key);
  const ContainerKey key = AddTo(pod, former.name).key;
  carriers_[key] = carriers_.at(former.key);
  return Place(key, &former);
}

Status ClaimedNode::Resize(ContainerKey key, MilliCpu cpu) {
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

void ClaimedNode::Remove(ContainerKey key) {
  snapshot_.Remove(key);
  CarryOut(policy_->Release(snapshot_, key));
  carriers_.erase(key);
}

StatusOr<ClaimGrant> ClaimedNode::Reserve(const Claim& claim) {
  const StatusOr<Plan> plan = policy_->Reserve(snapshot_, claim);
  if (!plan.ok()) return plan.status();
  Apply(*plan);
  return policy_->held().Find(claim.uid)->Grant();
}

Plan ClaimedNode::GiveBack(const std::string& uid) {
  const StatusOr<Plan> plan = policy_->GiveBack(snapshot_, uid);
  CarryOut(plan);
  return plan.value_or(Plan());
}

void ClaimedNode::Rebalance() {
  CarryOut(policy_->Rebalance(snapshot_));
}

StatusOr<Plan> ClaimedNode::Reconcile() {
  StatusOr<Plan> plan = policy_->Reconcile(snapshot_);
  if (plan.ok()) Apply(*plan);
  return plan;
}

Status ClaimedNode::TakeOverOn(const CpuSet& available) {
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

Status ClaimedNode::Switch(const PolicyFactory& factory, std::string_view section) {
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

void ClaimedNode::Check() {
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

std::string ClaimedNode::State() {
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

StatusOr<ContainerKey> ClaimedNode::Place(ContainerKey key, const Container* predecessor) {
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

void ClaimedNode::CarryOut(const StatusOr<Plan>& plan) {
  ASSERT_TRUE(plan.ok()) << plan.status();
  Apply(*plan);
}

void ClaimedNode::Apply(const Plan& plan) {
  const Status status = CheckPlan(machine_, snapshot_, plan);
  EXPECT_TRUE(status.ok()) << status;
  snapshot_.Apply(plan);
  Check();
}

}  // namespace resmgr::test
