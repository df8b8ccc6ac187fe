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
  std::vector<LocalityHint> hints{};  // the hints that count
  bool strict_hints = false;
  bool pick_by_hints = false;
  // Exclusive CPUs may be isolated ones, all or some, although it does not ask for such: rather
  // than that the container is refused.
  bool any_kind = false;
  bool may_move = false;  // exclusive CPUs, when everything is rebalanced
  // Exclusive CPUs that it has at this moment, free in the book: it may have them again, or a part
  // of them, even where no other container could be granted any.
  CpuSet held{};
  // The container runs on `held`: if it needs at least as many, it gets all of these.
  bool keeps_held = false;
  // The only CPUs from which exclusive ones may come.
  std::optional<CpuSet> within{};
  std::vector<CpuSet> preferred{};  // CPUs to take before others, in this order
};

}  // namespace resmgr
