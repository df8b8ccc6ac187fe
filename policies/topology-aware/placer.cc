// SPDX-License-Identifier: Apache-2.0
#include "policies/topology-aware/placer.h"

#include <algorithm>
#include <iterator>
#include <span>
#include <utility>

#include "pkg/allocator/want_of_room.h"
#include "pkg/base/amount_text.h"

namespace resmgr {
namespace {

// Limit of pools that a refusal names.
constexpr size_t kNamedPools = 8;

}  // namespace

StatusOr<Grant> Placer::Place(const Demand& demand) const {
  const Need& need = demand.need;
  if (need.cpu_class == CpuClass::kPreserved || need.cpu_class == CpuClass::kReserved) {
    return PlaceUnpooled(demand);
  }
  std::vector<PoolScore> candidates = Candidates(demand);
  if (candidates.empty()) return Shortage(demand);
  if (std::optional<Grant> grant = PlaceBest(demand, candidates)) return *std::move(grant);
  const bool far = demand.strict_hints && !IsNear(demand, book_.tree().root());
  if (need.cpu_class == CpuClass::kExclusive && !need.isolated_required && !need.isolated_never) {
    Demand last = demand;
    last.any_kind = true;
    if (std::optional<Grant> grant = PlaceBest(last, Candidates(last))) return *std::move(grant);
  }
  if (need.cpu_class == CpuClass::kExclusive || far) return Shortage(demand);
  const bool lends = book_.cpus().Lends(book_.tree().root());
  Grant shared = WithoutMemory(demand, fmt::format("{}: {}", need.why,
                                                   lends ? "all other CPUs are exclusive"
                                                         : "more is asked for than there is"));
  if (!FindMemory(shared, shared.pool)) return Shortage(demand);
  shared.candidates = WithoutRoom(demand, std::move(candidates));
  return shared;
}

// The candidates of a container that fits nowhere and shares in the root, which comes first.
std::vector<PoolScore> Placer::WithoutRoom(const Demand& demand,
                                           std::vector<PoolScore> candidates) const {
  const int root = book_.tree().root();
  auto taken = std::ranges::find(candidates, root, &PoolScore::pool);
  if (taken == candidates.end()) {
    taken = std::prev(taken);
    *taken = Score(demand, root);
    NoteFree(*taken);
  }
  std::rotate(candidates.begin(), taken, std::next(taken));
  for (PoolScore& candidate : candidates)
    candidate[PoolRule::kFits] = 0;
  return candidates;
}

std::string_view WhyBetter(PoolRule rule, const Need& need, const PoolScore& best) {
  if (rule != PoolRule::kClassRoom) return ToString(rule);
  if (need.cpu_class != CpuClass::kExclusive) return "fewer containers";
  return best[rule] > kIsolatedRoom ? "more isolated CPUs"
                                    : "more CPUs that can be granted to one container";
}

// A grant in the first one of the candidates; nullopt if the container does not fit there.
std::optional<Grant> Placer::PlaceBest(const Demand& demand,
                                       std::vector<PoolScore> candidates) const {
  std::optional<Grant> grant = PlaceIn(demand, candidates.front().pool);
  if (!grant) return std::nullopt;
  const std::string& name = book_.tree().at(candidates.front().pool).name;
  std::string reason = fmt::format("{}: {}", demand.need.why, name);
  if (candidates.size() > 1) {
    const PoolComparison decided = Compare(candidates[0], candidates[1]);
    reason += fmt::format(" before {}: {}", book_.tree().at(candidates[1].pool).name,
                          WhyBetter(decided.rule, demand.need, candidates[0]));
  }
  grant->reason = reason + grant->reason;
  grant->candidates = std::move(candidates);
  return grant;
}

std::optional<Grant> Placer::PlaceNear(const Demand& demand, int pool) const {
  const CpuClass cpu_class = demand.need.cpu_class;
  if (cpu_class != CpuClass::kShared && cpu_class != CpuClass::kExclusive) return std::nullopt;
  for (int id = pool; id >= 0; id = book_.tree().at(id).parent) {
    std::optional<Grant> grant = PlaceIn(demand, id);
    if (!grant) continue;
    grant->reason =
        fmt::format("{}: {}, {}{}", demand.need.why, book_.tree().at(id).name,
                    id == pool ? "where it is" : "the nearest one with room", grant->reason);
    return grant;
  }
  return std::nullopt;
}

std::optional<Grant> Placer::PlaceIn(const Demand& demand, int pool) const {
  Grant grant;
  grant.need = demand.need;
  grant.pool = pool;
  if (demand.need.cpu_class == CpuClass::kExclusive) {
    const std::optional<CpuSet> picked = finder_.Pick(demand, pool);
    if (!picked) return std::nullopt;
    grant.exclusive = *picked;
    if (demand.need.fraction > 0) grant.pool = PoolForFraction(demand, pool, *picked);
  } else if (!finder_.HasShared(demand.need, pool) && !KeepsShare(demand, pool)) {
    return std::nullopt;
  }
  if (!FindMemory(grant, pool)) return std::nullopt;
  if (demand.strict_hints && !IsNear(demand, pool)) return std::nullopt;
  return grant;
}

// The smallest pool with room for the fraction if `exclusive` are taken from `pool`: this pool or
// one around it; else the root.
int Placer::PoolForFraction(const Demand& demand, int pool, const CpuSet& exclusive) const {
  const Need& need = demand.need;
  const CpuLedger& cpus = book_.cpus();
  const PoolTree& tree = book_.tree();
  const int taken = exclusive.CountCommon(cpus.Free(pool));
  for (int id = pool; id >= 0; id = tree.at(id).parent) {
    const int64_t room = cpus.Room(id) - int64_t{1000} * taken;
    const bool fits = room >= need.fraction || KeepsShare(demand, id);
    if (cpus.FreeCpus(id) > taken && fits) return id;
  }
  return tree.root();
}

// Whether the container shares in this pool already, and asks for no more than it has there: this
// leaves other containers as much as before, also where requests exceed the pool.
bool Placer::KeepsShare(const Demand& demand, int pool) const {
  return demand.shares_in == pool && demand.need.fraction <= demand.shared_held &&
         book_.cpus().CanShare(pool);
}

Need Placer::Shared(Need need) {
  if (need.cpu_class != CpuClass::kPreserved) need.cpu_class = CpuClass::kShared;
  need.fraction += int64_t{1000} * need.full;
  need.full = 0;
  need.lift_quota = false;
  return need;
}

Grant Placer::PlaceShared(const Demand& demand, std::string reason) const {
  Grant grant = WithoutMemory(demand, std::move(reason));
  FindMemory(grant, grant.pool);
  return grant;
}

// A grant in the root without exclusive CPUs, whose memory is not found yet.
Grant Placer::WithoutMemory(const Demand& demand, std::string reason) const {
  Grant grant;
  grant.need = Shared(demand.need);
  grant.pool = book_.tree().root();
  grant.reason = std::move(reason);
  return grant;
}

std::optional<Grant> Placer::KeepFewer(const Need& need, const CpuSet& own, int pool) const {
  const CpuSet& last = book_.cpus().SharedSet(book_.tree().root());
  if (need.Shares() && last.IsSubsetOf(own)) return std::nullopt;
  Grant grant;
  grant.need = need;
  grant.pool = pool;
  grant.exclusive = own;
  grant.reason = fmt::format("{}: {}", need.why, kFewerCpus);
  return grant;
}

// Places a container on reserved CPUs, or one that is not bound to CPUs. A system container is not
// refused for memory.
StatusOr<Grant> Placer::PlaceUnpooled(const Demand& demand) const {
  const Need& need = demand.need;
  const bool reserved = need.cpu_class == CpuClass::kReserved;
  Grant grant;
  grant.need = need;
  grant.pool = reserved ? book_.reserved_pool() : book_.tree().root();
  grant.reason = need.why;
  if (reserved && std::max(book_.ReservedRoom(), demand.reserved_held) < need.fraction) {
    grant = WithoutMemory(demand, fmt::format("{}, but the reserved CPUs have only {}m left of {}m",
                                              need.why, std::max<int64_t>(book_.ReservedRoom(), 0),
                                              1000 * book_.reserved().size()));
  }
  if (!FindMemory(grant, grant.pool) && !reserved) return Shortage(demand);
  return grant;
}

// If there are too few huge pages, the container may use all nodes: the kernel may have got more
// pages, on any node, since the daemon read the machine.
bool Placer::FindMemory(Grant& grant, int pool) const {
  const MemoryLedger& memory = book_.memory();
  const int root = book_.tree().root();
  const auto all = memory.ZoneAt(root, kAllMemoryTypes);
  grant.counts_huge =
      grant.need.huge.empty() || !all || memory.HasRoom(*all, Bytes{}, grant.need.huge);
  if (grant.counts_huge) return FindZone(grant, pool);
  grant.reason +=
      "; its huge pages do not count, since fewer are free: it has the nodes of all pools";
  return FindZone(grant, root);
}

// If memory of the wanted types has no room, other types are used.
bool Placer::FindZone(Grant& grant, int pool) const {
  const MemoryLedger& memory = book_.memory();
  Need& need = grant.need;
  for (const MemoryTypes types : {need.memory_types, kAllMemoryTypes}) {
    grant.types = types;
    grant.zone = memory.Find(pool, types, need.memory, grant.Huge());
    if (grant.zone) return true;
  }
  if (need.memory_estimated && need.memory.value > 0) {
    grant.reason +=
        fmt::format("; its memory, estimated as {}, does not count: there is no room for so much",
                    BytesText(need.memory.value));
    need.memory = Bytes{};
    return FindZone(grant, pool);
  }
  grant.zone = memory.ZoneAt(book_.tree().root(), kAllMemoryTypes);
  return !grant.zone || need.memory <= need.memory_held ||
         book_.CertainMemory() + need.memory <= memory.Capacity(*grant.zone);
}

// Whether a grant has no CPUs farther away than the held one. A container whose shared CPUs are in
// a larger pool than its memory has nearer memory than that pool.
bool Placer::IsWhere(const Grant& held, const Grant& grant) const {
  const PoolTree& tree = book_.tree();
  return grant.pool == held.pool && grant.exclusive.empty() == held.exclusive.empty() &&
         tree.IsAncestorOrSelf(tree.SmallestWith(held.exclusive),
                               tree.SmallestWith(grant.exclusive));
}

void Placer::KeepMemory(const Grant& held, Grant& grant) const {
  const MemoryLedger& memory = book_.memory();
  if (!held.zone || !grant.zone) return;
  const bool stays = grant.counts_huge && IsWhere(held, grant);
  if (!stays && memory.Nodes(*held.zone).IsSubsetOf(memory.Nodes(*grant.zone))) return;
  grant.types = held.types;
  grant.zone = held.zone;
  if (stays && held.counts_huge && grant.need.memory <= held.need.memory) return;
  for (auto zone = held.zone; zone; zone = memory.Larger(*zone, held.types)) {
    grant.zone = zone;
    if (memory.Free(*zone) >= grant.need.memory && memory.HasRoom(*zone, Bytes{}, grant.Huge())) {
      return;
    }
  }
  grant.zone = memory.ZoneAt(book_.tree().root(), kAllMemoryTypes);
}

void Placer::PreferHeld(const CpuSet& held, Demand& demand) const {
  const Machine& machine = book_.machine();
  demand.held = held;
  demand.keeps_held = !held.empty();
  demand.preferred = {held, machine.WithSiblings(held)};
  CpuSet caches;
  for (const CpuSet& group : machine.l3_groups()) {
    if (group.Intersects(held)) caches |= group;
  }
  demand.preferred.push_back(caches);
}

bool Placer::CpusFit(const Demand& demand, int pool) const {
  if (demand.need.cpu_class == CpuClass::kExclusive) return finder_.Has(demand, pool);
  return finder_.HasShared(demand.need, pool);
}

Status Placer::Shortage(const Demand& demand) const {
  const Need& need = demand.need;
  const PoolTree& tree = book_.tree();
  Grant memory{.need = need, .pool = tree.root()};
  if (!FindMemory(memory, memory.pool)) {
    const Bytes capacity = book_.memory().Capacity(*memory.zone);
    if (need.memory > capacity) {
      return InvalidArgument("needs {} of memory, but this node has no more than {}",
                             BytesText(need.memory.value), BytesText(capacity.value));
    }
    return ResourceExhausted(
        "needs {} of memory, but only {} are free", BytesText(need.memory.value),
        BytesOf(std::max<int64_t>((capacity - book_.CertainMemory()).value, 0), capacity.value));
  }
  const std::string what = Needs(demand);
  const Pool& root = tree.at(tree.root());
  // If there are no reserved CPUs, one CPU is kept for containers that share.
  const int kept = book_.reserved().empty() ? 1 : 0;
  const int isolated_cpus = need.isolated_never ? 0 : root.isolated.size();
  const int most =
      need.isolated_required ? isolated_cpus : root.sharable.size() + isolated_cpus - kept;
  if (need.cpu_class == CpuClass::kExclusive && ExclusiveCount(need) > most) {
    return InvalidArgument("{}, but this node can grant no more than {}", what, most);
  }
  const int64_t all =
      int64_t{1000} * (root.sharable.size() + isolated_cpus) + book_.cpus().unreserved().value;
  if (need.cpu_class == CpuClass::kExclusive &&
      int64_t{1000} * ExclusiveCount(need) + need.fraction > all) {
    return InvalidArgument("{}, but this node can grant no more than {}m", what, all);
  }
  const bool anywhere = !demand.strict_hints || demand.hints.empty();
  if (need.cpu_class == CpuClass::kExclusive && need.alignment != Alignment::kPrefer && anywhere) {
    return WantOfPlace(demand, what);
  }
  std::vector<int> asked;
  for (const Pool& pool : tree.pools()) {
    if (pool.parent < 0 || pool.parent == tree.root()) asked.push_back(pool.id);
  }
  if (anywhere) {
    const CpuSet& isolated = root.isolated;
    const int free = need.isolated_required ? book_.cpus().FreeIsolated(root.id).size()
                                            : book_.cpus().Sliceable(root.id, need.fraction);
    return ResourceExhausted("{}, {} of {} free ({})", what, free,
                             need.isolated_required ? isolated.size() : root.cpus.size(),
                             Levels(need, asked));
  }
  const std::string levels = Levels(need, asked);
  asked.clear();
  for (const Pool& pool : tree.pools()) {
    if (asked.size() < kNamedPools && IsNear(demand, pool.id)) asked.push_back(pool.id);
  }
  if (asked.empty()) {
    return ResourceExhausted("{}, but no pool is near to all its devices and volumes ({})", what,
                             levels);
  }
  return ResourceExhausted(
      "{}, but no pool that is near to all its devices and volumes can grant them now ({})", what,
      Levels(need, asked));
}

// The free CPUs of each place, for a refusal of exclusive CPUs that must not be split; only of its
// own place if the container runs already.
Status Placer::WantOfPlace(const Demand& demand, std::string_view what) const {
  const Need& need = demand.need;
  const std::string_view in_one = InOnePlace(need.alignment);
  const bool stays = demand.keeps_held && ExclusiveCount(need) >= demand.held.size();
  std::vector<std::pair<std::string_view, int>> free;
  int most = 0;
  for (const AlignedPlace& place : finder_.places().Of(need.alignment)) {
    most = std::max(most, finder_.MostOf(need, place.cpus));
    if (stays && !demand.held.IsSubsetOf(place.cpus)) continue;
    free.emplace_back(place.name, finder_.FreeOf(demand, place.cpus));
  }
  if (ExclusiveCount(need) > most) {
    return InvalidArgument("{} {}, but this node can grant no more than {} there", what, in_one,
                           most);
  }
  if (free.empty()) {
    return ResourceExhausted("{} {}, but the CPUs {} that it runs on are not, and it keeps them",
                             what, in_one, demand.held.ToString());
  }
  return ResourceExhausted("{} {}{} ({})", what, in_one, stays ? ", where it runs" : "",
                           DescribeLack(free, ExclusiveCount(need)));
}

std::string Placer::Needs(const Demand& demand) const {
  const Need& need = demand.need;
  if (need.cpu_class != CpuClass::kExclusive) {
    return fmt::format("needs {}m of shared CPUs", need.fraction);
  }
  return fmt::format(
      "needs {}{}",
      CountText(ExclusiveCount(need),
                need.isolated_required ? "exclusive isolated CPU" : "exclusive CPU"),
      need.fraction > 0 ? fmt::format(" and {}m of shared ones", need.fraction) : "");
}

// The amounts that some pools can still grant, as a text.
std::string Placer::Levels(const Need& need, std::span<const int> pools) const {
  const CpuLedger& cpus = book_.cpus();
  std::string levels;
  for (const int pool : pools) {
    levels += fmt::format("{}{}: ", levels.empty() ? "" : ", ", book_.tree().at(pool).name);
    if (need.cpu_class != CpuClass::kExclusive) {
      levels += fmt::format("{}m", std::max<int64_t>(cpus.Room(pool), 0));
    } else if (need.isolated_required) {
      levels += fmt::format("{}", cpus.FreeIsolated(pool).size());
    } else {
      levels += fmt::format("{}", cpus.Grantable(pool, need.fraction));
    }
  }
  return levels;
}

}  // namespace resmgr
