// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cstdio>
#include <string_view>

#include "policies/static-plus/static_plus_policy.h"
#include "policies/static/static_policy.h"
#include "policies/topology-aware/topology_aware_policy.h"
#include "test/bench/policy/node.h"

namespace resmgr::test {
namespace {

bool InOne(const std::vector<CpuSet>& groups, const CpuSet& cpus) {
  for (const CpuSet& group : groups) {
    if (cpus.IsSubsetOf(group)) return true;
  }
  return false;
}

// What share of containers lies within one group, of all that would fit into one.
struct Share {
  int64_t within = 0;
  int64_t of = 0;

  void Count(const std::vector<CpuSet>& groups, const CpuSet& cpus, int64_t need) {
    bool fits = false;
    for (const CpuSet& group : groups)
      fits |= group.size() >= need;
    if (!fits) return;
    ++of;
    if (InOne(groups, cpus)) ++within;
  }
  double Percent() const {
    return of == 0 ? 100 : 100 * static_cast<double>(within) / static_cast<double>(of);
  }
};

struct Quality {
  Share exclusive_l3;
  Share exclusive_node;
  Share exclusive_package;
  Share shared_node;
  int64_t created = 0;
  int64_t refused = 0;
  double idle_free = 0;  // of the CPUs not exclusively assigned, the part in wholly free L3 groups
};

std::vector<CpuSet> NodesOf(const Machine& machine) {
  std::vector<CpuSet> nodes;
  for (const NumaNode& node : machine.nodes())
    nodes.push_back(node.cpus);
  return nodes;
}

void CountPlacement(const Machine& machine, const Container& container, Quality& quality) {
  const CpuSet cpus = container.placement.cpus.value_or(CpuSet());
  const CpuSet& exclusive = container.placement.exclusive;
  const int64_t need = (container.requirements.cpu_request.value + 999) / 1000;
  if (exclusive.empty()) {
    quality.shared_node.Count(NodesOf(machine), cpus, need);
    return;
  }
  quality.exclusive_l3.Count(machine.l3_groups(), exclusive, need);
  quality.exclusive_node.Count(NodesOf(machine), exclusive, need);
  quality.exclusive_package.Count(machine.packages(), exclusive, need);
}

double IdleFree(BenchNode& node) {
  CpuSet exclusive;
  for (size_t i = 0; i < node.keys().size(); ++i)
    exclusive |= node.At(i).placement.exclusive;
  const CpuSet free = node.machine().online() - exclusive;
  int whole = 0;
  for (const CpuSet& group : node.machine().l3_groups()) {
    if (group.IsSubsetOf(free)) whole += group.size();
  }
  return 100.0 * whole / free.size();
}

// The same pods in the same order for every policy; one that is refused is gone.
Quality Live(const Machine& machine, const PolicyFactory& factory, int operations, int fill) {
  std::mt19937_64 random(7);
  BenchNode node(machine, factory);
  Quality quality;
  const int64_t most = fill * node.Allocatable() / 100;
  for (int i = 0; i < operations; ++i) {
    const PodShape shape = SomePod(random);
    const uint64_t victim = random();
    // A scheduler sends no more than it thinks there is room for.
    while (node.Requested() + shape.milli_cpu > most && !node.keys().empty())
      node.Remove(victim % node.keys().size());
    ++quality.created;
    if (!node.Create(shape)) {
      ++quality.refused;
      continue;
    }
    CountPlacement(machine, node.At(node.keys().size() - 1), quality);
  }
  quality.idle_free = IdleFree(node);
  return quality;
}

void PrintQuality(std::string_view policy, const Quality& quality) {
  std::printf("  %-16.*s %7.1f%% %7.1f%% %7.1f%% %7.1f%% %8.2f%% %8.1f%%\n",
              static_cast<int>(policy.size()), policy.data(), quality.exclusive_l3.Percent(),
              quality.exclusive_node.Percent(), quality.exclusive_package.Percent(),
              quality.shared_node.Percent(),
              100 * static_cast<double>(quality.refused) / static_cast<double>(quality.created),
              quality.idle_free);
}

}  // namespace

void MeasureQuality() {
  struct Node {
    const char* name;
    Shape shape;
  };
  const std::array<Node, 3> nodes = {{
      {"128 CPUs: 2 packages, 4 NUMA nodes",
       {.packages = 2, .nodes = 2, .cores = 16, .threads = 2}},
      {"192 CPUs: 2 packages, 8 NUMA nodes, 24 L3 groups",
       {.packages = 2, .nodes = 4, .l3s = 3, .cores = 12, .threads = 2}},
      {"512 CPUs: 2 packages, 8 NUMA nodes, 64 L3 groups",
       {.packages = 2, .nodes = 4, .l3s = 8, .cores = 32, .threads = 2}},
  }};
  constexpr int kOperations = 10'000;
  for (const Node& node : nodes) {
    for (const int fill : {60, 85, 100}) {
      std::printf("%s; %d pods, CPU requests up to %d%%\n", node.name, kOperations, fill);
      std::printf("  %-16s %8s %8s %8s %8s %9s %9s\n", "policy", "one L3", "one NUMA", "package",
                  "shared", "refused", "idle L3");
      for (const PolicyFactory& factory :
           {StaticPolicyFactory(), StaticPlusPolicyFactory(), TopologyAwarePolicyFactory()}) {
        PrintQuality(factory.name, Live(BenchMachine(node.shape), factory, kOperations, fill));
      }
    }
  }
}

}  // namespace resmgr::test
