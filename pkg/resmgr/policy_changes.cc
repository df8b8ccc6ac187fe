// SPDX-License-Identifier: Apache-2.0
#include "pkg/resmgr/policy_changes.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "pkg/allocator/want_of_room.h"
#include "pkg/base/amount_text.h"
#include "pkg/base/parse.h"
#include "pkg/model/cpu_numbers.h"

namespace resmgr {
namespace {

// "CPU 9 went offline", "CPUs 8-9 went offline".
std::string WentOrCame(const CpuSet& cpus, std::string_view what) {
  return fmt::format("{} {} {}", cpus.size() == 1 ? "CPU" : "CPUs", cpus.ToString(), what);
}

std::string OnlineNews(const CpuSet& gone, const CpuSet& back) {
  std::string text;
  if (!gone.empty()) text = WentOrCame(gone, "went offline");
  if (!back.empty()) text += (text.empty() ? "" : ", ") + WentOrCame(back, "came back");
  return text;
}

bool SamePlace(const Placement& one, const Placement& other) {
  return Place::Of(one) == Place::Of(other);
}

bool SamePlaceAndNumbers(const Placement& one, const Placement& other) {
  return SamePlace(one, other) && SameCpuNumbers(one, other);
}

// The containers whose placement would change.
template <typename Same>
std::vector<PlannedMove> ChangesIn(const Plan& plan, const Brain& brain, const Same& same) {
  std::vector<PlannedMove> moves;
  brain.store.placeable().ForEachContainer([&](const Pod& pod, const Container& container) {
    std::optional<Placement> next = plan.NewPlacement(container);
    if (!next) return;
    brain.decider.LiftRestrictions(container, *next);
    if (same(*next, container.placement)) return;
    moves.push_back({.container = FullName(pod, container.name),
                     .from = container.placement,
                     .to = *std::move(next)});
  });
  return moves;
}

Status OfPolicy(const Policy& policy, const Status& why) {
  return Annotate(why, fmt::format("policy {}", policy.name()));
}

}  // namespace

std::vector<PlannedMove> PolicyChanges::MovesOf(const Plan& plan) const {
  return ChangesIn(plan, brain_, &SamePlace);
}

StatusOr<std::vector<PlannedMove>> PolicyChanges::Preview(const Policy& policy) const {
  RESMGR_ASSIGN_OR_RETURN(const Plan plan, brain_.decider.PreviewTakeOver(policy));
  std::vector<PlannedMove> moves = ChangesIn(plan, brain_, &SamePlaceAndNumbers);
  if (policy.name() == "null") exited_.AddMoves(moves);
  return moves;
}

StatusOr<std::vector<PlannedMove>> PolicyChanges::PreviewRebalance() const {
  RESMGR_ASSIGN_OR_RETURN(const Plan plan, brain_.decider.PreviewRebalance());
  return MovesOf(plan);
}

StatusOr<std::vector<PlannedMove>> PolicyChanges::Rebalance() {
  RESMGR_ASSIGN_OR_RETURN(std::vector<PlannedMove> moves, PreviewRebalance());
  RESMGR_ASSIGN_OR_RETURN(ContainerKeys changed, brain_.decider.Rebalance());
  brain_.ReportMoves("a better place, asked for by an administrator");
  brain_.Push(std::move(changed));
  return moves;
}

policy::UsePlan PolicyChanges::PlanByUse(
    const policy::MeasuredUse& use, const policy::UseLimits& limits,
    const std::function<bool(const ContainerId&)>& stays) const {
  const Snapshot& all = brain_.store.placeable();
  return policy::PlanByUse(brain_.policy(), all, use, limits, [&](ContainerKey key) {
    const Container* const container = all.FindContainer(key);
    return container == nullptr || stays(container->id);
  });
}

policy::PoolLoads PolicyChanges::Loads(const policy::MeasuredUse& use) const {
  return policy::LoadsOf(brain_.policy(), brain_.store.placeable(), use);
}

StatusOr<std::vector<PlannedMove>> PolicyChanges::PreviewMoveShared(
    std::span<const policy::PoolMove> moves) const {
  RESMGR_ASSIGN_OR_RETURN(const Plan plan, brain_.decider.PreviewMoveShared(moves));
  return MovesOf(plan);
}

Status PolicyChanges::MoveShared(std::span<const policy::PoolMove> moves, std::string_view why) {
  if (change_) return FailedPrecondition("a change of the policy is under way");
  return brain_.CarryOut(brain_.decider.MoveShared(moves), why);
}

// Does nothing while the policy is being changed: that change places all containers, or restores
// them.
void PolicyChanges::FollowUse(const policy::MeasuredUse& use) {
  if (change_ || !brain_.policy().FollowsUse()) return;
  StatusOr<ContainerKeys> changed = brain_.decider.FollowUse(use);
  if (changed.ok() && changed->empty()) return;
  const Status followed = brain_.CarryOut(std::move(changed), "what containers use");
  if (!followed.ok()) brain_.log.Warn("placements do not follow use: {}", Describe(followed));
}

// Removes the cpuset that the runtime reported for containers on all CPUs, which no policy has
// bound. The next policy then places them as new ones, instead of taking the cpuset for a lost
// decision to share these CPUs.
void PolicyChanges::ForgetUnrestricted() {
  for (const auto& [key, record] : brain_.store.containers()) {
    Container& container = record->container;
    if (container.cpus_bound || container.placement.cpus != brain_.machine.allowed()) continue;
    container.placement.cpus.reset();
  }
}

void PolicyChanges::Set(std::unique_ptr<Policy> policy, std::function<void(Status)> done) {
  if (change_) return done(FailedPrecondition("another change of the policy is under way"));
  StatusOr<ContainerKeys> changed = ContainerKeys();
  std::vector<Transaction::Before> before;
  {
    Transaction change(brain_.decider);
    for (const auto& [key, record] : brain_.store.containers())
      if (record->Placeable()) change.Note(*record);
    ForgetUnrestricted();
    changed = brain_.decider.Switch(policy);
    if (changed.ok()) before = change.Commit();
  }
  if (!changed.ok()) return done(OfPolicy(*policy, changed.status()));
  const std::string_view name = brain_.policy().name();
  brain_.log.Info("policy {} takes over {} from {}; changed: {}", name,
                  CountText(std::ssize(before), "container"), policy->name(), changed->size());
  brain_.ReportMoves(fmt::format("policy {} takes over", name));
  change_ = Change{.former = std::move(policy),
                   .before = std::move(before),
                   .pending = {changed->begin(), changed->end()},
                   .failures = {},
                   .done = std::move(done)};
  for (const auto& [key, record] : brain_.store.containers())
    brain_.annotation_warnings.Look(brain_.ActAt(*record));
  brain_.Push(*std::move(changed));
  exited_.FreeSoon();
}

bool PolicyChanges::AllReleased() const {
  const auto& all = brain_.store.containers();
  return brain_.synchronizer.ready() && !exited_.AnyBound() &&
         std::none_of(all.begin(), all.end(), [this](const auto& entry) {
           const Container& container = entry.record->container;
           const bool bound = container.cpus_bound || container.mems_bound;
           return bound && entry.record->Placeable() && !brain_.pusher.InPlace(container.key);
         });
}

void PolicyChanges::Examine() {
  if (!change_) return;
  std::erase_if(change_->pending, [this](ContainerKey key) {
    const ContainerRecord* const record = brain_.store.Find(key);
    return record == nullptr || !record->Placeable() || record->container.id.empty() ||
           brain_.pusher.InPlace(key);
  });
  SkipBlocked();
  if (change_->pending.empty() || !brain_.pusher.connected()) End();
}

void PolicyChanges::SkipBlocked() {
  const auto is_stuck = [this](const auto& entry) {
    return !change_->pending.contains(entry.key) && !brain_.pusher.LastError(entry.key).ok();
  };
  if (std::ranges::none_of(brain_.store.containers(), is_stuck)) return;
  const std::map<ContainerKey, std::vector<ContainerKey>> waits = brain_.pusher.handover().Waits();
  const auto blocks = [&](ContainerKey other) {
    return !change_->pending.contains(other) &&
           (!brain_.pusher.LastError(other).ok() || waits.contains(other));
  };
  const auto is_blocked = [&](ContainerKey key) {
    const auto waiting = waits.find(key);
    return waiting != waits.end() && std::ranges::any_of(waiting->second, blocks);
  };
  // Skipping one may block others: repeat.
  while (std::erase_if(change_->pending, is_blocked) > 0) {
  }
}

void PolicyChanges::OnDisconnected() {
  if (change_) End();
}

void PolicyChanges::End() {
  const Change change = *std::exchange(change_, std::nullopt);
  change.done(OkStatus());
}

bool PolicyChanges::OnFailed(ContainerKey key, const Status& status) {
  // The change may be complete: if only numbers were refused, the container is at its new place.
  Examine();
  if (!change_ || !change_->pending.contains(key)) return false;
  return change_->failures.insert_or_assign(key, status).second;
}

void PolicyChanges::EndFailedMove(ContainerKey key) {
  if (!change_ || !brain_.pusher.connected()) return;
  const auto failure = change_->failures.find(key);
  // The failure belongs to a former change, or the next try succeeded.
  if (failure == change_->failures.end() || !change_->pending.contains(key)) return;
  const Status why = failure->second;
  RollBack(key, why);
}

// Puts containers back at the placements that they had under the former policy, which also places
// those that were created since.
void PolicyChanges::RollBack(ContainerKey key, const Status& why) {
  Change change = *std::exchange(change_, std::nullopt);
  ContainerKeys changed;
  for (Transaction::Before& before : change.before) {
    ContainerRecord* const record = brain_.store.Find(before.key);
    if (record == nullptr || !record->Placeable()) continue;
    brain_.decider.PutBack(record->container, std::move(before.placement));
    changed.push_back(before.key);
  }
  std::unique_ptr<Policy>& refused = change.former;
  brain_.decider.Exchange(refused);
  brain_.Append(changed, brain_.decider.Reconcile());
  brain_.ReportMoves("back under the former policy");
  const ContainerRecord* const record = brain_.store.Find(key);
  const std::string name =
      record == nullptr ? "" : FullName(record->pod->pod, record->container.name);
  const std::string reason = fmt::format(
      "the runtime refused to move container {} for policy {}, so all containers go "
      "back to policy {}: {}",
      Printable(name), refused->name(), brain_.policy().name(), Describe(why));
  brain_.log.Warn("{}", reason);
  brain_.Push(std::move(changed));
  // If the former policy is null, resumes freeing exited containers, which the change had stopped.
  exited_.FreeSoon();
  change.done(MakeStatus(StatusCode::kAborted, reason));
}

Status PolicyChanges::SetOffline(const OfflineChange& offline, std::unique_ptr<Policy> policy) {
  if (change_) return FailedPrecondition("a change of the policy is under way");
  const CpuSet before = brain_.decider.offline();
  const std::string why = OnlineNews(offline.cpus - before, before - offline.cpus);
  brain_.decider.SetOffline(offline.cpus);
  StatusOr<ContainerKeys> changed = brain_.decider.SwitchOnline(policy, offline.reserved);
  if (!changed.ok()) {
    brain_.decider.SetOffline(before);
    return OfPolicy(*policy, changed.status());
  }
  if (!why.empty())
    brain_.log.Info("{}; changed: {}", why, CountText(std::ssize(*changed), "container"));
  brain_.ReportMoves(why);
  if (!before.IsSubsetOf(offline.cpus)) brain_.Append(*changed, GiveBackCpus(why));
  brain_.Push(*std::move(changed));
  return OkStatus();
}

// Asks the policy again about containers that lack CPUs, since the CPUs that came back may suffice.
ContainerKeys PolicyChanges::GiveBackCpus(const std::string& why) {
  ContainerKeys all;
  for (const auto& [key, record] : brain_.store.containers()) {
    if (record->Placeable() && LacksCpus(record->container.placement.reason)) all.push_back(key);
  }
  ContainerKeys changed;
  for (const ContainerKey key : all) {
    StatusOr<ContainerKeys> more = brain_.decider.Update(*brain_.store.Find(key));
    if (!more.ok() && more.status().code() != StatusCode::kInternal) continue;
    if (more.ok()) brain_.ReportMoves(why);
    brain_.Append(changed, std::move(more));
  }
  return changed;
}

}  // namespace resmgr
