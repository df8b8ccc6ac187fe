// SPDX-License-Identifier: Apache-2.0
// The tests of random lives use machines of all kinds.
#include "test/integration/brain/node_machines.h"

#include <algorithm>
#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace resmgr::test {
namespace {

using testing::IsSupersetOf;

bool AnyCpu(const Machine& machine, bool (*is)(const Cpu& cpu)) {
  return std::any_of(machine.cpus().begin(), machine.cpus().end(), is);
}

// Whether one set is a proper subset of the other.
bool IsPart(const CpuSet& part, const CpuSet& whole) {
  return !part.empty() && part != whole && part.IsSubsetOf(whole);
}

std::set<std::string> NodeKindsOf(const Machine& machine) {
  std::set<std::string> kinds;
  for (const NumaNode& node : machine.nodes()) {
    if (node.cpus.empty() && node.memory.value > 0) kinds.insert("memory-only node");
    for (const CpuSet& package : machine.packages()) {
      if (IsPart(node.cpus, package)) kinds.insert("several nodes per package");
      if (IsPart(package, node.cpus)) kinds.insert("several packages per node");
    }
  }
  return kinds;
}

std::set<std::string> KindsOf(const Machine& machine) {
  std::set<std::string> kinds = NodeKindsOf(machine);
  if (AnyCpu(machine, [](const Cpu& cpu) { return !cpu.online; })) kinds.insert("offline CPUs");
  if (AnyCpu(machine, [](const Cpu& cpu) { return cpu.kind == CoreKind::kEfficient; })) {
    kinds.insert("hybrid");
  }
  if (!machine.isolated().empty()) kinds.insert("isolated CPUs");
  if (machine.allowed() != machine.online()) kinds.insert("CPUs that are not allowed");
  if (machine.allowed_nodes() != machine.node_ids()) kinds.insert("memory that is not allowed");
  std::set<int> threads;
  for (const CpuSet& core : machine.cores())
    threads.insert(core.size());
  if (threads.size() > 1) kinds.insert("uneven cores");
  kinds.insert(fmt::format("{} threads per core", *threads.rbegin()));
  kinds.insert(fmt::format("{} packages", machine.packages().size()));
  kinds.insert(fmt::format("{} CPUs", machine.online().size()));
  return kinds;
}

TEST(NodeMachinesTest, AreManyAndOfAllKinds) {
  std::set<std::string> kinds;
  std::set<std::string> names;
  for (const auto& [name, machine] : AllMachines()) {
    EXPECT_TRUE(names.insert(name).second) << name << " stands twice";
    kinds.merge(KindsOf(machine));
  }
  EXPECT_GE(names.size(), 30U);
  EXPECT_THAT(
      kinds,
      IsSupersetOf({"offline CPUs", "isolated CPUs", "hybrid", "CPUs that are not allowed",
                    "memory that is not allowed", "memory-only node", "several nodes per package",
                    "several packages per node", "uneven cores", "1 threads per core",
                    "2 threads per core", "4 threads per core", "1 packages", "2 packages",
                    "4 packages", "8 packages", "2 CPUs", "1024 CPUs"}));
}

}  // namespace
}  // namespace resmgr::test
