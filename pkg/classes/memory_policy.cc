// SPDX-License-Identifier: Apache-2.0
#include "pkg/classes/memory_policy.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "pkg/base/parse.h"
#include "pkg/config/pod_annotation.h"
#include "pkg/config/yaml_reader.h"

namespace resmgr {
namespace {

constexpr std::string_view kPolicyDomain = ".memory-policy.nri.io";

struct PolicyKey {
  std::string_view key;
  std::string_view value;
  bool is_class = false;
  bool own = false;
};

// Those of the domain for this container. InvalidArgument: an unknown one.
StatusOr<std::vector<PolicyKey>> FindPolicyKeys(const Pod& pod, std::string_view container) {
  std::vector<PolicyKey> found;
  for (const auto& [key, value] : pod.annotations) {
    const size_t slash = key.find('/');
    const std::string_view whole = key;
    std::string_view what = whole.substr(0, slash);
    if (!what.ends_with(kPolicyDomain)) continue;
    what.remove_suffix(kPolicyDomain.size());
    const std::string_view scope =
        slash == std::string::npos ? std::string_view() : whole.substr(slash + 1);
    constexpr std::string_view kOfContainer = "container.";
    const bool for_pod = scope.empty() || scope == "pod";
    const bool known = what == "class" || what == "policy";
    if (!known || (!for_pod && !scope.starts_with(kOfContainer)))
      return InvalidArgument("annotation {}: there is no such annotation", Printable(key, 256));
    if (!for_pod && scope.substr(kOfContainer.size()) != container) continue;
    found.push_back({key, value, what == "class", !for_pod});
  }
  return found;
}

Status ReadPolicy(const PolicyKey& found, MemoryPolicyConfig& policy) {
  if (found.value.size() > kMaxAnnotationText)
    return InvalidArgument("annotation {}: it is too long", Printable(found.key, 256));
  RESMGR_ASSIGN_OR_RETURN(const ConfigNode node, ParseYaml(found.value, found.key));
  ConfigSection section(node, "policy");
  DescribeMemoryPolicy(section, policy);
  return section.Finish();
}

Status ReadPolicyClass(const PolicyKey& found, const ClassesConfig& config,
                       MemoryPolicyWish& wish) {
  const auto known = std::ranges::find(config.memory, found.value, &MemoryClassConfig::name);
  if (known == config.memory.end() || !known->policy) {
    return InvalidArgument("annotation {}: there is no class \"{}\" of memory with a policy",
                           Printable(found.key, 256), Printable(found.value, 64));
  }
  wish.name = known->name;
  wish.policy = known->policy;
  return OkStatus();
}

NodeSet NodesWithin(int distance, const CpuSet& cpus, const Machine& machine) {
  NodeSet near;
  const NodeSet from = machine.NodesOf(cpus);
  for (const NumaNode& node : machine.nodes()) {
    if (!from.Contains(node.id)) continue;
    for (size_t i = 0; i < node.distances.size() && i < machine.nodes().size(); ++i)
      if (node.distances[i] <= distance) near |= NodeSet{machine.nodes()[i].id};
  }
  return near;
}

CpuSet PackagesOf(const CpuSet& cpus, const Machine& machine) {
  CpuSet all;
  for (const CpuSet& package : machine.packages())
    if (!(package & cpus).empty()) all |= package;
  return all;
}

}  // namespace

StatusOr<MemoryPolicyWish> MemoryPolicyOf(const Pod& pod, std::string_view container,
                                          const ClassesConfig& config) {
  MemoryPolicyWish wish;
  const StatusOr<std::vector<PolicyKey>> keys = FindPolicyKeys(pod, container);
  const bool any = !keys.ok() || !keys->empty();
  if (!any) return wish;
  const auto best =
      keys.ok() ? std::ranges::max_element(*keys, {},
                                           [](const PolicyKey& key) {
                                             return (key.own ? 2 : 0) + (key.is_class ? 0 : 1);
                                           })
                : std::vector<PolicyKey>::const_iterator();
  const std::string_view name = keys.ok() && best->is_class ? best->value : std::string_view();
  if (!config.Allows("memory", name, pod.namespace_name)) {
    wish.note = fmt::format(
        "annotations of memory-policy.nri.io ignored: namespace {} is not in "
        "classes.AllowedNamespaces.memory",
        Printable(pod.namespace_name));
    return wish;
  }
  if (!keys.ok()) return keys.status();
  wish.source = fmt::format("annotation {}", Printable(best->key, 256));
  if (Trim(best->value).empty()) return wish;
  if (best->is_class) {
    RESMGR_RETURN_IF_ERROR(ReadPolicyClass(*best, config, wish));
  } else {
    const Status read = ReadPolicy(*best, wish.policy.emplace());
    if (!read.ok())
      return InvalidArgument("annotation {}: {}", Printable(best->key, 256), Message(read));
  }
  return wish;
}

StatusOr<MemoryPolicySettings> ResolveMemoryPolicy(const MemoryPolicyConfig& policy,
                                                   const CpuSet& cpus, const NodeSet& mems,
                                                   const Machine& machine) {
  constexpr std::string_view kDistance = "max-dist:";
  MemoryPolicySettings settings{.mode = policy.mode, .flags = policy.flags};
  if (policy.nodes.empty()) return settings;
  const CpuSet& own = cpus.empty() ? machine.allowed() : cpus;
  NodeSet nodes;
  if (policy.nodes == "all") {
    nodes = machine.node_ids();
  } else if (policy.nodes == "allowed-mems") {
    nodes = mems.empty() ? machine.allowed_nodes() : mems;
  } else if (policy.nodes == "cpu-nodes") {
    nodes = machine.NodesOf(own);
  } else if (policy.nodes == "cpu-packages") {
    nodes = machine.NodesOf(PackagesOf(own, machine));
  } else if (policy.nodes.starts_with(kDistance)) {
    const auto distance = ParseUint(std::string_view(policy.nodes).substr(kDistance.size()));
    nodes = NodesWithin(static_cast<int>(distance.value_or(0)), own, machine);
  } else {
    RESMGR_ASSIGN_OR_RETURN(nodes, NodeSet::Parse(policy.nodes));
    nodes = nodes & machine.node_ids();
  }
  if (nodes.empty())
    return InvalidArgument("the machine has none of the nodes {}", Printable(policy.nodes, 64));
  settings.nodes = nodes.ToString();
  return settings;
}

}  // namespace resmgr
