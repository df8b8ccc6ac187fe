// SPDX-License-Identifier: Apache-2.0
#include "cmd/cri-resmgr-ctl/convert_config.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <utility>

#include "pkg/base/parse.h"
#include "pkg/base/suggest.h"
#include "pkg/config/print_config.h"
#include "pkg/config/yaml_reader.h"

namespace resmgr {
namespace {

using Entries = std::vector<ConfigNode::Entry>;

const ConfigNode* FindKey(const ConfigNode& map, std::string_view key) {
  const auto at = std::ranges::find_if(map.entries, [key](const ConfigNode::Entry& entry) {
    return EqualsIgnoreCase(entry.key, key);
  });
  return at == map.entries.end() ? nullptr : &at->value;
}

std::string TextOf(const ConfigNode& map, std::string_view key) {
  const ConfigNode* const value = FindKey(map, key);
  return value == nullptr ? std::string() : value->text;
}

using Kind = ConfigNode::Kind;

// Null stands for a key without a value.
Status CheckKind(const ConfigNode& node, std::string_view path, Kind kind) {
  if (node.kind == kind || node.kind == Kind::kNull) return OkStatus();
  return ErrorAt(node, path,
                 fmt::format("must be {}, not {}", ToString(kind), ToString(node.kind)));
}

Status CheckScalars(const ConfigNode& map, std::string_view path,
                    std::initializer_list<std::string_view> keys) {
  for (const std::string_view key : keys) {
    const ConfigNode* const value = FindKey(map, key);
    if (value == nullptr) continue;
    RESMGR_RETURN_IF_ERROR(CheckKind(*value, fmt::format("{}.{}", path, key), Kind::kScalar));
  }
  return OkStatus();
}

// The maps in the list of that key, whose fields with these names are no maps or lists; none if
// there is no such key.
StatusOr<std::vector<ConfigNode>> MapsIn(const ConfigNode& map, std::string_view path,
                                         std::string_view key,
                                         std::initializer_list<std::string_view> scalars) {
  const ConfigNode* const list = FindKey(map, key);
  if (list == nullptr) return std::vector<ConfigNode>();
  const std::string where = fmt::format("{}.{}", path, key);
  RESMGR_RETURN_IF_ERROR(CheckKind(*list, where, Kind::kList));
  for (size_t i = 0; i < list->items.size(); ++i) {
    const std::string item = fmt::format("{}[{}]", where, i);
    RESMGR_RETURN_IF_ERROR(CheckKind(list->items[i], item, Kind::kMap));
    RESMGR_RETURN_IF_ERROR(CheckScalars(list->items[i], item, scalars));
  }
  return list->items;
}

ConfigNode::Entry MakeEntry(std::string_view key, ConfigNode value) {
  return {std::string(key), 1, std::move(value)};
}

ConfigNode ItemsNode(std::vector<ConfigNode> items) {
  ConfigNode list;
  list.kind = ConfigNode::Kind::kList;
  list.items = std::move(items);
  return list;
}

void Copy(const ConfigNode& from, std::string_view key, std::string_view as, Entries& to) {
  const ConfigNode* const value = FindKey(from, key);
  if (value != nullptr) to.push_back(MakeEntry(as, *value));
}

// Policy sections with the CPUs one level up, as both projects have them.
ConvertedConfig Wrap(std::string_view policy, const ConfigNode& cpus, Entries section) {
  Entries entries = {MakeEntry("Active", ScalarNode(policy))};
  Copy(cpus, "AvailableResources", "AvailableResources", entries);
  Copy(cpus, "ReservedResources", "ReservedResources", entries);
  entries.push_back(MakeEntry(policy, MapNode(std::move(section))));
  return {PrintNode(MapNode({MakeEntry("policy", MapNode(std::move(entries)))})), {}};
}

StatusOr<ConvertedConfig> FromObject(const ConfigNode& document) {
  RESMGR_RETURN_IF_ERROR(CheckKind(document, "", Kind::kMap));
  const std::string kind = TextOf(document, "kind");
  const ConfigNode* const spec = FindKey(document, "spec");
  if (spec == nullptr || (kind != "BalloonsPolicy" && kind != "TopologyAwarePolicy")) {
    return InvalidArgument("this is no BalloonsPolicy or TopologyAwarePolicy with a spec");
  }
  RESMGR_RETURN_IF_ERROR(CheckKind(*spec, "spec", Kind::kMap));
  constexpr std::array<std::string_view, 4> kElsewhere = {"agent", "instrumentation", "log",
                                                          "control"};
  ConvertedConfig converted;
  std::vector<std::string> notes;
  Entries section;
  const bool balloons = kind == "BalloonsPolicy";
  for (const ConfigNode::Entry& entry : spec->entries) {
    const auto named = [&entry](std::string_view key) { return EqualsIgnoreCase(entry.key, key); };
    if (std::ranges::any_of(kElsewhere, named)) {
      notes.push_back(fmt::format("{} is left out: see docs/migration.md", entry.key));
      continue;
    }
    if (!balloons && (named("availableResources") || named("reservedResources"))) continue;
    section.push_back(entry);
  }
  converted = balloons ? Wrap("balloons", ConfigNode(), std::move(section))
                       : Wrap("topology-aware", *spec, std::move(section));
  converted.notes = std::move(notes);
  return converted;
}

// cri-resource-manager's numbers.
ConfigNode Priority(const ConfigNode& value) {
  constexpr std::array<std::string_view, 4> kWords = {"high", "normal", "low", "none"};
  const std::optional<int64_t> number = ParseInt(value.text);
  if (!number || *number < 0 || *number > 3) return value;
  return ScalarNode(kWords[static_cast<size_t>(*number)]);
}

Entries CopyTypes(const ConfigNode& type) {
  Entries entries;
  for (const ConfigNode::Entry& entry : type.entries) {
    const bool priority = EqualsIgnoreCase(entry.key, "AllocatorPriority");
    entries.push_back(MakeEntry(entry.key, priority ? Priority(entry.value) : entry.value));
  }
  return entries;
}

StatusOr<ConvertedConfig> FromBalloons(const ConfigNode& policy, const ConfigNode& section) {
  RESMGR_ASSIGN_OR_RETURN(
      const std::vector<ConfigNode> read,
      MapsIn(section, "policy.balloons", "BalloonTypes", {"Name", "AllocatorPriority"}));
  Entries entries;
  std::vector<std::string> notes;
  bool has_default = false;
  for (const ConfigNode::Entry& entry : section.entries) {
    if (!EqualsIgnoreCase(entry.key, "BalloonTypes")) {
      entries.push_back(entry);
      continue;
    }
    std::vector<ConfigNode> types;
    for (const ConfigNode& type : read) {
      types.push_back(MapNode(CopyTypes(type)));
      has_default |= TextOf(type, "Name") == "default";
    }
    entries.push_back(MakeEntry("balloonTypes", ItemsNode(std::move(types))));
  }
  if (!has_default) {
    notes.emplace_back(
        "containers of no type were in the reserved balloon; here they have the balloon "
        "default[0]");
  }
  ConvertedConfig converted = Wrap("balloons", policy, std::move(entries));
  converted.notes = std::move(notes);
  return converted;
}

// The keys that these policies have in common.
Entries CommonKeys(const ConfigNode& section) {
  Entries entries;
  for (const std::string_view key : {"PinCPU", "PinMemory", "ReservedPoolNamespaces"})
    Copy(section, key, key, entries);
  return entries;
}

StatusOr<ConvertedConfig> FromPodPools(const ConfigNode& policy, const ConfigNode& section) {
  std::vector<ConfigNode> types;
  std::vector<std::string> notes;
  RESMGR_ASSIGN_OR_RETURN(const std::vector<ConfigNode> pools,
                          MapsIn(section, "policy.podpools", "Pools",
                                 {"Name", "CPU", "Instances", "MaxPods", "FillOrder"}));
  for (const ConfigNode& pool : pools) {
    const std::string name = TextOf(pool, "Name");
    const std::string cpus = TextOf(pool, "CPU");
    if (name == "reserved") {
      notes.emplace_back("pool reserved is left out: ReservedResources says its CPUs");
      continue;
    }
    Entries type = {MakeEntry("name", ScalarNode(name)), MakeEntry("minCPUs", ScalarNode(cpus))};
    if (name == "default") {
      notes.emplace_back("the balloon default[0] grows with requests; left-over CPUs stay idle");
    } else {
      type.push_back(MakeEntry("maxCPUs", ScalarNode(cpus)));
      const std::string instances = TextOf(pool, "Instances");
      type.push_back(MakeEntry("instances", ScalarNode(instances.empty() ? "1" : instances)));
      Copy(pool, "MaxPods", "maxPods", type);
      Copy(pool, "FillOrder", "fillOrder", type);
    }
    types.push_back(MapNode(std::move(type)));
  }
  notes.emplace_back("a full pool refuses pods, where podpools put them into the default pool");
  Entries entries = CommonKeys(section);
  entries.push_back(MakeEntry("balloonTypes", ItemsNode(std::move(types))));
  ConvertedConfig converted = Wrap("balloons", policy, std::move(entries));
  converted.notes = std::move(notes);
  return converted;
}

StatusOr<ConvertedConfig> FromStaticPools(const ConfigNode& policy, const ConfigNode& section) {
  std::vector<ConfigNode> types;
  std::vector<std::string> notes;
  constexpr std::string_view kPools = "policy.static-pools.pools";
  const ConfigNode* const pools = FindKey(section, "pools");
  if (pools != nullptr) RESMGR_RETURN_IF_ERROR(CheckKind(*pools, kPools, Kind::kMap));
  for (const ConfigNode::Entry& pool : pools == nullptr ? Entries() : pools->entries) {
    const std::string path = fmt::format("{}.{}", kPools, pool.key);
    RESMGR_RETURN_IF_ERROR(CheckKind(pool.value, path, Kind::kMap));
    RESMGR_RETURN_IF_ERROR(CheckScalars(pool.value, path, {"exclusive"}));
    const bool exclusive = ParseBool(TextOf(pool.value, "exclusive")).value_or(false);
    RESMGR_ASSIGN_OR_RETURN(const std::vector<ConfigNode> lists,
                            MapsIn(pool.value, path, "cpuLists", {"Cpuset"}));
    const size_t count = lists.size();
    for (size_t i = 0; i < count; ++i) {
      const std::string name = count == 1 ? pool.key : fmt::format("{}-{}", pool.key, i);
      Entries type = {MakeEntry("name", ScalarNode(name)),
                      MakeEntry("cpus", ScalarNode(TextOf(lists[i], "Cpuset")))};
      if (exclusive) type.push_back(MakeEntry("maxPods", ScalarNode("1")));
      types.push_back(MapNode(std::move(type)));
    }
    if (count > 1) {
      notes.push_back(fmt::format("each list of pool {} is a type of its own: {}-0 and so on",
                                  pool.key, pool.key));
    }
  }
  notes.emplace_back(
      "pods name their type in the annotation balloon.balloons.resource-policy.nri.io; `cmk "
      "isolate` "
      "in their commands is not read");
  Entries entries = CommonKeys(section);
  entries.push_back(MakeEntry("balloonTypes", ItemsNode(std::move(types))));
  ConvertedConfig converted = Wrap("balloons", policy, std::move(entries));
  converted.notes = std::move(notes);
  return converted;
}

StatusOr<ConvertedConfig> FromDynamicPools(const ConfigNode& policy, const ConfigNode& section) {
  std::vector<ConfigNode> types;
  RESMGR_ASSIGN_OR_RETURN(
      const std::vector<ConfigNode> pools,
      MapsIn(section, "policy.dynamic-pools", "DynamicPoolTypes", {"Name", "AllocatorPriority"}));
  for (const ConfigNode& pool : pools) {
    Entries type = CopyTypes(pool);
    if (TextOf(pool, "Name") != "reserved")
      type.push_back(MakeEntry("maxBalloons", ScalarNode("1")));
    types.push_back(MapNode(std::move(type)));
  }
  Entries entries = CommonKeys(section);
  entries.push_back(MakeEntry("balloonTypes", ItemsNode(std::move(types))));
  ConvertedConfig converted = Wrap("balloons", policy, std::move(entries));
  converted.notes.emplace_back(
      "pools follow requests; what is left over is not divided by measured use, but can be shared "
      "with shareIdleCPUsInSame");
  return converted;
}

using Converter = StatusOr<ConvertedConfig> (*)(const ConfigNode& policy,
                                                const ConfigNode& section);
struct PolicyKind {
  std::string_view name;
  Converter convert;
};
constexpr std::array kPolicies = {
    PolicyKind{"balloons", FromBalloons},
    PolicyKind{"podpools", FromPodPools},
    PolicyKind{"static-pools", FromStaticPools},
    PolicyKind{"dynamic-pools", FromDynamicPools},
};

// The module `policy` of a file, or of the data of a ConfigMap.
StatusOr<ConfigNode> PolicyModule(const ConfigNode& document, std::string_view source) {
  RESMGR_RETURN_IF_ERROR(CheckKind(document, "", Kind::kMap));
  const ConfigNode* const data = FindKey(document, "data");
  const ConfigNode& modules = data == nullptr ? document : *data;
  RESMGR_RETURN_IF_ERROR(CheckKind(modules, "data", Kind::kMap));
  const ConfigNode* const policy = FindKey(modules, "policy");
  if (policy == nullptr) return InvalidArgument("there is no module `policy`");
  ConfigNode module = *policy;
  if (policy->kind == Kind::kScalar) {
    RESMGR_ASSIGN_OR_RETURN(module, ParseYaml(policy->text, source));
  }
  RESMGR_RETURN_IF_ERROR(CheckKind(module, "policy", Kind::kMap));
  return module;
}

}  // namespace

const std::vector<std::string_view>& ConvertibleKinds() {
  static const std::vector<std::string_view> kinds = [] {
    std::vector<std::string_view> names = {"nri-plugins"};
    for (const PolicyKind& kind : kPolicies)
      names.push_back(kind.name);
    return names;
  }();
  return kinds;
}

StatusOr<ConvertedConfig> ConvertConfig(std::string_view kind, std::string_view text,
                                        std::string_view source) {
  RESMGR_ASSIGN_OR_RETURN(const ConfigNode document, ParseYaml(text, source));
  if (kind == "nri-plugins") {
    StatusOr<ConvertedConfig> converted = FromObject(document);
    if (!converted.ok()) return Annotate(converted.status(), source);
    return converted;
  }
  const auto known = std::ranges::find(kPolicies, kind, &PolicyKind::name);
  if (known == kPolicies.end()) {
    return InvalidArgument("-from {}: there are {}{}", Printable(kind, 64),
                           fmt::join(ConvertibleKinds(), ", "),
                           DidYouMean(kind, ConvertibleKinds()));
  }
  const StatusOr<ConfigNode> policy = PolicyModule(document, source);
  if (!policy.ok()) return Annotate(policy.status(), source);
  const ConfigNode* const section = FindKey(*policy, kind);
  if (section == nullptr) return InvalidArgument("{}: there is no policy.{}", source, kind);
  RESMGR_RETURN_IF_ERROR(CheckKind(*section, fmt::format("policy.{}", kind), Kind::kMap));
  return known->convert(*policy, *section);
}

bool IsPolicyObject(std::string_view text) {
  const StatusOr<ConfigNode> document = ParseYaml(text, "");
  return document.ok() && FindKey(*document, "spec") != nullptr &&
         TextOf(*document, "kind").ends_with("Policy");
}

}  // namespace resmgr
