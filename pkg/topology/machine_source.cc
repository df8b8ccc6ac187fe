// SPDX-License-Identifier: Apache-2.0
#include "pkg/topology/machine_source.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "pkg/base/amount_text.h"
#include "pkg/base/json.h"
#include "pkg/base/parse.h"
#include "pkg/base/terminal.h"
#include "pkg/sys/files.h"
#include "pkg/topology/hwloc_loader.h"
#include "pkg/topology/machine.h"

namespace resmgr {
namespace {

constexpr std::string_view kSyntheticPrefix = "synthetic:";
constexpr std::string_view kXmlPrefix = "xml:";
constexpr std::string_view kForms =
    "live, synthetic:DESCRIPTION, the name of a server type (`cri-resmgr-ctl topology -types` "
    "lists "
    "them), xml:FILE or a path";
constexpr std::string_view kMemory = "memory=";

// Limit of a file; those of the largest machines have a few MiB.
constexpr size_t kMaxXml = size_t{16} << 20;

StatusOr<Machine::Parts> ReadXmlFile(const std::string& path) {
  const StatusOr<std::string> xml = ReadFile(path, kMaxXml);
  if (xml.status().code() == StatusCode::kNotFound) {
    return NotFound("no file '{}' (known forms: {})", path, kForms);
  }
  if (!xml.ok()) return InvalidArgument("{}", Message(xml.status()));
  StatusOr<Machine::Parts> parts = ReadXmlMachine(*xml);
  if (!parts.ok()) return Annotate(parts.status(), "file '" + path + "'");
  return parts;
}

// If the description has no amount of memory, hwloc assumes 1 GiB for each node; `memory_per_cpu`
// replaces this.
StatusOr<Machine::Parts> ReadSynthetic(std::string_view description, Bytes memory_per_cpu) {
  RESMGR_ASSIGN_OR_RETURN(Machine::Parts parts, ReadSyntheticMachine(std::string(description)));
  if (memory_per_cpu.value == 0 || description.find(kMemory) != description.npos) return parts;
  for (NumaNode& node : parts.nodes) {
    const int64_t cpus = std::ranges::count(parts.cpus, node.id, &Cpu::numa);
    if (cpus > 0) node.memory = Bytes{cpus * memory_per_cpu.value};
  }
  return parts;
}

StatusOr<Machine::Parts> ReadParts(std::string_view spec, Bytes memory_per_cpu) {
  if (spec.empty()) return InvalidArgument("empty description (known forms: {})", kForms);
  if (spec.starts_with(kSyntheticPrefix)) {
    return ReadSynthetic(Trim(spec.substr(kSyntheticPrefix.size())), memory_per_cpu);
  }
  if (const ServerType* const type = FindServerType(spec)) {
    RESMGR_ASSIGN_OR_RETURN(Machine::Parts parts,
                            ReadSynthetic(type->synthetic, kSyntheticMemoryPerCpu));
    Complete(*type, parts);
    return parts;
  }
  if (spec.starts_with(kXmlPrefix)) spec.remove_prefix(kXmlPrefix.size());
  return ReadXmlFile(std::string(spec));
}

StatusOr<FoundMachine> Find(std::string_view spec, const CgroupPlaces& places,
                            Bytes memory_per_cpu) {
  spec = Trim(spec);
  StatusOr<LiveMachine> read = LiveMachine();
  if (spec == "live") {
    read = ReadLiveMachine(places);
  } else {
    StatusOr<Machine::Parts> parts = ReadParts(spec, memory_per_cpu);
    if (parts.ok()) {
      read->parts = *std::move(parts);
    } else {
      read = parts.status();
    }
  }
  if (!read.ok()) return Annotate(read.status(), "topology");
  StatusOr<Machine> machine = Machine::Create(std::move(read->parts));
  if (!machine.ok()) return Annotate(machine.status(), "topology");
  return FoundMachine{.machine = *std::move(machine), .pods = std::move(read->pods)};
}

// Server types. A CCX of AMD's EPYC is an L3 cache with its cores. NPS4 (nodes per socket) and SNC
// (sub-NUMA clusters) are settings of the firmware that divide a package into NUMA nodes.
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

using Json = nlohmann::ordered_json;

std::string IdOrDash(int id) {
  return id < 0 ? "-" : std::to_string(id);
}

std::string FormatBytes(Bytes bytes) {
  constexpr std::array<std::string_view, 5> kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};
  auto amount = static_cast<double>(bytes.value);
  size_t unit = 0;
  while (amount >= 1024 && unit + 1 < kUnits.size()) {
    amount /= 1024;
    ++unit;
  }
  return fmt::format("{:.{}f} {}", amount, unit == 0 ? 0 : 1, kUnits[unit]);
}

std::string FormatSummary(const Machine& machine, const CpuSet& offline) {
  const CpuSet online = machine.online() - offline;
  Bytes memory;
  for (const NumaNode& node : machine.nodes())
    memory = memory + node.memory;
  std::string text =
      fmt::format("{} online ({}), {}, {}, {}, {}, {} of memory\n", CountText(online.size(), "CPU"),
                  online.ToString(), CountText(std::ssize(machine.cores()), "core"),
                  CountText(std::ssize(machine.packages()), "package"),
                  CountText(std::ssize(machine.dies()), "die"),
                  CountText(std::ssize(machine.nodes()), "NUMA node"), FormatBytes(memory));
  const auto add_set = [&text](std::string_view name, const CpuSet& cpus) {
    if (!cpus.empty()) text += fmt::format("{}: {}\n", name, cpus.ToString());
  };
  add_set("offline", OfflineCpus(machine) | offline);
  add_set("isolated", machine.isolated());
  add_set("not allowed", online - machine.allowed());
  const NodeSet withheld = NodesWithMemory(machine) - machine.allowed_nodes();
  if (!withheld.empty()) text += fmt::format("memory not allowed: {}\n", withheld.ToString());
  for (const NumaNode& node : machine.nodes()) {
    for (const HugePages& pages : node.huge_pages) {
      text += fmt::format("huge pages on node {}: {} of {}\n", node.id, pages.count,
                          FormatBytes(pages.size));
    }
  }
  return text;
}

std::string FormatNodes(const Machine& machine) {
  std::vector<TableRow> rows = {{"NUMA", "TYPE", "MEMORY", "CPUS", "DISTANCES"}};
  for (const NumaNode& node : machine.nodes()) {
    rows.push_back({std::to_string(node.id), std::string(ToString(node.type)),
                    FormatBytes(node.memory), node.cpus.empty() ? "-" : node.cpus.ToString(),
                    fmt::format("{}", fmt::join(node.distances, " "))});
  }
  return FormatTable(rows);
}

std::string FormatCores(const Machine& machine, const CpuSet& offline) {
  struct Cluster {
    CoreSet cores;
    CpuSet cpus;
  };
  using Place = std::tuple<int, int, int, int, CoreKind, int>;
  std::map<Place, Cluster> clusters;
  for (const Cpu& cpu : machine.cpus()) {
    if (!cpu.online || offline.Contains(cpu.id)) continue;
    const int threads = machine.cores()[static_cast<size_t>(cpu.core)].size();
    Cluster& cluster = clusters[{cpu.package, cpu.die, cpu.numa, cpu.l3, cpu.kind, threads}];
    cluster.cores.Add(cpu.core);
    cluster.cpus.Add(cpu.id);
  }
  std::vector<TableRow> rows = {
      {"PACKAGE", "DIE", "NUMA", "L3", "KIND", "THREADS", "CORES", "CPUS"}};
  for (const auto& [place, cluster] : clusters) {
    const auto& [package, die, numa, l3, kind, threads] = place;
    rows.push_back({IdOrDash(package), IdOrDash(die), IdOrDash(numa), IdOrDash(l3),
                    std::string(ToString(kind)), std::to_string(threads), cluster.cores.ToString(),
                    cluster.cpus.ToString()});
  }
  return FormatTable(rows);
}

}  // namespace

StatusOr<FoundMachine> FindMachine(std::string_view spec, const CgroupPlaces& places) {
  return Find(spec, places, {});
}

StatusOr<Machine> LoadMachine(std::string_view spec, Bytes memory_per_cpu) {
  RESMGR_ASSIGN_OR_RETURN(FoundMachine found, Find(spec, {}, memory_per_cpu));
  return std::move(found.machine);
}

bool LeavesMemoryOpen(std::string_view spec) {
  return Trim(spec).starts_with(kSyntheticPrefix) && spec.find(kMemory) == spec.npos;
}

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

std::string MachineToJson(const Machine& machine, const CpuSet& offline) {
  const bool shared_l2 = machine.l2_groups().size() < machine.cores().size();
  Json cpus = Json::array();
  for (const Cpu& cpu : machine.cpus()) {
    Json& json = cpus.emplace_back(Json{{"id", cpu.id},
                                        {"core", cpu.core},
                                        {"l3", cpu.l3},
                                        {"die", cpu.die},
                                        {"numa", cpu.numa},
                                        {"package", cpu.package},
                                        {"online", cpu.online && !offline.Contains(cpu.id)},
                                        {"isolated", cpu.isolated},
                                        {"kind", ToString(cpu.kind)}});
    if (shared_l2) json["l2"] = cpu.l2;
  }
  Json nodes = Json::array();
  for (const NumaNode& node : machine.nodes()) {
    Json& json = nodes.emplace_back(Json{{"id", node.id},
                                         {"memoryBytes", node.memory.value},
                                         {"type", ToString(node.type)},
                                         {"distances", node.distances}});
    if (!node.allowed) json["allowed"] = false;
    for (const HugePages& pages : node.huge_pages) {
      json["hugePages"].push_back({{"sizeBytes", pages.size.value}, {"count", pages.count}});
    }
  }
  return OrderedJsonText({{"cpus", std::move(cpus)}, {"numa", std::move(nodes)}});
}

std::string MachineToTable(const Machine& machine, const CpuSet& offline) {
  return FormatSummary(machine, offline) + '\n' + FormatNodes(machine) + '\n' +
         FormatCores(machine, offline);
}

}  // namespace resmgr
