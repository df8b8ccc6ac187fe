// SPDX-License-Identifier: Apache-2.0
#include "policies/static/static_policy.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "pkg/base/parse.h"
#include "pkg/kube/annotations.h"

namespace resmgr {
namespace {

constexpr int64_t kNoQuota = -1;

CpuSet SharedBase(const PolicyContext& context, const StaticOptions& options) {
  const CpuSet ordinary = context.available - context.machine.isolated();
  return options.strict_cpu_reservation ? ordinary - context.reserved : ordinary | context.reserved;
}

// How many CPUs the container is entitled to for itself alone; 0 for one that shares.
int ExclusiveCount(const Pod& pod, const Container& container) {
  const MilliCpu request = container.requirements.cpu_request;
  if (pod.qos != QosClass::kGuaranteed || !request.IsWhole()) return 0;
  return static_cast<int>(std::min<int64_t>(request.Whole(), CpuSet::kBits));
}

std::string WhyShared(const Pod& pod, const Container& container) {
  if (pod.qos != QosClass::kGuaranteed) return fmt::format("{} pod", ToString(pod.qos));
  const MilliCpu request = container.requirements.cpu_request;
  if (request.value == 0) return "no CPU request";
  return fmt::format("CPU request of {}m is not whole", request.value);
}

std::optional<bool> PrefersIsolated(const Pod& pod, const Container& container) {
  const auto annotation = FindAnnotation(pod.annotations, "prefer-isolated-cpus", container.name);
  return annotation ? ParseBool(annotation->value) : std::nullopt;
}

Status ForContainer(const Status& status, const Pod& pod, const Container& container) {
  return Annotate(status, fmt::format("container {}", FullName(pod, container.name)));
}

std::string WhyExclusive(int count, std::string_view rule) {
  return fmt::format("Guaranteed pod with {} whole CPUs: {}", count, rule);
}

CpuSet UsedBySeveral(const Snapshot& snapshot) {
  CpuSet used;
  CpuSet several;
  snapshot.ForEachContainer([&](const Pod&, const Container& container) {
    const CpuSet cpus = container.placement.cpus.value_or(CpuSet());
    several |= used & cpus;
    used |= cpus;
  });
  return several;
}

bool SamePlacement(const Placement& a, const Placement& b) {
  return a.SameEffect(b) && a.exclusive == b.exclusive && a.pool == b.pool && a.reason == b.reason;
}

}  // namespace

StatusOr<std::unique_ptr<Policy>> StaticPolicy::Create(const PolicyContext& context) {
  RESMGR_ASSIGN_OR_RETURN(const StaticOptions options, ReadStaticOptions(context.section));
  if (SharedBase(context, options).empty()) {
    return InvalidArgument(
        "policy static: of the available CPUs ({}) none is left for shared containers without the "
        "isolated ({}){}",
        context.available.ToString(), context.machine.isolated().ToString(),
        options.strict_cpu_reservation
            ? fmt::format(" and the reserved ones ({})", context.reserved.ToString())
            : "");
  }
  return std::unique_ptr<Policy>(new StaticPolicy(context, options));
}

StaticPolicy::StaticPolicy(const PolicyContext& context, const StaticOptions& options)
    : machine_(context.machine),
      options_(options),
      picker_(context.machine, options),
      reserved_(context.reserved),
      isolated_((context.available & context.machine.isolated()) - context.reserved),
      shared_base_(SharedBase(context, options)) {}

StatusOr<Plan> StaticPolicy::Reconcile(const Snapshot& snapshot) {
  grants_.clear();
  granted_ = {};
  Adopt(snapshot);
  const std::map<ContainerKey, std::string> refused = GrantTheRest(snapshot);
  Plan plan;
  snapshot.ForEachContainer([&](const Pod& pod, const Container& container) {
    const auto why = refused.find(container.key);
    Placement placement =
        why == refused.end() ? PlacementOf(pod, container) : SharedPlacement(why->second);
    if (SamePlacement(placement, container.placement)) return;
    plan.changes.push_back({container.key, std::move(placement)});
  });
  return plan;
}

// Whoever is entitled to CPUs of its own and sits on exactly so many, which are nobody else's,
// keeps them. One that sits on fewer, all alone, was about to get more: it keeps them, too. Those
// who are alone come first: who shares a place may do so only by chance on as many CPUs as it
// wants.
void StaticPolicy::Adopt(const Snapshot& snapshot) {
  const CpuSet crowded = UsedBySeveral(snapshot);
  std::vector<std::pair<const Container*, int>> growing;
  for (const bool alone : {true, false}) {
    snapshot.ForEachContainer([&](const Pod& pod, const Container& container) {
      const int count = ExclusiveCount(pod, container);
      const Placement& present = container.placement;
      const bool decided_here = !present.exclusive.empty();
      const CpuSet cpus = decided_here ? present.exclusive : present.cpus.value_or(CpuSet());
      if (alone != (decided_here || !cpus.Intersects(crowded))) return;
      if (cpus.empty() || cpus.size() > count || !Legal(cpus)) return;
      if (cpus.size() < count && !alone) return;
      if (cpus.size() < count) growing.emplace_back(&container, count);
      const std::string found = WhyExclusive(count, "the CPUs that it was found on");
      Give(container.key, {cpus, decided_here ? present.reason : found});
    });
  }
  for (const auto& [container, count] : growing) {
    StatusOr<Grant> grant = Resize(grants_.at(container->key), count);
    if (grant.ok()) {
      Take(container->key);
      Give(container->key, *std::move(grant));
    }
  }
}

// A container that exists cannot be refused: without room it shares. Returns those, with the
// reason.
std::map<ContainerKey, std::string> StaticPolicy::GrantTheRest(const Snapshot& snapshot) {
  std::map<ContainerKey, std::string> refused;
  snapshot.ForEachContainer([&](const Pod& pod, const Container& container) {
    if (ExclusiveCount(pod, container) == 0 || grants_.contains(container.key)) return;
    StatusOr<Grant> grant = Find(pod, container, container.placement.exclusive, granted_);
    if (grant.ok()) {
      Give(container.key, *std::move(grant));
    } else {
      refused.emplace(container.key,
                      fmt::format("shared for want of room: {}", Message(grant.status())));
    }
  });
  return refused;
}

bool StaticPolicy::Legal(const CpuSet& cpus) const {
  const CpuSet grantable = ((shared_base_ - reserved_) | isolated_) - granted_;
  return cpus.IsSubsetOf(grantable) && CheckShared(cpus, granted_).ok();
}

StatusOr<Plan> StaticPolicy::Allocate(const Snapshot& snapshot, const Pod& pod,
                                      const Container& container, const Container* predecessor) {
  const CpuSet shared_before = Shared();
  CpuSet granted = granted_;
  CpuSet former;
  if (predecessor != nullptr) {
    former = predecessor->placement.exclusive;
    const auto inherited = grants_.find(predecessor->key);
    if (inherited != grants_.end()) granted -= inherited->second.cpus;
  }
  if (ExclusiveCount(pod, container) > 0) {
    StatusOr<Grant> grant = Find(pod, container, former, granted);
    if (!grant.ok()) return ForContainer(grant.status(), pod, container);
    if (predecessor != nullptr) Take(predecessor->key);
    Give(container.key, *std::move(grant));
  } else if (predecessor != nullptr) {
    Take(predecessor->key);
  }
  Plan plan;
  plan.changes.push_back({container.key, PlacementOf(pod, container)});
  if (Shared() != shared_before) AddShared(snapshot, container.key, plan);
  return plan;
}

StatusOr<Plan> StaticPolicy::Update(const Snapshot& snapshot, const Pod& pod,
                                    const Container& container) {
  const CpuSet shared_before = Shared();
  const int count = ExclusiveCount(pod, container);
  const auto held = grants_.find(container.key);
  if (count == 0) {
    Take(container.key);
  } else if (held == grants_.end() || held->second.cpus.size() != count) {
    StatusOr<Grant> grant =
        held == grants_.end() ? Find(pod, container, {}, granted_) : Resize(held->second, count);
    if (!grant.ok()) return ForContainer(grant.status(), pod, container);
    Take(container.key);
    Give(container.key, *std::move(grant));
  }
  Plan plan;
  Placement placement = PlacementOf(pod, container);
  if (!SamePlacement(placement, container.placement)) {
    plan.changes.push_back({container.key, std::move(placement)});
  }
  if (Shared() != shared_before) AddShared(snapshot, container.key, plan);
  return plan;
}

StatusOr<Plan> StaticPolicy::Release(const Snapshot& snapshot, ContainerKey key) {
  const CpuSet shared_before = Shared();
  Take(key);
  Plan plan;
  if (Shared() != shared_before) AddShared(snapshot, key, plan);
  return plan;
}

std::vector<Zone> StaticPolicy::Zones(const Snapshot& snapshot) const {
  Zone shared{.name = "shared", .cpus = Shared(), .mems = machine_.NodesOf(Shared())};
  snapshot.ForEachContainer([&](const Pod&, const Container& container) {
    if (container.placement.pool != shared.name) return;
    ++shared.containers;
    shared.shared_request = shared.shared_request + container.requirements.cpu_request;
  });
  std::vector<Zone> zones = {std::move(shared)};
  zones.push_back({.name = "exclusive",
                   .cpus = granted_,
                   .exclusive = granted_,
                   .mems = machine_.NodesOf(granted_),
                   .containers = static_cast<int>(grants_.size())});
  if (!reserved_.empty()) {
    zones.push_back({.name = "reserved",
                     .parent = options_.strict_cpu_reservation ? "" : "shared",
                     .cpus = reserved_,
                     .mems = machine_.NodesOf(reserved_)});
  }
  const CpuSet isolated = isolated_ - granted_;
  if (!isolated.empty()) {
    zones.push_back({.name = "isolated", .cpus = isolated, .mems = machine_.NodesOf(isolated)});
  }
  return zones;
}

// CPUs for a new grant beside `granted`.
StatusOr<StaticPolicy::Grant> StaticPolicy::Find(const Pod& pod, const Container& container,
                                                 const CpuSet& former,
                                                 const CpuSet& granted) const {
  const ExclusivePicker::Need need = {
      .count = ExclusiveCount(pod, container),
      .former = former,
      .prefer_isolated = PrefersIsolated(pod, container),
  };
  RESMGR_ASSIGN_OR_RETURN(
      const ExclusivePicker::Pick pick,
      picker_.Take(need, shared_base_ - reserved_ - granted, isolated_ - granted));
  RESMGR_RETURN_IF_ERROR(CheckShared(pick.cpus, granted));
  return Grant{pick.cpus, WhyExclusive(need.count, pick.rule)};
}

StatusOr<StaticPolicy::Grant> StaticPolicy::Resize(const Grant& grant, int count) const {
  const CpuSet free = ((shared_base_ - reserved_) | isolated_) - granted_;
  RESMGR_ASSIGN_OR_RETURN(const ExclusivePicker::Pick pick,
                          count > grant.cpus.size() ? picker_.Grow(grant.cpus, count, free)
                                                    : picker_.Shrink(grant.cpus, count));
  RESMGR_RETURN_IF_ERROR(CheckShared(pick.cpus, granted_ - grant.cpus));
  return Grant{pick.cpus, WhyExclusive(count, pick.rule)};
}

// Shared containers, those to come included, need a CPU to run on.
Status StaticPolicy::CheckShared(const CpuSet& cpus, const CpuSet& granted) const {
  const CpuSet shared = shared_base_ - granted;
  if (!shared.IsSubsetOf(cpus)) return OkStatus();
  return ResourceExhausted(
      "needs {} exclusive CPUs, but only {} can be granted without taking the last one from "
      "shared containers ({})",
      cpus.size(), cpus.size() - 1, shared.ToString());
}

void StaticPolicy::Give(ContainerKey key, Grant grant) {
  granted_ |= grant.cpus;
  grants_[key] = std::move(grant);
}

void StaticPolicy::Take(ContainerKey key) {
  const auto found = grants_.find(key);
  if (found == grants_.end()) return;
  granted_ -= found->second.cpus;
  grants_.erase(found);
}

Placement StaticPolicy::PlacementOf(const Pod& pod, const Container& container) const {
  const auto grant = grants_.find(container.key);
  if (grant == grants_.end()) return SharedPlacement(WhyShared(pod, container));
  Placement placement;
  placement.cpus = grant->second.cpus;
  placement.exclusive = grant->second.cpus;
  if (options_.lift_quota) placement.cpu_quota = kNoQuota;
  placement.pool = "exclusive";
  placement.reason = grant->second.reason;
  return placement;
}

Placement StaticPolicy::SharedPlacement(std::string reason) const {
  Placement placement;
  placement.cpus = Shared();
  placement.pool = "shared";
  placement.reason = std::move(reason);
  return placement;
}

void StaticPolicy::AddShared(const Snapshot& snapshot, ContainerKey except, Plan& plan) const {
  const CpuSet shared = Shared();
  snapshot.ForEachContainer([&](const Pod&, const Container& container) {
    if (container.key == except || grants_.contains(container.key)) return;
    PlacementChange& change = plan.changes.emplace_back();
    change.key = container.key;
    change.placement = container.placement;
    change.placement.cpus = shared;
  });
}

PolicyFactory StaticPolicyFactory() {
  return {
      .name = "static",
      .description = "whole CPUs of Guaranteed pods are exclusive, everybody else shares the rest",
      .create = StaticPolicy::Create,
      .check_section =
          [](const ConfigNode& section) { return ReadStaticOptions(&section).status(); },
  };
}

}  // namespace resmgr
