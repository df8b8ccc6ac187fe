// SPDX-License-Identifier: Apache-2.0
#include "policies/topology-aware/grant_book.h"

#include <algorithm>
#include <map>
#include <utility>

#include "pkg/base/amount_text.h"
#include "pkg/kube/cpu_arithmetic.h"
#include "pkg/topology/core_sets.h"

namespace resmgr {

const HugeMemories& Grant::Huge() const {
  static const HugeMemories kNone;
  return counts_huge ? need.huge : kNone;
}

GrantBook::GrantBook(const Machine& machine, const CpuSet& available, const CpuSet& reserved,
                     bool pin_cpu, MilliCpu unreserved, const CpuSet& offline)
    : machine_(machine),
      offline_(offline),
      cores_(machine, offline),
      tree_(machine, available, reserved),
      reserved_(reserved),
      reserved_pool_(tree_.SmallestWith(reserved)),
      pin_cpu_(pin_cpu),
      cpus_(machine, tree_, reserved, unreserved),
      memory_(tree_),
      sharers_(tree_.size()) {}

void GrantBook::Clear() {
  while (!grants_.empty())
    Take(grants_.begin()->first);
}

void GrantBook::CopyFrom(const GrantBook& other) {
  for (const auto& [key, grant] : other.grants_)
    Give(key, grant);
  moves_ = other.moves_;
}

void GrantBook::Give(ContainerKey key, Grant grant) {
  Count(key, grant, true);
  grants_.insert_or_assign(key, std::move(grant));
}

std::optional<Grant> GrantBook::Take(ContainerKey key) {
  const auto found = grants_.find(key);
  if (found == grants_.end()) return std::nullopt;
  Count(key, found->second, false);
  std::optional<Grant> grant = std::move(found->second);
  grants_.erase(found);
  return grant;
}

const Grant* GrantBook::Find(ContainerKey key) const {
  const auto found = grants_.find(key);
  return found == grants_.end() ? nullptr : &found->second;
}

CpuLedger::Share GrantBook::ShareOf(const Grant& grant) const {
  const bool shares = grant.need.Shares();
  // The request of a preserved container counts on the shared CPUs, wherever it runs.
  const bool weighs = shares || grant.need.cpu_class == CpuClass::kPreserved;
  return {.pool = grant.pool,
          .exclusive = grant.exclusive,
          .shared = weighs ? grant.need.fraction : 0,
          .shares = shares};
}

void GrantBook::Count(ContainerKey key, const Grant& grant, bool give) {
  if (grant.need.cpu_class == CpuClass::kReserved) {
    reserved_used_ += give ? grant.need.fraction : -grant.need.fraction;
    reserved_members_ += give ? 1 : -1;
  } else if (give) {
    cpus_.Give(ShareOf(grant));
  } else {
    cpus_.Take(ShareOf(grant));
  }
  if (grant.zone && !grant.need.memory_estimated) {
    certain_memory_ =
        give ? certain_memory_ + grant.need.memory : certain_memory_ - grant.need.memory;
  }
  if (grant.zone && give) memory_.Give(*grant.zone, grant.need.memory, grant.Huge());
  if (grant.zone && !give) memory_.Take(*grant.zone, grant.need.memory, grant.Huge());
  if (grant.cold && give) cold_.insert(key);
  if (!give) cold_.erase(key);
  if (!grant.need.Shares()) return;
  if (give) {
    AddSharer(key, grant.need.fraction, grant.pool);
    if (grant.need.hide_hyperthreads) part_sharers_.insert(key);
  } else {
    RemoveSharer(key, grant.pool);
    part_sharers_.erase(key);
  }
}

void GrantBook::AddSharer(ContainerKey key, int64_t fraction, int pool) {
  std::vector<Sharer>& sharers = sharers_[IndexOf(pool)];
  sharers.insert(std::ranges::lower_bound(sharers, key, {}, &Sharer::key), {key, fraction});
}

void GrantBook::RemoveSharer(ContainerKey key, int pool) {
  std::vector<Sharer>& sharers = sharers_[IndexOf(pool)];
  sharers.erase(std::ranges::lower_bound(sharers, key, {}, &Sharer::key));
}

std::vector<ContainerKey> GrantBook::WidenMemory() {
  std::vector<ContainerKey> widened;
  for (bool again = true; again;) {
    again = false;
    for (const MemoryZone& zone : memory_.Overfull()) {
      for (auto& [key, grant] : grants_) {
        if (grant.zone != zone || !memory_.IsUnsafe(zone, grant.need.memory, grant.Huge()))
          continue;
        const std::optional<MemoryZone> larger = memory_.Larger(zone, grant.types);
        if (!larger) continue;
        memory_.Take(zone, grant.need.memory, grant.Huge());
        memory_.Give(*larger, grant.need.memory, grant.Huge());
        grant.zone = larger;
        widened.push_back(key);
        again = true;
      }
    }
  }
  const std::set<ContainerKey> cold = cold_;
  for (const ContainerKey key : cold) {
    const MemoryZone& zone = *grants_.at(key).zone;
    if (!ColdNodes(zone).empty() && memory_.Free({zone.pool, kPmemBit}).value >= 0) continue;
    EndColdStart(key);
    widened.push_back(key);
  }
  return widened;
}

void GrantBook::CountMemory(ContainerKey key, Bytes memory) {
  Grant& grant = grants_.at(key);
  if (!grant.zone || memory.value == 0) return;
  const size_t overfull = memory_.Overfull().size();
  memory_.Give(*grant.zone, memory);
  if (memory_.Overfull().size() > overfull) return memory_.Take(*grant.zone, memory);
  grant.need.memory = memory;
}

void GrantBook::CountHuge() {
  if (tree_.huge_page_sizes().empty()) return;
  std::vector<Grant*> uncounted;
  for (auto& [key, grant] : grants_) {
    if (grant.zone && !grant.counts_huge) uncounted.push_back(&grant);
  }
  std::ranges::stable_sort(
      uncounted, {}, [this](const Grant* grant) { return memory_.Nodes(*grant->zone).size(); });
  for (Grant* const grant : uncounted)
    CountHugeOf(*grant);
}

void GrantBook::CountHugeOf(Grant& grant) {
  const HugeMemories& huge = grant.need.huge;
  if (!memory_.HasRoom(*grant.zone, Bytes{}, huge)) return;
  const size_t overfull = memory_.Overfull().size();
  memory_.Give(*grant.zone, Bytes{}, huge);
  grant.counts_huge = memory_.Overfull().size() <= overfull;
  if (!grant.counts_huge) memory_.Take(*grant.zone, Bytes{}, huge);
}

GrantBook::Place GrantBook::PlaceOf(ContainerKey key) const {
  const Grant& grant = grants_.at(key);
  return {.pool = grant.pool, .zone = grant.zone, .cold = grant.cold};
}

GrantBook::Saved GrantBook::Save() const {
  Saved saved{.places = {}, .moves = moves_};
  saved.places.reserve(grants_.size());
  for (const auto& [key, grant] : grants_)
    saved.places.emplace_back(key, PlaceOf(key));
  return saved;
}

void GrantBook::Restore(const Saved& saved) {
  for (const auto& [key, place] : saved.places) {
    if (PlaceOf(key) == place) continue;
    Grant grant = *Take(key);
    grant.pool = place.pool;
    grant.zone = place.zone;
    grant.cold = place.cold;
    Give(key, std::move(grant));
  }
  moves_ = saved.moves;
}

std::string GrantBook::WhyNotCold(const Grant& grant) const {
  if (!grant.need.pin_memory) return "its memory is not pinned";
  if (!grant.need.huge.empty()) return "it asks for huge pages";
  if ((grant.need.memory_types & kPmemBit) == 0) return "its memory-type has no PMEM";
  if (grant.need.memory_types == kPmemBit) return "its memory-type has nothing but PMEM";
  if (!grant.zone || (grant.zone->types & kPmemBit) == 0) return "there is no PMEM in its pool";
  if (ColdNodes(*grant.zone).empty()) return "there is nothing but PMEM in its pool";
  const Bytes free = memory_.Free({grant.zone->pool, kPmemBit});
  if (free >= grant.need.memory) return "";
  return fmt::format("it needs {}, and {} of the PMEM in its pool are free",
                     BytesText(grant.need.memory.value),
                     BytesText(std::max<int64_t>(free.value, 0)));
}

bool GrantBook::EndColdStart(ContainerKey key) {
  if (cold_.erase(key) == 0) return false;
  grants_.at(key).cold = false;
  return true;
}

NodeSet GrantBook::ColdNodes(const MemoryZone& zone) const {
  if ((zone.types & kPmemBit) == 0) return {};
  const NodeSet& pmem = memory_.Nodes({zone.pool, kPmemBit});
  return pmem == memory_.Nodes(zone) ? NodeSet() : pmem;
}

std::vector<ContainerKey> GrantBook::NarrowMemory() {
  std::vector<ContainerKey> narrowed;
  for (auto& [key, grant] : grants_) {
    if (!grant.zone || !grant.counts_huge) continue;
    memory_.Take(*grant.zone, grant.need.memory, grant.Huge());
    const std::optional<MemoryZone> best =
        memory_.Find(grant.pool, grant.types, grant.need.memory, grant.Huge());
    // The new zone is inside the present one, so no other container is affected more than before.
    if (best && memory_.Nodes(*best) != memory_.Nodes(*grant.zone) &&
        memory_.Nodes(*best).IsSubsetOf(memory_.Nodes(*grant.zone))) {
      grant.zone = best;
      narrowed.push_back(key);
    }
    memory_.Give(*grant.zone, grant.need.memory, grant.Huge());
  }
  return narrowed;
}

void GrantBook::AddSharersOf(const CpuSet& before, std::set<ContainerKey>& keys,
                             std::vector<SharedChange>& shared) const {
  const CpuSet changed = (before | cpus_.exclusive()) - (before & cpus_.exclusive());
  if (changed.empty()) return;
  std::vector<ContainerKey> parts;
  for (const Pool& pool : tree_.pools()) {
    const std::vector<Sharer>& sharers = sharers_[static_cast<size_t>(pool.id)];
    if (sharers.empty() || !pool.sharable.Intersects(changed)) continue;
    SharedChange change{.cpus = cpus_.SharedSet(pool.id), .containers = {}};
    change.containers.reserve(sharers.size());
    for (const auto& [key, fraction] : sharers) {
      if (part_sharers_.contains(key)) {
        parts.push_back(key);
      } else if (!keys.contains(key)) {
        change.containers.push_back(key);
      }
    }
    if (!change.containers.empty()) shared.push_back(std::move(change));
  }
  keys.insert(parts.begin(), parts.end());
}

int64_t GrantBook::ReservedRoom() const {
  return int64_t{1000} * reserved_.size() - reserved_used_;
}

// The CPUs that the container sees: one thread of each core if its hyperthreads are hidden.
CpuSet GrantBook::Visible(const Grant& grant, const CpuSet& cpus) const {
  return grant.need.hide_hyperthreads ? OneThreadPerCore(machine_, cpus) : cpus;
}

Placement GrantBook::PlacementOf(const Grant& grant) const {
  Placement placement;
  placement.pool = tree_.at(grant.pool).name;
  placement.reason = grant.reason;
  if (grant.need.pin_memory && grant.zone) {
    placement.mems = grant.cold ? ColdNodes(*grant.zone) : memory_.Nodes(*grant.zone);
  } else if (grant.zone) {
    placement.counted_mems = memory_.Nodes(*grant.zone);
  }
  if (grant.cold) placement.look_again_after = grant.need.cold_start;
  if (grant.need.cpu_class == CpuClass::kReserved) placement.pool = kReservedPool;
  if (!pin_cpu_ || grant.need.cpu_class == CpuClass::kPreserved) return placement;
  if (grant.need.cpu_class == CpuClass::kReserved) {
    placement.cpus = reserved_;
    return placement;
  }
  placement.exclusive = Visible(grant, grant.exclusive);
  placement.cpus = placement.exclusive;
  if (grant.need.Shares()) *placement.cpus |= Visible(grant, cpus_.SharedSet(grant.pool));
  // On exclusive CPUs shares have no effect, so they are set to the fraction with which the
  // container competes on shared CPUs.
  if (!grant.exclusive.empty() && grant.need.fraction > 0) {
    placement.cpu_shares = SharesFromMilliCpu(MilliCpu{grant.need.fraction});
  }
  if (grant.need.lift_quota) placement.cpu_quota = kNoQuota;
  return placement;
}

// The rest of this file moves sharing containers to make room for exclusive grants.

std::vector<ContainerKey> GrantBook::MakeRoom(const CpuSet& granted) {
  std::vector<ContainerKey> moved;
  if (granted.empty()) return moved;
  // Children come before their parents, so containers that leave a pool are already counted in its
  // parent.
  for (const Pool& pool : tree_.pools()) {
    if (pool.parent < 0 || !pool.sharable.Intersects(granted)) continue;
    while (cpus_.IsOverfull(pool.id)) {
      const std::vector<ContainerKey> keys = NextToMakeRoom(pool.id);
      if (keys.empty()) break;
      for (const ContainerKey key : keys) {
        Grant& grant = grants_.at(key);
        moves_.push_back({key, grant.pool, pool.parent, grant.need.fraction});
        MoveTo(key, grant, pool.parent);
        moved.push_back(key);
      }
    }
  }
  return moved;
}

void GrantBook::AddSharersBelow(int pool, std::vector<Sharer>& sharers) const {
  for (const int child : tree_.at(pool).children) {
    const std::vector<Sharer>& here = sharers_[IndexOf(child)];
    sharers.insert(sharers.end(), here.begin(), here.end());
    AddSharersBelow(child, sharers);
  }
}

// The containers that leave an overfull pool next. If the pool has no CPU left to share, all of
// them; else the smallest one whose move is enough, or the largest one. Containers of the pool
// itself come before those of pools below, which would lose more; among equals, the youngest comes
// first.
std::vector<ContainerKey> GrantBook::NextToMakeRoom(int pool) const {
  const std::vector<Sharer>* sharers = &sharers_[IndexOf(pool)];
  const auto asks = [](const Sharer& sharer) { return sharer.fraction > 0; };
  const bool all = cpus_.FreeCpus(pool) == 0;
  std::vector<Sharer> with_those_below;
  if (all || std::ranges::none_of(*sharers, asks)) {
    with_those_below = *sharers;
    AddSharersBelow(pool, with_those_below);
    sharers = &with_those_below;
  }
  std::vector<ContainerKey> keys;
  if (all) {
    for (const Sharer& sharer : *sharers)
      keys.push_back(sharer.key);
    return keys;
  }
  const int64_t excess = cpus_.Excess(pool);
  const auto rank = [excess](const Sharer& sharer) {
    const bool enough = sharer.fraction >= excess;
    return std::pair(!enough, enough ? sharer.fraction : -sharer.fraction);
  };
  const Sharer* first = nullptr;
  for (const Sharer& sharer : *sharers) {
    if (!asks(sharer)) continue;
    if (first == nullptr ||
        std::pair(rank(sharer), first->key) < std::pair(rank(*first), sharer.key)) {
      first = &sharer;
    }
  }
  if (first != nullptr) keys.push_back(first->key);
  return keys;
}

void GrantBook::MoveTo(ContainerKey key, Grant& grant, int pool) {
  cpus_.Move(ShareOf(grant), pool);
  RemoveSharer(key, grant.pool);
  AddSharer(key, grant.need.fraction, pool);
  grant.pool = pool;
}

std::vector<ContainerKey> GrantBook::MoveBack() {
  std::vector<ContainerKey> moved;
  if (moves_.size() > (grants_.size() + 1) * static_cast<size_t>(tree_.max_depth())) {
    ForgetOldMoves();
  }
  for (size_t i = moves_.size(); i-- > 0;) {
    const Move move = moves_[i];
    // A quick check first, since few containers find their former room again.
    if (!cpus_.HasRoomBelow(move.to, move.from, move.fraction)) continue;
    const auto found = grants_.find(move.key);
    const bool gone = found == grants_.end();
    if (!gone && found->second.pool != move.to) continue;
    moves_.erase(moves_.begin() + static_cast<std::ptrdiff_t>(i));
    if (gone) continue;
    Grant& grant = found->second;
    if (grant.need.fraction != move.fraction || !grant.need.Shares()) continue;
    MoveTo(move.key, grant, move.from);
    moved.push_back(move.key);
  }
  return moved;
}

// Forgets moves of containers that are gone, or that another decision has moved again, so that
// every remaining move ends at its container's present pool.
void GrantBook::ForgetOldMoves() {
  std::map<ContainerKey, int> last;
  for (const Move& move : moves_)
    last[move.key] = move.to;
  std::map<ContainerKey, int> steps;
  std::erase_if(moves_, [&](const Move& move) {
    const Grant* const grant = Find(move.key);
    return grant == nullptr || grant->pool != last.at(move.key) ||
           ++steps[move.key] > tree_.max_depth();
  });
}

}  // namespace resmgr
