// SPDX-License-Identifier: Apache-2.0
#include "cmd/cri-resmgr-ctl/convert_config.h"

#include <algorithm>
#include <array>
#include <utility>

#include "cmd/cri-resmgr-ctl/convert_control.h"
#include "pkg/base/parse.h"
#include "pkg/base/suggest.h"
#include "pkg/config/classes_config.h"
#include "pkg/config/config.h"
#include "pkg/config/policy_classes.h"
#include "pkg/config/print_config.h"
#include "pkg/config/yaml_reader.h"
#include "policies/builtin_policies.h"

namespace resmgr {
namespace {

using Entries = std::vector<ConfigNode::Entry>;
using Keys = KeyNames;
using Notes = std::vector<std::string>;

std::string TextOf(const ConfigNode& map, std::string_view key) {
  const ConfigNode* const value = FindKey(map, key);
  return value == nullptr ? std::string() : value->text;
}

using Kind = ConfigNode::Kind;

Status CheckScalars(const ConfigNode& map, std::string_view path, const Keys& keys) {
  for (const std::string_view key : keys) {
    const ConfigNode* const value = FindKey(map, key);
    if (value == nullptr) continue;
    RESMGR_RETURN_IF_ERROR(CheckKind(*value, fmt::format("{}.{}", path, key), Kind::kScalar));
  }
  return OkStatus();
}

// Returns the maps in the list at `key`, whose fields `scalars` have to be scalars; none if the key
// is missing.
StatusOr<std::vector<ConfigNode>> MapsIn(const ConfigNode& map, std::string_view path,
                                         std::string_view key, const Keys& scalars) {
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

// Notes each key of a map that is not among the known ones.
void NoteOthers(const ConfigNode& map, std::string_view path, const Keys& known, Notes& notes) {
  for (const ConfigNode::Entry& entry : map.entries) {
    if (!IsOneOf(known, entry.key)) NoteLeftOut(path, entry.key, notes);
  }
}

void Copy(const ConfigNode& from, std::string_view key, std::string_view as, Entries& to) {
  const ConfigNode* const value = FindKey(from, key);
  if (value != nullptr) to.push_back(MakeEntry(as, *value));
}

// Puts the policy's section below `policy`, beside the available and reserved CPUs.
ConvertedConfig Wrap(std::string_view policy, const ConfigNode& cpus, Entries section, Notes notes,
                     Entries classes = {}) {
  Entries entries = {MakeEntry("Active", ScalarNode(policy))};
  Copy(cpus, "AvailableResources", "AvailableResources", entries);
  Copy(cpus, "ReservedResources", "ReservedResources", entries);
  entries.push_back(MakeEntry(policy, MapNode(std::move(section))));
  Entries modules = {MakeEntry("policy", MapNode(std::move(entries)))};
  if (!classes.empty()) modules.push_back(MakeEntry("classes", MapNode(std::move(classes))));
  return {PrintNode(MapNode(std::move(modules))), std::move(notes)};
}

// Keeps the only key of `agent` that also exists here.
void KeepAgent(const ConfigNode& agent, Entries& section, Notes& notes) {
  constexpr std::string_view kPodResources = "podResourceAPI";
  const ConfigNode* const asks = FindKey(agent, kPodResources);
  if (asks == nullptr) {
    notes.emplace_back("agent is left out: see docs/migration.md");
    return;
  }
  section.push_back(MakeEntry("agent", MapNode({MakeEntry(kPodResources, *asks)})));
  NoteOthers(agent, "agent", {kPodResources}, notes);
}

// Adds the classes that the key `control` of nri-plugins defines.
Status AddControls(const ConfigNode& control, std::string_view path, Entries& classes,
                   Notes& notes) {
  RESMGR_RETURN_IF_ERROR(CheckKind(control, path, Kind::kMap));
  for (const ConfigNode::Entry& entry : control.entries) {
    if (IsControlKey(entry.key)) {
      const std::string place = fmt::format("{}.{}", path, entry.key);
      RESMGR_RETURN_IF_ERROR(ConvertControl(entry.key, entry.value, place, classes, notes));
    } else {
      NoteLeftOut(path, entry.key, notes);
    }
  }
  return OkStatus();
}

StatusOr<ConvertedConfig> FromObject(const ConfigNode& document) {
  RESMGR_RETURN_IF_ERROR(CheckKind(document, "", Kind::kMap));
  const std::string kind = TextOf(document, "kind");
  const ConfigNode* const spec = FindKey(document, "spec");
  if (spec == nullptr || (kind != "BalloonsPolicy" && kind != "TopologyAwarePolicy")) {
    constexpr std::string_view kHint =
        "; give its items one by one, as kubectl get KIND NAME -o yaml prints them";
    return ErrorAt(document, "",
                   fmt::format("not a BalloonsPolicy or TopologyAwarePolicy with a spec{}",
                               kind.ends_with("List") ? kHint : ""));
  }
  RESMGR_RETURN_IF_ERROR(CheckKind(*spec, "spec", Kind::kMap));
  const Keys elsewhere = {"instrumentation", "log"};
  Notes notes;
  NoteOthers(document, "", {"apiVersion", "kind", "metadata", "spec"}, notes);
  if (const ConfigNode* const metadata = FindKey(document, "metadata"); metadata != nullptr) {
    const std::string name = TextOf(*metadata, "name");
    notes.push_back(
        fmt::format("metadata is left out: a ConfigMap cri-resmgr-config.{} in kube-system is for "
                    "the same nodes",
                    name.empty() ? "default" : Printable(name, kMostKeyText)));
  }
  Entries section;
  Entries classes;
  const bool balloons = kind == "BalloonsPolicy";
  for (const ConfigNode::Entry& entry : spec->entries) {
    if (EqualsIgnoreCase(entry.key, "agent")) {
      KeepAgent(entry.value, section, notes);
      continue;
    }
    if (EqualsIgnoreCase(entry.key, "control")) {
      RESMGR_RETURN_IF_ERROR(AddControls(entry.value, "control", classes, notes));
      continue;
    }
    if (IsOneOf(elsewhere, entry.key)) {
      notes.push_back(fmt::format("{} is left out: see docs/migration.md", entry.key));
      continue;
    }
    if (!balloons && IsOneOf({"availableResources", "reservedResources"}, entry.key)) continue;
    section.push_back(entry);
  }
  return Wrap(balloons ? "balloons" : "topology-aware", balloons ? ConfigNode() : *spec,
              std::move(section), std::move(notes), std::move(classes));
}

// Converts a priority, a number in cri-resource-manager, to a word of this project.
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
  return Wrap("balloons", policy, std::move(entries), std::move(notes));
}

// Copies the keys that exist in all policies with pools; notes the others, except the list of
// pools.
Entries CommonKeys(const ConfigNode& section, std::string_view path, std::string_view pools,
                   Notes& notes) {
  Entries entries;
  const Keys common = {"PinCPU", "PinMemory", "ReservedPoolNamespaces"};
  for (const std::string_view key : common)
    Copy(section, key, key, entries);
  Keys known = common;
  known.push_back(pools);
  NoteOthers(section, path, known, notes);
  return entries;
}

StatusOr<ConvertedConfig> FromPodPools(const ConfigNode& policy, const ConfigNode& section) {
  std::vector<ConfigNode> types;
  Notes notes;
  const Keys known = {"Name", "CPU", "Instances", "MaxPods", "FillOrder"};
  RESMGR_ASSIGN_OR_RETURN(const std::vector<ConfigNode> pools,
                          MapsIn(section, "policy.podpools", "Pools", known));
  for (const ConfigNode& pool : pools) {
    const std::string name = TextOf(pool, "Name");
    const std::string cpus = TextOf(pool, "CPU");
    if (name == "reserved") {
      notes.emplace_back("pool reserved is left out: ReservedResources says its CPUs");
      continue;
    }
    const std::string path =
        fmt::format("policy.podpools.Pools[{}]", Printable(name, kMostKeyText));
    NoteOthers(pool, path, name == "default" ? Keys{"Name", "CPU"} : known, notes);
    Entries type = {MakeEntry("name", ScalarNode(name))};
    // Without CPUs of its own the default pool had the reserved ones.
    if (!cpus.empty() || name != "default") type.push_back(MakeEntry("minCPUs", ScalarNode(cpus)));
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
  Entries entries = CommonKeys(section, "policy.podpools", "Pools", notes);
  entries.push_back(MakeEntry("balloonTypes", ItemsNode(std::move(types))));
  return Wrap("balloons", policy, std::move(entries), std::move(notes));
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
    NoteOthers(pool.value, path, {"exclusive", "cpuLists"}, notes);
    const bool exclusive = ParseBool(TextOf(pool.value, "exclusive")).value_or(false);
    RESMGR_ASSIGN_OR_RETURN(const std::vector<ConfigNode> lists,
                            MapsIn(pool.value, path, "cpuLists", {"Cpuset"}));
    const size_t count = lists.size();
    for (size_t i = 0; i < count; ++i) {
      const std::string name = count == 1 ? pool.key : fmt::format("{}-{}", pool.key, i);
      Entries type = {MakeEntry("name", ScalarNode(name)),
                      MakeEntry("cpus", ScalarNode(TextOf(lists[i], "Cpuset")))};
      if (exclusive) type.push_back(MakeEntry("maxPods", ScalarNode("1")));
      NoteOthers(lists[i], fmt::format("{}.cpuLists[{}]", path, i), {"Cpuset"}, notes);
      types.push_back(MapNode(std::move(type)));
    }
    if (count == 0) notes.push_back(fmt::format("{} has no cpuLists and is left out", path));
    if (count > 1) {
      notes.push_back(fmt::format("each list of pool {} is a type of its own: {}-0 and so on",
                                  pool.key, pool.key));
    }
  }
  notes.emplace_back(
      "pods name their type in the annotation balloon.balloons.resource-policy.nri.io; `cmk "
      "isolate` "
      "in their commands is not read");
  Entries entries = CommonKeys(section, "policy.static-pools", "pools", notes);
  entries.push_back(MakeEntry("balloonTypes", ItemsNode(std::move(types))));
  return Wrap("balloons", policy, std::move(entries), std::move(notes));
}

StatusOr<ConvertedConfig> FromDynamicPools(const ConfigNode& policy, const ConfigNode& section) {
  std::vector<ConfigNode> types;
  Notes notes;
  RESMGR_ASSIGN_OR_RETURN(
      const std::vector<ConfigNode> pools,
      MapsIn(section, "policy.dynamic-pools", "DynamicPoolTypes", {"Name", "AllocatorPriority"}));
  for (const ConfigNode& pool : pools) {
    Entries type = CopyTypes(pool);
    if (TextOf(pool, "Name") != "reserved") {
      type.push_back(MakeEntry("maxBalloons", ScalarNode("1")));
      type.push_back(MakeEntry("followUse", MapNode({MakeEntry("growAbove", ScalarNode("80"))})));
    }
    types.push_back(MapNode(std::move(type)));
  }
  Entries entries = CommonKeys(section, "policy.dynamic-pools", "DynamicPoolTypes", notes);
  entries.push_back(MakeEntry("balloonTypes", ItemsNode(std::move(types))));
  notes.emplace_back(
      "pools have what is requested of them, and borrow idle CPUs by measured use (followUse), "
      "where "
      "dynamic-pools divided all CPUs by it");
  return Wrap("balloons", policy, std::move(entries), std::move(notes));
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

// Returns the module itself, or parses its text from a ConfigMap.
StatusOr<ConfigNode> ModuleOf(const ConfigNode& value, std::string_view source,
                              std::string_view key) {
  if (value.kind != Kind::kScalar) return value;
  return ParseYaml(value.text, fmt::format("{} key {}", source, key));
}

// Finds the module `policy` in a file, or in the data of a ConfigMap. Modules that define classes
// are added to `classes`; other modules are noted.
StatusOr<ConfigNode> PolicyModule(const ConfigNode& document, std::string_view source,
                                  Entries& classes, Notes& notes) {
  RESMGR_RETURN_IF_ERROR(CheckKind(document, "", Kind::kMap));
  const ConfigNode* const data = FindKey(document, "data");
  const ConfigNode& modules = data == nullptr ? document : *data;
  RESMGR_RETURN_IF_ERROR(CheckKind(modules, "data", Kind::kMap));
  const ConfigNode* const policy = FindKey(modules, "policy");
  if (policy == nullptr) return ErrorAt(document, "", "there is no module `policy`");
  NoteOthers(modules, data == nullptr ? "" : "data", {"policy", "cpu", "rdt", "blockio"}, notes);
  for (const ConfigNode::Entry& entry : modules.entries) {
    if (!IsControlKey(entry.key)) continue;
    RESMGR_ASSIGN_OR_RETURN(const ConfigNode control, ModuleOf(entry.value, source, entry.key));
    RESMGR_RETURN_IF_ERROR(ConvertControl(entry.key, control, entry.key, classes, notes));
  }
  if (data != nullptr) NoteOthers(document, "", {"apiVersion", "kind", "metadata", "data"}, notes);
  RESMGR_ASSIGN_OR_RETURN(ConfigNode module, ModuleOf(*policy, source, "policy"));
  RESMGR_RETURN_IF_ERROR(CheckKind(module, "policy", Kind::kMap));
  return module;
}

// Notes names of classes that do not exist: the other project ignores them, this daemon refuses
// them.
void NoteUnknownClasses(const ConfigNode& document, const PolicyFactory& factory,
                        const ConfigNode& section, ConvertedConfig& converted) {
  ClassesConfig classes;
  ConfigSection reader(document, "");
  DescribeClasses(reader, classes);
  AddPolicyClasses(section, factory.name, classes);
  for (const NamedClass& named : factory.named_classes(section)) {
    const Status known = CheckNamedClasses({named}, classes);
    if (known.ok()) continue;
    converted.notes.push_back(
        fmt::format("{}; the daemon refuses this until `classes` defines it or nothing names it",
                    Message(known)));
  }
}

// Notes values that the daemon refuses.
void NoteRefused(const PolicyRegistry& policies, ConvertedConfig& converted) {
  ConfigChecks checks;
  checks.policies = policies.Names();
  checks.policy_section = [&policies](std::string_view policy, const ConfigNode& section,
                                      std::vector<ConfigKey>* keys) {
    const PolicyFactory* const factory = policies.Find(policy);
    return factory == nullptr || factory->read_section == nullptr
               ? OkStatus()
               : factory->read_section(section, keys);
  };
  const Status read = ParseConfig(converted.yaml, "result", checks).status();
  if (read.ok()) return;
  for (const std::string_view line : Split(Message(read), '\n'))
    converted.notes.push_back(fmt::format("the daemon refuses the result: {}", line));
}

// Notes what the daemon refuses in the result, and the keys that have no effect here.
void NoteEffects(ConvertedConfig& converted) {
  const PolicyRegistry policies = BuiltinPolicies();
  NoteRefused(policies, converted);
  const StatusOr<ConfigNode> document = ParseYaml(converted.yaml, "");
  const ConfigNode* const policy = document.ok() ? FindKey(*document, "policy") : nullptr;
  if (policy == nullptr) return;
  const std::string active = TextOf(*policy, "Active");
  const PolicyFactory* const factory = policies.Find(active);
  const ConfigNode* const section = FindKey(*policy, active);
  if (factory == nullptr || section == nullptr) return;
  if (factory->named_classes != nullptr)
    NoteUnknownClasses(*document, *factory, *section, converted);
  if (factory->without_effect == nullptr) return;
  for (std::string& note : factory->without_effect(*section))
    converted.notes.push_back(std::move(note));
}

// The section of the policy, in a file or a ConfigMap.
StatusOr<ConvertedConfig> FromModule(const PolicyKind& kind, const ConfigNode& document,
                                     std::string_view source) {
  Notes notes;
  Entries classes;
  RESMGR_ASSIGN_OR_RETURN(const ConfigNode policy, PolicyModule(document, source, classes, notes));
  const ConfigNode* const section = FindKey(policy, kind.name);
  if (section == nullptr)
    return ErrorAt(policy, "", fmt::format("there is no policy.{}", kind.name));
  const std::string path = fmt::format("policy.{}", kind.name);
  RESMGR_RETURN_IF_ERROR(CheckKind(*section, path, Kind::kMap));
  NoteOthers(policy, "policy", {"Active", "AvailableResources", "ReservedResources", kind.name},
             notes);
  RESMGR_ASSIGN_OR_RETURN(ConvertedConfig converted, kind.convert(policy, *section));
  converted.notes.insert(converted.notes.begin(), notes.begin(), notes.end());
  if (!classes.empty())
    converted.yaml += PrintNode(MapNode({MakeEntry("classes", MapNode(std::move(classes)))}));
  return converted;
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
  const auto known = std::ranges::find(kPolicies, kind, &PolicyKind::name);
  const bool object = kind == "nri-plugins";
  if (!object && known == kPolicies.end()) {
    return InvalidArgument("-from {}: there are {}{}", Printable(kind, 64),
                           fmt::join(ConvertibleKinds(), ", "),
                           DidYouMean(kind, ConvertibleKinds()));
  }
  StatusOr<ConvertedConfig> converted =
      object ? FromObject(document) : FromModule(*known, document, source);
  if (!converted.ok()) return converted.status();
  NoteEffects(*converted);
  return converted;
}

bool IsPolicyObject(std::string_view text) {
  const StatusOr<ConfigNode> document = ParseYaml(text, "");
  return document.ok() && FindKey(*document, "spec") != nullptr &&
         TextOf(*document, "kind").ends_with("Policy");
}

std::string NameOfConverted(std::string_view file) {
  return fmt::format("{} (converted)", file);
}

}  // namespace resmgr
