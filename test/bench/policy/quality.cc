// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cstdio>
#include <string_view>

#include "policies/static-plus/static_plus_policy.h"
#include "policies/static/static_policy.h"
#include "policies/topology-aware/topology_aware_policy.h"
#include "test/bench/policy/balloons_bench.h"
#include "test/bench/policy/node.h"
#include "test/bench/policy/share.h"

namespace resmgr::test {
namespace {

struct Quality {
  ExclusiveShares exclusive;
  Share shared_node;
  int64_t created = 0;
  int64_t refused = 0;
  double idle_free = 0;  // of the CPUs not exclusively assigned, the part in wholly free L3 groups
};

void CountPlacement(const Machine& machine, const Container& container, Quality& quality) {
  if (!AloneOn(container.placement).empty()) {
    quality.exclusive.Count(machine, container);
    return;
  }
  const CpuSet cpus = container.placement.cpus.value_or(CpuSet());
  const int64_t need = (container.requirements.cpu_request.value + 999) / 1000;
  quality.shared_node.Count(NodesOf(machine), cpus, need);
}

double IdleFree(BenchNode& node) {
  CpuSet exclusive;
  for (size_t i = 0; i < node.keys().size(); ++i)
    exclusive |= AloneOn(node.At(i).placement);
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
              static_cast<int>(policy.size()), policy.data(), quality.exclusive.l3.Percent(),
              quality.exclusive.node.Percent(), quality.exclusive.package.Percent(),
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
           {StaticPolicyFactory(), StaticPlusPolicyFactory(), TopologyAwarePolicyFactory(),
            DedicatedBalloonsFactory(), BalloonsWithinNodeFactory()}) {
        PrintQuality(factory.name, Live(BenchMachine(node.shape), factory, kOperations, fill));
      }
    }
  }
}

}  // namespace resmgr::test
