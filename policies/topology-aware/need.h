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
  kExclusive,  // on exclusive CPUs; with a fraction, also on the shared set
  kPreserved,  // not placed at all
};

// The request of one container to a pool, by its requirements, QoS class, annotations and options.
struct Need {
  CpuClass cpu_class = CpuClass::kShared;
  int full = 0;            // number of exclusive CPUs
  int64_t fraction = 0;    // milli-CPUs of the shared set or the reserved CPUs
  int64_t cpu_limit = 0;   // if a Burstable container may use more than it requests; else 0
  bool unlimited = false;  // a Burstable container without a limit
  PoolLevel unlimited_level = PoolLevel::kPackage;
  bool isolated = false;           // exclusive CPUs are isolated ones if possible
  bool isolated_explicit = false;  // the pod's annotation asks for isolated CPUs
  bool isolated_required = false;
  bool isolated_never = false;               // the pod's annotation excludes isolated CPUs
  Alignment alignment = Alignment::kPrefer;  // of exclusive CPUs
  Packing packing = Packing::kAuto;
  bool hide_hyperthreads = false;
  CpuPriority priority = CpuPriority::kNone;
  Bytes memory{};
  bool memory_estimated = false;  // an estimate never refuses the container
  Bytes memory_held{};            // what it has already: no more than that is never refused
  Bytes memory_limit{};           // 0: not above `memory`
  HugeMemories huge{};            // in addition to `memory`; never a reason for a refusal
  MemoryTypes memory_types = kAllMemoryTypes;
  bool pin_memory = true;
  std::chrono::milliseconds cold_start{0};  // as requested; Grant::cold: whether it takes place
  bool lift_quota = false;
  std::string why{};  // the rule that led to the class

  bool Shares() const {
    return cpu_class == CpuClass::kShared || (cpu_class == CpuClass::kExclusive && fraction > 0);
  }
};

// Removes the preferences that only pods of PrivilegedNamespaces may use. Returns one sentence
// about each for the user.
std::vector<std::string> TakeUnprivileged(const Pod& pod, const TopologyAwareOptions& options,
                                          Preferences& preferences);

// `has_reserved`: whether there are reserved CPUs.
Need DecideNeed(const Pod& pod, const Container& container, const Preferences& preferences,
                const TopologyAwareOptions& options, bool has_reserved);

// The need of a container that is not bound, for the reason `why`: its request counts in the root,
// and its memory wherever there is room.
Need UnboundNeed(const Need& need, std::string_view why);

// A container that needs a place.
struct Demand {
  Need need{};
  std::vector<int64_t> affinities{};  // AffinityScores by pool; may be empty
  std::vector<LocalityHint> hints{};  // hints that are not filtered out
  bool strict_hints = false;
  bool pick_by_hints = false;
  // To avoid a refusal, exclusive CPUs may be isolated ones, all or some, although the container
  // does not ask for these.
  bool any_kind = false;
  bool may_move = false;  // a rebalance may replace its exclusive CPUs
  // Its present exclusive CPUs, which are free in the book. It may get them again, or a part of
  // them, even if they could not be granted to another container.
  CpuSet held{};
  // Whether the container runs on `held`: if it needs at least as many CPUs, it gets all of these.
  bool keeps_held = false;
  // The pool in which the container shares CPUs now, and its request there; -1: it does not share.
  int shares_in = -1;
  int64_t shared_held = 0;
  int64_t reserved_held = 0;  // its request on the reserved CPUs, if it is there now
  // The only CPUs from which exclusive ones may come.
  std::optional<CpuSet> within{};
  std::vector<CpuSet> preferred{};  // CPUs to take before others, in this order
};

}  // namespace resmgr
