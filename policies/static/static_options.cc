// SPDX-License-Identifier: Apache-2.0
#include "policies/static/static_options.h"

#include <string>
#include <string_view>

#include "pkg/config/map_reader.h"

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

void ReadOptions(MapReader& reader, StaticOptions& options) {
  reader.Bool(kFullPcpusOnly, options.full_pcpus_only);
  reader.Bool(kAcrossNuma, options.distribute_cpus_across_numa);
  reader.Bool(kAcrossCores, options.distribute_cpus_across_cores);
  reader.Bool("strict-cpu-reservation", options.strict_cpu_reservation);
  reader.Bool(kUncore, options.prefer_align_cpus_by_uncorecache);

  bool align_by_socket = false;
  reader.Bool(kAlignBySocket, align_by_socket);
  const ConfigNode* const align = reader.Node(kAlignBySocket);
  if (align_by_socket && align != nullptr) {
    reader.Fail(*align, kAlignBySocket,
                "is not supported: it widens hints of a topology manager, and there is none here");
  }

  std::string quota = "lift";
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

}  // namespace

StatusOr<StaticOptions> ReadStaticOptions(const ConfigNode* section) {
  StaticOptions options;
  if (section == nullptr) return options;
  MapReader reader(*section, "policy.static");
  reader.Map("Options", [&options](MapReader& map) { ReadOptions(map, options); });
  reader.Bool("RelaxedIsolation", options.relaxed_isolation);
  RESMGR_RETURN_IF_ERROR(reader.Finish());
  return options;
}

}  // namespace resmgr
