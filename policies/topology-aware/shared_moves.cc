// SPDX-License-Identifier: Apache-2.0
// The part of TopologyAwarePolicy that moves containers between shared pools because of their use.
#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

#include "pkg/allocator/want_of_room.h"
#include "policies/topology-aware/topology_aware_policy.h"

namespace resmgr {
namespace {

// How many levels above `pool` the first pool is that also contains `other`.
int StepsUp(const PoolTree& tree, int pool, int other) {
  int steps = 0;
  for (int id = pool; !tree.IsAncestorOrSelf(id, other); id = tree.at(id).parent)
    ++steps;
  return steps;
}

bool MaySuit(const GrantBook& book, const Grant& held, int pool) {
  const PoolTree& tree = book.tree();
  const CpuLedger& cpus = book.cpus();
  // A pool inside its own pool is not a target, since the container can use all CPUs there already.
  if (tree.IsAncestorOrSelf(held.pool, pool)) return false;
  if (!cpus.CanShare(pool) || cpus.IsOverfull(pool) || cpus.Lends(pool)) return false;
  if (cpus.SharedSet(pool) == cpus.SharedSet(held.pool)) return false;
  const Need& need = held.need;
  if (need.unlimited) return tree.at(pool).depth <= tree.at(held.pool).depth;
  const int64_t burst = std::min(need.cpu_limit, int64_t{1000} * cpus.FreeCpus(held.pool));
  return int64_t{1000} * cpus.FreeCpus(pool) >= burst;
}

}  // namespace

policy::SharedPools TopologyAwarePolicy::Shared(const Snapshot& /*snapshot*/) const {
  policy::SharedPools shared;
  const PoolTree& tree = book_.tree();
  if (tree.size() < 2 || !book_.pins_cpus()) return shared;
  std::vector<std::optional<size_t>> places(tree.size());
  for (const Pool& pool : tree.pools()) {
    const CpuSet& cpus = book_.cpus().SharedSet(pool.id);
    if (cpus.empty()) continue;
    places[IndexOf(pool.id)] = shared.pools.size();
    shared.pools.push_back({pool.name, cpus});
  }
  for (const auto& [key, grant] : book_.grants()) {
    if (!grant.need.Shares() || !places[IndexOf(grant.pool)]) continue;
    shared.containers.push_back({key, *places[IndexOf(grant.pool)]});
  }
  return shared;
}

std::vector<std::string> TopologyAwarePolicy::TargetsOf(const Snapshot& snapshot,
                                                        ContainerKey key) const {
  const Grant* const held = book_.Find(key);
  const Container* const container = snapshot.FindContainer(key);
  const Pod* const pod = container == nullptr ? nullptr : snapshot.FindPod(container->pod_id);
  if (held == nullptr || pod == nullptr || !WhyItStays(*pod, *container, *held).empty()) return {};
  const PoolTree& tree = book_.tree();
  std::vector<std::tuple<bool, int, int>> found;
  for (const Pool& pool : tree.pools()) {
    if (!MaySuit(book_, *held, pool.id)) continue;
    if (!placer_.PlaceIn({.need = held->need}, pool.id)) continue;
    // Pools that are not larger than its own come first: in these it stays as near to its memory as
    // before.
    const bool larger = pool.sharable.size() > tree.at(held->pool).sharable.size();
    found.emplace_back(larger, StepsUp(tree, held->pool, pool.id), pool.id);
  }
  std::ranges::sort(found);
  std::vector<std::string> names;
  names.reserve(found.size());
  for (const auto& [larger, steps, id] : found)
    names.push_back(tree.at(id).name);
  return names;
}

std::string TopologyAwarePolicy::WhyItStays(const Pod& pod, const Container& container,
                                            const Grant& grant) const {
  if (grant.need.cpu_class != CpuClass::kShared || !grant.exclusive.empty())
    return "it is not on shared CPUs alone";
  if (grant.cold) return "it begins with the PMEM of its memory nodes";
  if (grant.reason.starts_with(kWantOfRoom)) return "it waits for CPUs of its own";
  if (!MakeDemand(pod, container).hints.empty()) return "it is near its devices and volumes";
  const StatusOr<PodAffinities> affinities = PodAffinities::Read(pod.annotations);
  const auto own = affinities.ok() ? affinities->Of(container.name)
                                   : StatusOr<std::span<const Affinity>>(affinities.status());
  if (!ImpliedAffinities(pod).empty() || (own.ok() && !own->empty()))
    return "it has affinities to other containers";
  return "";
}

Status TopologyAwarePolicy::MoveOne(const Snapshot& snapshot, const policy::PoolMove& move) {
  const Grant* const held = book_.Find(move.key);
  const Container* const container = snapshot.FindContainer(move.key);
  const Pod* const pod = container == nullptr ? nullptr : snapshot.FindPod(container->pod_id);
  const int pool = book_.tree().Find(move.pool);
  if (held == nullptr || pod == nullptr) return FailedPrecondition("the container has no place");
  const std::string name = FullName(*pod, container->name);
  if (pool < 0) return FailedPrecondition("{}: there is no pool {}", name, move.pool);
  if (const std::string why = WhyItStays(*pod, *container, *held); !why.empty())
    return FailedPrecondition("{} stays in {}: {}", name, book_.tree().at(held->pool).name, why);
  Grant former = *Take(move.key);
  std::optional<Grant> grant;
  if (book_.cpus().CanShare(pool) && !book_.cpus().Lends(pool))
    grant = placer_.PlaceIn({.need = former.need}, pool);
  if (!grant || grant->pool != pool) {
    Give(*pod, *container, std::move(former));
    return FailedPrecondition("{}: {} has no room for it", name, move.pool);
  }
  grant->reason =
      fmt::format("{}: {}, by what is used{}", former.need.why, move.pool, grant->reason);
  Give(*pod, *container, *std::move(grant));
  return OkStatus();
}

StatusOr<Plan> TopologyAwarePolicy::MoveShared(const Snapshot& snapshot,
                                               std::span<const policy::PoolMove> moves) {
  const CpuSet before = book_.cpus().exclusive();
  std::vector<std::pair<ContainerKey, Grant>> former;
  std::set<ContainerKey> moved;
  Status status;
  for (const policy::PoolMove& move : moves) {
    const Grant* const held = book_.Find(move.key);
    std::optional<Grant> kept;
    if (held != nullptr) kept = *held;
    status = MoveOne(snapshot, move);
    if (!status.ok()) break;
    former.emplace_back(move.key, *std::move(kept));
    moved.insert(move.key);
  }
  if (!status.ok()) {
    for (; !former.empty(); former.pop_back()) {
      auto& [key, grant] = former.back();
      const Container& container = *snapshot.FindContainer(key);
      Take(key);
      Give(*snapshot.FindPod(container.pod_id), container, std::move(grant));
    }
    return status;
  }
  return MakePlan(before, std::move(moved));
}

}  // namespace resmgr
