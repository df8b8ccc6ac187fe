// SPDX-License-Identifier: Apache-2.0
// Random scenarios of the simulator: a restart changes nothing about any container.
// RESMGR_SCENARIOS: how many in all, kUsual unless given. RESMGR_SEED: the first seed.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "pkg/base/parse.h"
#include "pkg/config/config.h"
#include "pkg/log/log.h"
#include "pkg/node/policy_setup.h"
#include "pkg/simulator/simulator.h"
#include "pkg/topology/machine.h"
#include "pkg/topology/machine_source.h"
#include "policies/builtin_policies.h"
#include "test/support/sanitizer.h"
#include "test/support/seed.h"

namespace resmgr::test {
namespace {

// A random life of a node as text that `cri-resmgr-ctl simulate` reads: pods that come and go,
// resizes, new attempts, changes of the configuration, and restarts of the daemon in between.
struct RandomScenario {
  std::string config;
  std::vector<std::string> documents;  // each ends with a line break
};

constexpr std::array<std::string_view, 8> kStaticOptions = {
    "",
    "Options: {full-pcpus-only: true}",
    "Options: {distribute-cpus-across-numa: true}",
    "Options: {distribute-cpus-across-cores: true, cpu-quota: keep}",
    "Options: {prefer-align-cpus-by-uncorecache: true}",
    "Options: {align-by-socket: true}",
    "Options: {full-pcpus-only: true, distribute-cpus-across-numa: true}",
    "RelaxedIsolation: true"};
constexpr std::array<std::string_view, 7> kPlusOptions = {
    "",
    "ExclusiveCPUs: guaranteed",
    "ExclusiveCPUs: annotated, ReservedPoolNamespaces: ['sh*']",
    "Options: {full-pcpus-only: true}",
    "Options: {distribute-cpus-across-cores: true}",
    "Options: {prefer-align-cpus-by-uncorecache: true, cpu-quota: keep}",
    "PreferIsolatedCPUs: false"};
constexpr std::array<std::string_view, 9> kTopologyAwareOptions = {
    "",
    "PreferSharedCPUs: true, PreferIsolatedCPUs: false",
    "ReservedPoolNamespaces: ['sh*']",
    "ColocatePods: true, ColocateNamespaces: true",
    "CPUQuota: keep, DefaultCPUPriority: high",
    "UnlimitedBurstable: numa",
    "UnlimitedBurstable: system",
    "PinMemory: false",
    "PinCPU: false"};
constexpr std::array<std::string_view, 8> kBalloonsOptions = {
    "",
    "balloonTypes: [{name: own, preferNewBalloons: true, preferSpreadingPods: true, "
    "matchExpressions: [{key: qosclass, operator: In, values: [Guaranteed]}]}]",
    "allocatorTopologyBalancing: true, balloonTypes: [{name: a, namespaces: ['*'], "
    "shareIdleCPUsInSame: numa, hideHyperthreads: true}]",
    "whenShort: refuse, moveBudget: 0, balloonTypes: [{name: a, namespaces: [default], maxCPUs: 3, "
    "maxPods: 2, preferNewBalloons: true}]",
    "balloonTypes: [{name: part}, {name: a, namespaces: [default], components: [{balloonType: "
    "part}, {balloonType: part}]}]",
    "balloonTypes: [{name: a, namespaces: ['d*'], preferPerNamespaceBalloon: true, sizeBy: "
    "between}, {name: s, namespaces: [shop], groupBy: '${pod/name}', fillOrder: packed}]",
    "preferSpreadOnPhysicalCores: true, loadClasses: [{name: l, level: core, "
    "overloadsLevelInBalloon: true}], balloonTypes: [{name: a, namespaces: [default], loads: [l], "
    "maxOvercommit: 200}]",
    "pinMemory: false, balloonTypes: [{name: a, namespaces: ['*'], maxCPUs: 4, growWithin: numa}]"};

// Annotations of the policies, with a value each.
constexpr std::array<std::array<std::string_view, 2>, 20> kAnnotations = {{
    {"prefer-shared-cpus", "true"},    {"prefer-shared-cpus", "false"},
    {"prefer-isolated-cpus", "true"},  {"prefer-isolated-cpus", "false"},
    {"prefer-reserved-cpus", "true"},  {"prefer-reserved-cpus", "false"},
    {"require-isolated-cpus", "true"}, {"hide-hyperthreads", "true"},
    {"prefer-cpu-priority", "high"},   {"prefer-cpu-priority", "low"},
    {"unlimited-burstable", "die"},    {"unlimited-burstable", "numa"},
    {"unlimited-burstable", "system"}, {"memory-type", "dram"},
    {"memory-type", "pmem"},           {"memory-type", "dram,hbm"},
    {"cpu.preserve", "true"},          {"memory.preserve", "true"},
    {"allow-rebalance", "true"},       {"cold-start", "{duration: 30s}"},
}};

class Writer : Draws {
 public:
  Writer(const Machine& machine, std::string_view policy, uint64_t seed)
      : Draws(seed), machine_(machine), policy_(policy) {}

  RandomScenario Write() {
    RandomScenario scenario{.config = Config(), .documents = {}};
    for (int64_t left = Number(4, Chance(50) ? 15 : 40); left > 0; --left)
      scenario.documents.push_back(Document());
    scenario.documents.emplace_back("restart: relay\n");
    return scenario;
  }

 private:
  struct Pod {
    std::string name;  // "namespace/name"
    std::string manifest;
    int containers = 0;
    bool guaranteed = false;
  };

  std::string Config() {
    std::span<const std::string_view> options = kTopologyAwareOptions;
    if (policy_ == "static") options = kStaticOptions;
    if (policy_ == "static-plus") options = kPlusOptions;
    if (policy_ == "balloons") options = kBalloonsOptions;
    const std::string_view section = Chance(50) ? options.front() : OneOf(options);
    constexpr std::array<std::string_view, 4> kReserved = {"1", "750m", "2", "1500m"};
    return fmt::format(
        "{{policy: {{Active: {}, ReservedResources: {{CPU: {}}}, {}: {{{}}}}}, runtimeClasses: "
        "{{kata: {{Pinning: sandbox, Overhead: {{cpu: 250m, memory: 160Mi}}}}, free: {{Pinning: "
        "none}}}}}}\n",
        policy_, OneOf(kReserved), policy_, Section(std::string(section)));
  }

  // In most scenarios the administrators' annotations count, too.
  std::string Section(std::string options) {
    if (policy_ == "static" || Chance(20)) return options;
    return options + (options.empty() ? "" : ", ") + "PrivilegedNamespaces: ['*']";
  }

  std::string Document() {
    const int64_t what = Number(1, 100);
    if (what <= 50 || pods_.empty()) return NewPod();
    if (what <= 60) return Delete();
    if (what <= 76) return Resize();
    if (what <= 80) return OneOf(pods_).manifest;  // creates the pod's missing containers
    if (what <= 92) return "restart: relay\n";
    if (what <= 94) return "wait: 40s\n";
    if (what <= 97) return "rebalance: apply\n";
    return "config: " + Config();
  }

  std::string NewPod() {
    Pod pod;
    constexpr std::array<std::string_view, 5> kNamespaces = {"default", "default", "default",
                                                             "shop", "kube-system"};
    const std::string_view name_space = OneOf(kNamespaces);
    const std::string name = fmt::format("p{}", ++names_);
    pod.name = fmt::format("{}/{}", name_space, name);
    pod.containers = static_cast<int>(Number(1, 3));
    pod.guaranteed = Chance(60);
    std::vector<std::string> annotations;
    while (Chance(30))
      annotations.push_back(Annotation());
    std::vector<std::string> init;
    if (Chance(15)) {
      const std::string_view sidecar = Chance(50) ? "restartPolicy: Always, " : "";
      init.push_back(fmt::format("{{name: i0, {}resources: {}}}", sidecar, Resources(pod)));
    }
    std::vector<std::string> containers;
    for (int i = 0; i < pod.containers; ++i)
      containers.push_back(fmt::format("{{name: c{}, resources: {}}}", i, Resources(pod)));
    std::string_view runtime_class;
    if (Chance(8))
      runtime_class = Chance(50) ? "runtimeClassName: kata, " : "runtimeClassName: free, ";
    // Two annotations of one name would be no YAML.
    std::ranges::sort(annotations);
    const auto same_key = [](const std::string& a, const std::string& b) {
      return a.substr(0, a.find(": ")) == b.substr(0, b.find(": "));
    };
    annotations.erase(std::unique(annotations.begin(), annotations.end(), same_key),
                      annotations.end());
    pod.manifest = fmt::format(
        "{{kind: Pod, metadata: {{name: {}, namespace: {}, annotations: {{{}}}}}, spec: "
        "{{{}initContainers: [{}], containers: [{}]}}}}\n",
        name, name_space, fmt::join(annotations, ", "), runtime_class, fmt::join(init, ", "),
        fmt::join(containers, ", "));
    pods_.push_back(pod);
    return pod.manifest;
  }

  std::string Annotation() {
    if (Chance(10)) {
      return fmt::format(
          "resource-policy.nri.io/affinity: \"c0: [{{scope: {{key: namespace, operator: Exists}}, "
          "match: {{key: name, operator: Matches, values: ['c{}']}}, weight: {}}}]\"",
          Number(0, 2), Number(-5, 5));
    }
    const auto& [key, value] = OneOf(kAnnotations);
    const std::string_view of = Chance(70) ? "pod" : "container.c0";
    return fmt::format("{}.resource-policy.nri.io/{}: \"{}\"", key, of, value);
  }

  std::string Cpu() {
    const int64_t all = machine_.online().size();
    const int64_t kind = Number(1, 100);
    if (kind <= 45) return fmt::format("{}", Number(1, 4));
    if (kind <= 60) return fmt::format("{}", Number(1, std::max<int64_t>(1, all / 2)));
    if (kind <= 65) return fmt::format("{}", Number(std::max<int64_t>(1, all / 2), all));
    if (kind <= 85) return fmt::format("{}m", Number(1, 9) * 100);
    return fmt::format("{}m", Number(10, 45) * 100);
  }

  // A small amount in most cases; else one of which a few fill a node, or the machine.
  std::string Memory() {
    const int64_t kind = Number(1, 100);
    if (kind <= 55) return fmt::format("{}Mi", int64_t{16} << Number(0, 4));
    const int64_t percent = Number(10, kind <= 90 ? 110 : 300);
    return fmt::format("{}", std::max<int64_t>(LargestNode() / 100 * percent, 4096));
  }

  int64_t LargestNode() const {
    int64_t largest = 0;
    for (const NumaNode& node : machine_.nodes())
      largest = std::max(largest, node.memory.value);
    return largest;
  }

  std::string Resources(const Pod& pod) {
    const std::string cpu = Cpu();
    if (pod.guaranteed) {
      return fmt::format("{{limits: {{cpu: {}{}}}}}", cpu, ", memory: " + Memory());
    }
    if (Chance(30)) return "{}";
    std::string text =
        fmt::format("requests: {{cpu: {}{}}}", cpu, Chance(60) ? ", memory: 64Mi" : "");
    std::vector<std::string> limits;
    if (Chance(40)) limits.push_back(fmt::format("cpu: {}", machine_.online().size() * 2));
    if (Chance(30))
      limits.push_back(
          fmt::format("memory: {}", (int64_t{64} << 20) + Number(0, 64) * (LargestNode() / 16)));
    return fmt::format("{{{}, limits: {{{}}}}}", text, fmt::join(limits, ", "));
  }

  std::string Delete() {
    const size_t at = static_cast<size_t>(Number(0, std::ssize(pods_) - 1));
    const Pod pod = pods_[at];
    if (Chance(25)) {
      return fmt::format("delete: {}/c{}\n", pod.name, Number(0, pod.containers - 1));
    }
    if (Chance(90)) pods_.erase(pods_.begin() + static_cast<std::ptrdiff_t>(at));
    return fmt::format("delete: {}\n", pod.name);
  }

  std::string Resize() {
    const Pod& pod = OneOf(pods_);
    const std::string cpu = Cpu();
    const std::string memory = Chance(30) ? ", memory: " + Memory() : "";
    const std::string values = fmt::format("{{cpu: {}{}}}", cpu, memory);
    return fmt::format("resize: {{pod: {}, container: c{}, resources: {{requests: {}{}}}}}\n",
                       pod.name, Number(0, pod.containers - 1), values,
                       pod.guaranteed ? ", limits: " + values : "");
  }

  const Machine& machine_;
  const std::string_view policy_;
  std::vector<Pod> pods_;
  int names_ = 0;
};

// The same seed gives the same scenario. `policy` is active from the beginning to the end.
RandomScenario SomeScenario(const Machine& machine, std::string_view policy, uint64_t seed) {
  return Writer(machine, policy, seed).Write();
}

constexpr uint64_t kUsual = kSanitized ? 90 : 1200;

constexpr std::array<std::string_view, 21> kMachines = {
    "synthetic:package:1 core:4 pu:1",
    "synthetic:package:1 numa:1 l3:1 core:8 pu:2",
    "synthetic:package:1 l3:2 core:4 pu:2",
    "synthetic:package:2 numa:1(memory=8GB) core:4 pu:2",
    "synthetic:package:2 numa:4 l3:2 core:2 pu:2",
    "synthetic:package:2 numa:2(memory=4GB) core:8 pu:1",
    "synthetic:package:2 die:2 numa:1 l3:2 core:2 pu:2",
    "synthetic:numa:2 package:2 core:3 pu:2",
    "synthetic:package:4 numa:2(memory=2GB) l3:1 core:4 pu:4",
    "alderlake-2p4e.xml",
    "arm-dynamiq-4-3-1.xml",
    "cascadelake-2s-dies.xml",
    "epyc-2s-ccx.xml",
    "laptop-4c8t.xml",
    "odd-memory.xml",
    "power-smt4-uneven.xml",
    "restricted-2s.xml",
    "xeon-2s-hbm-flat.xml",
    "xeon-2s-pmem.xml",
    "xeon-2s-snc2.xml",
    "xeon-favoured-cores.xml",
};

std::string SpecOf(std::string_view name) {
  if (name.starts_with("synthetic:")) return std::string(name);
  return fmt::format(RESMGR_SOURCE_DIR "/test/data/topology/{}", name);
}

// Describes a container's decided values.
std::string Describe(const RunningContainer& container) {
  return fmt::format("{}/{} on '{}', alone on '{}', memory '{}', shares {}, quota {}, pool {}",
                     container.pod, container.name, container.cpus, container.exclusive,
                     container.mems, container.shares, container.quota, container.pool);
}

class ScenarioNode {
 public:
  explicit ScenarioNode(std::string_view machine)
      : machine_(*LoadMachine(SpecOf(machine))), policies_(BuiltinPolicies()) {}

  const Machine& machine() const { return machine_; }

  // Describes the changes by restarts; empty if there are none.
  std::string ChangesByRestarts(const std::string& config,
                                const std::vector<std::string>& documents) {
    const ConfigChecks checks = ChecksWith(policies_);
    StatusOr<Config> read = ParseConfig(config, "config", checks);
    EXPECT_TRUE(read.ok()) << resmgr::Describe(read.status());
    auto simulator = Simulator::Create(
        {.machine = machine_,
         .make_policy =
             [&](const Config& wanted) {
               return MakePolicy(wanted.policy, wanted.runtimes, machine_, policies_);
             },
         .config = *std::move(read),
         .read_config = [&checks](const ConfigNode& node) { return ParseConfig(node, checks); }});
    // Not every configuration is for every machine.
    if (!simulator.ok()) {
      EXPECT_EQ(simulator.status().code(), StatusCode::kInvalidArgument);
      return "";
    }
    for (const std::string& document : documents) {
      const StatusOr<Scenario> scenario = ReadScenario(document, "scenario");
      EXPECT_TRUE(scenario.ok()) << resmgr::Describe(scenario.status()) << document;
      for (const Step& step : *scenario) {
        const std::vector<RunningContainer> before = (*simulator)->node().Running();
        (*simulator)->Run(step);
        if (!std::holds_alternative<RestartStep>(step.action)) continue;
        compared_ += before.size();
        std::string changes = Changes(before, (*simulator)->node().Running());
        if (!changes.empty()) return changes;
      }
    }
    return "";
  }

  // Containers that ran at a restart, over all of them.
  size_t compared() const { return compared_; }

  // The smallest set of documents that shows the change.
  std::vector<std::string> Smallest(const std::string& config, std::vector<std::string> documents) {
    for (bool shorter = true; shorter;) {
      shorter = false;
      for (size_t i = 0; i < documents.size(); ++i) {
        std::vector<std::string> fewer = documents;
        fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
        if (ChangesByRestarts(config, fewer).empty()) continue;
        documents = std::move(fewer);
        shorter = true;
        break;
      }
    }
    return documents;
  }

 private:
  static std::string Changes(const std::vector<RunningContainer>& before,
                             const std::vector<RunningContainer>& now) {
    std::string changes;
    if (before.size() != now.size()) return "other containers run\n";
    for (size_t i = 0; i < now.size(); ++i) {
      const std::string was = Describe(before[i]);
      const std::string is = Describe(now[i]);
      if (was != is) changes += fmt::format("{}\n  became {}\n", was, is);
    }
    return changes;
  }

  const Machine machine_;
  const PolicyRegistry policies_;
  size_t compared_ = 0;
};

uint64_t Scenarios() {
  const char* const given = std::getenv("RESMGR_SCENARIOS");
  if (given == nullptr) return kUsual;
  const std::optional<uint64_t> count = ParseUint(given);
  EXPECT_TRUE(count.has_value()) << "RESMGR_SCENARIOS=" << given << " is no number";
  return count.value_or(kUsual);
}

// A scenario in which a restart once changed something.
struct KnownScenario {
  std::string_view machine;
  std::string_view config;
  std::vector<std::string> documents;
};

// The place of unbound memory is unknown: it was counted where another container's memory is.
KnownScenario MemoryThatIsNotBound() {
  return {
      "synthetic:package:2 numa:4 l3:2 core:2 pu:2",
      "{policy: {Active: topology-aware, ReservedResources: {CPU: 1}}}",
      {"{kind: Pod, metadata: {name: free, annotations: {memory.preserve.resource-policy.nri.io/"
       "pod: 'true'}}, spec: {containers: [{name: c, resources: {limits: {cpu: 2, memory: "
       "2576980377}}}]}}",
       "resize: {pod: default/free, container: c, resources: {requests: {cpu: 500m}, limits: "
       "{cpu: 500m}}}",
       "{kind: Pod, metadata: {name: p}, spec: {containers: [{name: c1, resources: {limits: "
       "{cpu: 32, memory: 64Mi}}}, {name: c2, resources: {limits: {cpu: 1, memory: 64Mi}}}]}}",
       "restart: relay"}};
}

// Its exclusive CPUs were not whole cores, but were taken for these after the restart.
KnownScenario HiddenThreadsOfUnevenCores() {
  return {"power-smt4-uneven.xml",
          "{policy: {Active: topology-aware, ReservedResources: {CPU: 750m}}}",
          {"{kind: Pod, metadata: {name: s, namespace: kube-system}, spec: {containers: [{name: c, "
           "resources: {limits: {cpu: 8, memory: 16Mi}}}]}}",
           "{kind: Pod, metadata: {name: p, annotations: {hide-hyperthreads.resource-policy.nri.io/"
           "pod: 'true'}}, spec: {containers: [{name: c1, resources: {limits: {cpu: 4, memory: "
           "64Mi}}}, {name: c2, resources: {limits: {cpu: 1, memory: 16Mi}}}]}}",
           "{kind: Pod, metadata: {name: b}, spec: {containers: [{name: c, resources: {requests: "
           "{cpu: 3}, limits: {cpu: 12}}}]}}",
           "restart: relay"}};
}

// It is alone on as many CPUs as it requests, by chance, and shares them by its pool.
KnownScenario AloneByChance() {
  return {"odd-memory.xml",
          "{policy: {Active: topology-aware, ReservedResources: {CPU: 2}}}",
          {"{kind: Pod, metadata: {name: b}, spec: {containers: [{name: c, resources: {requests: "
           "{cpu: 1, memory: 64Mi}, limits: {cpu: 12}}}]}}",
           "{kind: Pod, metadata: {name: g}, spec: {containers: [{name: c, resources: {limits: "
           "{cpu: 3, memory: 256Mi}}}]}}",
           "restart: relay"}};
}

TEST(RestartTest, ChangesNothingWhereItOnceDid) {
  SetLogLevel(LogLevel::kError);
  for (const KnownScenario& known :
       {MemoryThatIsNotBound(), HiddenThreadsOfUnevenCores(), AloneByChance()}) {
    ScenarioNode node(known.machine);
    EXPECT_EQ(node.ChangesByRestarts(std::string(known.config), known.documents), "");
    EXPECT_GT(node.compared(), 0U);
  }
}

class RestartScenariosTest : public testing::TestWithParam<std::string_view> {};

TEST_P(RestartScenariosTest, ARestartChangesNothing) {
  SetLogLevel(LogLevel::kError);
  const uint64_t first = SeedOr(1);
  const uint64_t count = std::max<uint64_t>(Scenarios() / 4 / kMachines.size(), 1);
  int failures = 0;
  uint64_t compared = 0;
  for (const std::string_view name : kMachines) {
    ScenarioNode node(name);
    for (uint64_t seed = first; seed < first + count; ++seed) {
      const RandomScenario scenario = SomeScenario(node.machine(), GetParam(), seed);
      if (node.ChangesByRestarts(scenario.config, scenario.documents).empty()) continue;
      const std::vector<std::string> documents = node.Smallest(scenario.config, scenario.documents);
      std::string text;
      for (const std::string& document : documents)
        text += "---\n" + document;
      ADD_FAILURE() << Repeat(seed) << " on " << name << ": a restart changed\n"
                    << node.ChangesByRestarts(scenario.config, documents)
                    << "configuration: " << scenario.config << text;
      if (++failures == 3) return;
    }
    EXPECT_GT(node.compared(), 0U) << name;
    compared += node.compared();
  }
  // With sanitizers there is one scenario for each machine, and some are quiet.
  EXPECT_GT(compared, 2 * count * kMachines.size()) << "too quiet to prove anything";
}

INSTANTIATE_TEST_SUITE_P(Policies, RestartScenariosTest,
                         testing::Values("static", "static-plus", "topology-aware", "balloons"),
                         [](const auto& one) {
                           std::string name(one.param);
                           std::erase(name, '-');
                           return name;
                         });

}  // namespace
}  // namespace resmgr::test
