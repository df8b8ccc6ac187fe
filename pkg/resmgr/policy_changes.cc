// SPDX-License-Identifier: Apache-2.0
// Other policies for the containers that are there, and better places for them on demand.
#include <algorithm>
#include <optional>
#include <utility>

#include "pkg/base/count_text.h"
#include "pkg/base/parse.h"
#include "pkg/resmgr/resource_manager_impl.h"

namespace resmgr {

std::vector<ResourceManager::Move> ResourceManager::Impl::MovesOf(const Plan& plan) const {
  std::vector<Move> moves;
  store_.placeable().ForEachContainer([&](const Pod& pod, const Container& container) {
    std::optional<Placement> next = plan.NewPlacement(container);
    if (!next) return;
    decider_.LiftRestrictions(container, *next);
    if (Place::Of(*next) == Place::Of(container.placement)) return;
    moves.push_back({.container = FullName(pod, container.name),
                     .from = container.placement,
                     .to = *std::move(next)});
  });
  return moves;
}

StatusOr<std::vector<ResourceManager::Move>> ResourceManager::Impl::PreviewPolicy(
    const Policy& policy) const {
  const std::unique_ptr<Policy> clone = policy.Clone();
  RESMGR_ASSIGN_OR_RETURN(const Plan plan, decider_.Preview(decider_.TakeOver(*clone)));
  std::vector<Move> moves = MovesOf(plan);
  if (policy.name() == "null") AddExitedMoves(moves);
  return moves;
}

StatusOr<std::vector<ResourceManager::Move>> ResourceManager::Impl::PreviewRebalance() const {
  const std::unique_ptr<Policy> clone = policy_->Clone();
  RESMGR_ASSIGN_OR_RETURN(const Plan plan, decider_.Preview(clone->Rebalance(store_.placeable())));
  return MovesOf(plan);
}

StatusOr<std::vector<ResourceManager::Move>> ResourceManager::Impl::Rebalance() {
  RESMGR_ASSIGN_OR_RETURN(std::vector<Move> moves, PreviewRebalance());
  RESMGR_ASSIGN_OR_RETURN(ContainerKeys changed, decider_.Rebalance());
  ReportMoves("a better place, asked for by an administrator");
  Push(std::move(changed));
  return moves;
}

std::map<ContainerKey, Placement> ResourceManager::Impl::Placements() const {
  std::map<ContainerKey, Placement> placements;
  for (const auto& [key, record] : store_.containers()) {
    if (record.Placeable()) placements.emplace(key, record.container.placement);
  }
  return placements;
}

// A container that no policy has bound is found where the runtime has it. On all CPUs it is bound
// to nothing: the next policy is to place it as a new one, and not to take it for one that shares
// these CPUs by a decision that was lost.
void ResourceManager::Impl::ForgetUnrestricted() {
  for (const auto& [key, record] : store_.containers()) {
    Container& container = store_.Find(key)->container;
    if (container.cpus_bound || container.placement.cpus != machine_.allowed()) continue;
    container.placement.cpus.reset();
  }
}

void ResourceManager::Impl::SetPolicy(std::unique_ptr<Policy> policy,
                                      std::function<void(Status)> done) {
  if (change_) {
    done(FailedPrecondition("another change of the policy is under way"));
    return;
  }
  std::map<ContainerKey, Placement> before = Placements();
  ForgetUnrestricted();
  StatusOr<ContainerKeys> changed = decider_.Switch(*policy);
  if (!changed.ok()) {
    for (const auto& [key, placement] : before)
      store_.Find(key)->container.placement = placement;
    done(Annotate(changed.status(), fmt::format("policy {}", policy->name())));
    return;
  }
  log_.Info("policy {} takes over {} from {}; changed: {}", policy->name(),
            CountText(std::ssize(before), "container"), policy_->name(), changed->size());
  ReportMoves(fmt::format("policy {} takes over", policy->name()));
  change_ = PolicyChange{.former = std::exchange(policy_, std::move(policy)),
                         .placements = std::move(before),
                         .pending = {changed->begin(), changed->end()},
                         .failures = {},
                         .done = std::move(done)};
  for (const auto& [key, record] : store_.containers())
    annotation_warnings_.Look(ActAt(record));
  Push(*std::move(changed));
  if (LetsGo()) FreeExitedSoon(std::chrono::milliseconds(0));
}

bool ResourceManager::Impl::AllReleased() const {
  const auto& all = store_.containers();
  return ready() && !AnyExitedBound() &&
         std::none_of(all.begin(), all.end(), [this](const auto& entry) {
           const Container& container = entry.second.container;
           const bool bound = container.cpus_bound || container.mems_bound;
           return bound && entry.second.Placeable() && !pusher_.Settled(container.key) &&
                  !pusher_.OnlyNumbersRefused(container.key);
         });
}

// Called whenever something changed that it may depend on.
void ResourceManager::Impl::ExaminePolicyChange() {
  if (!change_) return;
  std::erase_if(change_->pending, [this](ContainerKey key) {
    const ContainerRecord* const record = store_.Find(key);
    return record == nullptr || !record->Placeable() || record->container.id.empty() ||
           pusher_.Settled(key) || pusher_.OnlyNumbersRefused(key);
  });
  if (change_->pending.empty() || !pusher_.connected()) EndPolicyChange();
}

void ResourceManager::Impl::EndPolicyChange() {
  const PolicyChange change = *std::exchange(change_, std::nullopt);
  change.done(OkStatus());
}

// Containers go back to the placements that they had under the former policy, which places those
// that were created since.
void ResourceManager::Impl::RollBackPolicy(ContainerKey key, const Status& why) {
  PolicyChange change = *std::exchange(change_, std::nullopt);
  ContainerKeys changed;
  for (auto& [former, placement] : change.placements) {
    ContainerRecord* const record = store_.Find(former);
    if (record == nullptr || !record->Placeable()) continue;
    decider_.PutBack(record->container, std::move(placement));
    changed.push_back(former);
  }
  const std::unique_ptr<Policy> refused = std::exchange(policy_, std::move(change.former));
  Append(changed, decider_.Switch(*policy_));
  ReportMoves("back under the former policy");
  const ContainerRecord* const record = store_.Find(key);
  const std::string name =
      record == nullptr ? "" : FullName(record->pod->pod, record->container.name);
  const std::string reason = fmt::format(
      "the runtime refused to move container {} for policy {}, so all containers go "
      "back to policy {}: {}",
      Printable(name), refused->name(), policy_->name(), Describe(why));
  log_.Warn("{}", reason);
  Push(std::move(changed));
  change.done(MakeStatus(StatusCode::kAborted, reason));
}

}  // namespace resmgr
