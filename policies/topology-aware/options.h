// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/allocator/alignment.h"
#include "pkg/base/status.h"
#include "pkg/config/classes_config.h"
#include "pkg/config/config_key.h"
#include "pkg/config/config_node.h"
#include "pkg/config/policy_classes.h"
#include "pkg/model/container.h"
#include "pkg/model/pod.h"
#include "pkg/policy/privileged_namespaces.h"
#include "policies/topology-aware/pool_tree.h"

namespace resmgr {

// The kind of CPUs that an exclusive grant takes first, on machines with several kinds of cores.
enum class CpuPriority {
  kHigh,    // performance cores
  kNormal,  // cores of no special kind, else performance cores
  kLow,     // efficient cores
  kNone,    // the nearest memory of any type
};

// Whether containers are placed apart from each other or so that large holes are left (packing.h).
enum class Packing {
  kAuto,    // apart while at least half of the CPU time is free, then packed
  kSpread,  // always apart
  kTight,   // always packed
};

// The section policy.topology-aware. Names and meaning are those of cri-resource-manager and
// nri-plugins; README.md beside this file explains each.
struct TopologyAwareOptions {
  bool pin_cpu = true;
  bool pin_memory = true;
  bool prefer_isolated = true;
  bool prefer_shared = false;
  bool colocate_pods = false;
  bool colocate_namespaces = false;
  bool lift_quota = true;
  bool pod_resource_api = false;                   // whether the kubelet is asked for devices
  std::vector<std::string> reserved_namespaces{};  // globs, in addition to kube-system
  PrivilegedNamespaces privileged{};
  CpuPriority default_priority = CpuPriority::kNone;
  Alignment alignment = Alignment::kPrefer;
  IsolationConfig undisturbed{};  // applied by pkg/classes
  // Classes of containers, and of their CPUs: those with CPUs of their own, those that share, and
  // those on reserved CPUs.
  PoolClassNames exclusive_classes{};
  PoolClassNames shared_classes{};
  PoolClassNames reserved_classes{};
  std::vector<std::string> controllable_interrupts = {"*"};
  std::map<std::string, ConfigNode, std::less<>> raw{};  // keys that are printed unchanged
  Packing packing = Packing::kAuto;
  PoolLevel unlimited_burstable = PoolLevel::kPackage;
};

// Reads the section. `section` may be nullptr; `keys` gets the description of every option
// (ReadSection). InvalidArgument "FILE:LINE: path: ..." for unknown keys, wrong values, and options
// of the peers that this policy does not have; the message then says what to do.
StatusOr<TopologyAwareOptions> ReadTopologyAwareOptions(const ConfigNode* section,
                                                        std::vector<ConfigKey>* keys = nullptr);

// The classes that the section names.
std::vector<NamedClass> TopologyAwareNamedClasses(const ConfigNode& section);

// Decides which of a container's locality hints count, by the paths of their sources.
struct HintFilter {
  struct Paths {
    bool glob = false;  // false: they are prefixes
    std::vector<std::string> paths{};
  };
  bool mounts = true;
  bool devices = true;
  bool pod_resources = true;
  bool strict = false;  // whether a hint that cannot be followed refuses the container
  std::optional<Paths> allow{};
  std::optional<Paths> deny{};  // has precedence

  // Whether a hint with this source counts. Sources: "device /dev/sda", "mount /data",
  // "pod-resources podresourceapi:RESOURCE".
  bool Accepts(std::string_view source) const;
};

// The preferences in a pod's annotations for one of its containers; empty or false if an annotation
// is missing.
struct Preferences {
  std::optional<bool> shared{};
  std::optional<bool> isolated{};
  std::optional<bool> reserved{};
  bool require_isolated = false;
  bool hide_hyperthreads = false;
  bool pick_by_hints = false;
  bool preserve_cpus = false;
  bool preserve_memory = false;
  bool allow_rebalance = false;  // whether a rebalance may replace its exclusive CPUs
  std::optional<CpuPriority> priority{};
  std::optional<Alignment> alignment{};
  std::optional<PoolLevel> unlimited_burstable{};
  std::optional<MemoryTypes> memory_types{};
  std::chrono::milliseconds cold_start{0};  // time with PMEM only, after the start
  HintFilter hints{};
  // Annotations that could not be read, or that have no effect here, one sentence each.
  std::vector<std::string> notes{};
};

// Reads the annotations in all forms of pkg/kube/annotations.h. Any user who may create pods may
// write anything there, so an unreadable annotation has no effect except for a note.
// `asks_kubelet`: whether the kubelet gives hints to pods that ask for them.
Preferences ReadPreferences(const Pod& pod, std::string_view container_name,
                            bool asks_kubelet = false);

}  // namespace resmgr
