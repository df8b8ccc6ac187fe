// SPDX-License-Identifier: Apache-2.0
#include "pkg/resmgr/decider.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "pkg/metrics/node_metrics.h"
#include "pkg/policy/pinning.h"
#include "pkg/policy/plan_check.h"

namespace resmgr {
namespace {

using DecisionKind = NodeMetrics::Operation;

}  // namespace

template <typename Kind, typename Ask>
StatusOr<Plan> Decider::Timed(Kind kind, const Ask& ask) const {
  const Snapshot& all = store_.placeable();
  if (metrics_ == nullptr) return ask(all);
  const auto start = std::chrono::steady_clock::now();
  StatusOr<Plan> plan = ask(all);
  metrics_->Decided(kind, std::chrono::steady_clock::now() - start);
  return plan;
}

template <typename Kind, typename Ask>
StatusOr<ContainerKeys> Decider::Decide(Kind kind, const Ask& ask) {
  return Apply(Timed(kind, ask));
}

Decider::Decider(const Machine& machine, std::unique_ptr<Policy> policy, ContainerStore& store,
                 NodeMetrics* metrics)
    : machine_(machine), metrics_(metrics), usable_(machine.online()), store_(store) {
  policy_ = WithClaims(std::move(policy));
}

// Wraps the policy, unless it handles claims already.
std::unique_ptr<Policy> Decider::WithClaims(std::unique_ptr<Policy> policy) const {
  if (dynamic_cast<ClaimedPolicy*>(policy.get()) != nullptr) return policy;
  return std::make_unique<ClaimedPolicy>(std::move(policy), machine_, carriers_);
}

void Decider::SetOffline(const CpuSet& offline) {
  offline_ = offline;
  usable_ = machine_.online() - offline;
}

// The null policy binds no container, so offline CPUs are not withheld from it.
StatusOr<Plan> Decider::TakeOver(Policy& policy, const CpuSet& withheld) const {
  const Snapshot& all = store_.placeable();
  if (policy.name() == "null") return policy.Reconcile(all);
  static_cast<ClaimedPolicy&>(policy).SetUsable(usable_ - withheld);
  const OnlineView view(all, usable_, withheld);
  RESMGR_ASSIGN_OR_RETURN(Plan plan, Timed(DecisionKind::kReconcile, [&](const Snapshot&) {
                            return policy.Reconcile(view);
                          }));
  view.Complete(plan);
  return plan;
}

StatusOr<ContainerKeys> Decider::Switch(std::unique_ptr<Policy>& policy) {
  return Switch(policy, {}, /*must_keep=*/true);
}

StatusOr<ContainerKeys> Decider::SwitchOnline(std::unique_ptr<Policy>& policy,
                                              const CpuSet& withheld) {
  return Switch(policy, withheld, /*must_keep=*/false);
}

StatusOr<ContainerKeys> Decider::Switch(std::unique_ptr<Policy>& policy, const CpuSet& withheld,
                                        bool must_keep) {
  policy = WithClaims(std::move(policy));
  auto& next = static_cast<ClaimedPolicy&>(*policy);
  next.Hold(*claims());
  next.SetMustKeep(must_keep);
  RESMGR_ASSIGN_OR_RETURN(ContainerKeys changed, Apply(TakeOver(next, withheld)));
  next.SetMustKeep(false);
  policy_.swap(policy);
  return changed;
}

void Decider::Exchange(std::unique_ptr<Policy>& policy) {
  const std::shared_ptr<const HeldClaims> held = claims();
  policy_.swap(policy);
  claimed().Hold(*held);
}

StatusOr<Plan> Decider::Checked(StatusOr<Plan> plan) const {
  if (!plan.ok()) return plan.status();
  RESMGR_RETURN_IF_ERROR(CheckPlan(machine_, store_.placeable(), *plan));
  return plan;
}

StatusOr<Plan> Decider::PreviewTakeOver(const Policy& policy) const {
  const std::unique_ptr<Policy> copy = WithClaims(policy.Clone());
  auto& next = static_cast<ClaimedPolicy&>(*copy);
  next.Hold(*claims());
  next.SetMustKeep(true);
  return Checked(TakeOver(next));
}

StatusOr<Plan> Decider::PreviewRebalance() const {
  const std::unique_ptr<Policy> copy = policy_->Clone();
  return Checked(
      Timed(DecisionKind::kRebalance, [&](const Snapshot& all) { return copy->Rebalance(all); }));
}

StatusOr<Plan> Decider::PreviewMoveShared(std::span<const policy::PoolMove> moves) const {
  const std::unique_ptr<Policy> copy = policy_->Clone();
  return Checked(Timed(DecisionKind::kRebalance,
                       [&](const Snapshot& all) { return copy->MoveShared(all, moves); }));
}

void Decider::LiftRestrictions(const Container& container, Placement& next) const {
  if (container.cpus_bound && !next.cpus) {
    const CpuSet all = CpusWithoutPolicy(machine_, container.requested);
    // With cgroup v1 the kernel refuses CPUs that are offline.
    next.lifted_to = all.Intersects(usable_) ? all & usable_ : all;
  }
  if (container.mems_bound && !next.mems) {
    next.mems = MemsWithoutPolicy(machine_, container.requested);
  }
}

void Decider::PutBack(Container& container, Placement former) const {
  LiftRestrictions(container, former);
  container.placement = std::move(former);
}

StatusOr<ContainerKeys> Decider::Rebalance() {
  return Decide(DecisionKind::kRebalance,
                [&](const Snapshot& all) { return policy_->Rebalance(all); });
}

StatusOr<ContainerKeys> Decider::MoveShared(std::span<const policy::PoolMove> moves) {
  return Decide(DecisionKind::kRebalance,
                [&](const Snapshot& all) { return policy_->MoveShared(all, moves); });
}

StatusOr<ContainerKeys> Decider::Reconcile() {
  return Apply(TakeOver(*policy_));
}

StatusOr<ContainerKeys> Decider::Allocate(const ContainerRecord& record,
                                          const Container* predecessor) {
  return Decide(DecisionKind::kAllocate, [&](const Snapshot& all) {
    return policy_->Allocate(all, record.pod->pod, record.container, predecessor);
  });
}

StatusOr<ContainerKeys> Decider::Update(const ContainerRecord& record) {
  return Decide(DecisionKind::kUpdate, [&](const Snapshot& all) {
    return policy_->Update(all, record.pod->pod, record.container);
  });
}

StatusOr<ContainerKeys> Decider::LookAgain(ContainerKey key) {
  return Decide(DecisionKind::kUpdate,
                [&](const Snapshot& all) { return policy_->LookAgain(all, key); });
}

StatusOr<ContainerKeys> Decider::FollowUse(const policy::MeasuredUse& use) {
  return Decide(DecisionKind::kUpdate,
                [&](const Snapshot& all) { return policy_->FollowUse(all, use); });
}

StatusOr<ContainerKeys> Decider::Release(ContainerKey key) {
  return Decide(DecisionKind::kRelease,
                [&](const Snapshot& all) { return policy_->Release(all, key); });
}

StatusOr<ContainerKeys> Decider::Reserve(const Claim& claim) {
  return Decide(DecisionKind::kAllocate,
                [&](const Snapshot& all) { return claimed().Reserve(all, claim); });
}

StatusOr<ContainerKeys> Decider::GiveBack(const std::string& uid) {
  return Decide(DecisionKind::kRelease,
                [&](const Snapshot& all) { return claimed().GiveBack(all, uid); });
}

CpuSet Decider::ClaimedFor(ContainerKey key) const {
  const auto carrier = carriers_.find(key);
  if (carrier == carriers_.end()) return CpuSet();
  CpuSet cpus;
  const std::shared_ptr<const HeldClaims> held = claims();
  for (const HeldClaim* const claim : held->Of(carrier->second))
    cpus |= claim->Cpus();
  return cpus;
}

bool Decider::OthersOwn(const CpuSet& cpus, ContainerKey key) const {
  if (ClaimedByOthers(key).Intersects(cpus)) return true;
  return std::ranges::any_of(store_.containers(), [&](const auto& entry) {
    const auto& [other, record] = entry;
    if (other == key || !record->Placeable()) return false;
    return record->container.placement.exclusive.Intersects(cpus);
  });
}

void Decider::SetClaims(ContainerKey key, std::vector<std::string> uids) {
  std::erase_if(carriers_,
                [this](const auto& carrier) { return store_.Find(carrier.first) == nullptr; });
  if (!uids.empty()) carriers_.insert_or_assign(key, std::move(uids));
}

ContainerKeys Decider::Recover() {
  StatusOr<ContainerKeys> changed = Reconcile();
  return changed.ok() ? *std::move(changed) : ContainerKeys();
}

void Decider::GiveShared(const SharedChange& change, Container& container) {
  Placement& placement = container.placement;
  shifts_.NoteShared(container.key, placement, change);
  if (placement.exclusive.empty()) {
    placement.cpus = change.cpus;
  } else {
    placement.cpus = change.CpusFor(placement);
  }
  container.cpus_bound = true;
}

StatusOr<ContainerKeys> Decider::Apply(StatusOr<Plan> plan) {
  shifts_.Clear();
  if (!plan.ok()) return plan.status();
  RESMGR_RETURN_IF_ERROR(CheckPlan(machine_, store_.placeable(), holders_, *plan));
  ContainerKeys changed;
  changed.reserve(plan->size());
  std::erase_if(holders_, [this](ContainerKey key) { return store_.Find(key) == nullptr; });
  for (PlacementChange& change : plan->changes) {
    if (!change.placement.exclusive.empty()) holders_.insert(change.key);
    ContainerRecord& record = *store_.Find(change.key);
    if (journal_ != nullptr) journal_->Note(record);
    Container& container = record.container;
    // No move is noted for new containers, or for exited ones that are placed again, since they had
    // no place.
    const bool fresh =
        container.state == ContainerState::kCreating || (record.life.ComesBack() && !record.push);
    if (!fresh || container.placement.cpus) {
      shifts_.Note(change.key, container.placement, change.placement);
    }
    LiftRestrictions(container, change.placement);
    container.cpus_bound |= change.placement.cpus.has_value();
    container.mems_bound |= change.placement.mems.has_value();
    container.placement = std::move(change.placement);
    changed.push_back(change.key);
  }
  for (const SharedChange& change : plan->shared) {
    for (const ContainerKey key : change.containers) {
      ContainerRecord& record = *store_.Find(key);
      if (journal_ != nullptr) journal_->Note(record);
      GiveShared(change, record.container);
      changed.push_back(key);
    }
  }
  std::sort(changed.begin(), changed.end());
  return changed;
}

Transaction::Transaction(Decider& decider, bool several) : decider_(decider) {
  if (!several) return;
  policy_ = decider.policy_->Clone();
  decider.journal_ = this;
}

Transaction::~Transaction() {
  if (!open_) return;
  const std::vector<Before> journal = Commit();
  for (auto before = journal.rbegin(); before != journal.rend(); ++before) {
    ContainerRecord* const record = decider_.store_.Find(before->key);
    if (record == nullptr) continue;
    Container& container = record->container;
    container.requested = before->requested;
    container.requirements = before->requirements;
    container.placement = before->placement;
    container.cpus_bound = before->cpus_bound;
    container.mems_bound = before->mems_bound;
    record->superseded = before->superseded;
  }
  if (policy_ == nullptr) return;
  decider_.shifts_.Clear();
  decider_.policy_ = std::move(policy_);
}

void Transaction::Note(const ContainerRecord& record) {
  const Container& container = record.container;
  journal_.push_back({.key = container.key,
                      .requested = container.requested,
                      .requirements = container.requirements,
                      .placement = container.placement,
                      .cpus_bound = container.cpus_bound,
                      .mems_bound = container.mems_bound,
                      .superseded = record.superseded});
}

std::vector<Transaction::Before> Transaction::Commit() {
  open_ = false;
  if (decider_.journal_ == this) decider_.journal_ = nullptr;
  return std::move(journal_);
}

OnlineView::OnlineView(const Snapshot& all, const CpuSet& usable, const CpuSet& withheld)
    : ChangedView(all) {
  all.ForEachContainer([&](const Pod&, const Container& container) {
    const Placement& before = container.placement;
    const CpuSet own = (before.exclusive & usable) - withheld;
    if (own == before.exclusive && (!before.cpus || before.cpus->IsSubsetOf(usable))) return;
    Placement& placement = changed_.emplace(container.key, container).first->second.placement;
    placement.exclusive = own;
    if (placement.cpus) *placement.cpus &= usable;
    const bool lost_all = own.empty() && !before.exclusive.empty();
    if (!lost_all && placement.cpus && !placement.cpus->empty()) return;
    placement.cpus.reset();
    placement.pool.clear();
  });
}

void OnlineView::Complete(Plan& plan) const {
  for (const auto& [key, container] : changed_) {
    if (!container.placement.cpus || plan.Find(key) != nullptr) continue;
    const bool shares = std::ranges::any_of(plan.shared, [&key = key](const SharedChange& change) {
      return std::ranges::binary_search(change.containers, key);
    });
    if (!shares) plan.changes.push_back({key, container.placement});
  }
}

}  // namespace resmgr
