// SPDX-License-Identifier: Apache-2.0
#include "pkg/topology/machine_format.h"

#include <algorithm>
#include <array>
#include <map>
#include <tuple>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "pkg/base/json.h"
#include "pkg/base/table.h"
#include "pkg/topology/online_cpus.h"

namespace resmgr {

namespace {

using Json = nlohmann::ordered_json;

std::string Count(size_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

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

std::string FormatSummary(const Machine& machine) {
  Bytes memory;
  for (const NumaNode& node : machine.nodes())
    memory = memory + node.memory;
  std::string text =
      fmt::format("{} online ({}), {}, {}, {}, {}, {} of memory\n",
                  Count(static_cast<size_t>(machine.online().size()), "CPU"),
                  machine.online().ToString(), Count(machine.cores().size(), "core"),
                  Count(machine.packages().size(), "package"), Count(machine.dies().size(), "die"),
                  Count(machine.nodes().size(), "NUMA node"), FormatBytes(memory));
  const auto add_set = [&text](std::string_view name, const CpuSet& cpus) {
    if (!cpus.empty()) text += fmt::format("{}: {}\n", name, cpus.ToString());
  };
  add_set("offline", OfflineCpus(machine));
  add_set("isolated", machine.isolated());
  add_set("not allowed", machine.online() - machine.allowed());
  const NodeSet no_memory = machine.node_ids() - machine.allowed_nodes();
  if (!no_memory.empty()) text += fmt::format("memory not allowed: {}\n", no_memory.ToString());
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

std::string FormatCores(const Machine& machine) {
  struct Cluster {
    CoreSet cores;
    CpuSet cpus;
  };
  using Place = std::tuple<int, int, int, int, CoreKind, int>;
  std::map<Place, Cluster> clusters;
  for (const Cpu& cpu : machine.cpus()) {
    if (!cpu.online) continue;
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

std::string MachineToJson(const Machine& machine) {
  const bool shared_l2 = machine.l2_groups().size() < machine.cores().size();
  Json cpus = Json::array();
  for (const Cpu& cpu : machine.cpus()) {
    Json& json = cpus.emplace_back(Json{{"id", cpu.id},
                                        {"core", cpu.core},
                                        {"l3", cpu.l3},
                                        {"die", cpu.die},
                                        {"numa", cpu.numa},
                                        {"package", cpu.package},
                                        {"online", cpu.online},
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

std::string MachineToTable(const Machine& machine) {
  return FormatSummary(machine) + '\n' + FormatNodes(machine) + '\n' + FormatCores(machine);
}

}  // namespace resmgr
