// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/allocator/alignment.h"
#include "pkg/model/container.h"
#include "pkg/model/pod.h"
#include "policies/topology-aware/memory_ledger.h"
#include "policies/topology-aware/options.h"
#include "policies/topology-aware/pool_tree.h"

namespace resmgr {

enum class CpuClass {
  kReserved,   // on the reserved CPUs, shared by all such containers
  kShared,     // on the shared set of a pool
  kExclusive,  // exclusive CPUs, and the shared set as well where a fraction is left
  kPreserved,  // not placed at all
};

// One container's request to a pool, from its requirements, QoS class, annotations and options.
struct Need {
  CpuClass cpu_class = CpuClass::kShared;
  int full = 0;            // exclusive CPUs
  int64_t fraction = 0;    // of the shared set or the reserved CPUs, in milli-CPUs
  int64_t cpu_limit = 0;   // of a Burstable container that may use more than it asks for; else 0
  bool unlimited = false;  // a Burstable container without a limit
  PoolLevel unlimited_level = PoolLevel::kPackage;
  bool isolated = false;           // exclusive CPUs from the isolated ones if possible
  bool isolated_explicit = false;  // the pod's annotation demands it
  bool isolated_required = false;
  bool isolated_never = false;               // the pod's annotation demands it
  Alignment alignment = Alignment::kPrefer;  // of exclusive CPUs
  Packing packing = Packing::kAuto;
  bool hide_hyperthreads = false;
  CpuPriority priority = CpuPriority::kNone;
  Bytes memory{};
  bool memory_estimated = false;  // an estimate never refuses the container
  Bytes memory_limit{};           // 0: not above `memory`
  HugeMemories huge{};            // beside `memory`; never a reason to refuse the container
  MemoryTypes memory_types = kAllMemoryTypes;
  bool pin_memory = true;
  std::chrono::milliseconds cold_start{0};  // as requested; Grant::cold: whether it takes place
  bool lift_quota = false;
  std::string why{};  // the rule behind the class

  bool Shares() const {
    return cpu_class == CpuClass::kShared || (cpu_class == CpuClass::kExclusive && fraction > 0);
  }
};

// Removes the preferences that only pods of PrivilegedNamespaces may ask for. Returns one sentence
// for each, for the user.
std::vector<std::string> TakeUnprivileged(const Pod& pod, const TopologyAwareOptions& options,
                                          Preferences& preferences);

// `has_reserved`: there are reserved CPUs at all.
Need DecideNeed(const Pod& pod, const Container& container, const Preferences& preferences,
                const TopologyAwareOptions& options, bool has_reserved);

// The need of a container that is not bound, for this reason: its request counts in the root, and
// its memory wherever there is room.
Need UnboundNeed(const Need& need, std::string_view why);

// One container to find a place for.
struct Demand {
  Need need{};
  std::vector<int64_t> affinities{};  // AffinityScores by pool; may be empty
  std::vector<LocalityHint> hints{};  // the hints that count
  bool strict_hints = false;
  bool pick_by_hints = false;
  // Exclusive CPUs may be isolated ones, all or some, although the container does not ask for
  // these, so that it need not be refused.
  bool any_kind = false;
  bool may_move = false;  // a rebalance may replace its exclusive CPUs
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
