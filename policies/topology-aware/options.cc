// SPDX-License-Identifier: Apache-2.0
#include "policies/topology-aware/options.h"

#include <array>

#include "pkg/base/parse.h"
#include "pkg/config/map_reader.h"

namespace resmgr {
namespace {

struct NotHere {
  std::string_view key;
  std::string_view why;
};

constexpr std::string_view kNoScheduling =
    "is not supported: nothing here sets scheduling classes of processes; remove it";
constexpr std::string_view kNoCpuClasses =
    "is not supported: nothing here sets frequencies or idle states of CPUs; remove it";

// Keys that users of the peers may have in this section.
constexpr std::array<NotHere, 11> kNotHere = {{
    {"SchedulingClasses", kNoScheduling},
    {"NamespaceSchedulingClasses", kNoScheduling},
    {"PodQoSSchedulingClasses", kNoScheduling},
    {"CPUClasses", kNoCpuClasses},
    {"SharedPoolCPUClass", kNoCpuClasses},
    {"ReservedPoolCPUClass", kNoCpuClasses},
    {"DefaultExclusiveCPUClass", kNoCpuClasses},
    {"ControllableInterrupts", "is not supported: nothing here moves interrupts; remove it"},
    {"Control", "is not supported: there are no RDT, block I/O and CPU controllers; remove it"},
    {"AvailableResources", "belongs one level up: policy.AvailableResources"},
    {"ReservedResources", "belongs one level up: policy.ReservedResources"},
}};

}  // namespace

std::optional<CpuPriority> ParseCpuPriority(std::string_view text) {
  if (EqualsIgnoreCase(text, "high")) return CpuPriority::kHigh;
  if (EqualsIgnoreCase(text, "normal")) return CpuPriority::kNormal;
  if (EqualsIgnoreCase(text, "low")) return CpuPriority::kLow;
  if (EqualsIgnoreCase(text, "none")) return CpuPriority::kNone;
  return std::nullopt;
}

std::optional<PoolLevel> ParsePoolLevel(std::string_view text) {
  if (EqualsIgnoreCase(text, "system")) return PoolLevel::kSystem;
  if (EqualsIgnoreCase(text, "package")) return PoolLevel::kPackage;
  if (EqualsIgnoreCase(text, "die")) return PoolLevel::kDie;
  if (EqualsIgnoreCase(text, "numa")) return PoolLevel::kNuma;
  if (EqualsIgnoreCase(text, "l3cache")) return PoolLevel::kL3;
  return std::nullopt;
}

StatusOr<TopologyAwareOptions> ReadTopologyAwareOptions(const ConfigNode* section,
                                                        ConfigNode* complete) {
  TopologyAwareOptions options;
  const ConfigNode nothing;
  MapReader reader(section == nullptr ? nothing : *section, "policy.topology-aware", complete);
  reader.Bool("PinCPU", options.pin_cpu);
  reader.Bool("PinMemory", options.pin_memory);
  reader.Bool("PreferIsolatedCPUs", options.prefer_isolated);
  reader.Bool("PreferSharedCPUs", options.prefer_shared);
  reader.Bool("ColocatePods", options.colocate_pods);
  reader.Bool("ColocateNamespaces", options.colocate_namespaces);
  reader.List("ReservedPoolNamespaces", options.reserved_namespaces);
  options.privileged.Read(reader);
  std::string priority = "none";
  reader.Choice("DefaultCPUPriority", {"high", "normal", "low", "none"}, priority);
  options.default_priority = ParseCpuPriority(priority).value_or(CpuPriority::kNone);
  std::string level = "package";
  reader.Choice("UnlimitedBurstable", {"system", "package", "die", "numa", "l3cache"}, level);
  options.unlimited_burstable = ParsePoolLevel(level).value_or(PoolLevel::kPackage);
  ReadAlignment(reader, options.alignment);
  std::string packing = "auto";
  reader.Choice("Packing", {"auto", "spread", "tight"}, packing);
  if (packing != "auto") options.packing = packing == "tight" ? Packing::kTight : Packing::kSpread;
  std::string quota = "lift";
  reader.Choice("CPUQuota", {"lift", "keep"}, quota);
  options.lift_quota = quota == "lift";
  for (const NotHere& option : kNotHere) {
    const ConfigNode* const node = reader.Node(option.key);
    if (node != nullptr) reader.Fail(*node, option.key, option.why);
  }
  RESMGR_RETURN_IF_ERROR(reader.Finish());
  return options;
}

}  // namespace resmgr
