// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/model/container.h"
#include "policies/topology-aware/pool_tree.h"

namespace resmgr {

// The rules that compare two pools, the strongest first. For each rule a pool has a number, and a
// larger number is better. A pool's numbers do not depend on other pools, and the last one differs
// for every pool: so comparing the first numbers that differ is a strict total order.
enum class PoolRule : size_t {
  kFits,            // it has the CPUs and the memory (1 or 0)
  kIsolated,        // isolated CPUs that the pod asks for (1 or 0)
  kAffinity,        // affinities: weight x 0.75^distance of the other containers, summed
  kHints,           // locality hints: how well it meets them, multiplied
  kSomeHints,       // as kHints, only with the hints that it meets at least in part
  kMemoryHere,      // the memory fits in without nodes of larger or other pools (1 or 0)
  kMemoryType,      // it has every type of memory that the pod asks for (1 or 0)
  kMemoryLimit,     // room for the memory limit, up to that limit
  kCpuLimit,        // room for the CPU limit of a Burstable container, up to that limit; where
                    // containers are packed, CPUs that are not exclusive
  kUnlimitedLevel,  // its level is that for Burstable containers without a CPU limit (1 or 0)
  kFewerNodes,      // fewer memory nodes
  kPriority,        // how well the CPUs that it would get match the wanted priority
  kDeeper,          // deeper in the tree
  kPacking,         // once the machine is partly filled: a tighter fit (PackingScore); else 0
  kClassRoom,       // isolated: more of them; exclusive: more that can be granted; shared: fewer
                    // containers of this pool
  kSharedRoom,      // shared: more room
  kFirst,           // lower id
};
inline constexpr size_t kPoolRules = static_cast<size_t>(PoolRule::kFirst) + 1;

std::string_view ToString(PoolRule rule);  // "more room for its CPU limit", as a reason to win

struct PoolScore {
  int pool = 0;
  // The free amounts when the pool was scored, for explain only: milli-CPUs, and bytes if the pool
  // has memory of its own (else -1).
  int32_t free = 0;
  int64_t free_memory = -1;
  std::array<int64_t, kPoolRules> keys{};

  int64_t& operator[](PoolRule rule) { return keys[static_cast<size_t>(rule)]; }
  int64_t operator[](PoolRule rule) const { return keys[static_cast<size_t>(rule)]; }
};

struct PoolComparison {
  std::strong_ordering order;  // greater: the first pool is better
  PoolRule rule;               // the rule that decided
};
// Compares by the rules from `first` to `last`. Inline, so that the compiler knows the rules:
// comparing pools is most of the time of a decision.
inline PoolComparison Compare(const PoolScore& a, const PoolScore& b,
                              PoolRule first = PoolRule::kFits, PoolRule last = PoolRule::kFirst) {
  for (auto i = static_cast<size_t>(first); i <= static_cast<size_t>(last); ++i) {
    if (a.keys[i] != b.keys[i]) return {a.keys[i] <=> b.keys[i], static_cast<PoolRule>(i)};
  }
  return {std::strong_ordering::equal, last};
}

// For each pool, the sum over itself and all pools above and below of weight x 0.75^distance.
// `weights` has a number for each pool. The unit is chosen so that all results are whole numbers.
std::vector<int64_t> AffinityScores(const PoolTree& tree, const std::vector<int64_t>& weights);

// How well the pool meets the hint, in millionths. For CPUs: the part of the hint's CPUs that the
// pool has. For memory nodes, the mean over the nodes: 1 at the pool that the node belongs to, 0.9
// times as much for each level up or down, 0 elsewhere.
int64_t HintScore(const PoolTree& tree, int pool, const LocalityHint& hint);

}  // namespace resmgr
