// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/allocator/alignment.h"
#include "pkg/config/config_node.h"
#include "pkg/model/container.h"
#include "pkg/model/pod.h"
#include "policies/topology-aware/options.h"
#include "policies/topology-aware/pool_tree.h"

namespace resmgr {

// Decides which of a container's locality hints count, by the paths of their sources.
struct HintFilter {
  struct Paths {
    bool glob = false;  // else prefixes
    std::vector<std::string> paths{};
  };
  bool mounts = true;
  bool devices = true;
  bool pod_resources = true;
  bool strict = false;  // a hint that the pool cannot follow refuses the container
  std::optional<Paths> allow{};
  std::optional<Paths> deny{};  // asked first

  // For a hint's source: "device /dev/sda", "mount /data", "pod-resources podresourceapi:RESOURCE".
  bool Accepts(std::string_view source) const;
};

// The preferences of a pod's annotations for the placement of one of its containers. A missing one
// is empty.
struct Preferences {
  std::optional<bool> shared{};
  std::optional<bool> isolated{};
  std::optional<bool> reserved{};
  bool require_isolated = false;
  bool hide_hyperthreads = false;
  bool pick_by_hints = false;
  bool preserve_cpus = false;
  bool preserve_memory = false;
  bool allow_rebalance = false;  // of exclusive CPUs
  std::optional<CpuPriority> priority{};
  std::optional<Alignment> alignment{};
  std::optional<PoolLevel> unlimited_burstable{};
  std::optional<MemoryTypes> memory_types{};
  std::chrono::milliseconds cold_start{0};  // the time with PMEM only, at first
  HintFilter hints{};
  // Annotations that could not be read, or that have no effect here, one sentence each.
  std::vector<std::string> notes{};
};

// Reads them in all forms of pkg/kube/annotations.h. Any user who may create pods may write
// anything there: an unreadable annotation is noted and has no effect. `asks_kubelet`: the kubelet
// gives hints to pods that ask for them.
Preferences ReadPreferences(const Pod& pod, std::string_view container_name,
                            bool asks_kubelet = false);

// A list of dram, pmem, hbm and mixed (dram and pmem).
std::optional<MemoryTypes> ParseMemoryTypes(std::string_view text);

}  // namespace resmgr
