// SPDX-License-Identifier: Apache-2.0
#include "pkg/topology/server_types.h"

#include <algorithm>
#include <map>

namespace resmgr {
namespace {

// A CCX of AMD's EPYC is an L3 cache with its cores. NPS4 (nodes per socket) and SNC (sub-NUMA
// clusters) are settings of the firmware that divide a package into NUMA nodes.
constexpr ServerType kServerTypes[] = {
    {"altra-m128-30", "Ampere Altra Max: 128 cores, no SMT", "package:1 numa:1 core:128 pu:1"},
    {"altra-q80-30-2s", "two Ampere Altra: 80 cores each, no SMT", "package:2 numa:1 core:80 pu:1"},
    {"epyc-7702-2s", "two AMD EPYC 7702 (Rome): 64 cores in 16 CCX each",
     "package:2 numa:1 l3:16 core:4 pu:2(indexes=core:package)"},
    {"epyc-7763-2s", "two AMD EPYC 7763 (Milan): 64 cores in 8 CCX each",
     "package:2 numa:1 l3:8 core:8 pu:2(indexes=core:package)"},
    {"epyc-7763-2s-nps4", "the same with 4 NUMA nodes per package",
     "package:2 numa:4 l3:2 core:8 pu:2(indexes=core:numa:package)"},
    {"epyc-9124", "one AMD EPYC 9124 (Genoa): 16 cores in 4 CCX",
     "package:1 numa:1 l3:4 core:4 pu:2(indexes=core)"},
    {"epyc-9654-2s", "two AMD EPYC 9654 (Genoa): 96 cores in 12 CCX each",
     "package:2 numa:1 l3:12 core:8 pu:2(indexes=core:package)"},
    {"epyc-9654-2s-nps4", "the same with 4 NUMA nodes per package",
     "package:2 numa:4 l3:3 core:8 pu:2(indexes=core:numa:package)"},
    {"epyc-9754-2s", "two AMD EPYC 9754 (Bergamo): 128 cores in 16 CCX each",
     "package:2 numa:1 l3:16 core:8 pu:2(indexes=core:package)"},
    {"graviton3", "AWS Graviton3, a whole machine: 64 cores, no SMT",
     "package:1 numa:1 l3:1 core:64 pu:1"},
    {"graviton4-2s", "two AWS Graviton4, a whole machine: 96 cores each, no SMT",
     "package:2 numa:1 l3:1 core:96 pu:1"},
    {"xeon-6130-2s", "two Intel Xeon Gold 6130 (Skylake): 16 cores each",
     "package:2 numa:1 l3:1 core:16 pu:2(indexes=core:package)", 11, 21},
    {"xeon-8280-2s", "two Intel Xeon Platinum 8280 (Cascade Lake): 28 cores each",
     "package:2 numa:1 l3:1 core:28 pu:2(indexes=core:package)", 11, 21},
    {"xeon-8380-2s", "two Intel Xeon Platinum 8380 (Ice Lake): 40 cores each",
     "package:2 numa:1 l3:1 core:40 pu:2(indexes=core:package)", 11, 20},
    {"xeon-8380-2s-snc2", "the same with 2 sub-NUMA clusters per package",
     "package:2 l3:1 numa:2 core:20 pu:2(indexes=core:numa:package)", 11, 20},
    {"xeon-8480-2s", "two Intel Xeon Platinum 8480+ (Sapphire Rapids): 56 cores each",
     "package:2 numa:1 l3:1 core:56 pu:2(indexes=core:package)", 12, 21},
    {"xeon-8480-2s-snc4", "the same with 4 sub-NUMA clusters per package",
     "package:2 l3:1 numa:4 core:14 pu:2(indexes=core:numa:package)", 12, 21},
    {"xeon-8592-2s", "two Intel Xeon Platinum 8592+ (Emerald Rapids): 64 cores each",
     "package:2 numa:1 l3:1 core:64 pu:2(indexes=core:package)", 12, 21},
};

static_assert(std::ranges::is_sorted(kServerTypes, {}, &ServerType::name));

}  // namespace

std::span<const ServerType> ServerTypes() {
  return kServerTypes;
}

const ServerType* FindServerType(std::string_view name) {
  const auto found = std::ranges::lower_bound(kServerTypes, name, {}, &ServerType::name);
  return found != std::end(kServerTypes) && found->name == name ? &*found : nullptr;
}

void Complete(const ServerType& type, Machine::Parts& parts) {
  std::map<int, int> package_of;
  for (const Cpu& cpu : parts.cpus)
    package_of[cpu.numa] = cpu.package;
  for (NumaNode& node : parts.nodes) {
    node.distances.clear();
    for (const NumaNode& other : parts.nodes) {
      const bool near = package_of[node.id] == package_of[other.id];
      node.distances.push_back(node.id == other.id ? 10
                               : near              ? type.same_package
                                                   : type.other_package);
    }
  }
}

}  // namespace resmgr
