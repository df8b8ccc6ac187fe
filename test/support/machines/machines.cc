// SPDX-License-Identifier: Apache-2.0
#include "test/support/machines/machines.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <utility>

namespace resmgr::test {

namespace {

template <typename T>
T OrDie(StatusOr<T> value) {
  if (!value.ok()) {
    std::fprintf(stderr, "test machine: %s\n", Describe(value.status()).c_str());
    std::abort();
  }
  return *std::move(value);
}

Cpu OnlineCpu(int id, int core, int l3, int node, int package) {
  Cpu cpu;
  cpu.id = id;
  cpu.core = core;
  cpu.l3 = l3;
  cpu.numa = node;
  cpu.package = package;
  cpu.online = true;
  return cpu;
}

}  // namespace

Machine::Parts PartsOf(std::vector<Cpu> cpus) {
  std::sort(cpus.begin(), cpus.end(), [](const Cpu& a, const Cpu& b) { return a.id < b.id; });
  Machine::Parts parts;
  std::set<int> nodes;
  for (const Cpu& cpu : cpus) {
    if (cpu.online) parts.allowed.Add(cpu.id);
    if (cpu.online && cpu.numa >= 0) nodes.insert(cpu.numa);
  }
  for (const int id : nodes) {
    NumaNode node;
    node.id = id;
    node.memory = Bytes{int64_t{16} << 30};
    parts.nodes.push_back(std::move(node));
  }
  parts.cpus = std::move(cpus);
  return parts;
}

Machine MakeMachine(Machine::Parts parts) {
  return OrDie(Machine::Create(std::move(parts)));
}

Machine MakeMachine(const Shape& shape) {
  const int cores = shape.packages * shape.nodes * shape.cores;
  std::vector<Cpu> cpus;
  for (int core = 0; core < cores; ++core) {
    const int node = core / shape.cores;
    const int package = node / shape.nodes;
    const int l3 = shape.l3s == 0
                       ? package
                       : node * shape.l3s + core % shape.cores / (shape.cores / shape.l3s);
    for (int thread = 0; thread < shape.threads; ++thread) {
      const int id = shape.siblings_apart ? core + thread * cores : core * shape.threads + thread;
      cpus.push_back(OnlineCpu(id, core, l3, node, package));
    }
  }
  return MakeMachine(PartsOf(std::move(cpus)));
}

Machine::Parts PartsOf(const Machine& machine) {
  return {.cpus = machine.cpus(), .nodes = machine.nodes(), .allowed = machine.allowed()};
}

Machine WithIsolated(const Machine& machine, std::string_view isolated) {
  Machine::Parts parts = PartsOf(machine);
  for (Cpu& cpu : parts.cpus)
    cpu.isolated = Cpus(isolated).Contains(cpu.id);
  return MakeMachine(std::move(parts));
}

Machine N4C16() {
  return MakeMachine(
      {.packages = 2, .nodes = 2, .cores = 2, .threads = 2, .siblings_apart = false});
}

Machine S1Ht() {
  return MakeMachine(Shape{.cores = 4, .threads = 2});
}

Machine S2Ht() {
  std::vector<Cpu> cpus;
  cpus.reserve(12);
  // One L3 over everything, as the kubelet's test has it.
  for (int id = 0; id < 12; ++id)
    cpus.push_back(OnlineCpu(id, id % 6, 0, id % 2, id % 2));
  return MakeMachine(PartsOf(std::move(cpus)));
}

Machine S2NoHt() {
  return MakeMachine(Shape{.packages = 2, .cores = 4});
}

Machine M80() {
  return MakeMachine(Shape{.packages = 2, .nodes = 2, .cores = 10, .threads = 2});
}

Machine F80() {
  std::vector<Cpu> cpus;
  for (int id = 0; id < 80; ++id) {
    const int package = id % 40 / 10;
    cpus.push_back(OnlineCpu(id, id % 40, package, package / 2, package));
  }
  return MakeMachine(PartsOf(std::move(cpus)));
}

Machine L256() {
  return MakeMachine(Shape{.packages = 2, .nodes = 4, .cores = 16, .threads = 2});
}

Machine Q288() {
  return MakeMachine(Shape{.packages = 4, .cores = 18, .threads = 4, .siblings_apart = false});
}

Machine U16() {
  return MakeMachine(Shape{.l3s = 4, .cores = 16});
}

Machine U16Smt() {
  return MakeMachine(Shape{.l3s = 2, .cores = 8, .threads = 2});
}

Machine U16TwoNodes() {
  return MakeMachine(Shape{.nodes = 2, .l3s = 2, .cores = 8});
}

Machine Hybrid() {
  std::vector<Cpu> cpus;
  for (int id = 0; id < 8; ++id) {
    Cpu cpu = OnlineCpu(id, id < 4 ? id / 2 : id, 0, 0, 0);
    cpu.kind = id < 4 ? CoreKind::kPerformance : CoreKind::kEfficient;
    cpus.push_back(cpu);
  }
  return MakeMachine(PartsOf(std::move(cpus)));
}

CpuSet Cpus(std::string_view list) {
  return OrDie(CpuSet::Parse(list));
}

std::string TextOf(const StatusOr<CpuSet>& cpus) {
  return cpus.ok() ? cpus->ToString() : Describe(cpus.status());
}

}  // namespace resmgr::test
