// SPDX-License-Identifier: Apache-2.0
#include "policies/topology-aware/placer.h"

#include <algorithm>
#include <span>
#include <utility>

#include "pkg/allocator/want_of_room.h"
#include "pkg/base/bytes_text.h"
#include "pkg/base/count_text.h"
#include "policies/topology-aware/best_pools.h"

namespace resmgr {
namespace {

// Pools that a refusal names.
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
  Grant shared = PlaceShared(demand, fmt::format("{}: {}", need.why,
                                                 lends ? "all other CPUs are exclusive"
                                                       : "more is asked for than there is"));
  if (!FindMemory(shared, shared.pool)) return Shortage(demand);
  shared.candidates = std::move(candidates);
  return shared;
}

std::string_view WhyBetter(PoolRule rule, const Need& need) {
  if (rule != PoolRule::kClassRoom) return ToString(rule);
  if (need.cpu_class != CpuClass::kExclusive) return "fewer containers";
  return need.isolated ? "more isolated CPUs" : "more CPUs that can be granted to one container";
}

// A grant in the first of the candidates; nullopt if it does not fit there.
std::optional<Grant> Placer::PlaceBest(const Demand& demand,
                                       std::vector<PoolScore> candidates) const {
  std::optional<Grant> grant = PlaceIn(demand, candidates.front().pool);
  if (!grant) return std::nullopt;
  const std::string& name = book_.tree().at(candidates.front().pool).name;
  std::string reason = fmt::format("{}: {}", demand.need.why, name);
  if (candidates.size() > 1) {
    const PoolComparison decided = Compare(candidates[0], candidates[1]);
    reason += fmt::format(" before {}: {}", book_.tree().at(candidates[1].pool).name,
                          WhyBetter(decided.rule, demand.need));
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
    if (demand.need.fraction > 0) grant.pool = PoolForFraction(demand.need, pool, *picked);
  } else if (!finder_.HasShared(demand.need, pool)) {
    return std::nullopt;
  }
  if (!FindMemory(grant, pool)) return std::nullopt;
  if (demand.strict_hints && !IsNear(demand, pool)) return std::nullopt;
  return grant;
}

// The smallest pool with room beside these CPUs, which are taken out of the first one; else the
// root.
int Placer::PoolForFraction(const Need& need, int pool, const CpuSet& exclusive) const {
  const CpuLedger& cpus = book_.cpus();
  const PoolTree& tree = book_.tree();
  const int taken = exclusive.CountCommon(cpus.Free(pool));
  for (int id = pool; id >= 0; id = tree.at(id).parent) {
    const int64_t room = cpus.Room(id) - int64_t{1000} * taken;
    if (cpus.FreeCpus(id) > taken && room >= need.fraction) return id;
  }
  return tree.root();
}

Need Placer::Shared(Need need) {
  if (need.cpu_class != CpuClass::kPreserved) need.cpu_class = CpuClass::kShared;
  need.fraction += int64_t{1000} * need.full;
  need.full = 0;
  need.lift_quota = false;
  return need;
}

Grant Placer::PlaceShared(const Demand& demand, std::string reason) const {
  Grant grant;
  grant.need = Shared(demand.need);
  grant.pool = book_.tree().root();
  grant.reason = std::move(reason);
  FindMemory(grant, grant.pool);
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
  if (reserved && book_.ReservedRoom() < need.fraction) {
    grant = PlaceShared(demand,
                        fmt::format("{}, but the reserved CPUs have only {}m left of {}m", need.why,
                                    book_.ReservedRoom(), 1000 * book_.reserved().size()));
  }
  if (!FindMemory(grant, grant.pool) && !reserved) return Shortage(demand);
  return grant;
}

// The kernel may have got more huge pages since the daemon read the machine, on any node.
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

// Memory of other types is better than none.
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
  return !grant.zone || book_.CertainMemory() + need.memory <= memory.Capacity(*grant.zone);
}

void Placer::KeepMemory(const Grant& held, Grant& grant) const {
  const MemoryLedger& memory = book_.memory();
  if (!held.zone || !grant.zone) return;
  if (memory.Nodes(*held.zone).IsSubsetOf(memory.Nodes(*grant.zone))) return;
  grant.types = held.types;
  for (auto zone = held.zone; zone; zone = memory.Larger(*zone, held.types)) {
    grant.zone = zone;
    if (memory.Free(*zone) >= grant.need.memory && memory.HasRoom(*zone, Bytes{}, grant.Huge())) {
      return;
    }
  }
  grant.zone = memory.ZoneAt(book_.tree().root(), kAllMemoryTypes);
}

std::vector<PoolScore> Placer::Candidates(const Demand& demand) const {
  BestPools best;
  Packer packer(book_, demand.need, ExclusiveCount(demand.need));
  // Children come before their parents, so pools that have the same memory follow each other.
  PoolScore memory;
  const Pool* scored = nullptr;
  for (const Pool& pool : book_.tree().pools()) {
    if (pool.cpus.empty()) continue;
    if (scored == nullptr || pool.memory_pool != scored->memory_pool ||
        pool.near_memory != scored->near_memory) {
      memory = ScoreMemory(demand.need, pool.id);
      scored = &pool;
    }
    PoolScore& score = best.Next() = memory;
    ScoreBeside(demand, pool.id, score);
    if (ScoreRoom(demand.need, packer, best.Worst(), score)) best.KeepNext();
  }
  return best.Get();
}

PoolScore Placer::Score(const Demand& demand, int pool) const {
  PoolScore score = ScoreMemory(demand.need, pool);
  ScoreBeside(demand, pool, score);
  Packer packer(book_, demand.need, ExclusiveCount(demand.need));
  ScoreRoom(demand.need, packer, nullptr, score);
  return score;
}

// Scores the rules before kPacking, except those about memory, whose numbers are known already.
void Placer::ScoreBeside(const Demand& demand, int pool, PoolScore& score) const {
  score.pool = pool;
  ScoreHints(demand, score);
  const bool memory_fits = score[PoolRule::kFits] > 0;
  const bool hints_fit = !demand.strict_hints || score[PoolRule::kHints] > 0;
  score[PoolRule::kFits] = memory_fits && hints_fit && CpusFit(demand, pool) ? 1 : 0;
  if (!demand.affinities.empty()) {
    score[PoolRule::kAffinity] = demand.affinities[static_cast<size_t>(pool)];
  }
  ScoreBurst(demand.need, score);
  ScoreKind(demand.need, score);
  score[PoolRule::kDeeper] = book_.tree().at(pool).depth;
}

// Scores the rules from kPacking on. With another pool to compare, returns false as soon as this
// one is not better.
bool Placer::ScoreRoom(const Need& need, Packer& packer, const PoolScore* other,
                       PoolScore& score) const {
  const std::strong_ordering stronger =
      other == nullptr ? std::strong_ordering::greater
                       : Compare(score, *other, PoolRule::kFits, PoolRule::kDeeper).order;
  if (stronger < 0) return false;
  if (score[PoolRule::kFits] > 0) score[PoolRule::kPacking] = packer.Score(score.pool);
  if (stronger == 0 && score[PoolRule::kPacking] < (*other)[PoolRule::kPacking]) return false;
  ScoreClass(need, score);
  score[PoolRule::kFirst] = -score.pool;
  return stronger > 0 || Compare(score, *other, PoolRule::kPacking).order > 0;
}

// As Score, for a container in its present place, which needs only room up to its limits. If it is
// packed, its own CPUs count as room for its CPU limit, too.
PoolScore Placer::ScoreHeld(const Demand& demand, const Grant& grant) const {
  Need rest = grant.need;
  if (rest.cpu_limit > 0 && !IsPacked(book_, rest)) {
    rest.cpu_limit = std::max<int64_t>(rest.cpu_limit - rest.fraction, 1);
  }
  rest.memory_limit = std::max(rest.memory_limit - rest.memory, Bytes{0});
  rest.fraction = 0;
  rest.memory = Bytes{};
  rest.huge.clear();
  PoolScore score = ScoreMemory(rest, grant.pool);
  ScoreHints(demand, score);
  const bool memory_fits = score[PoolRule::kFits] > 0;
  const bool cpus_fit = !rest.Shares() || finder_.HasShared(rest, grant.pool);
  const bool hints_fit = !demand.strict_hints || score[PoolRule::kHints] > 0;
  score[PoolRule::kFits] = cpus_fit && memory_fits && hints_fit ? 1 : 0;
  ScoreBurst(rest, score);
  if (!grant.exclusive.empty()) {
    const CpuSet& isolated = book_.tree().at(book_.tree().root()).isolated;
    const bool all_isolated = grant.exclusive.IsSubsetOf(isolated);
    score[PoolRule::kIsolated] = rest.isolated_explicit && all_isolated ? 1 : 0;
    score[PoolRule::kPriority] = finder_.PriorityScore(rest, grant.exclusive);
  }
  score[PoolRule::kDeeper] = book_.tree().at(grant.pool).depth;
  return score;
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

void Placer::ScoreHints(const Demand& demand, PoolScore& score) const {
  constexpr double kUnit = 1e6;
  double all = 1;
  double some = 1;
  for (const LocalityHint& hint : demand.hints) {
    const double part = static_cast<double>(HintScore(book_.tree(), score.pool, hint)) / kUnit;
    all *= part;
    if (part > 0) some *= part;
  }
  score[PoolRule::kHints] = static_cast<int64_t>(all * kUnit * kUnit);
  score[PoolRule::kSomeHints] = static_cast<int64_t>(some * kUnit * kUnit);
}

// Whether the pool is near to all of its devices and volumes.
bool Placer::IsNear(const Demand& demand, int pool) const {
  PoolScore score{.pool = pool};
  ScoreHints(demand, score);
  return score[PoolRule::kHints] > 0;
}

// Scores the rules about memory, and in kFits whether there is room for it at all. Only
// Pool::memory_pool and Pool::near_memory of the pool matter.
PoolScore Placer::ScoreMemory(const Need& need, int pool) const {
  const MemoryLedger& memory = book_.memory();
  const PoolTree& tree = book_.tree();
  const int memory_pool = tree.at(pool).memory_pool;
  PoolScore score{.pool = pool};
  if (need.memory_types != kAllMemoryTypes) {
    const Pool& holder = tree.at(memory_pool);
    score[PoolRule::kMemoryType] = (need.memory_types & ~holder.memory_types) == 0 ? 1 : 0;
  }
  auto zone = memory.Find(pool, need.memory_types, need.memory, need.huge);
  if (!zone && !need.huge.empty()) zone = memory.Find(pool, need.memory_types, need.memory);
  if (!zone) {
    Grant anywhere{.need = need};
    score[PoolRule::kFits] = FindMemory(anywhere, pool) ? 1 : 0;
    return score;
  }
  score[PoolRule::kFits] = 1;
  score[PoolRule::kMemoryHere] = zone->pool == memory_pool && tree.at(pool).near_memory ? 1 : 0;
  // Negative if grants of larger zones may fill the zone; then a container without a limit has no
  // room either.
  score[PoolRule::kMemoryLimit] = std::min(memory.Free(*zone), need.memory_limit).value;
  score[PoolRule::kFewerNodes] = -memory.Nodes(*zone).size();
  return score;
}

void Placer::ScoreBurst(const Need& need, PoolScore& score) const {
  const Pool& pool = book_.tree().at(score.pool);
  if (need.cpu_limit > 0) {
    score[PoolRule::kCpuLimit] = std::min(RoomForLimit(book_, need, pool.id), need.cpu_limit);
  }
  if (!need.unlimited) return;
  const bool finer_below = std::all_of(pool.children.begin(), pool.children.end(), [&](int child) {
    return book_.tree().at(child).level > need.unlimited_level;
  });
  score[PoolRule::kUnlimitedLevel] = pool.level <= need.unlimited_level && finer_below ? 1 : 0;
}

// Scores kinds of CPUs for containers with exclusive CPUs only.
void Placer::ScoreKind(const Need& need, PoolScore& score) const {
  if (need.cpu_class != CpuClass::kExclusive) return;
  const CpuLedger& cpus = book_.cpus();
  if (need.isolated_explicit) {
    score[PoolRule::kIsolated] = cpus.FreeIsolated(score.pool).size() >= need.full ? 1 : 0;
  }
  score[PoolRule::kPriority] = finder_.PriorityScore(need, cpus.Free(score.pool));
}

void Placer::ScoreClass(const Need& need, PoolScore& score) const {
  const CpuLedger& cpus = book_.cpus();
  if (need.cpu_class != CpuClass::kExclusive) {
    score[PoolRule::kClassRoom] = -cpus.Members(score.pool);
    score[PoolRule::kSharedRoom] = cpus.Room(score.pool);
    return;
  }
  const int isolated = need.isolated ? cpus.FreeIsolated(score.pool).size() : 0;
  // Enough isolated CPUs are better than any number of ordinary ones.
  score[PoolRule::kClassRoom] = isolated > 0 && isolated >= need.full
                                    ? CpuSet::kBits + isolated
                                    : cpus.Sliceable(score.pool, need.fraction);
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
  // Without reserved CPUs one CPU is kept for containers that share.
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

// The lack of each place for exclusive CPUs that must not be split. A container that runs stays in
// its own.
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

// The amounts that some pools could still grant.
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
