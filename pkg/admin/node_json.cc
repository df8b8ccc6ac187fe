// SPDX-License-Identifier: Apache-2.0
#include "pkg/admin/node_json.h"

#include <algorithm>
#include <map>
#include <utility>

#include <absl/time/time.h>
#include <fmt/format.h>

#include "pkg/admin/stage_json.h"
#include "pkg/base/parse.h"
#include "pkg/base/suggest.h"
#include "pkg/claims/claim_options.h"
#include "pkg/claims/claimed_policy.h"
#include "pkg/kube/cpu_arithmetic.h"
#include "pkg/model/container_facts.h"
#include "pkg/policy/conventions.h"
#include "pkg/resmgr/applied_resources.h"
#include "pkg/resmgr/refusal_log.h"

namespace resmgr {
namespace {

template <typename Set>
std::string ListOf(const std::optional<Set>& decided, const std::optional<std::string>& requested) {
  return decided ? decided->ToString() : requested.value_or("");
}

// The known values, in the units of ContainerJson.
OrderedJson PodResourcesJson(const LinuxResources& resources) {
  OrderedJson object = OrderedJson::object();
  const auto put = [&object](const char* name, const std::optional<int64_t>& value) {
    if (value.value_or(0) != 0) object[name] = *value;
  };
  put("shares", resources.cpu_shares);
  put("quota", resources.cpu_quota);
  put("period", resources.cpu_period);
  put("memoryLimit", resources.memory_limit);
  return object;
}

// The overhead that the kubelet states; if it states none, the configured one in the kubelet's
// form.
LinuxResources ShownOverhead(const Snapshot& snapshot, const Pod& pod) {
  if (!OverheadFrom(pod.overhead).empty()) return pod.overhead;
  const Overhead configured = snapshot.OverheadOf(pod);
  LinuxResources shown;
  if (configured.cpu.value > 0) shown.cpu_shares = SharesFromMilliCpu(configured.cpu);
  if (configured.memory.value > 0) shown.memory_limit = configured.memory.value;
  return shown;
}

OrderedJson PlacementOwnersJson(const Placement& placement) {
  OrderedJson owners = OrderedJson::array();
  const Adjustment decided(placement.values());
  for (FieldChange& change : decided.Changes()) {
    std::string value = ShownValue(decided, change);
    owners.push_back(OwnerJson(
        {.change = std::move(change), .stage = "policy", .plugin = {}, .value = std::move(value)}));
  }
  return owners;
}

OrderedJson HintsJson(const Container& container) {
  OrderedJson hints = OrderedJson::array();
  for (const LocalityHint& hint : container.hints) {
    hints.push_back({{"source", hint.source},
                     {"cpus", hint.cpus.ToString()},
                     {"nodes", hint.nodes.ToString()}});
  }
  return hints;
}

OrderedJson ConsideredJson(const Policy& policy, const Container& container) {
  OrderedJson list = OrderedJson::array();
  for (const ConsideredPlace& place : policy.Considered(container.key)) {
    OrderedJson& object = list.emplace_back();
    object["name"] = place.name;
    if (place.free) object["free"] = place.free->value;
    if (place.free_memory) object["freeMemory"] = place.free_memory->value;
    if (place.near_devices && !container.hints.empty()) object["nearDevices"] = *place.near_devices;
    if (place.affinity) object["affinity"] = *place.affinity;
    object["verdict"] = place.verdict;
  }
  return list;
}

// The pods of containers, by the pods' uids.
using PodsByUid = std::map<std::string_view, const Pod*>;

PodsByUid KnownPods(const Snapshot& snapshot) {
  PodsByUid pods;
  snapshot.ForEachContainer(
      [&pods](const Pod& pod, const Container&) { pods.emplace(pod.uid.value(), &pod); });
  return pods;
}

OrderedJson ReservedForJson(const Claim& claim, const PodsByUid& pods) {
  OrderedJson list = OrderedJson::array();
  for (const std::string& uid : claim.pods) {
    OrderedJson& object = list.emplace_back(OrderedJson{{"uid", uid}});
    const auto known = pods.find(uid);
    if (known == pods.end()) continue;
    object["pod"] = fmt::format("{}/{}", known->second->namespace_name, known->second->name);
  }
  return list;
}

// Adds the parameters of a claim that are set; most claims have none.
void AddParameters(const ClaimOptions& options, const Container& part, OrderedJson& object) {
  if (options.core_type) object["coreType"] = CoreTypeName(*options.core_type);
  if (options.l3) object["l3"] = true;
  if (!options.avoid_siblings) return;
  object["avoidSiblings"] = true;
  object["seen"] = part.placement.cpus.value_or(CpuSet()).ToString();
}

// Adds the part's request, its CPUs' state, the pods that may use the claim, and the containers
// that carry it.
void AddClaim(const ResourceManager& manager, const PodsByUid& pods, const HeldClaim& claim,
              const Container& part, OrderedJson& object) {
  object["claim"] = claim.claim.uid;
  const auto index =
      std::ranges::find(claim.parts, part.key, &Container::key) - claim.parts.begin();
  const ClaimPart& asked = claim.claim.parts.at(static_cast<size_t>(index));
  const int holds = part.placement.exclusive.size();
  object["claimState"] = holds == asked.cpus
                             ? "held"
                             : fmt::format("has lost CPUs: holds {} of {}", holds, asked.cpus);
  object["device"] = asked.device;
  if (asked.node) object["numaNode"] = *asked.node;
  object["wholeCores"] = claim.claim.options.whole_cores;
  AddParameters(claim.claim.options, part, object);
  object["sharedWithinPod"] = claim.claim.options.share_within_pod;
  object["reservedFor"] = ReservedForJson(claim.claim, pods);
  OrderedJson& carriers = object["carriers"] = OrderedJson::array();
  for (const auto& [key, uids] : manager.carriers()) {
    const Container* const container = manager.snapshot().FindContainer(key);
    if (container == nullptr || std::ranges::find(uids, claim.claim.uid) == uids.end()) continue;
    const Pod* const pod = manager.snapshot().FindPod(container->pod_id);
    if (pod != nullptr) carriers.push_back(FullName(*pod, container->name));
  }
}

// Why the container's last update failed, and what an administrator can do.
std::string WithRemedy(const Pod& pod, const Container& container, const Status& error) {
  return fmt::format("{}; what to do: {}", Message(error), UpdateRemedy(pod, container, error));
}

}  // namespace

bool NamesFull(std::string_view full, std::string_view what, NameMatch match) {
  const std::vector<std::string_view> parts = Split(full, '/');
  if (parts.size() != 3) return false;
  const auto matches = [what, match](std::string_view name) {
    return match == NameMatch::kWhole ? name == what : name.starts_with(what);
  };
  const std::string_view after_namespace = full.substr(parts[0].size() + 1);
  const std::string_view pod = full.substr(0, parts[0].size() + 1 + parts[1].size());
  return matches(full) || matches(after_namespace) || matches(pod) || matches(parts[1]);
}

bool Names(const Pod& pod, const Container& container, std::string_view what, NameMatch match) {
  // The beginning of an id counts only if it is long enough: shorter texts match too many ids.
  constexpr size_t kShortestId = 6;
  if (what.size() >= kShortestId && container.id.value().starts_with(what)) {
    return true;
  }
  if (HeldClaims::IsPart(container.key) &&
      (pod.uid.value() == what ||
       (what.size() >= kShortestId && pod.uid.value().starts_with(what)))) {
    return true;
  }
  return NamesFull(FullName(pod, container.name), what, match);
}

Status NoSuchContainer(std::string_view what, const std::vector<std::string>& known) {
  if (what.empty()) return NotFound("there are no such containers");
  // Not more than this many parts of names are compared, since this takes time on the event loop.
  constexpr size_t kMostNames = 1000;
  std::vector<std::string_view> names;
  const auto add = [&names, what](std::string_view name) {
    const size_t longer = std::max(name.size(), what.size()) - std::min(name.size(), what.size());
    if (longer <= 1 + what.size() / 3 && names.size() < kMostNames) names.push_back(name);
  };
  for (const std::string_view full : known) {
    const std::vector<std::string_view> parts = Split(full, '/');
    if (parts.size() != 3) continue;
    add(parts[1]);
    add(full.substr(0, parts[0].size() + 1 + parts[1].size()));
    add(full.substr(parts[0].size() + 1));
    add(full);
  }
  const std::string hint = DidYouMean(what, names);
  return NotFound("no container is called {}{}", Printable(what, 256), Printable(hint, 256));
}

OrderedJson ContainerJson(const Pod& pod, const Container& container, std::string_view policy) {
  const Placement& placement = container.placement;
  const LinuxResources& requested = container.requested;
  const CpuSet cpus = placement.cpus.value_or(CpuSet());
  const CpuNumbers numbers = NumbersInForce(container.set_later, placement, requested);
  // A container that has ended has no CPUs, although the runtime still reports its former ones.
  const bool ended = container.state == ContainerState::kExited;
  OrderedJson object = {
      {"id", container.id.value()},
      {"pod", pod.name},
      {"namespace", pod.namespace_name},
      {"name", container.name},
      {"qos", ToString(pod.qos)},
      {"state", HeldClaims::IsPart(container.key) ? "claim" : ToString(container.state)},
      {"cpus", ended ? "" : ListOf(placement.cpus, requested.cpuset_cpus)},
      {"mems", ended ? "" : ListOf(placement.mems, requested.cpuset_mems)},
      {"exclusive", placement.exclusive.ToString()},
      {"shared", (cpus - placement.exclusive).ToString()},
      {"shares", numbers.shares.value_or(0)},
      {"quota", QuotaOrNone(numbers.quota)},
      {"period", numbers.period.value_or(0)},
      {"memoryLimit", requested.memory_limit.value_or(0)},
      {"pool", placement.pool},
      {"policy", policy},
      {"reason", placement.reason},
  };
  const std::map<std::string, int64_t> others = OtherResources(pod, container);
  if (!others.empty()) object["otherResources"] = others;
  return object;
}

CpuSet BoundCpus(const Container& container) {
  if (const std::optional<CpuSet> own = container.placement.EnforcedCpus()) return *own;
  return CpuSet::Parse(container.requested.cpuset_cpus.value_or("")).value_or(CpuSet());
}

bool ContainerChoice::Includes(const Pod& pod) const {
  return (namespace_name.empty() || namespace_name == pod.namespace_name) &&
         labels.Matches(pod.labels);
}

bool ContainerChoice::Includes(const Container& container) const {
  const Placement& placement = container.placement;
  if (!pool.empty() && placement.pool != pool) return false;
  if (cpus.empty() && !node) return true;
  if (container.state == ContainerState::kExited) return false;
  const CpuSet bound = BoundCpus(container);
  const auto may_use = [&bound](const CpuSet& some) {
    return bound.empty() || bound.Intersects(some);
  };
  if (!cpus.empty() && !may_use(cpus)) return false;
  if (!node) return true;
  return may_use(node->cpus) || (placement.mems && placement.mems->Contains(node->id));
}

OrderedJson ContainersJson(const Snapshot& snapshot, std::string_view policy,
                           const ContainerChoice& choice) {
  OrderedJson list = OrderedJson::array();
  snapshot.ForEachContainer([&](const Pod& pod, const Container& container) {
    if (choice.Includes(pod) && choice.Includes(container))
      list.push_back(ContainerJson(pod, container, policy));
  });
  return list;
}

size_t CountUnsettled(const ResourceManager& manager) {
  size_t count = 0;
  manager.snapshot().ForEachContainer([&](const Pod&, const Container& container) {
    if (container.state != ContainerState::kExited && !manager.Settled(container.key)) ++count;
  });
  return count;
}

OrderedJson HeldJson(const ResourceManager& manager) {
  const Snapshot& snapshot = manager.snapshot();
  size_t containers = 0;
  CpuSet exclusive = manager.held_claims().Cpus();
  snapshot.ForEachContainer([&](const Pod&, const Container& container) {
    ++containers;
    if (container.state == ContainerState::kExited) return;
    exclusive = exclusive | container.placement.exclusive;
  });
  CpuSet shared;
  CpuSet reserved;
  for (const Zone& zone : manager.policy().Zones(snapshot)) {
    if (IsIsolatedPool(zone.name)) continue;
    CpuSet& cpus = IsReservedPool(zone.name) ? reserved : shared;
    cpus = cpus | zone.shared;
  }
  return {{"pods", manager.pod_count()},          {"containers", containers},
          {"unsettled", CountUnsettled(manager)}, {"exclusive", exclusive.ToString()},
          {"shared", shared.ToString()},          {"reserved", reserved.ToString()}};
}

OrderedJson PoolsJson(const Policy& policy, const Snapshot& snapshot) {
  std::map<std::string, OrderedJson> members;
  WithClaims(snapshot, ClaimsOf(policy))
      .ForEachContainer([&](const Pod& pod, const Container& container) {
        if (container.placement.pool.empty()) return;
        members.try_emplace(container.placement.pool, OrderedJson::array())
            .first->second.push_back(FullName(pod, container.name));
      });
  OrderedJson list = OrderedJson::array();
  for (const Zone& zone : policy.Zones(snapshot)) {
    const auto found = members.find(zone.name);
    const MilliCpu whole{int64_t{1000} * zone.shared.size()};
    list.push_back({
        {"name", zone.name},
        {"parent", zone.parent},
        {"kind", zone.kind},
        {"cpus", zone.cpus.ToString()},
        {"exclusive", zone.exclusive.ToString()},
        {"shared", zone.shared.ToString()},
        {"mems", zone.mems.ToString()},
        {"sharedRequest", zone.shared_request.value},
        {"free", zone.free.value_or(whole - zone.shared_request).value},
        {"memoryBytes", zone.memory_capacity.value},
        {"memoryUsed", zone.memory_used.value},
        {"containers", found == members.end() ? OrderedJson::array() : found->second},
    });
    if (zone.overhead.empty()) continue;
    list.back()["overhead"] = {{"cpu", zone.overhead.cpu.value},
                               {"memory", zone.overhead.memory.value}};
  }
  return list;
}

OrderedJson HeldByPoolJson(const Policy& policy, const Snapshot& snapshot) {
  constexpr size_t kMostPools = 64;
  OrderedJson held = OrderedJson::array();
  for (const OrderedJson& pool : PoolsJson(policy, snapshot)) {
    if (held.size() == kMostPools) break;
    const auto lacks = [&pool](const char* member) {
      return pool[member].get_ref<const std::string&>().empty();
    };
    if (lacks("exclusive") && lacks("shared")) continue;
    OrderedJson& entry = held.emplace_back();
    for (const char* const member :
         {"name", "exclusive", "shared", "sharedRequest", "free", "memoryBytes", "memoryUsed"})
      entry[member] = pool[member];
  }
  return held;
}

StatusOr<OrderedJson> ExplainJson(const ResourceManager& manager, std::string_view what,
                                  const ContainerChoice& choice, NameMatch match) {
  const Policy& policy = manager.policy();
  OrderedJson list = OrderedJson::array();
  const HeldClaims& claims = manager.held_claims();
  const PodsByUid pods = claims.empty() ? PodsByUid() : KnownPods(manager.snapshot());
  const WithClaims all(manager.snapshot(), claims);
  all.ForEachContainer([&](const Pod& pod, const Container& container) {
    if (!choice.Includes(pod) || (!what.empty() && !Names(pod, container, what, match))) return;
    OrderedJson object = ContainerJson(pod, container, policy.name());
    const Requirements& needs = container.requirements;
    object["request"] = needs.cpu_request.value;
    object["limit"] = needs.cpu_limit.value;
    object["memoryRequest"] = needs.memory_request.value;
    object["role"] = ToString(RoleOf(manager.snapshot(), pod, container));
    object["otherResources"] = OtherResources(pod, container);
    object["podOverhead"] = PodResourcesJson(ShownOverhead(manager.snapshot(), pod));
    object["podResources"] = PodResourcesJson(pod.resources);
    object["owners"] = PlacementOwnersJson(container.placement);
    object["coldStartMs"] = container.placement.look_again_after.count();
    object["hints"] = HintsJson(container);
    const HeldClaim* const claim = claims.FindByPart(container.key);
    if (claim != nullptr) AddClaim(manager, pods, *claim, container, object);
    object["settled"] = claim != nullptr || manager.Settled(container.key);
    object["candidates"] = policy.Explain(container.key);
    object["considered"] = ConsideredJson(policy, container);
    const Status error = manager.LastUpdateError(container.key);
    if (!error.ok()) object["notUpdated"] = WithRemedy(pod, container, error);
    list.push_back(std::move(object));
  });
  if (list.empty()) return NoSuchContainer(what);
  return list;
}

OrderedJson MovesJson(const std::vector<ResourceManager::Move>& moves) {
  const auto place = [](const Placement& placement) {
    return OrderedJson{
        {"cpus", placement.EnforcedCpus().value_or(CpuSet()).ToString()},
        {"exclusive", placement.exclusive.ToString()},
        {"mems", placement.mems ? placement.mems->ToString() : ""},
    };
  };
  // Adds only numbers that change; null stands for the value that the container requests.
  const auto add_numbers = [](const ResourceManager::Move& move, const Placement& placement,
                              OrderedJson& object) {
    const auto number = [](const std::optional<int64_t>& value) {
      return value ? OrderedJson(*value) : OrderedJson(nullptr);
    };
    if (move.from.cpu_shares != move.to.cpu_shares) object["shares"] = number(placement.cpu_shares);
    if (move.from.cpu_quota != move.to.cpu_quota || move.from.cpu_period != move.to.cpu_period) {
      object["quota"] = number(placement.cpu_quota);
      object["period"] = number(placement.cpu_period);
    }
  };
  OrderedJson list = OrderedJson::array();
  for (const ResourceManager::Move& move : moves) {
    OrderedJson from = place(move.from);
    OrderedJson to = place(move.to);
    add_numbers(move, move.from, from);
    add_numbers(move, move.to, to);
    to["reason"] = move.to.reason;
    list.push_back({{"container", move.container}, {"from", from}, {"to", to}});
  }
  return list;
}

std::string Rfc3339(std::chrono::system_clock::time_point time) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", absl::FromChrono(time), absl::UTCTimeZone());
}

}  // namespace resmgr
