// SPDX-License-Identifier: Apache-2.0
#include "policies/topology-aware/options.h"

#include <array>
#include <initializer_list>

#include "pkg/base/parse.h"
#include "pkg/config/config_section.h"
#include "pkg/kube/glob.h"

namespace resmgr {
namespace {

struct NotHere {
  std::string_view key;
  std::string_view why;
};

constexpr std::string_view kNoScheduling =
    "is not supported: name classes of scheduling in PoolClasses, or in annotations of pods";

// Keys that users of the peers may have in this section.
constexpr std::array<NotHere, 5> kNotHere = {{
    {"NamespaceSchedulingClasses", kNoScheduling},
    {"PodQoSSchedulingClasses", kNoScheduling},
    {"Control", "belongs into the module `classes`: `config convert` writes it there"},
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

void DescribeClassesOfPools(ConfigSection& section, TopologyAwareOptions& options) {
  section.Map(
      "PoolClasses",
      [&options](ConfigSection& pools) {
        pools.Map("exclusive", [&options](ConfigSection& classes) {
          DescribePoolClasses(classes, options.exclusive_classes);
        });
        pools.Map("shared", [&options](ConfigSection& classes) {
          DescribePoolClasses(classes, options.shared_classes);
        });
        pools.Map("reserved", [&options](ConfigSection& classes) {
          DescribePoolClasses(classes, options.reserved_classes);
        });
      },
      "the classes of containers with CPUs of their own, of those that share, and of those on "
      "reserved CPUs");
  const auto cpu_class = [&section](std::string_view key, PoolClassNames& classes) {
    std::string name;
    section.Text(key, name, "the same as `cpuClass` there").Default("none");
    if (!name.empty()) classes["cpu"] = name;
  };
  cpu_class("DefaultExclusiveCPUClass", options.exclusive_classes);
  cpu_class("SharedPoolCPUClass", options.shared_classes);
  cpu_class("ReservedPoolCPUClass", options.reserved_classes);
  DescribePolicyClasses(section, options.raw);
  section.List("controllableInterrupts", options.controllable_interrupts,
               "globs of the interrupts that may be moved, in place of `classes.irq.Controllable`");
  for (const std::string& glob : options.controllable_interrupts) {
    if (!IsGlob(glob))
      section.Fail("controllableInterrupts",
                   fmt::format("\"{}\" has [ without ]", Printable(glob, 64)));
  }
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
  DescribeClassesOfPools(section, options);
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
  constexpr std::string_view kPath = "policy.topology-aware";
  if (section != nullptr) RESMGR_RETURN_IF_ERROR(CheckPolicyClasses(*section, kPath));
  return ReadSection<TopologyAwareOptions>(section, kPath, &Describe, keys);
}

std::vector<NamedClass> TopologyAwareNamedClasses(const ConfigNode& section) {
  std::vector<NamedClass> named;
  const StatusOr<TopologyAwareOptions> options = ReadTopologyAwareOptions(&section);
  if (!options.ok()) return named;
  AddNamed(options->exclusive_classes, "PoolClasses.exclusive", named);
  AddNamed(options->shared_classes, "PoolClasses.shared", named);
  AddNamed(options->reserved_classes, "PoolClasses.reserved", named);
  return named;
}

}  // namespace resmgr
