// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "pkg/model/container.h"
#include "policies/topology-aware/need.h"

namespace resmgr {

// One container to find a place for.
struct Demand {
  Need need{};
  std::vector<int64_t> affinities{};  // AffinityScores by pool; may be empty
  std::vector<LocalityHint> hints{};  // those that count
  bool strict_hints = false;
  bool pick_by_hints = false;
  // Exclusive CPUs may be isolated ones, all or some, although it does not ask for such: rather
  // than that the container is refused.
  bool any_kind = false;
  bool may_move = false;  // exclusive CPUs, when everything is rebalanced
  // Exclusive CPUs that it has at this moment, free in the book: it may have them again, or a part
  // of them, even where no other container could be granted any.
  CpuSet held{};
  // It runs on them: where it needs as many or more, they are all among those that it gets.
  bool keeps_held = false;
  // Exclusive CPUs come from these alone.
  std::optional<CpuSet> within{};
  std::vector<CpuSet> preferred{};  // CPUs to take before others, in this order
};

}  // namespace resmgr
