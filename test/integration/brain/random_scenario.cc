// SPDX-License-Identifier: Apache-2.0
#include "test/integration/brain/random_scenario.h"

#include <algorithm>
#include <array>
#include <span>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "test/support/draws.h"

namespace resmgr::test {
namespace {

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

}  // namespace

RandomScenario SomeScenario(const Machine& machine, std::string_view policy, uint64_t seed) {
  return Writer(machine, policy, seed).Write();
}

}  // namespace resmgr::test
