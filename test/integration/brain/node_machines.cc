// SPDX-License-Identifier: Apache-2.0
#include "test/integration/brain/node_machines.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <string_view>
#include <utility>

#include "pkg/topology/machine_source.h"
#include "test/support/machines/machines.h"

namespace resmgr::test {
namespace {

Machine WithFlags(const Machine& machine, std::string_view isolated, std::string_view offline) {
  Machine::Parts parts = PartsOf(machine);
  const CpuSet off = Cpus(offline);
  for (Cpu& cpu : parts.cpus) {
    cpu.isolated = Cpus(isolated).Contains(cpu.id);
    if (off.Contains(cpu.id)) cpu = Cpu{.id = cpu.id};
  }
  for (NumaNode& node : parts.nodes)
    node.cpus -= off;
  parts.allowed -= off;
  return MakeMachine(std::move(parts));
}

Machine WithMemoryOnlyNodes(const Machine& machine, int count) {
  Machine::Parts parts = PartsOf(machine);
  for (NumaNode& node : parts.nodes)
    node.distances.clear();
  for (int i = 0; i < count; ++i) {
    NumaNode node;
    node.id = parts.nodes.back().id + 1;
    node.memory = Bytes{int64_t{64} << 30};
    node.type = MemoryType::kPmem;
    parts.nodes.push_back(std::move(node));
  }
  return MakeMachine(std::move(parts));
}

std::string TestName(const std::filesystem::path& file) {
  std::string name = "Xml";
  bool upper = true;
  for (const char c : file.stem().string()) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) == 0) {
      upper = true;
      continue;
    }
    name += upper ? static_cast<char>(std::toupper(byte)) : c;
    upper = false;
  }
  return name;
}

void AddFiles(std::vector<NamedMachine>& machines) {
  const std::filesystem::path folder = RESMGR_SOURCE_DIR "/test/data/topology";
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".xml") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  for (const std::filesystem::path& file : files) {
    StatusOr<Machine> machine = LoadMachine(file.string());
    if (!machine.ok()) {
      std::cerr << file << ": " << Describe(machine.status()) << "\n";
      std::abort();
    }
    machines.push_back({TestName(file), *std::move(machine)});
  }
}

std::vector<NamedMachine> MakeMachines() {
  std::vector<NamedMachine> machines = {
      {"S1Ht", S1Ht()},
      {"S2Ht", S2Ht()},
      {"S2NoHt", S2NoHt()},
      {"M80", M80()},
      {"F80", F80()},
      {"L256", L256()},
      {"Q288", Q288()},
      {"U16", U16()},
      {"U16Smt", U16Smt()},
      {"U16TwoNodes", U16TwoNodes()},
      {"Hybrid", Hybrid()},
      {"TwoCpus", MakeMachine({.cores = 2})},
      {"ThreeCores", MakeMachine({.cores = 3, .threads = 2})},
      {"EightPackages", MakeMachine({.packages = 8, .cores = 4, .threads = 2})},
      {"EightPackagesOfTwoNodes",
       MakeMachine({.packages = 8, .nodes = 2, .l3s = 2, .cores = 4, .threads = 4})},
      {"FourThreads", MakeMachine({.packages = 2, .cores = 3, .threads = 4})},
      {"Isolated", WithFlags(S1Ht(), "2-3,6-7", "")},
      {"IsolatedM80", WithFlags(M80(), "10-19,50-59", "")},
      {"Offline", WithFlags(S2Ht(), "", "3,6,10")},
      {"OfflineAndIsolated", WithFlags(M80(), "30-33,70-71", "5,45,50-55")},
      {"MemoryOnlyNodes", WithMemoryOnlyNodes(M80(), 4)},
      {"ThousandCpus", MakeMachine({.packages = 8, .nodes = 2, .cores = 32, .threads = 2})},
      {"SixtyFourNodes", MakeMachine({.packages = 8, .nodes = 8, .cores = 8, .threads = 2})},
  };
  AddFiles(machines);
  return machines;
}

}  // namespace

const std::vector<NamedMachine>& AllMachines() {
  static const auto* const kMachines = new std::vector<NamedMachine>(MakeMachines());
  return *kMachines;
}

}  // namespace resmgr::test
