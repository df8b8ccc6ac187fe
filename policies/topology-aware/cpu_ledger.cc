// SPDX-License-Identifier: Apache-2.0
#include "policies/topology-aware/cpu_ledger.h"

#include <algorithm>
#include <limits>

#include "pkg/allocator/idle_groups.h"

namespace resmgr {

CpuLedger::CpuLedger(const Machine& machine, const PoolTree& tree, const CpuSet& reserved)
    : machine_(machine), tree_(tree), reserved_(reserved), states_(tree.size()) {
  UpdateFree(machine.online());
  UpdateNeeds();
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
  State& state = states_[static_cast<size_t>(share.pool)];
  state.members += sign;
  state.own_shared += sign * share.shared;
  if (share.shares) state.users += sign;
  if (!share.exclusive.empty()) UpdateFree(share.exclusive);
  UpdateNeeds();
}

void CpuLedger::UpdateFree(const CpuSet& changed) {
  for (const Pool& pool : tree_.pools()) {
    if (!pool.sharable.Intersects(changed)) continue;
    State& state = states_[static_cast<size_t>(pool.id)];
    state.free = pool.sharable - exclusive_;
    state.free_count = state.free.size();
    state.direct_free = pool.direct.CountCommon(state.free);
  }
}

void CpuLedger::UpdateNeeds() {
  // Children come before their parents.
  for (State& state : states_) {
    state.need = state.own_shared;
    state.spare = state.direct_free;
    state.users_below = state.users;
  }
  for (const Pool& pool : tree_.pools()) {
    State& state = states_[static_cast<size_t>(pool.id)];
    const int64_t unneeded = std::max<int64_t>(Unneeded(pool.id, 0) / 1000, 0);
    state.spare = static_cast<int>(std::min<int64_t>(state.spare, unneeded));
    if (pool.parent < 0) continue;
    State& parent = states_[static_cast<size_t>(pool.parent)];
    parent.need += state.need;
    parent.spare += state.spare;
    parent.users_below += state.users_below;
  }
  for (auto pool = tree_.pools().rbegin(); pool != tree_.pools().rend(); ++pool) {
    State& state = states_[static_cast<size_t>(pool->id)];
    state.room = int64_t{1000} * state.free_count - state.need;
    if (pool->parent >= 0) state.room = std::min(state.room, Of(pool->parent).room);
  }
}

// What is beyond the needs of the pool, `extra` included; below 0 where they are not met.
int64_t CpuLedger::Unneeded(int pool, int64_t extra) const {
  const State& state = Of(pool);
  int64_t need = state.need + extra;
  const bool keeps_one = pool == tree_.root() ? reserved_.empty() : state.users_below > 0;
  if (keeps_one) need = std::max<int64_t>(need, 1);
  return int64_t{1000} * state.free_count - need;
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

}  // namespace resmgr
