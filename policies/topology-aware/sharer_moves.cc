// SPDX-License-Identifier: Apache-2.0
// The part of GrantBook by which sharing containers make room for exclusive grants.
#include <algorithm>
#include <map>
#include <utility>

#include "policies/topology-aware/grant_book.h"

namespace resmgr {

std::vector<ContainerKey> GrantBook::MakeRoom(const CpuSet& granted) {
  std::vector<ContainerKey> moved;
  if (granted.empty()) return moved;
  // Children come before their parents, so a container that leaves a pool counts in the next
  // larger.
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

// The containers that leave an overfull pool next: all if it has no CPU left to share; else the
// smallest one whose move suffices, or the largest one. Containers of the pool itself come before
// those below, which would lose more, and the youngest first among equals.
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
    // Asked first, since hardly any finds its room again.
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

// Forgets moves of containers that are gone or were moved again by another decision, so that every
// remaining move ends at its container's present pool.
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
