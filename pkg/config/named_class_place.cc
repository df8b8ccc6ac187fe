// SPDX-License-Identifier: Apache-2.0
#include "pkg/config/named_class_place.h"

#include "pkg/base/parse.h"
#include "pkg/config/problems.h"

namespace resmgr {
namespace {

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

}  // namespace

const ConfigNode* FindNamedClass(const ConfigNode& section, const NamedClass& named) {
  const std::string_view key = PoolClassKey(named.kind);
  return key.empty() ? nullptr : FindValue(section, key, named.name);
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
