// SPDX-License-Identifier: Apache-2.0
#include "policies/topology-aware/cpu_ledger.h"

#include <algorithm>
#include <limits>

#include "pkg/allocator/cpu_allocator.h"

namespace resmgr {

CpuLedger::CpuLedger(const Machine& machine, const PoolTree& tree, const CpuSet& reserved,
                     MilliCpu unreserved)
    : machine_(machine),
      tree_(tree),
      reserved_(reserved),
      unreserved_(unreserved),
      states_(tree.size()) {
  UpdateFree(tree.root(), machine.online());
  UpdateRooms(tree.root(), machine.online());
}

void CpuLedger::Give(const Share& share) {
  exclusive_ |= share.exclusive;
  Count(share, 1);
}

void CpuLedger::Take(const Share& share) {
  exclusive_ -= share.exclusive;
  Count(share, -1);
}

void CpuLedger::Count(const Share& share, int sign) {
  CountOwn(share, share.pool, sign);
  CountNeed(share, share.pool, -1, sign);
  if (!share.exclusive.empty()) UpdateFree(tree_.root(), share.exclusive);
  UpdateSpareAround(share.pool);
  UpdateRoomsAround(share.pool, -1);
  if (!share.exclusive.empty()) UpdateRooms(tree_.root(), share.exclusive);
}

void CpuLedger::CountOwn(const Share& share, int pool, int sign) {
  State& state = states_[IndexOf(pool)];
  state.members += sign;
  state.own_shared += sign * share.shared;
  if (share.shares) state.users += sign;
}

// Adds (`sign` 1) or subtracts (-1) the need in this pool and its ancestors, up to but without
// `end`.
void CpuLedger::CountNeed(const Share& share, int pool, int end, int sign) {
  for (int id = pool; id != end; id = tree_.at(id).parent) {
    State& state = states_[IndexOf(id)];
    state.need += sign * share.shared;
    if (share.shares) state.users_below += sign;
  }
}

void CpuLedger::Move(const Share& share, int to) {
  CountOwn(share, share.pool, -1);
  CountOwn(share, to, 1);
  // One pool is inside the other and has the lower id, since children come before parents. The need
  // of pools around both does not change.
  const auto [lower, upper] = std::minmax(share.pool, to);
  CountNeed(share, lower, upper, to < share.pool ? 1 : -1);
  UpdateSpareAround(lower);
  UpdateRoomsAround(lower, upper);
}

// Updates the free CPUs of the pool and of those below it after `changed` were granted or given
// back.
void CpuLedger::UpdateFree(int pool, const CpuSet& changed) {
  const Pool& place = tree_.at(pool);
  if (!place.sharable.Intersects(changed)) return;
  for (const int child : place.children)
    UpdateFree(child, changed);
  State& state = states_[IndexOf(pool)];
  state.free = place.sharable - exclusive_;
  state.free_count = state.free.size();
  state.direct_free = place.direct.CountCommon(state.free);
  UpdateSpare(pool);
}

// Updates the rooms of the pool and of those below it after `changed` were granted or given back.
void CpuLedger::UpdateRooms(int pool, const CpuSet& changed) {
  const Pool& place = tree_.at(pool);
  if (!place.sharable.Intersects(changed)) return;
  UpdateRoomsBelow(pool);
  for (const int child : place.children)
    UpdateRooms(child, changed);
}

void CpuLedger::UpdateSpareAround(int pool) {
  for (int id = pool; id >= 0; id = tree_.at(id).parent)
    UpdateSpare(id);
}

// Updates the spare CPUs of the pool; its need, and the spare CPUs of its children, must be up to
// date.
void CpuLedger::UpdateSpare(int pool) {
  State& state = states_[IndexOf(pool)];
  int64_t spare = state.direct_free;
  for (const int child : tree_.at(pool).children)
    spare += Of(child).spare;
  const int64_t unneeded = std::max<int64_t>(Unneeded(pool, 0) / 1000, 0);
  state.spare = static_cast<int>(std::min(spare, unneeded));
}

// Updates the room of the pool; its parent's must be up to date.
void CpuLedger::UpdateRoom(int pool) {
  State& state = states_[IndexOf(pool)];
  state.room = Capacity(pool) - state.need;
  if (const int parent = tree_.at(pool).parent; parent >= 0) {
    state.room = std::min(state.room, Of(parent).room);
  }
}

// Updates the rooms of this pool and its ancestors up to `end`, whose needs have changed; the need
// of `end` has not.
void CpuLedger::UpdateRoomsAround(int pool, int end) {
  if (pool == end) return;
  UpdateRoomsAround(tree_.at(pool).parent, end);
  UpdateRoomsBelow(pool);
}

// Stops where a room did not change: most pools have less room than the pool around them, which
// then does not limit them.
void CpuLedger::UpdateRoomsBelow(int pool) {
  const int64_t before = Room(pool);
  UpdateRoom(pool);
  if (Room(pool) == before) return;
  for (const int child : tree_.at(pool).children)
    UpdateRoomsBelow(child);
}

// The CPU time of the pool beyond its needs and `extra`; below 0 if there is not enough for these.
int64_t CpuLedger::Unneeded(int pool, int64_t extra) const {
  const State& state = Of(pool);
  int64_t need = state.need + extra;
  const bool keeps_one = pool == tree_.root() ? reserved_.empty() : state.users_below > 0;
  if (keeps_one) need = std::max<int64_t>(need, 1);
  return Capacity(pool) - need;
}

bool CpuLedger::HasRoomBelow(int above, int pool, int64_t shared) const {
  if (Of(pool).free_count == 0 || Room(above) < 0) return false;
  for (int id = pool; id != above && id >= 0; id = tree_.at(id).parent) {
    if (int64_t{1000} * Of(id).free_count - Of(id).need < shared) return false;
  }
  return true;
}

int CpuLedger::Grantable(int pool, int64_t fraction) const {
  const int64_t most = std::max<int64_t>(Unneeded(tree_.root(), fraction), 0) / 1000;
  return static_cast<int>(std::min<int64_t>(most, Of(pool).free_count));
}

int CpuLedger::Sliceable(int pool, int64_t fraction) const {
  int64_t least = std::numeric_limits<int64_t>::max();
  for (int id = pool; id >= 0; id = tree_.at(id).parent)
    least = std::min(least, Unneeded(id, fraction));
  if (least < 1000) return 0;
  int64_t below = Of(pool).direct_free;
  for (const int child : tree_.at(pool).children)
    below += Of(child).spare;
  return static_cast<int>(std::min(least / 1000, below));
}

CpuSet CpuLedger::Spare(int pool, int64_t fraction, std::span<const CpuSet> preferred) const {
  const State& state = Of(pool);
  CpuSet spare = state.free & tree_.at(pool).direct;
  for (const int child : tree_.at(pool).children) {
    const State& below = Of(child);
    if (below.spare == 0) continue;
    spare |= below.spare == below.free_count ? below.free : Spare(child, 0, preferred);
  }
  const auto most =
      static_cast<int>(std::clamp<int64_t>(Unneeded(pool, fraction) / 1000, 0, spare.size()));
  if (most == spare.size()) return spare;
  return TakeIdleGroups(machine_, spare, most, preferred).value_or(CpuSet());
}

bool CpuLedger::CanSpare(const CpuSet& cpus) const {
  const int root = tree_.root();
  return cpus.CountCommon(Of(root).free) <= Grantable(root, 0);
}

bool CpuLedger::CanKeep(const CpuSet& cpus) const {
  const State& root = Of(tree_.root());
  return cpus.CountCommon(root.free) < root.free_count || CanSpare(cpus);
}

}  // namespace resmgr
