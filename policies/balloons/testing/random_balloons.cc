// SPDX-License-Identifier: Apache-2.0
#include "policies/balloons/testing/random_balloons.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "test/support/machines/machines.h"

namespace resmgr::test {
namespace {

std::string PriorityName(ReferencePriority priority) {
  switch (priority) {
    case ReferencePriority::kHigh:
      return "high";
    case ReferencePriority::kNormal:
      return "normal";
    case ReferencePriority::kLow:
      return "low";
    case ReferencePriority::kNone:
      break;
  }
  return "none";
}

std::string Quoted(const std::vector<std::string>& texts) {
  std::vector<std::string> quoted;
  quoted.reserve(texts.size());
  for (const std::string& text : texts)
    quoted.push_back(fmt::format("\"{}\"", text));
  return fmt::format("[{}]", fmt::join(quoted, ", "));
}

std::string TypeText(const ReferenceType& type) {
  std::string text = fmt::format("name: {}, spreadBestEffort: false", type.name);
  const auto add = [&](const char* key, const std::string& value) {
    text += fmt::format(", {}: {}", key, value);
  };
  const auto add_number = [&](const char* key, int value) {
    if (value != 0) add(key, std::to_string(value));
  };
  const auto add_flag = [&](const char* key, bool value) {
    if (value) add(key, "true");
  };
  add("allocatorPriority", PriorityName(type.priority));
  add_number("minCPUs", type.min_cpus);
  add_number("maxCPUs", type.max_cpus);
  add_number("minBalloons", type.min_balloons);
  add_number("maxBalloons", type.max_balloons);
  if (!type.namespaces.empty()) add("namespaces", Quoted(type.namespaces));
  std::vector<std::string> expressions;
  for (const ReferenceExpression& expression : type.expressions) {
    std::string values = expression.values.empty() ? "" : ", values: " + Quoted(expression.values);
    expressions.push_back(
        fmt::format("{{key: {}, operator: {}{}}}", expression.key, expression.op, values));
  }
  if (!expressions.empty()) {
    add("matchExpressions", fmt::format("[{}]", fmt::join(expressions, ", ")));
  }
  if (!type.group_label.empty()) {
    add("groupBy", fmt::format("\"${{pod/labels/{}}}\"", type.group_label));
  }
  if (type.balancing) add("allocatorTopologyBalancing", *type.balancing ? "true" : "false");
  if (type.spread_cores) add("preferSpreadOnPhysicalCores", *type.spread_cores ? "true" : "false");
  add_flag("preferNewBalloons", type.prefer_new);
  add_flag("preferSpreadingPods", type.spread_pods);
  add_flag("preferPerNamespaceBalloon", type.per_namespace);
  add_flag("hideHyperthreads", type.hide_threads);
  add_flag("preferIsolCpus", type.isolated);
  if (!type.share_idle.empty()) add("shareIdleCPUsInSame", type.share_idle);
  if (!type.close.empty()) add("preferCloseToDevices", Quoted(type.close));
  if (!type.loads.empty()) add("loads", Quoted(type.loads));
  std::vector<std::string> components;
  for (const std::string& component : type.components)
    components.push_back(fmt::format("{{balloonType: {}}}", component));
  if (!components.empty()) add("components", fmt::format("[{}]", fmt::join(components, ", ")));
  if (type.balance_components) add("componentCreation", "balance-balloons");
  return fmt::format("  - {{{}}}\n", text);
}

}  // namespace

Machine RandomBalloons::NextMachine() {
  const int packages = Number(1, 3);
  const int dies = OneIn(3) ? 2 : 1;
  const int nodes = Number(1, 2);
  const int l3s = Number(0, 2);
  const int cores = Number(1, l3s == 2 ? 2 : 4);
  const int threads = OneIn(8) ? 3 : Number(1, 2);
  const int in_l2 = OneIn(3) ? 2 : 1;  // cores
  const bool some_offline = OneIn(4);
  const bool some_isolated = OneIn(6);
  std::vector<Cpu> cpus;
  int core = 0;
  int l3 = 0;
  int l2 = 0;
  for (int node = 0; node < packages * dies * nodes; ++node) {
    for (int cache = 0; cache < std::max(1, l3s); ++cache, ++l3) {
      for (int i = 0; i < cores; ++i, ++core) {
        for (int thread = 0; thread < threads; ++thread) {
          Cpu cpu;
          cpu.core = core;
          cpu.l3 = l3s == 0 ? -1 : l3;
          cpu.l2 = l2 + i / in_l2;
          cpu.numa = node;
          cpu.die = node / nodes;
          cpu.package = node / nodes / dies;
          cpu.online = !(some_offline && OneIn(8));
          cpu.isolated = some_isolated && OneIn(6);
          cpus.push_back(cpu);
        }
      }
      l2 += cores;
    }
  }
  cpus.front().online = true;
  std::vector<int> ids;
  const bool gaps = OneIn(4);
  for (int id = 0; ids.size() < cpus.size(); id += gaps && OneIn(3) ? Number(2, 9) : 1)
    ids.push_back(id);
  if (OneIn(3)) std::shuffle(ids.begin(), ids.end(), random_);
  for (size_t i = 0; i < cpus.size(); ++i)
    cpus[i].id = ids[i];
  return MakeMachine(PartsOf(std::move(cpus)));
}

void RandomBalloons::AddRules(ReferenceType& type) {
  if (OneIn(2)) type.namespaces.push_back(OneOf<std::string>({"ns1", "ns?", "n*", "[a-m]*", "*"}));
  if (OneIn(2)) {
    type.expressions.push_back(OneOf<ReferenceExpression>({
        {"pod/labels/app", "In", {"x", "y"}},
        {"pod/labels/app", "Equals", {"z"}},
        {"pod/labels/app", "NotIn", {"x", "z"}},
        {"pod/labels/group", "Exists", {}},
        {"pod/labels/app", "NotExist", {}},
        {"name", "In", {"c1", "c2"}},
        {"namespace", "Equals", {"batch"}},
        {"qosclass", "Equals", {"Guaranteed"}},
    }));
  }
}

void RandomBalloons::AddSizes(ReferenceType& type, int cpus) {
  const int some = std::max(1, cpus / 4);
  if (OneIn(2)) type.min_cpus = Number(1, some);
  if (OneIn(2)) type.max_cpus = type.min_cpus + Number(type.min_cpus == 0 ? 1 : 0, some);
  if (OneIn(20)) {
    type.max_cpus = -1;
    type.min_cpus = 0;
  }
  if (type.name == "reserved") return;
  if (OneIn(3)) type.min_balloons = Number(1, 2);
  if (OneIn(3)) type.max_balloons = std::max(1, type.min_balloons) + Number(0, 2);
}

ReferenceType RandomBalloons::NextType(const std::string& name, const ReferenceConfig& config,
                                       int cpus) {
  using enum ReferencePriority;
  ReferenceType type;
  type.name = name;
  AddRules(type);
  AddSizes(type, cpus);
  if (OneIn(5)) type.group_label = "group";
  type.priority = OneOf<ReferencePriority>({kHigh, kNormal, kLow, kNone});
  if (OneIn(3)) type.balancing = OneIn(2);
  if (OneIn(4)) type.spread_cores = OneIn(2);
  type.prefer_new = OneIn(3);
  type.spread_pods = OneIn(3);
  type.per_namespace = OneIn(6);
  type.hide_threads = OneIn(4);
  if (OneIn(3)) {
    type.share_idle = OneOf<std::string>(
        {"system", "package", "die", "numa", "l3cache", "l2cache", "core", "thread"});
  }
  for (const auto& [device, close] : config.devices) {
    if (OneIn(4)) type.close.push_back(device);
  }
  type.isolated = OneIn(8);
  for (const auto& [load, in_balloon] : config.loads) {
    if (OneIn(3)) type.loads.push_back(load);
  }
  return type;
}

ReferenceConfig RandomBalloons::NextConfig(const Machine& machine) {
  ReferenceConfig config;
  config.balancing = OneIn(3);
  config.spread_cores = OneIn(5);
  config.available = machine.online();
  if (OneIn(4)) {
    for (const int cpu : machine.online()) {
      if (OneIn(5) && config.available.size() > 1) config.available.Remove(cpu);
    }
  }
  const int cpus = config.available.size();
  if (OneIn(2)) {
    for (const int cpu : config.available) {
      if (config.reserved_cpus.size() < 3 && OneIn(cpus / 2 + 1)) config.reserved_cpus.Add(cpu);
    }
  }
  if (config.reserved_cpus.empty()) {
    config.reserved_milli = OneOf<int64_t>({250, 500, 1000, 1250, 2000});
  }
  if (OneIn(2)) config.reserved_namespaces.push_back("mon*");
  if (OneIn(3)) {
    for (int i = Number(1, 2); i > 0; --i) {
      const NumaNode& node = OneOf(machine.nodes());
      config.devices[fmt::format("/sys/devices/system/node/node{}", node.id)] = node.cpus;
    }
  }
  if (OneIn(6)) {
    for (int i = Number(1, 2); i > 0; --i)
      config.loads[fmt::format("load{}", i)] = OneIn(3);
  }
  std::vector<std::string> names = {"a", "b", "c", "d"};
  names.resize(static_cast<size_t>(Number(1, 4)));
  if (OneIn(5)) names.push_back("reserved");
  if (OneIn(5)) names.push_back("default");
  std::shuffle(names.begin(), names.end(), random_);
  for (const std::string& name : names) {
    config.types.push_back(NextType(name, config, cpus));
    ReferenceType& type = config.types.back();
    if (name == "reserved") {
      type.min_cpus = 0;
      type.max_cpus = 0;
    }
  }
  if (OneIn(2)) AddComposites(config);
  return config;
}

// Components have no limit: the description leaves open how a component's limit counts for the
// whole.
void RandomBalloons::AddComposites(ReferenceConfig& config) {
  std::vector<std::string> components;
  for (ReferenceType& type : config.types) {
    if (type.name == "reserved" || type.name == "default") continue;
    type.max_cpus = 0;
    components.push_back(type.name);
  }
  // The second one may contain the first.
  for (const char* const name : {"pair", "nest"}) {
    ReferenceType type = NextType(name, config, config.available.size());
    for (int i = Number(1, 3); i > 0; --i)
      type.components.push_back(OneOf(components));
    type.balance_components = OneIn(3);
    type.balancing.reset();
    type.spread_cores.reset();
    type.close.clear();
    type.isolated = false;
    type.loads.clear();
    if (std::string_view(name) == "pair") {
      type.max_cpus = 0;
      components.emplace_back(name);
    }
    const auto place = config.types.begin() + Number(0, static_cast<int>(config.types.size()));
    config.types.insert(place, std::move(type));
    if (OneIn(2)) return;
  }
}

int64_t RandomBalloons::NextRequest() {
  if (OneIn(5)) return 0;
  if (OneIn(10)) return Number(4000, 12000);
  return OneIn(3) ? 1000 * Number(1, 4) : 50 * Number(1, 60);
}

ReferenceContainer RandomBalloons::NextContainer(const ReferenceConfig& config) {
  ReferenceContainer container;
  container.pod = fmt::format("pod{}", ++last_pod_);
  container.namespace_name =
      OneOf<std::string>({"ns1", "ns2", "batch", "default", "kube-system", "monitor"});
  if (!OneIn(4)) container.labels["app"] = OneOf<std::string>({"x", "y", "z"});
  if (OneIn(2)) container.labels["group"] = OneOf<std::string>({"g1", "g2"});
  if (OneIn(4)) container.annotated = OneOf(config.types).name;
  container.qos_class = OneOf<std::string>({"Guaranteed", "Burstable", "BestEffort"});
  return NextInPod(container);
}

ReferenceContainer RandomBalloons::NextInPod(const ReferenceContainer& sibling) {
  ReferenceContainer container = sibling;
  container.name = fmt::format("c{}", Number(0, 3));
  container.milli_cpu = container.qos_class == "BestEffort" ? 0 : NextRequest();
  return container;
}

std::string SectionOf(const ReferenceConfig& config, const std::string& additions) {
  const std::string reserved = config.reserved_cpus.empty()
                                   ? fmt::format("{}m", config.reserved_milli)
                                   : "cpuset:" + config.reserved_cpus.ToString();
  std::string text = additions;
  text += fmt::format("availableResources: {{cpu: \"cpuset:{}\"}}\n", config.available.ToString());
  text += fmt::format("reservedResources: {{cpu: \"{}\"}}\n", reserved);
  text += fmt::format("allocatorTopologyBalancing: {}\n", config.balancing);
  text += fmt::format("preferSpreadOnPhysicalCores: {}\n", config.spread_cores);
  text += fmt::format("reservedPoolNamespaces: {}\n", Quoted(config.reserved_namespaces));
  text += "PrivilegedNamespaces: [\"*\"]\n";
  if (!config.loads.empty()) text += "loadClasses:\n";
  for (const auto& [name, in_balloon] : config.loads) {
    text += fmt::format("  - {{name: {}, level: core, overloadsLevelInBalloon: {}}}\n", name,
                        in_balloon);
  }
  text += "balloonTypes:\n";
  for (const ReferenceType& type : config.types)
    text += TypeText(type);
  return text;
}

std::string DescriptionOf(const Machine& machine) {
  std::string text;
  for (size_t core = 0; core < machine.cores().size(); ++core) {
    const CpuSet& cpus = machine.cores()[core];
    const Cpu& cpu = *machine.FindCpu(cpus.First());
    text += fmt::format("package {} die {} node {} l3 {} core {}: {}\n", cpu.package, cpu.die,
                        cpu.numa, cpu.l3, core, cpus.ToString());
  }
  return text + "isolated: " + machine.isolated().ToString() + "\n";
}

}  // namespace resmgr::test
