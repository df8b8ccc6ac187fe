// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>
#include <string_view>
#include <utility>

#include <malloc.h>

#include "policies/topology-aware/topology_aware_policy.h"
#include "test/bench/policy/balloons_bench.h"
#include "test/bench/policy/node.h"

namespace resmgr::test {
namespace {

double At(std::vector<int64_t>& times, size_t per_mille) {
  std::sort(times.begin(), times.end());
  const size_t index = times.size() * per_mille / 1000;
  return static_cast<double>(times[std::min(index, times.size() - 1)]) / 1000;
}

void PrintTimes(std::string_view what, Times& times) {
  std::printf(
      "  %-16.*s %6zu calls   p50 %8.1f us   p99 %8.1f us   longest %8.1f us   "
      "CPU time p50 %8.1f us   p99 %8.1f us\n",
      static_cast<int>(what.size()), what.data(), times.wall.size(), At(times.wall, 500),
      At(times.wall, 990), At(times.wall, 1000), At(times.cpu, 500), At(times.cpu, 990));
}

size_t HeapInUse() {
  return mallinfo2().uordblks;
}

// Containers come and go around a number of them, as far as there is room.
void Live(BenchNode& node, std::mt19937_64& random, size_t population, int operations) {
  const int64_t most = int64_t{900} * node.machine().allowed().size();
  for (int i = 0; i < operations; ++i) {
    if (node.keys().size() < population) {
      PodShape shape = SomePod(random);
      // Small ones where many have to share the machine.
      if (node.Requested() + shape.milli_cpu > most) shape = {QosClass::kBurstable, 100, 200, 0};
      if (i % 20 == 0) shape.annotation = i % 100 == 0 ? i + 2 : 1;
      node.Create(shape);
      continue;
    }
    const size_t index = random() % node.keys().size();
    if (random() % 4 == 0 && node.Requested() < most) {
      const bool whole = node.At(index).requirements.cpu_request.IsWhole();
      node.Resize(index, whole ? 1000 * static_cast<int64_t>(1 + random() % 4) : 100);
    } else {
      node.Remove(index);
    }
  }
}

std::array<Times*, 7> AllTimes(BenchNode& node) {
  return {&node.allocate_times, &node.annotated_times, &node.first_read_times, &node.prepare_times,
          &node.update_times,   &node.release_times,   &node.reconcile_times};
}

// Makes the same calls in each run, and keeps the shortest time of each call.
void MeasureOn(const char* name, const PolicyFactory& factory, const Machine& machine,
               size_t population) {
  constexpr int kRuns = 5;
  constexpr int kOperations = 30'000;
  constexpr int kRecorded = 60'000;
  std::printf("%s, %zu containers\n", name, population);
  std::unique_ptr<BenchNode> shortest;
  double moves = 0;  // each run has the same
  for (int run = 0; run < kRuns; ++run) {
    std::mt19937_64 random(1);
    auto node = std::make_unique<BenchNode>(machine, factory);
    for (Times* const times : AllTimes(*node))
      times->Reserve(kRecorded);
    Live(*node, random, population, static_cast<int>(population) * 2);
    for (Times* const times : AllTimes(*node))
      times->Clear();
    const int64_t before = node->Moves();
    Live(*node, random, population, kOperations);
    moves = static_cast<double>(node->Moves() - before) / kOperations;
    for (int i = 0; i < 20; ++i)
      node->Reconcile();
    if (shortest == nullptr) {
      shortest = std::move(node);
      continue;
    }
    const std::array<Times*, 7> again = AllTimes(*node);
    const std::array<Times*, 7> kept = AllTimes(*shortest);
    for (size_t i = 0; i < kept.size(); ++i)
      kept.at(i)->KeepShortest(*again.at(i));
  }
  PrintTimes("allocate", shortest->allocate_times);
  PrintTimes("affinities", shortest->annotated_times);
  PrintTimes("new affinities", shortest->first_read_times);
  PrintTimes("their pods", shortest->prepare_times);
  PrintTimes("update", shortest->update_times);
  PrintTimes("release", shortest->release_times);
  PrintTimes("reconcile", shortest->reconcile_times);
  std::printf("  other containers that get other CPUs: %.2f per operation\n", moves);
}

// Measures with the same containers before and after, so that only leaked memory counts.
void MeasureHeap() {
  std::mt19937_64 random(2);
  BenchNode node(BenchMachine({.packages = 2, .nodes = 4, .l3s = 8, .cores = 32, .threads = 2}),
                 TopologyAwarePolicyFactory());
  constexpr int kOperations = 100'000;
  for (Times* const times : AllTimes(node))
    times->Reserve(size_t{4} * kOperations);
  const auto empty = [&node] {
    while (!node.keys().empty())
      node.Remove(node.keys().size() - 1);
  };
  Live(node, random, 500, kOperations / 2);
  empty();
  const size_t before = HeapInUse();
  Live(node, random, 500, kOperations);
  const size_t full = HeapInUse();
  empty();
  const size_t after = HeapInUse();
  std::printf("heap: %zu bytes empty, %zu with 500 containers, %zu empty after %d operations\n",
              before, full, after, kOperations);
}

}  // namespace

void MeasureTimes() {
  const Shape large = {.packages = 2, .nodes = 4, .l3s = 8, .cores = 32, .threads = 2};
  MeasureOn("512 CPUs, 64 L3 groups, 8 NUMA nodes", TopologyAwarePolicyFactory(),
            BenchMachine(large), 500);
  MeasureOn("512 CPUs, 64 L3 groups, 8 NUMA nodes; 64 balloons", SixtyFourBalloonsFactory(),
            BenchMachine(large), 500);
  MeasureOn("1024 CPUs, 64 NUMA nodes, 128 L3 groups", TopologyAwarePolicyFactory(),
            BenchMachine({.packages = 8, .nodes = 8, .l3s = 2, .cores = 8, .threads = 2}), 1000);
  MeasureHeap();
}

}  // namespace resmgr::test
