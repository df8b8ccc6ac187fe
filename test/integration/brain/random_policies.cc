// SPDX-License-Identifier: Apache-2.0
#include "test/integration/brain/random_policies.h"

#include <algorithm>
#include <initializer_list>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "pkg/config/yaml_reader.h"
#include "policies/balloons/balloons_policy.h"
#include "policies/static-plus/static_plus_policy.h"
#include "policies/static/static_policy.h"
#include "policies/topology-aware/topology_aware_policy.h"
#include "test/support/machines/machines.h"

namespace resmgr::test {
namespace {

constexpr int kMostRandomCpus = 96;

const char* OneOf(RandomEngine& random, std::initializer_list<const char*> texts) {
  return texts.begin()[RandomNumber(random, 0, std::ssize(texts) - 1)];
}

// Pairs "key: value" for a map of YAML.
class RandomSection {
 public:
  explicit RandomSection(RandomEngine& random) : random_(random) {}

  void Add(const char* key, std::string_view value) {
    text_ += fmt::format("{}{}: {}", text_.empty() ? "" : ", ", key, value);
  }
  // One of the values, once in `times`.
  void Maybe(int64_t times, const char* key, std::initializer_list<const char*> values) {
    if (RandomOnce(random_, times)) Add(key, OneOf(random_, values));
  }
  std::string Map() const { return "{" + text_ + "}"; }

 private:
  RandomEngine& random_;
  std::string text_;
};

bool CoresAreEven(const Machine& machine) {
  return std::ranges::all_of(machine.cores(), [&machine](const CpuSet& core) {
    return core.size() == machine.cores().front().size();
  });
}

std::string StaticOptions(const Machine& machine, RandomEngine& random) {
  RandomSection options(random);
  // With cores of different sizes no number of CPUs is sure to be one of whole cores.
  if (CoresAreEven(machine)) options.Maybe(4, "full-pcpus-only", {"true"});
  options.Maybe(5, "align-by-socket", {"true"});
  switch (RandomNumber(random, 1, 6)) {
    case 1:
      options.Add("distribute-cpus-across-numa", "true");
      break;
    case 2:
      options.Add("distribute-cpus-across-cores", "true");
      break;
    case 3:
      options.Add("prefer-align-cpus-by-uncorecache", "true");
      break;
    default:
      break;
  }
  return options.Map();
}

std::string StaticSection(const Machine& machine, RandomEngine& random) {
  RandomSection section(random);
  std::string options = StaticOptions(machine, random);
  if (RandomOnce(random, 4)) {
    options.pop_back();
    options +=
        options.size() > 1 ? ", strict-cpu-reservation: true}" : "strict-cpu-reservation: true}";
  }
  section.Add("Options", options);
  section.Maybe(2, "Alignment", {"numa", "numa", "numa", "l3", "package"});
  section.Maybe(4, "RelaxedIsolation", {"true"});
  return section.Map();
}

std::string StaticPlusSection(const Machine& machine, RandomEngine& random) {
  RandomSection section(random);
  section.Add("Options", StaticOptions(machine, random));
  section.Maybe(2, "Alignment", {"numa", "numa", "numa", "l3", "package"});
  section.Maybe(3, "PreferIsolatedCPUs", {"false"});
  section.Maybe(3, "ExclusiveCPUs", {"guaranteed", "annotated"});
  return section.Map();
}

std::string TopologyAwareSection(RandomEngine& random) {
  RandomSection section(random);
  section.Maybe(2, "Alignment", {"numa", "numa", "numa", "l3", "package"});
  section.Maybe(12, "PinCPU", {"false"});
  section.Maybe(4, "PinMemory", {"false"});
  section.Maybe(4, "PreferIsolatedCPUs", {"false"});
  section.Maybe(4, "PreferSharedCPUs", {"true"});
  section.Maybe(4, "ColocatePods", {"true"});
  section.Maybe(4, "DefaultCPUPriority", {"high", "normal", "low"});
  section.Maybe(3, "Packing", {"spread", "tight"});
  section.Maybe(4, "UnlimitedBurstable", {"system", "numa", "l3cache"});
  return section.Map();
}

std::string BalloonsSection(RandomEngine& random) {
  RandomSection section(random);
  section.Maybe(3, "allocatorTopologyBalancing", {"true"});
  section.Maybe(4, "preferSpreadOnPhysicalCores", {"true"});
  section.Maybe(2, "whenShort", {"refuse"});
  if (RandomOnce(random, 2)) {
    RandomSection type(random);
    type.Add("name", "default");
    type.Maybe(3, "preferNewBalloons", {"true"});
    type.Maybe(3, "maxCPUs", {"2", "4", "8"});
    type.Maybe(3, "shareIdleCPUsInSame", {"package", "numa", "core"});
    type.Maybe(4, "hideHyperthreads", {"true"});
    type.Maybe(4, "fillOrder", {"packed", "firstFree"});
    section.Add("balloonTypes", "[" + type.Map() + "]");
  }
  return section.Map();
}

// None, one CPU, or several of them.
CpuSet RandomReserved(const Machine& machine, RandomEngine& random) {
  CpuSet reserved;
  const CpuSet ordinary = machine.allowed() - machine.isolated();
  if (ordinary.size() < 3 || RandomOnce(random, 4)) return reserved;
  const int64_t count = RandomOnce(random, 3) ? RandomNumber(random, 2, 4) : 1;
  std::vector<int> all;
  for (const int cpu : ordinary)
    all.push_back(cpu);
  for (int64_t i = 0; i < std::min<int64_t>(count, ordinary.size() / 3); ++i) {
    const bool first = RandomOnce(random, 2);
    reserved.Add(first ? all[static_cast<size_t>(i)]
                       : all[static_cast<size_t>(RandomNumber(random, 0, std::ssize(all) - 1))]);
  }
  return reserved;
}

Shape RandomShape(RandomEngine& random) {
  while (true) {
    Shape shape;
    shape.packages = static_cast<int>(RandomNumber(random, 1, RandomOnce(random, 4) ? 4 : 2));
    shape.nodes = static_cast<int>(RandomNumber(random, 1, RandomOnce(random, 3) ? 4 : 2));
    shape.cores = static_cast<int>(RandomNumber(random, 1, 12));
    shape.threads = RandomOnce(random, 6) ? 4 : static_cast<int>(RandomNumber(random, 1, 2));
    shape.siblings_apart = RandomOnce(random, 2);
    const int64_t groups = RandomNumber(random, 0, 3);
    if (groups > 0 && shape.cores % groups == 0) shape.l3s = static_cast<int>(groups);
    const int cpus = shape.packages * shape.nodes * shape.cores * shape.threads;
    if (cpus >= 2 && cpus <= kMostRandomCpus) return shape;
  }
}

// The numbers of NUMA nodes rise, with gaps.
void SpreadNodeNumbers(Machine::Parts& parts, RandomEngine& random) {
  int shift = 0;
  for (NumaNode& node : parts.nodes) {
    const int before = node.id;
    shift += static_cast<int>(RandomNumber(random, 0, 2));
    node.id += shift;
    for (Cpu& cpu : parts.cpus)
      if (cpu.numa == before && cpu.online) cpu.numa = -2 - node.id;
  }
  for (Cpu& cpu : parts.cpus)
    if (cpu.numa <= -2) cpu.numa = -2 - cpu.numa;
}

void SetMemory(Machine::Parts& parts, RandomEngine& random) {
  const bool huge = RandomOnce(random, 4);
  for (NumaNode& node : parts.nodes) {
    node.distances.clear();
    node.memory = Bytes{RandomNumber(random, 2, 24) << 30};
    if (huge) {
      node.huge_pages = {{.size = Bytes{int64_t{2} << 20}, .count = RandomNumber(random, 0, 512)}};
    }
  }
  if (!RandomOnce(random, 6)) return;
  NumaNode only;
  only.id = parts.nodes.back().id + 1;
  only.memory = Bytes{int64_t{32} << 30};
  only.type = RandomOnce(random, 2) ? MemoryType::kPmem : MemoryType::kDram;
  parts.nodes.push_back(std::move(only));
}

void SetFlags(Machine::Parts& parts, RandomEngine& random) {
  const bool isolates = RandomOnce(random, 5);
  const bool loses = RandomOnce(random, 6);
  const bool hybrid = RandomOnce(random, 6);
  for (Cpu& cpu : parts.cpus) {
    if (hybrid && cpu.core % 3 == 0) cpu.kind = CoreKind::kPerformance;
    if (hybrid && cpu.core % 3 == 2) cpu.kind = CoreKind::kEfficient;
    // A CPU stays in each machine.
    if (cpu.id == 0) continue;
    if (isolates && RandomOnce(random, 4)) cpu.isolated = true;
    if (!loses || !RandomOnce(random, 8)) continue;
    for (NumaNode& node : parts.nodes)
      node.cpus.Remove(cpu.id);
    parts.allowed.Remove(cpu.id);
    cpu = Cpu{.id = cpu.id};
  }
}

}  // namespace

int64_t RandomNumber(RandomEngine& random, int64_t first, int64_t last) {
  return first + static_cast<int64_t>(random() % static_cast<uint64_t>(last - first + 1));
}

bool RandomOnce(RandomEngine& random, int64_t times) {
  return RandomNumber(random, 1, times) == 1;
}

Machine RandomMachine(RandomEngine& random) {
  const Machine plain = MakeMachine(RandomShape(random));
  Machine::Parts parts = PartsOf(plain);
  for (NumaNode& node : parts.nodes)
    node.cpus = CpuSet();
  if (RandomOnce(random, 4)) SpreadNodeNumbers(parts, random);
  SetMemory(parts, random);
  SetFlags(parts, random);
  return MakeMachine(std::move(parts));
}

std::optional<RandomPolicy> RandomPolicyFor(const std::string& name, const Machine& machine,
                                            RandomEngine& random) {
  const CpuSet reserved = RandomReserved(machine, random);
  RandomPolicy policy{
      .factory = StaticPolicyFactory(), .section = {}, .reserved = reserved.ToString()};
  if (name == "static") {
    policy.section = StaticSection(machine, random);
  } else if (name == "static-plus") {
    policy.factory = StaticPlusPolicyFactory();
    policy.section = StaticPlusSection(machine, random);
  } else if (name == "topology-aware") {
    policy.factory = TopologyAwarePolicyFactory();
    policy.section = TopologyAwareSection(random);
  } else {
    policy.factory = BalloonsPolicyFactory();
    policy.section = BalloonsSection(random);
    policy.refuses_when_short = policy.section.find("whenShort: refuse") != std::string::npos;
  }
  const StatusOr<ConfigNode> section = ParseYaml(policy.section, "random.yaml");
  EXPECT_TRUE(section.ok()) << section.status();
  const auto made = policy.factory.create({.machine = machine,
                                           .available = machine.allowed(),
                                           .reserved = reserved,
                                           .section = &*section});
  if (!made.ok()) return std::nullopt;
  return policy;
}

}  // namespace resmgr::test
