// SPDX-License-Identifier: Apache-2.0
#include "test/support/streams/stream_machines.h"

#include <utility>

#include "test/support/machines/machines.h"

namespace resmgr::test {
namespace {

// The machine with these CPUs offline and those isolated.
Machine Changed(const Machine& machine, const CpuSet& offline, const CpuSet& isolated) {
  std::vector<Cpu> cpus = machine.cpus();
  for (Cpu& cpu : cpus) {
    if (offline.Contains(cpu.id)) {
      const int id = cpu.id;
      cpu = Cpu();
      cpu.id = id;
    }
    cpu.isolated = isolated.Contains(cpu.id);
  }
  return MakeMachine(PartsOf(std::move(cpus)));
}

Machine TwoCpus() {
  return MakeMachine({.cores = 2});
}

Machine OneCore() {
  return MakeMachine({.cores = 1, .threads = 2});
}

Machine FourCpus() {
  return MakeMachine({.cores = 2, .threads = 2});
}

Machine ManyCaches() {
  return MakeMachine({.packages = 2, .nodes = 2, .l3s = 4, .cores = 16, .threads = 2});
}

// Two dies of two L3 groups in each of two packages.
Machine Dies() {
  const Machine machine = MakeMachine({.packages = 2, .nodes = 2, .l3s = 2, .cores = 8});
  std::vector<Cpu> cpus = machine.cpus();
  for (Cpu& cpu : cpus) {
    cpu.die = cpu.id / 8;
    cpu.numa = cpu.package;
  }
  return MakeMachine(PartsOf(std::move(cpus)));
}

// A package of 24 CPUs with three L3 groups beside one of 8 CPUs.
Machine Asymmetric() {
  std::vector<Cpu> cpus;
  for (int id = 0; id < 32; ++id) {
    Cpu cpu;
    cpu.id = cpu.core = id;
    cpu.l3 = id / 8;
    cpu.numa = cpu.package = id < 24 ? 0 : 1;
    cpu.online = true;
    cpus.push_back(cpu);
  }
  return MakeMachine(PartsOf(std::move(cpus)));
}

Machine FewOfAPackage() {
  return Changed(M80(), Cpus("21-29,31-39,60-79"), {});
}

Machine SplitCores() {
  return Changed(S2Ht(), Cpus("7,9"), {});
}

Machine Isolated() {
  return Changed(M80(), {}, Cpus("10-19,50-59"));
}

}  // namespace

const std::vector<StreamMachine>& StreamMachines() {
  static const auto* const kMachines = new std::vector<StreamMachine>{
      {"TwoCpus", TwoCpus, "0"},
      {"OneCore", OneCore, "1"},
      {"FourCpus", FourCpus, "0"},
      {"S1Ht", S1Ht, "0,4"},
      {"S2Ht", S2Ht, "0"},
      {"S2NoHt", S2NoHt, "0,7"},
      {"M80", M80, "0,40"},
      {"F80", F80, "79"},
      {"L256", L256, "0-3"},
      {"Q288", Q288, "0-3"},
      {"U16", U16, "0"},
      {"U16Smt", U16Smt, "0,8"},
      {"U16TwoNodes", U16TwoNodes, "0-7"},
      {"Hybrid", Hybrid, "7"},
      {"ManyCaches", ManyCaches, "0,64"},
      {"Dies", Dies, "0"},
      {"Asymmetric", Asymmetric, "31"},
      {"FewOfAPackage", FewOfAPackage, "0"},
      {"SplitCores", SplitCores, "1"},
      {"Isolated", Isolated, "0"},
  };
  return *kMachines;
}

}  // namespace resmgr::test
