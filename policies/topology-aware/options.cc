// SPDX-License-Identifier: Apache-2.0
#include "policies/topology-aware/options.h"

#include <array>
#include <initializer_list>

#include "pkg/base/parse.h"
#include "pkg/config/config_section.h"

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

const std::initializer_list<ConfigWord<CpuPriority>> kPriorities = {
    {"high", CpuPriority::kHigh},
    {"normal", CpuPriority::kNormal},
    {"low", CpuPriority::kLow},
    {"none", CpuPriority::kNone},
};

const std::initializer_list<ConfigWord<PoolLevel>> kLevels = {
    {"system", PoolLevel::kSystem}, {"package", PoolLevel::kPackage}, {"die", PoolLevel::kDie},
    {"numa", PoolLevel::kNuma},     {"l3cache", PoolLevel::kL3},
};

template <typename T>
std::optional<T> Find(std::initializer_list<ConfigWord<T>> words, std::string_view text) {
  for (const auto& word : words) {
    if (EqualsIgnoreCase(text, word.text)) return word.value;
  }
  return std::nullopt;
}

void Describe(ConfigSection& section, TopologyAwareOptions& options) {
  section.Bool("PinCPU", options.pin_cpu, "`false`: cpusets are not changed, nothing is exclusive");
  section.Bool("PinMemory", options.pin_memory, "`false`: `cpuset.mems` is not changed");
  section.Bool("PreferIsolatedCPUs", options.prefer_isolated,
               "isolated CPUs for single exclusive CPUs");
  section.Bool("PreferSharedCPUs", options.prefer_shared,
               "Guaranteed containers of 1.x CPUs share");
  section.Bool("ColocatePods", options.colocate_pods,
               "an affinity of weight 10 to containers of the same pod, for containers without "
               "affinities of their own");
  section.Bool("ColocateNamespaces", options.colocate_namespaces,
               "the same to containers of the same namespace");
  section.List("ReservedPoolNamespaces", options.reserved_namespaces,
               "globs (`*`, `?`) of the namespaces beside `kube-system` whose pods run on reserved "
               "CPUs");
  options.privileged.Describe(
      section,
      "the annotations `cpu.preserve`, `memory.preserve` and `prefer-reserved-cpus: \"true\"`");
  section.Choice("DefaultCPUPriority", kPriorities, options.default_priority,
                 "which CPUs are granted exclusively first");
  section.Choice("UnlimitedBurstable", kLevels, options.unlimited_burstable,
                 "the level for Burstable containers without CPU limit");
  DescribeAlignment(section, options.alignment);
  DescribeUndisturbed(section, options.undisturbed);
  section.Choice(
      "Packing",
      {{"auto", Packing::kAuto}, {"spread", Packing::kSpread}, {"tight", Packing::kTight}},
      options.packing,
      "`auto`: spread while at least half of the CPU time is free, then packed; `spread`, `tight`: "
      "always");
  section.Choice<bool>("CPUQuota", {{"lift", true}, {"keep", false}}, options.lift_quota,
                       "`lift`: exclusive containers of less than 256 CPUs run without CFS quota; "
                       "`keep`: as requested");
  section.Map("Agent", [&](ConfigSection& agent) {
    agent.Bool("PodResourceAPI", options.pod_resource_api,
               "the kubelet is asked where the devices of containers are: further hints");
  });
  for (const NotHere& option : kNotHere)
    section.Refuse(option.key, option.why);
}

}  // namespace

std::optional<CpuPriority> ParseCpuPriority(std::string_view text) {
  return Find(kPriorities, text);
}

std::optional<PoolLevel> ParsePoolLevel(std::string_view text) {
  return Find(kLevels, text);
}

StatusOr<TopologyAwareOptions> ReadTopologyAwareOptions(const ConfigNode* section,
                                                        std::vector<ConfigKey>* keys) {
  return ReadSection<TopologyAwareOptions>(section, "policy.topology-aware", &Describe, keys);
}

}  // namespace resmgr
