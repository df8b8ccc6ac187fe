// SPDX-License-Identifier: Apache-2.0
#include "pkg/allocator/exclusive_options.h"

#include <string_view>

#include "pkg/allocator/free_cpus.h"

namespace resmgr {
namespace {

constexpr std::string_view kFullPcpusOnly = "full-pcpus-only";
constexpr std::string_view kAcrossNuma = "distribute-cpus-across-numa";
constexpr std::string_view kAcrossCores = "distribute-cpus-across-cores";
constexpr std::string_view kAlignBySocket = "align-by-socket";
constexpr std::string_view kUncore = "prefer-align-cpus-by-uncorecache";

void Exclude(ConfigSection& reader, bool a, std::string_view a_name, bool b,
             std::string_view b_name) {
  const ConfigNode* const node = reader.Node(a_name);
  if (!a || !b || node == nullptr) return;
  reader.Fail(*node, a_name, fmt::format("cannot be combined with {}", b_name));
}

}  // namespace

void DescribeExclusiveOptions(ConfigSection& section, ExclusiveOptions& options) {
  section.Bool(kFullPcpusOnly, options.full_pcpus_only,
               "only whole physical cores are granted; a request that is not a multiple of the "
               "threads per core is refused");
  section.Bool(kAcrossNuma, options.distribute_cpus_across_numa,
               "takes the same number of CPUs from each of the smallest number of NUMA nodes that "
               "can hold the request");
  section.Bool(kAcrossCores, options.distribute_cpus_across_cores,
               "threads of different cores; excludes the two options above and "
               "`prefer-align-cpus-by-uncorecache`");
  section.Bool(kAlignBySocket, options.align_by_socket,
               "all CPUs from one package if its free CPUs suffice");
  section.Bool(kUncore, options.prefer_align_cpus_by_uncorecache,
               "whole L3 groups first, then one that holds the rest");
  section.Choice<bool>("cpu-quota", {{"lift", true}, {"keep", false}}, options.lift_quota,
                       "`lift`: an exclusive container runs without CFS quota; `keep`: the quota "
                       "stays as requested");

  // The kubelet's rules for its options.
  const bool across_cores = options.distribute_cpus_across_cores;
  Exclude(section, across_cores, kAcrossCores, options.full_pcpus_only, kFullPcpusOnly);
  Exclude(section, across_cores, kAcrossCores, options.distribute_cpus_across_numa, kAcrossNuma);
  Exclude(section, across_cores, kAcrossCores, options.prefer_align_cpus_by_uncorecache, kUncore);
  Exclude(section, options.prefer_align_cpus_by_uncorecache, kUncore,
          options.distribute_cpus_across_numa, kAcrossNuma);
}

Status CheckExclusiveOptions(const Machine& machine, const ExclusiveOptions& options) {
  const int nodes = NodesWithCpus(machine);
  const auto packages = static_cast<int>(machine.packages().size());
  if (options.align_by_socket && nodes > 0 && packages > nodes) {
    return InvalidArgument(
        "{} needs NUMA nodes that are parts of packages, but here are {} packages in {}",
        kAlignBySocket, packages, nodes);
  }
  return OkStatus();
}

}  // namespace resmgr
