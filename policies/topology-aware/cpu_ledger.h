// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "pkg/topology/machine.h"
#include "policies/topology-aware/pool_tree.h"

namespace resmgr {

// Who has what of the CPUs, pool by pool; exact after any sequence. The shared set of a pool is its
// sharable CPUs without all that is granted exclusively, so sets of nested pools nest, too.
//
// What containers of a pool need of its shared set is the sum of their requests and of what the
// pools below need, and at least something where anybody shares. An exclusive grant must leave
// every pool so many whole CPUs, and the root at least one, for containers to come. Units are
// milli-CPUs unless a name says otherwise. Thread-compatible.
class CpuLedger {
 public:
  // Both must outlive it.
  CpuLedger(const Machine& machine, const PoolTree& tree);

  // What one container holds.
  struct Share {
    int pool = 0;
    CpuSet exclusive{};  // ordinary and isolated CPUs
    int64_t shared = 0;  // its part of the shared set
    bool shares = false;
  };
  void Give(const Share& share);
  void Take(const Share& share);

  const CpuSet& exclusive() const { return exclusive_; }
  CpuSet SharedSet(int pool) const { return Of(pool).free; }
  int SharedCpus(int pool) const { return Of(pool).free_count; }
  CpuSet FreeIsolated(int pool) const { return tree_.at(pool).isolated - exclusive_; }
  // What can still be asked for from the shared set; below 0 where more is granted than there is.
  int64_t Room(int pool) const { return Of(pool).room; }
  // Containers whose pool it is.
  int Members(int pool) const { return Of(pool).members; }
  // Of the shared set, by containers of exactly this pool.
  int64_t OwnShared(int pool) const { return Of(pool).own_shared; }

  // How many ordinary CPUs can be granted exclusively from the pool, when the same container also
  // shares `fraction` there.
  int Sliceable(int pool, int64_t fraction) const;
  // Those CPUs for `count` at most Sliceable(pool, fraction): any `count` of them leave every pool
  // what it needs. `preferred` as for TakeIdleGroups: they are kept for this grant.
  CpuSet Spare(int pool, int64_t fraction, std::span<const CpuSet> preferred) const;
  // Whether all pools keep what they need when these CPUs are granted.
  bool CanSpare(const CpuSet& cpus) const;

 private:
  struct State {
    CpuSet free;
    int free_count = 0;
    int direct_free = 0;
    int members = 0;
    int users = 0;        // of the shared set
    int users_below = 0;  // those of the pools below, too
    int64_t own_shared = 0;
    int64_t need = 0;
    int64_t room = 0;
    int spare = 0;  // whole CPUs that this pool and those below can do without
  };

  const State& Of(int pool) const { return states_[static_cast<size_t>(pool)]; }
  void Count(const Share& share, int sign);
  void UpdateFree(const CpuSet& changed);
  void UpdateNeeds();
  int64_t Unneeded(int pool, int64_t extra) const;

  const Machine& machine_;
  const PoolTree& tree_;
  CpuSet exclusive_;
  std::vector<State> states_;
};

}  // namespace resmgr
