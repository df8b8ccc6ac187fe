// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "pkg/base/units.h"
#include "pkg/topology/machine.h"
#include "policies/topology-aware/pool_tree.h"

namespace resmgr {

// The granted CPUs, pool by pool; exact after any sequence. The shared set of a pool is its
// sharable CPUs without the exclusive ones, so sets of nested pools nest, too.
//
// The need of a pool is the sum of the requests of its containers and of the needs of the pools
// below, and at least one CPU if any container shares. An exclusive grant leaves every pool whole
// CPUs for its need, or containers of that pool have to move to a larger one (GrantBook::MakeRoom).
// Only the root can refuse: it keeps what all sharing containers together ask for. Where there are
// reserved CPUs, the root's sharing containers run on these while all others are exclusive; where
// there are none, the root keeps one CPU in any case. The part of the reserved CPUs by which they
// exceed the configured quantity counts for the root, as for the scheduler. Units are milli-CPUs
// unless a name says otherwise. Thread-compatible.
class CpuLedger {
 public:
  // Machine and tree must outlive it. `reserved` is lent to sharing containers; may be empty.
  // `unreserved`: PolicyContext's.
  CpuLedger(const Machine& machine, const PoolTree& tree, const CpuSet& reserved,
            MilliCpu unreserved = {});

  // The CPUs that one container takes.
  struct Share {
    int pool = 0;
    CpuSet exclusive{};  // ordinary and isolated CPUs
    int64_t shared = 0;  // its part of the shared set
    bool shares = false;
  };
  void Give(const Share& share);
  void Take(const Share& share);
  // Moves `share` to another pool, around its own pool or inside it. Has the effect of Take and
  // Give, but visits fewer pools.
  void Move(const Share& share, int to);

  const CpuSet& exclusive() const { return exclusive_; }
  // The pool's sharable CPUs that are not granted exclusively.
  const CpuSet& Free(int pool) const { return Of(pool).free; }
  int FreeCpus(int pool) const { return Of(pool).free_count; }
  // The CPUs that containers of the pool share; empty if there are none.
  const CpuSet& SharedSet(int pool) const { return Lends(pool) ? reserved_ : Of(pool).free; }
  bool CanShare(int pool) const {
    return FreeCpus(pool) > 0 || (Lends(pool) && !reserved_.empty());
  }
  // Whether containers share the reserved CPUs in this pool: in the root, if all other CPUs are
  // exclusive.
  bool Lends(int pool) const { return pool == tree_.root() && Of(pool).free_count == 0; }
  CpuSet FreeIsolated(int pool) const { return tree_.at(pool).isolated - exclusive_; }
  // The room of the shared set for requests; below 0 if more is granted than the set has.
  int64_t Room(int pool) const { return Of(pool).room; }
  // Whether a container that shares `shared` in the pool `above` could do so in `pool`, which is
  // inside it.
  bool HasRoomBelow(int above, int pool, int64_t shared) const;
  // The number of containers in exactly this pool.
  int Members(int pool) const { return Of(pool).members; }
  // The number of containers that share in the pool or below, and their requests.
  int Sharers(int pool) const { return Of(pool).users_below; }
  int64_t Need(int pool) const { return Of(pool).need; }
  // The requests on the shared set by containers of exactly this pool.
  int64_t OwnShared(int pool) const { return Of(pool).own_shared; }

  // Whether containers of the pool request more shared CPUs than are left, or none is left for
  // them.
  bool IsOverfull(int pool) const { return Unneeded(pool, 0) < 0; }
  // The requests beyond the remaining CPUs; 0 if these are enough.
  int64_t Excess(int pool) const { return std::max<int64_t>(-Unneeded(pool, 0), 0); }

  // How many ordinary CPUs of the pool one container can get exclusively if sharing containers move
  // to larger pools for it; the container also shares `fraction` somewhere.
  int Grantable(int pool, int64_t fraction) const;
  // As Grantable, if no container moves, and `fraction` is shared in the same pool.
  int Sliceable(int pool, int64_t fraction) const;
  // CPUs of which any `count` up to Sliceable(pool, fraction) can be granted so that every pool
  // keeps what it needs. CPUs in `preferred`, as for TakeIdleGroups, are kept in the result.
  CpuSet Spare(int pool, int64_t fraction, std::span<const CpuSet> preferred) const;
  // Whether these CPUs can be granted if sharing containers may move for it.
  bool CanSpare(const CpuSet& cpus) const;
  // Whether a container may keep these CPUs: sharing containers must have at least one CPU left.
  // They may request more than the set has, by resizes, which take no CPUs away from other
  // containers.
  bool CanKeep(const CpuSet& cpus) const;
  // The part of the reserved CPUs that pods may ask for, counted as the root's.
  MilliCpu unreserved() const { return unreserved_; }

 private:
  struct State {
    CpuSet free;
    int free_count = 0;
    int direct_free = 0;
    int members = 0;
    int users = 0;        // containers that use the shared set
    int users_below = 0;  // as `users`, with the pools below
    int64_t own_shared = 0;
    int64_t need = 0;  // requests of this pool and of those below
    int64_t room = 0;
    int spare = 0;  // whole CPUs that this pool and those below can do without
  };

  const State& Of(int pool) const { return states_[static_cast<size_t>(pool)]; }
  void Count(const Share& share, int sign);
  void CountOwn(const Share& share, int pool, int sign);
  void CountNeed(const Share& share, int pool, int end, int sign);
  void UpdateFree(int pool, const CpuSet& changed);
  void UpdateRooms(int pool, const CpuSet& changed);
  void UpdateSpareAround(int pool);
  void UpdateSpare(int pool);
  void UpdateRoomsAround(int pool, int end);
  void UpdateRoomsBelow(int pool);
  void UpdateRoom(int pool);
  int64_t Unneeded(int pool, int64_t extra) const;
  // The CPU time that the pool has for requests on shared CPUs.
  int64_t Capacity(int pool) const {
    const int64_t more = pool == tree_.root() ? unreserved_.value : 0;
    return int64_t{1000} * Of(pool).free_count + more;
  }

  const Machine& machine_;
  const PoolTree& tree_;
  const CpuSet reserved_;
  const MilliCpu unreserved_;
  CpuSet exclusive_;
  std::vector<State> states_;
};

}  // namespace resmgr
