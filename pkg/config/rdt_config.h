// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "pkg/config/config_section.h"

namespace resmgr {

// The schema of goresctrl's configuration, which containerd, CRI-O and nri-plugins have, too. Parts
// of caches are by percent or by bits; what they become on a machine is decided in
// pkg/classes/rdt_masks.h.

// "60%": in a partition a share of the cache that no other partition has; in a class, the beginning
// of its partition.
struct CachePercent {
  uint32_t percent = 0;
  friend bool operator==(const CachePercent&, const CachePercent&) = default;
};
// "10-40%": in a partition a range of the whole cache, which others may have as well (as
// koordlet's groups); in a class, a range of its partition.
struct CacheRange {
  uint32_t first = 0;
  uint32_t last = 0;
  friend bool operator==(const CacheRange&, const CacheRange&) = default;
};
// "0x1f", "0-7", "3": bits, in a class those of its partition.
struct CacheBits {
  uint64_t mask = 0;
  friend bool operator==(const CacheBits&, const CacheBits&) = default;
};
using CachePart = std::variant<CachePercent, CacheRange, CacheBits>;

// `code` and `data`, if set, count where the kernel tells them apart (CDP); else `unified` counts.
struct CacheParts {
  CachePart unified{};
  std::optional<CachePart> code{};
  std::optional<CachePart> data{};
  friend bool operator==(const CacheParts&, const CacheParts&) = default;
};

// "50%", "1000MBps": the mount of resctrl decides which one is taken.
struct BandwidthPart {
  std::optional<uint32_t> percent{};
  std::optional<uint32_t> mbps{};
  friend bool operator==(const BandwidthPart&, const BandwidthPart&) = default;
};

// Values by the ids of caches. An id that is not named has the value of `all`; without `all`, the
// whole cache.
template <typename Part>
struct RdtAllocation {
  std::optional<Part> all{};
  std::map<uint32_t, Part> by_id{};

  bool given() const { return all || !by_id.empty(); }
  // nullptr: everything.
  const Part* Find(uint32_t id) const {
    const auto found = by_id.find(id);
    if (found != by_id.end()) return &found->second;
    return all ? &*all : nullptr;
  }
  friend bool operator==(const RdtAllocation&, const RdtAllocation&) = default;
};

struct RdtAllocations {
  RdtAllocation<CacheParts> l2{};
  RdtAllocation<CacheParts> l3{};
  RdtAllocation<BandwidthPart> mb{};
  friend bool operator==(const RdtAllocations&, const RdtAllocations&) = default;
};

struct RdtClassConfig {
  RdtAllocations allocations{};
  bool denies_pod_annotation = false;
  bool denies_container_annotation = false;
  friend bool operator==(const RdtClassConfig&, const RdtClassConfig&) = default;
};

struct RdtPartitionConfig {
  RdtAllocations allocations{};
  std::map<std::string, RdtClassConfig, std::less<>> classes{};
  friend bool operator==(const RdtPartitionConfig&, const RdtPartitionConfig&) = default;
};

// Classes of caches and memory bandwidth.
struct RdtConfig {
  enum class Assign { kAuto, kTasks, kCpus, kRuntime };
  enum class Monitoring { kNone, kPod, kContainer };

  bool enable = true;                  // false: as if there were no partitions
  std::string prefix = "cri-resmgr.";  // prefix of the names of our resctrl groups
  Assign assign = Assign::kAuto;
  Monitoring monitoring = Monitoring::kNone;
  bool default_by_qos = false;  // a class with the name of the pod's QoS class is its default
  bool force = false;           // unconfigured groups of ours are removed even if they hold tasks
  bool l2_optional = false;     // a machine without this cache can have the classes without it
  bool l3_optional = false;
  bool mb_optional = false;
  std::map<std::string, RdtPartitionConfig, std::less<>> partitions{};

  bool any() const { return enable && !partitions.empty(); }
  friend bool operator==(const RdtConfig&, const RdtConfig&) = default;
};

// Whether this is the name of resctrl's root group: "" and "system/default".
bool IsRdtRoot(std::string_view class_name);

// The key `rdt` of the module `classes`.
void DescribeRdt(ConfigSection& classes, RdtConfig& config);

}  // namespace resmgr
