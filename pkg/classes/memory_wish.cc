// SPDX-License-Identifier: Apache-2.0
#include "pkg/classes/memory_wish.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "pkg/base/parse.h"
#include "pkg/classes/class_choice.h"
#include "pkg/config/pod_annotation.h"
#include "pkg/config/yaml_reader.h"

namespace resmgr {
namespace {

constexpr std::string_view kDomain = ".memory-qos.nri.io";
constexpr std::string_view kClass = "class";
constexpr size_t kLongestValue = 64;

// An annotation of the domain that applies to this container.
struct Found {
  std::string_view key;   // as it is written
  std::string_view what;  // "class", or the name of a file
  std::string_view value;
  bool own = false;  // it is for this container alone
};

std::optional<Found> Read(std::string_view key, std::string_view value,
                          std::string_view container) {
  const size_t slash = key.find('/');
  std::string_view what = key.substr(0, slash);
  if (!what.ends_with(kDomain)) return std::nullopt;
  what.remove_suffix(kDomain.size());
  const bool own = slash != std::string_view::npos;
  if (own && key.substr(slash + 1) != container) return std::nullopt;
  return Found{key, what, value, own};
}

// The annotations that count, one for each class or file: one for this container alone overrides
// one for the pod.
std::vector<Found> FindAll(const Pod& pod, std::string_view container) {
  std::vector<Found> all;
  for (const auto& [key, value] : pod.annotations) {
    const std::optional<Found> found = Read(key, value, container);
    if (!found) continue;
    const auto known = std::ranges::find(all, found->what, &Found::what);
    if (known == all.end()) {
      all.push_back(*found);
    } else if (found->own) {
      *known = *found;
    }
  }
  return all;
}

// Sets the files of the class. False: the class needs a memory limit, and the container has none.
bool SetFiles(const MemoryClassConfig& known, int64_t memory_limit, MemoryWish& wish) {
  if (known.swap_limit_ratio) {
    if (memory_limit <= 0) return false;
    const double high = static_cast<double>(memory_limit) * (1 - *known.swap_limit_ratio);
    wish.files["memory.high"] = fmt::format("{:.0f}", std::floor(high));
    wish.files["memory.swap.max"] = "max";
  }
  const auto set = [&wish](const char* file, const std::string& text) {
    if (!text.empty()) wish.files[file] = text;
  };
  set("memory.high", known.high);
  set("memory.low", known.low);
  set("memory.min", known.min);
  set("memory.swap.max", known.swap_max);
  wish.name = known.name;
  return true;
}

Status ApplyClass(const Found& found, int64_t memory_limit, const ClassesConfig& config,
                  MemoryWish& wish) {
  if (found.value.empty()) return OkStatus();
  const auto known = std::ranges::find(config.memory, found.value, &MemoryClassConfig::name);
  if (known == config.memory.end()) {
    return InvalidArgument("annotation {}: there is no class \"{}\" of memory; {}", found.key,
                           Printable(found.value, 64),
                           ThereAre(config.memory, &MemoryClassConfig::name));
  }
  if (SetFiles(*known, memory_limit, wish)) return OkStatus();
  return InvalidArgument(
      "annotation {}: the class \"{}\" of memory is a part of the memory "
      "limit, and the container has none",
      found.key, known->name);
}

Status ApplyFile(const Found& found, const ClassesConfig& config, MemoryWish& wish) {
  const bool allowed =
      std::ranges::find(config.memory_files, found.what) != config.memory_files.end();
  if (!allowed) {
    return InvalidArgument("annotation {}: {} is not in classes.MemoryAnnotations", found.key,
                           Printable(found.what, 64));
  }
  if (found.value.empty() || found.value.size() > kLongestValue || !IsPlainAscii(found.value)) {
    return InvalidArgument("annotation {}: \"{}\" can be no value of a cgroup's file", found.key,
                           Printable(found.value, 64));
  }
  wish.files[std::string(found.what)] = found.value;
  return OkStatus();
}

constexpr std::string_view kPolicyDomain = ".memory-policy.nri.io";

struct PolicyKey {
  std::string_view key;
  std::string_view value;
  bool is_class = false;
  bool own = false;
};

// The annotations of memory policies that apply to this container. InvalidArgument: one is unknown.
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

MemoryWish MemoryOfPool(std::string_view class_name, std::string_view pool, int64_t memory_limit,
                        const ClassesConfig& config) {
  MemoryWish wish;
  const auto known = std::ranges::find(config.memory, class_name, &MemoryClassConfig::name);
  if (known == config.memory.end()) return wish;
  if (!SetFiles(*known, memory_limit, wish)) {
    wish.note = fmt::format(
        "pool {}: the class \"{}\" of memory is a part of the memory limit, and the container has "
        "none",
        pool, known->name);
    return wish;
  }
  wish.source = fmt::format("pool {}", pool);
  return wish;
}

StatusOr<MemoryWish> MemoryOf(const Pod& pod, std::string_view container, int64_t memory_limit,
                              const ClassesConfig& config, const MemoryWish& of_pool) {
  if (pod.annotations.empty()) return of_pool;
  const std::vector<Found> all = FindAll(pod, container);
  if (all.empty()) return of_pool;
  std::string keys;
  for (const Found& found : all)
    keys.append(keys.empty() ? "" : ", ").append(found.key);
  const auto chosen = std::ranges::find(all, kClass, &Found::what);
  const std::string_view name = chosen == all.end() ? std::string_view() : chosen->value;
  // Annotations for single files override the pool's class, too, if no annotation chooses a class.
  MemoryWish wish;
  if (chosen == all.end()) wish = of_pool;
  if (!config.Allows("memory", name, pod.namespace_name)) {
    wish = of_pool;
    wish.note = fmt::format(
        "annotation {} ignored: namespace {} is not in classes.AllowedNamespaces.memory",
        Printable(keys, 512), Printable(pod.namespace_name));
    return wish;
  }
  wish.source.append(wish.source.empty() ? "" : ", ")
      .append(fmt::format("annotation {}", Printable(keys, 512)));
  for (const Found& found : all)
    if (found.what == kClass) RESMGR_RETURN_IF_ERROR(ApplyClass(found, memory_limit, config, wish));
  wish.by_pod = true;
  for (const Found& found : all)
    if (found.what != kClass) RESMGR_RETURN_IF_ERROR(ApplyFile(found, config, wish));
  return wish;
}

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

std::string PolicyText(const MemoryPolicySettings& policy) {
  std::string text(ToString(policy.mode));
  if (!policy.nodes.empty()) text += " " + policy.nodes;
  for (const MemoryPolicySettings::Flag flag : policy.flags)
    text.append(" ").append(ToString(flag));
  return text;
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
