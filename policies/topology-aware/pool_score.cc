// SPDX-License-Identifier: Apache-2.0
#include "policies/topology-aware/pool_score.h"

namespace resmgr {

std::string_view ToString(PoolRule rule) {
  switch (rule) {
    case PoolRule::kFits:
      return "it has the CPUs and the memory";
    case PoolRule::kIsolated:
      return "it has the isolated CPUs that are asked for";
    case PoolRule::kAffinity:
      return "a better affinity";
    case PoolRule::kHints:
      return "nearer to all its devices and volumes";
    case PoolRule::kSomeHints:
      return "nearer to some of its devices and volumes";
    case PoolRule::kMemoryHere:
      return "its memory fits in";
    case PoolRule::kMemoryType:
      return "it has the types of memory that are asked for";
    case PoolRule::kMemoryLimit:
      return "more room for its memory limit";
    case PoolRule::kCpuLimit:
      return "more room for its CPU limit";
    case PoolRule::kUnlimitedLevel:
      return "the level for Burstable containers without a CPU limit";
    case PoolRule::kFewerNodes:
      return "fewer memory nodes";
    case PoolRule::kPriority:
      return "more CPUs of the wanted priority";
    case PoolRule::kDeeper:
      return "a smaller part of the machine";
    case PoolRule::kPacking:
      return "a tighter fit or more CPUs to share";
    case PoolRule::kClassRoom:
      return "more CPUs to grant, or fewer containers";
    case PoolRule::kSharedRoom:
      return "more room to share";
    case PoolRule::kFirst:
      return "the same as the other in all else: it comes first on the machine";
  }
  return "";
}

std::vector<int64_t> AffinityScores(const PoolTree& tree, const std::vector<int64_t>& weights) {
  // With 4^depth as the unit, every product with 3/4 is a whole number.
  int64_t unit = 1;
  for (int level = 0; level < tree.max_depth(); ++level)
    unit *= 4;
  std::vector<int64_t> below(weights);  // sums of the pool and those below it
  for (int64_t& weight : below)
    weight *= unit;
  std::vector<int64_t> above(weights.size());
  const auto index = [](int pool) { return static_cast<size_t>(pool); };
  // Children come before their parents, so each sum is complete when it is added to the parent's.
  for (const Pool& pool : tree.pools()) {
    if (pool.parent >= 0) below[index(pool.parent)] += below[index(pool.id)] / 4 * 3;
  }
  for (auto pool = tree.pools().rbegin(); pool != tree.pools().rend(); ++pool) {
    if (pool->parent < 0) continue;
    const size_t parent = index(pool->parent);
    above[index(pool->id)] = (weights[parent] * unit + above[parent]) / 4 * 3;
  }
  for (size_t i = 0; i < below.size(); ++i)
    below[i] += above[i];
  return below;
}

int64_t HintScore(const PoolTree& tree, int pool, const LocalityHint& hint) {
  constexpr int64_t kOne = 1'000'000;
  if (!hint.cpus.empty()) {
    return kOne * hint.cpus.CountCommon(tree.at(pool).cpus) / hint.cpus.size();
  }
  if (hint.nodes.empty()) return kOne;
  int64_t sum = 0;
  for (const int node : hint.nodes) {
    const int owner = tree.OwnerOf(node);
    const int distance = owner < 0 ? -1 : tree.Distance(pool, owner);
    int64_t part = distance < 0 ? 0 : kOne;
    for (int level = 0; level < distance; ++level)
      part = part * 9 / 10;
    sum += part;
  }
  return sum / hint.nodes.size();
}

}  // namespace resmgr
