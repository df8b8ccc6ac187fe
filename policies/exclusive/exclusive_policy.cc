// SPDX-License-Identifier: Apache-2.0
#include "policies/exclusive/exclusive_policy.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "pkg/allocator/want_of_room.h"
#include "pkg/base/amount_text.h"
#include "pkg/kube/cpu_arithmetic.h"
#include "pkg/model/container_facts.h"
#include "pkg/policy/conventions.h"

namespace resmgr {
namespace {

// Limit of pods whose CPUs are remembered, since policies do not learn when a pod ends; remembered
// CPUs are only preferred.
constexpr size_t kRememberedPods = 256;

constexpr std::string_view kReservedPool = "reserved";
constexpr std::string_view kExclusivePool = "exclusive";
constexpr std::string_view kIsolatedPool = "isolated";

std::string Reason(const CpuClaim& claim, std::string_view rule) {
  return fmt::format("{}: {}", claim.why, rule);
}

}  // namespace

ExclusivePolicy::ExclusivePolicy(std::string_view name, const Machine& machine,
                                 const ExclusiveOptions& options, const Cpus& cpus,
                                 PinningRule pinning, Rules rules)
    : name_(name),
      machine_(machine),
      picker_(machine, options, cpus.shared | cpus.isolated | cpus.reserved, cpus.offline),
      places_(machine),
      options_(options),
      cpus_(cpus),
      ordinary_(cpus.shared - cpus.reserved),
      pinning_(std::move(pinning)),
      rules_(std::move(rules)) {}

CpuClaim ExclusivePolicy::ClaimOf(const Pod& pod, const Container& container) const {
  const std::string_view why = pinning_.WhyUnbound(pod);
  if (why.empty()) return rules_.claim(pod, container);
  CpuClaim claim;
  claim.shared = false;
  claim.unbound = true;
  claim.why = why;
  return claim;
}

std::vector<std::string> ExclusivePolicy::Unheeded(const Pod& pod,
                                                   const Container& container) const {
  if (!rules_.unheeded || !pinning_.WhyUnbound(pod).empty()) return {};
  std::string why = rules_.unheeded(pod, container);
  if (why.empty()) return {};
  return {std::move(why)};
}

// Adds the containers that hold the missing CPUs. InvalidArgument if the node can never grant so
// many.
Status ExclusivePolicy::Refusal(const Status& shortage, const Snapshot& snapshot,
                                const CpuClaim& claim, ContainerKey key) const {
  if (shortage.code() != StatusCode::kResourceExhausted) return shortage;
  std::string text(Message(shortage));
  const std::string holders = DescribeCpuHolders(snapshot, cpus_.reserved, key);
  if (!holders.empty()) text += fmt::format(": {}", holders);
  const int most = Most(claim);
  if (claim.exclusive > most) {
    return InvalidArgument("{}; this node can grant no more than {}", text, most);
  }
  if (!EverFits(claim)) return InvalidArgument("{}; this node can never grant them", text);
  return ResourceExhausted("{}", text);
}

bool ExclusivePolicy::EverFits(const CpuClaim& claim) const {
  const ExclusivePicker::Need need = {.count = claim.exclusive,
                                      .prefer_isolated = claim.prefer_isolated,
                                      .require_isolated = claim.require_isolated};
  return Pick([&](const CpuSet& ordinary,
                  const CpuSet& isolated) { return picker_.Take(need, ordinary, isolated); },
              {})
      .ok();
}

int ExclusivePolicy::Most(const CpuClaim& claim) const {
  if (claim.require_isolated) return cpus_.isolated.size();
  const CpuSet all = claim.prefer_isolated == false ? ordinary_ : Grantable();
  return all.size() - (SharedBeside(all).empty() ? 1 : 0);
}

StatusOr<Plan> ExclusivePolicy::Allocate(const Snapshot& snapshot, const Pod& pod,
                                         const Container& container, const Container* predecessor) {
  const CpuClaim claim = ClaimOf(pod, container);
  if (claim.exclusive == 0 && predecessor == nullptr) return Join(claim, container.key);
  const CpuSet shared_before = SharedNow();
  CpuSet granted = granted_;
  Former former;
  if (predecessor != nullptr) {
    former = {.cpus = predecessor->placement.exclusive,
              .is_place = !IsFormerAttempt(container, *predecessor)};
    const auto inherited = grants_.find(predecessor->key);
    if (inherited != grants_.end()) granted -= inherited->second.cpus;
  }
  std::optional<Grant> grant;
  if (claim.exclusive > 0) {
    StatusOr<Grant> found = Find(claim, pod, former, granted);
    if (found.ok() && predecessor == nullptr) {
      const Status room = CheckOverhead(snapshot, claim.exclusive);
      if (!room.ok()) found = room;
    }
    if (!found.ok()) return Refusal(found.status(), snapshot, claim, container.key);
    grant = *std::move(found);
  }
  if (predecessor != nullptr) {
    Take(predecessor->key);
    RemoveSharer(predecessor->key);
  }
  if (grant) Give(container.key, *std::move(grant));
  if (Shares(claim, container.key)) AddSharer(container.key);
  Plan plan;
  Place(claim, container.key, plan.Change(container.key));
  TellSharers(shared_before, container.key, plan);
  return plan;
}

// Places a container without exclusive CPUs, which changes nothing for other containers.
Plan ExclusivePolicy::Join(const CpuClaim& claim, ContainerKey key) {
  if (Shares(claim, key)) AddSharer(key);
  Plan plan;
  Place(claim, key, plan.Change(key));
  return plan;
}

StatusOr<Plan> ExclusivePolicy::Update(const Snapshot& snapshot, const Pod& pod,
                                       const Container& container) {
  const CpuSet shared_before = SharedNow();
  CpuClaim claim = ClaimOf(pod, container);
  const auto held = grants_.find(container.key);
  if (claim.exclusive == 0) {
    Take(container.key);
  } else if (held == grants_.end() || held->second.cpus.size() != claim.exclusive) {
    const Status given = GiveOrSettle(snapshot, pod, container.key, claim);
    if (!given.ok()) return Refusal(given, snapshot, claim, container.key);
  } else {
    wanting_.erase(container.key);
    if (!held->second.reason.starts_with(claim.why)) {
      held->second.reason = Reason(claim, "the CPUs that it had");
    }
  }
  if (Shares(claim, container.key)) {
    AddSharer(container.key);
  } else {
    RemoveSharer(container.key);
  }
  Plan plan;
  Placement placement;
  Place(claim, container.key, placement);
  if (!placement.SameDecision(container.placement)) {
    plan.changes.push_back({container.key, std::move(placement)});
  }
  TellSharers(shared_before, container.key, plan);
  return plan;
}

Status ExclusivePolicy::GiveOrSettle(const Snapshot& snapshot, const Pod& pod, ContainerKey key,
                                     CpuClaim& claim) {
  const auto held = grants_.find(key);
  StatusOr<Grant> grant =
      held == grants_.end() ? Find(claim, pod, {}, granted_) : Resize(held->second, claim);
  const int own = held == grants_.end() ? 0 : held->second.cpus.size();
  if (claim.exclusive > own) {
    const Status room = CheckOverhead(snapshot, claim.exclusive - own);
    if (grant.ok() && !room.ok()) grant = room;
  }
  if (grant.ok()) {
    Take(key);
    Give(key, *std::move(grant));
    return OkStatus();
  }
  // If the options exclude the need, the error is returned: a new attempt of the container would be
  // refused, too.
  const bool room = grant.status().code() != StatusCode::kResourceExhausted;
  if (room || claim.exclusive > AskedFor(key)) return grant.status();
  if (held != grants_.end() && held->second.cpus.size() < claim.exclusive) {
    held->second.reason = Reason(claim, kFewerCpus);
    wanting_[key] = claim.exclusive;
    return OkStatus();
  }
  Take(key);
  wanting_[key] = claim.exclusive;
  claim = CpuClaim();
  claim.why = fmt::format("{}{}", kWantOfRoom, Message(grant.status()));
  return OkStatus();
}

int ExclusivePolicy::AskedFor(ContainerKey key) const {
  const auto wanting = wanting_.find(key);
  if (wanting != wanting_.end()) return wanting->second;
  const auto held = grants_.find(key);
  return held == grants_.end() ? 0 : held->second.cpus.size();
}

StatusOr<Plan> ExclusivePolicy::Release(const Snapshot&, ContainerKey key) {
  const CpuSet shared_before = SharedNow();
  const auto held = grants_.find(key);
  if (held != grants_.end()) Remember(held->second);
  Take(key);
  RemoveSharer(key);
  Plan plan;
  TellSharers(shared_before, key, plan);
  return plan;
}

void ExclusivePolicy::Remember(const Grant& grant) {
  const auto [left, is_new] = left_by_pods_.try_emplace(grant.pod);
  left->second |= grant.cpus;
  if (!is_new) return;
  remembered_pods_.push_back(grant.pod);
  if (remembered_pods_.size() <= kRememberedPods) return;
  left_by_pods_.erase(remembered_pods_.front());
  remembered_pods_.pop_front();
}

std::vector<Zone> ExclusivePolicy::Zones(const Snapshot& snapshot) const {
  const CpuSet granted_isolated = granted_ & cpus_.isolated;
  const CpuSet granted_ordinary = granted_ - cpus_.isolated;
  std::vector<Zone> zones = {
      {.name = std::string(kSharedPool), .cpus = SharedNow()},
      {.name = std::string(kExclusivePool),
       .cpus = granted_ordinary,
       .exclusive = granted_ordinary},
  };
  if (!cpus_.isolated.empty()) {
    zones.push_back({.name = std::string(kIsolatedPool),
                     .cpus = cpus_.isolated,
                     .exclusive = granted_isolated});
  }
  if (!cpus_.reserved.empty()) {
    const bool shared = cpus_.reserved.IsSubsetOf(cpus_.shared);
    zones.push_back({.name = std::string(kReservedPool),
                     .parent = std::string(shared ? kSharedPool : ""),
                     .cpus = cpus_.reserved});
  }
  for (Zone& zone : zones) {
    zone.shared = zone.cpus - zone.exclusive;
    zone.mems = machine_.NodesOf(zone.cpus);
  }
  Zone& shared = zones.front();
  snapshot.ForEachContainer([&](const Pod&, const Container& container) {
    const Placement& placement = container.placement;
    for (Zone& zone : zones) {
      if (placement.pool != zone.name) continue;
      ++zone.containers;
      if (!placement.exclusive.empty() && placement.cpus == placement.exclusive) continue;
      // The part of a request beyond the exclusive CPUs comes from the shared ones.
      const MilliCpu own{int64_t{1000} * placement.exclusive.size()};
      Zone& from = placement.exclusive.empty() ? zone : shared;
      from.shared_request =
          from.shared_request + std::max(container.requirements.cpu_request - own, MilliCpu{0});
    }
  });
  shared.overhead = snapshot.Overheads().shown;
  shared.free =
      MilliCpu{int64_t{1000} * shared.shared.size()} - shared.shared_request - shared.overhead.cpu;
  return zones;
}

std::vector<std::string> ExclusivePolicy::Explain(ContainerKey key) const {
  const auto grant = grants_.find(key);
  if (grant == grants_.end()) return {};
  std::vector<std::string> lines;
  for (const ExclusivePicker::Candidate& candidate : grant->second.considered) {
    lines.push_back(
        fmt::format("{}: {} free, {}", candidate.name, candidate.free, candidate.verdict));
  }
  return lines;
}

std::vector<ConsideredPlace> ExclusivePolicy::Considered(ContainerKey key) const {
  const auto grant = grants_.find(key);
  if (grant == grants_.end()) return {};
  std::vector<ConsideredPlace> places;
  for (const ExclusivePicker::Candidate& candidate : grant->second.considered) {
    ConsideredPlace& place = places.emplace_back();
    place.name = candidate.name;
    place.free = MilliCpu{int64_t{1000} * candidate.free};
    place.verdict = candidate.verdict;
  }
  return places;
}

CpuSet ExclusivePolicy::SharedNow() const {
  return SharedBeside(granted_);
}

CpuSet ExclusivePolicy::SharedBeside(const CpuSet& granted) const {
  const CpuSet shared = cpus_.shared - granted;
  return shared.empty() && cpus_.lend_reserved ? cpus_.reserved : shared;
}

bool ExclusivePolicy::Legal(const CpuSet& cpus) const {
  return cpus.IsSubsetOf(Grantable() - granted_) && CheckShared(cpus, granted_).ok();
}

// Finds CPUs for a new grant that are not in `granted`.
StatusOr<ExclusivePolicy::Grant> ExclusivePolicy::Find(const CpuClaim& claim, const Pod& pod,
                                                       const Former& former,
                                                       const CpuSet& granted) const {
  const auto left = left_by_pods_.find(pod.id);
  const ExclusivePicker::Need need = {
      .count = claim.exclusive,
      .former = former.cpus,
      .former_is_place = former.is_place,
      .left_by_pod = left == left_by_pods_.end() ? CpuSet() : left->second,
      .prefer_isolated = claim.prefer_isolated,
      .require_isolated = claim.require_isolated,
  };
  const auto choose = [&](const CpuSet& ordinary, const CpuSet& isolated) {
    return claim.alignment == Alignment::kPrefer ? picker_.Take(need, ordinary, isolated)
                                                 : TakeAligned(claim, need, ordinary, isolated);
  };
  RESMGR_ASSIGN_OR_RETURN(ExclusivePicker::Pick pick, Pick(choose, granted));
  return Grant{pick.cpus, Reason(claim, pick.rule), pod.id, std::move(pick.considered)};
}

StatusOr<ExclusivePolicy::Grant> ExclusivePolicy::Resize(const Grant& grant,
                                                         const CpuClaim& claim) const {
  const auto choose = [&](const CpuSet& ordinary, const CpuSet& isolated) {
    return claim.exclusive > grant.cpus.size()
               ? Grow(grant.cpus, claim, (ordinary | isolated) - grant.cpus)
               : picker_.Shrink(grant.cpus, claim.exclusive, PlaceToKeep(grant.cpus, claim));
  };
  RESMGR_ASSIGN_OR_RETURN(ExclusivePicker::Pick pick, Pick(choose, granted_ - grant.cpus));
  return Grant{pick.cpus, Reason(claim, pick.rule), grant.pod, std::move(pick.considered)};
}

StatusOr<ExclusivePicker::Pick> ExclusivePolicy::Pick(const Choice& choose,
                                                      const CpuSet& granted) const {
  const CpuSet isolated = cpus_.isolated - granted;
  StatusOr<ExclusivePicker::Pick> pick = choose(ordinary_ - granted, isolated);
  if (!pick.ok()) return pick;
  const Status taken = CheckShared(pick->cpus, granted);
  if (taken.ok()) return pick;
  CpuSet last = pick->cpus & ordinary_;
  // For a container that grows, only the new CPUs can be chosen differently.
  if (const CpuSet added = last - granted_; !added.empty()) last = added;
  if (last.empty() || isolated.empty()) return taken;
  StatusOr<ExclusivePicker::Pick> without =
      choose(ordinary_ - granted - CpuSet{last.First()}, isolated);
  return without.ok() && CheckShared(without->cpus, granted).ok() ? std::move(without) : taken;
}

// Checks the overhead of pods against all free CPUs, isolated ones and the unreserved part of the
// reserved ones included, since the scheduler does not distinguish them.
Status ExclusivePolicy::CheckOverhead(const Snapshot& snapshot, int more) const {
  const int64_t promised = snapshot.Overheads().promised.value;
  const int free = (Grantable() - granted_).size();
  const int64_t left = int64_t{1000} * (free - more) + cpus_.unreserved.value;
  if (promised == 0 || left >= promised) return OkStatus();
  return ResourceExhausted("needs {} more, but of the {} that are free {}m are overhead of pods",
                           CountText(more, "exclusive CPU"), free, promised);
}

Status ExclusivePolicy::CheckShared(const CpuSet& cpus, const CpuSet& granted) const {
  if (!SharedBeside(granted | cpus).empty()) return OkStatus();
  return ResourceExhausted(
      "needs {}, but only {} can be granted without taking the last one from shared containers "
      "({})",
      CountText(cpus.size(), "exclusive CPU"), cpus.size() - 1, SharedBeside(granted).ToString());
}

void ExclusivePolicy::Give(ContainerKey key, Grant grant) {
  granted_ |= grant.cpus;
  grants_[key] = std::move(grant);
}

void ExclusivePolicy::Take(ContainerKey key) {
  wanting_.erase(key);
  const auto found = grants_.find(key);
  if (found == grants_.end()) return;
  granted_ -= found->second.cpus;
  grants_.erase(found);
}

bool ExclusivePolicy::Shares(const CpuClaim& claim, ContainerKey key) const {
  return grants_.contains(key) ? claim.shared : !claim.reserved && !claim.unbound;
}

void ExclusivePolicy::Place(const CpuClaim& claim, ContainerKey key, Placement& placement) const {
  const auto found = grants_.find(key);
  if (found == grants_.end()) {
    if (claim.unbound) {
      placement.pool = kSharedPool;
      placement.reason = claim.why;
      return;
    }
    if (!claim.reserved) return PlaceShared(claim.why, placement);
    placement.cpus = cpus_.reserved;
    placement.pool = kReservedPool;
    placement.reason = claim.why;
    return;
  }
  const Grant& grant = found->second;
  placement.cpus = claim.shared ? grant.cpus | SharedNow() : grant.cpus;
  placement.exclusive = grant.cpus;
  const MilliCpu own{int64_t{1000} * claim.exclusive};
  const bool lift = options_.lift_quota && !claim.shared && SharesTell(own);
  if (lift) placement.cpu_quota = kNoQuota;
  placement.pool = grant.cpus.IsSubsetOf(cpus_.isolated) ? kIsolatedPool : kExclusivePool;
  placement.reason = grant.reason;
}

void ExclusivePolicy::PlaceShared(std::string_view reason, Placement& placement) const {
  placement.cpus = SharedNow();
  placement.pool = kSharedPool;
  placement.reason = reason;
}

void ExclusivePolicy::AddSharer(ContainerKey key) {
  const auto at = std::lower_bound(sharers_.begin(), sharers_.end(), key);
  if (at == sharers_.end() || *at != key) sharers_.insert(at, key);
}

void ExclusivePolicy::RemoveSharer(ContainerKey key) {
  const auto at = std::lower_bound(sharers_.begin(), sharers_.end(), key);
  if (at != sharers_.end() && *at == key) sharers_.erase(at);
}

void ExclusivePolicy::TellSharers(const CpuSet& before, ContainerKey except, Plan& plan) const {
  const CpuSet shared = SharedNow();
  if (shared == before) return;
  SharedChange change{.cpus = shared, .containers = {}};
  change.containers.reserve(sharers_.size());
  for (const ContainerKey key : sharers_) {
    if (key != except) change.containers.push_back(key);
  }
  if (!change.containers.empty()) plan.shared.push_back(std::move(change));
}

}  // namespace resmgr
