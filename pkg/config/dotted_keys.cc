// SPDX-License-Identifier: Apache-2.0
#include "pkg/config/dotted_keys.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "pkg/base/parse.h"

namespace resmgr {

namespace {

// More names than any place has; keeps the tree within the depth that its readers expect.
constexpr size_t kMaxNames = 16;

ConfigNode::Entry* FindEntry(ConfigNode& map, std::string_view key) {
  const auto found = std::find_if(
      map.entries.begin(), map.entries.end(),
      [key](const ConfigNode::Entry& entry) { return EqualsIgnoreCase(entry.key, key); });
  return found == map.entries.end() ? nullptr : &*found;
}

// The map below `map` with this name, made when there is none; nullptr when it is something else.
ConfigNode* Descend(ConfigNode& map, std::string_view name, const ConfigNode::Entry& place) {
  ConfigNode::Entry* entry = FindEntry(map, name);
  if (entry == nullptr) {
    ConfigNode made;
    made.line = place.line;
    made.source = place.value.source;
    map.entries.push_back({std::string(name), place.line, std::move(made)});
    entry = &map.entries.back();
  }
  if (entry->value.kind == ConfigNode::Kind::kNull) entry->value.kind = ConfigNode::Kind::kMap;
  return entry->value.kind == ConfigNode::Kind::kMap ? &entry->value : nullptr;
}

Status Insert(ConfigNode& root, const ConfigNode::Entry& entry) {
  const std::vector<std::string_view> names = Split(entry.key, '.');
  const bool has_empty =
      std::any_of(names.begin(), names.end(), [](std::string_view name) { return name.empty(); });
  ConfigNode place = entry.value;
  place.line = entry.line;
  const std::string key = Printable(entry.key, 64);
  if (has_empty || names.size() > kMaxNames) return ErrorAt(place, key, "unknown key");
  ConfigNode* map = &root;
  for (size_t i = 0; i + 1 < names.size(); ++i) {
    map = Descend(*map, names[i], entry);
    if (map == nullptr) return ErrorAt(place, key, "lies below a value that is not a map");
  }
  if (FindEntry(*map, names.back()) != nullptr) return ErrorAt(place, key, "has two values");
  map->entries.push_back({std::string(names.back()), entry.line, entry.value});
  return OkStatus();
}

}  // namespace

StatusOr<ConfigNode> ExpandDottedKeys(const ConfigNode& root) {
  if (root.kind != ConfigNode::Kind::kMap) return root;
  const auto is_dotted = [](const ConfigNode::Entry& entry) {
    return entry.key.find('.') != std::string::npos;
  };
  ConfigNode expanded = root;
  std::erase_if(expanded.entries, is_dotted);
  for (const ConfigNode::Entry& entry : root.entries) {
    if (is_dotted(entry)) RESMGR_RETURN_IF_ERROR(Insert(expanded, entry));
  }
  return expanded;
}

}  // namespace resmgr
