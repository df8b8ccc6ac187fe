// SPDX-License-Identifier: Apache-2.0
#include "pkg/config/policy_classes.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "pkg/base/parse.h"
#include "pkg/base/suggest.h"

namespace resmgr {
namespace {

struct PoolKey {
  std::string_view kind;
  std::string_view key;
};

constexpr std::array kPoolKeys = {
    PoolKey{"cpu", "cpuClass"}, PoolKey{"rdt", "rdtClass"}, PoolKey{"blockio", "blockioClass"},
    PoolKey{"scheduling", "schedulingClass"}, PoolKey{"memory", "memoryClass"}};

// The key of a kind in the sections of policies. Empty: it has none.
std::string_view PoolClassKey(std::string_view kind) {
  const auto known = std::ranges::find(kPoolKeys, kind, &PoolKey::kind);
  return known == kPoolKeys.end() ? std::string_view() : known->key;
}

// The names of the kind's classes; nullopt: they depend on more than the configuration.
std::optional<std::vector<std::string>> KnownNames(std::string_view kind,
                                                   const ClassesConfig& config) {
  // The runtime's own file has them.
  const bool elsewhere =
      kind == "blockio" && config.blockio.assign == BlockioConfig::Assign::kRuntime;
  if (elsewhere || PoolClassKey(kind).empty()) return std::nullopt;
  return config.NamesOf(kind);
}

// Returns the keys of a policy's section about CPU classes, under their names in `classes`.
ConfigNode CpuKeysOf(const ConfigNode& section) {
  std::vector<ConfigNode::Entry> entries;
  for (const ConfigNode::Entry& entry : section.entries) {
    if (EqualsIgnoreCase(entry.key, "cpuClasses"))
      entries.push_back({"cpu", entry.line, entry.value});
    if (EqualsIgnoreCase(entry.key, "turboDomain")) entries.push_back(entry);
  }
  ConfigNode classes = MapNode(std::move(entries));
  classes.source = section.source;
  return classes;
}

// Whether the key ends with that of the kind, in any case.
bool IsKeyOf(std::string_view kind_key, std::string_view key) {
  return key.size() >= kind_key.size() &&
         EqualsIgnoreCase(key.substr(key.size() - kind_key.size()), kind_key);
}

const ConfigNode* FindValue(const ConfigNode& node, std::string_view kind_key,
                            std::string_view name) {
  for (const ConfigNode::Entry& entry : node.entries) {
    const bool is_it = entry.value.kind == ConfigNode::Kind::kScalar &&
                       IsKeyOf(kind_key, entry.key) && entry.value.text == name;
    if (is_it) return &entry.value;
    if (const ConfigNode* const below = FindValue(entry.value, kind_key, name)) return below;
  }
  for (const ConfigNode& item : node.items)
    if (const ConfigNode* const below = FindValue(item, kind_key, name)) return below;
  return nullptr;
}

// The value in a policy's section that names this class: the first one with its name below a key of
// its kind ("cpuClass", "idleCPUClass"). nullptr: there is none.
const ConfigNode* FindNamedClass(const ConfigNode& section, const NamedClass& named) {
  const std::string_view key = PoolClassKey(named.kind);
  return key.empty() ? nullptr : FindValue(section, key, named.name);
}

}  // namespace

void DescribePoolClass(ConfigSection& section, std::string_view kind, PoolClassNames& classes,
                       std::string_view help) {
  const std::string_view key = PoolClassKey(kind);
  const auto known = classes.find(kind);
  std::string name = known == classes.end() ? std::string() : known->second;
  section.Text(key, name, help).Default("none");
  if (section.Node(key) == nullptr) return;
  if (name.empty()) {
    classes.erase(std::string(kind));
  } else {
    classes[std::string(kind)] = name;
  }
}

void DescribePoolClasses(ConfigSection& section, PoolClassNames& classes) {
  for (const PoolKey& one : kPoolKeys)
    DescribePoolClass(section, one.kind, classes, "the class of containers there");
}

void AddNamed(const PoolClassNames& classes, std::string_view where,
              std::vector<NamedClass>& named) {
  for (const auto& [kind, name] : classes) {
    const std::string_view key = PoolClassKey(kind);
    if (key.empty()) continue;
    named.push_back(
        {kind, name, where.empty() ? std::string(key) : fmt::format("{}: {}", where, key)});
  }
}

void DescribePolicyClasses(ConfigSection& section, PolicyClassTexts& raw) {
  section.Raw("cpuClasses", raw, "classes of CPUs, beside those of `classes.cpu` and like them");
  section.Raw("turboDomain", raw, "as `classes.turboDomain`");
  section.Raw("schedulingClasses", raw,
              "classes of scheduling, if `classes.scheduling` has none, and like those");
}

Status CheckPolicyClasses(const ConfigNode& section, std::string_view path) {
  const ConfigNode classes = CpuKeysOf(section);
  CpuClassesConfig cpu;
  ConfigSection reader(classes, path);
  DescribeCpuClasses(reader, cpu);
  return reader.Finish();
}

void AddPolicyClasses(const ConfigNode& section, std::string_view path, ClassesConfig& config) {
  const ConfigNode classes = CpuKeysOf(section);
  CpuClassesConfig cpu;
  ConfigSection of_cpus(classes, path);
  DescribeCpuClasses(of_cpus, cpu);
  AddPolicyCpuClasses(cpu, config.cpu);
  ConfigSection reader(section, path);
  reader.List("controllableInterrupts", config.controllable, "");
  const ConfigNode* const scheduling = reader.Node("schedulingClasses");
  if (scheduling == nullptr || config.scheduling.any()) return;
  const ConfigNode node = MapNode({{"scheduling", 1, *scheduling}});
  ConfigSection of_scheduling(node, path);
  DescribeScheduling(of_scheduling, config.scheduling);
}

Status CheckNamedClasses(const std::vector<NamedClass>& named, const ClassesConfig& config) {
  for (const NamedClass& one : named) {
    const std::optional<std::vector<std::string>> known = KnownNames(one.kind, config);
    if (!known || std::ranges::find(*known, one.name) != known->end()) continue;
    const std::vector<std::string_view> names(known->begin(), known->end());
    return InvalidArgument(
        "{} \"{}\": there is no such class; there {}{}", one.where, Printable(one.name, 64),
        names.empty() ? "are none" : fmt::format("are {}", fmt::join(names, ", ")),
        DidYouMean(one.name, names));
  }
  return OkStatus();
}

std::vector<std::string> UnknownAllowedClasses(const ClassesConfig& config) {
  std::vector<std::string> unknown;
  for (const auto& [allowed, globs] : config.namespaces) {
    const size_t slash = allowed.find('/');
    if (slash == std::string::npos) continue;
    const std::string kind = allowed.substr(0, slash);
    const std::string name = allowed.substr(slash + 1);
    if (kind == "rdt" && IsRdtRoot(name)) continue;
    const Status known = CheckNamedClasses(
        {{kind, name, fmt::format("classes.AllowedNamespaces.Classes: {}", kind)}}, config);
    if (!known.ok()) unknown.emplace_back(Message(known));
  }
  return unknown;
}

Status CheckClassesOfSection(const std::vector<NamedClass>& named, const ClassesConfig& config,
                             const ConfigNode& section, std::string_view path) {
  Problems problems;
  for (const NamedClass& one : named) {
    const Status known = CheckNamedClasses({one}, config);
    if (known.ok()) continue;
    const ConfigNode* const place = FindNamedClass(section, one);
    problems.Add(ErrorAt(place == nullptr ? section : *place, path, Message(known)));
  }
  return problems.ToStatus();
}

}  // namespace resmgr
