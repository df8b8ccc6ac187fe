// SPDX-License-Identifier: Apache-2.0
#include "pkg/allocator/exclusive_options.h"

#include <string>
#include <string_view>

#include "pkg/allocator/free_cpus.h"

namespace resmgr {
namespace {

constexpr std::string_view kFullPcpusOnly = "full-pcpus-only";
constexpr std::string_view kAcrossNuma = "distribute-cpus-across-numa";
constexpr std::string_view kAcrossCores = "distribute-cpus-across-cores";
constexpr std::string_view kAlignBySocket = "align-by-socket";
constexpr std::string_view kUncore = "prefer-align-cpus-by-uncorecache";

void Exclude(MapReader& reader, bool a, std::string_view a_name, bool b, std::string_view b_name) {
  const ConfigNode* const node = reader.Node(a_name);
  if (!a || !b || node == nullptr) return;
  reader.Fail(*node, a_name, fmt::format("cannot be combined with {}", b_name));
}

}  // namespace

void ReadExclusiveOptions(MapReader& reader, ExclusiveOptions& options) {
  reader.Bool(kFullPcpusOnly, options.full_pcpus_only);
  reader.Bool(kAcrossNuma, options.distribute_cpus_across_numa);
  reader.Bool(kAcrossCores, options.distribute_cpus_across_cores);
  reader.Bool(kAlignBySocket, options.align_by_socket);
  reader.Bool(kUncore, options.prefer_align_cpus_by_uncorecache);

  std::string quota = options.lift_quota ? "lift" : "keep";
  reader.Choice("cpu-quota", {"lift", "keep"}, quota);
  options.lift_quota = quota == "lift";

  // The kubelet's rules for its options.
  const bool across_cores = options.distribute_cpus_across_cores;
  Exclude(reader, across_cores, kAcrossCores, options.full_pcpus_only, kFullPcpusOnly);
  Exclude(reader, across_cores, kAcrossCores, options.distribute_cpus_across_numa, kAcrossNuma);
  Exclude(reader, across_cores, kAcrossCores, options.prefer_align_cpus_by_uncorecache, kUncore);
  Exclude(reader, options.prefer_align_cpus_by_uncorecache, kUncore,
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
