// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "pkg/topology/machine.h"

namespace resmgr::test {

// Machines for tests, built without hwloc. All CPUs are online and allowed, every node has the same
// memory. The shapes that have a short name are those of the kubelet's own allocator tests, so that
// its published results can be compared.

// A regular machine. Sizes are per element of the level above.
struct Shape {
  int packages = 1;
  int nodes = 1;  // NUMA nodes per package
  int l3s = 0;    // L3 groups per node; 0: one per package
  int cores = 1;  // per node, a multiple of l3s
  int threads = 1;
  // Siblings are c, c+C, c+2C, ... for C cores (as Linux numbers them), else neighbours.
  bool siblings_apart = true;
};
Machine MakeMachine(const Shape& shape);
// Makes a machine of hand-made parts; a failing Create ends the program with its message.
Machine MakeMachine(Machine::Parts parts);

// Parts with only these CPUs; nodes and `allowed` follow from them.
Machine::Parts PartsOf(std::vector<Cpu> cpus);
// The parts that make the same machine again.
Machine::Parts PartsOf(const Machine& machine);
// The same machine with CPUs that the kernel isolates.
Machine WithIsolated(const Machine& machine, std::string_view isolated);

Machine S1Ht();    // 8 CPUs, cores {0,4} {1,5} {2,6} {3,7}
Machine S2Ht();    // 12 CPUs, core c is {c,c+6}; even cores on package and node 0, odd ones on 1
Machine S2NoHt();  // packages 0-3 and 4-7
// 80 CPUs, two packages of two nodes: 0-9,40-49 | 10-19,50-59 || 20-29,60-69 | 30-39,70-79.
Machine M80();
Machine F80();          // the CPUs of M80, every ten cores a package, two packages on each node
Machine L256();         // two packages of four nodes of 16 cores; siblings are c and c+128
Machine Q288();         // four packages of 18 cores of four threads, neighbours
Machine U16();          // one package of L3 groups 0-3, 4-7, 8-11, 12-15, one thread per core
Machine U16Smt();       // L3 groups {0-3,8-11} {4-7,12-15}
Machine U16TwoNodes();  // U16 on two nodes: 0-7 and 8-15
Machine Hybrid();       // two performance cores {0,1} {2,3}, four efficient ones 4-7
// Two packages of two nodes of two cores of two threads: nodes 0-3, 4-7, 8-11, 12-15; the threads
// of a core are neighbours. (n4c16 of cri-resource-manager's end-to-end tests.)
Machine N4C16();
// A CPU set from a list, for readable tests; a bad list ends the program.
CpuSet Cpus(std::string_view list);
// The list, or the error's message.
std::string TextOf(const StatusOr<CpuSet>& cpus);

}  // namespace resmgr::test
