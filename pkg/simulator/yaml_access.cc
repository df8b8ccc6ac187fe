// SPDX-License-Identifier: Apache-2.0
#include "pkg/simulator/yaml_access.h"

#include <algorithm>
#include <vector>

#include "pkg/base/parse.h"
#include "pkg/base/suggest.h"

namespace resmgr {

StatusOr<const ConfigNode*> FindKey(const ConfigNode* map, std::string_view key,
                                    ConfigNode::Kind kind, std::string_view path) {
  if (map == nullptr) return nullptr;
  for (const ConfigNode::Entry& entry : map->entries) {
    if (entry.key != key || entry.value.kind == ConfigNode::Kind::kNull) continue;
    if (entry.value.kind == kind) return &entry.value;
    return ErrorAt(entry.value, fmt::format("{}{}", path, key),
                   fmt::format("must be {}, not {}", ToString(kind), ToString(entry.value.kind)));
  }
  return nullptr;
}

Status CheckSpelling(const ConfigNode& map, const std::vector<std::string_view>& known,
                     std::string_view path) {
  for (const ConfigNode::Entry& entry : map.entries) {
    if (std::ranges::find(known, entry.key) != known.end()) continue;
    const std::string hint = DidYouMean(entry.key, known, "");
    if (hint.empty()) continue;
    return ErrorAt(entry.value, fmt::format("{}{}", path, Printable(entry.key, 64)),
                   "unknown key" + hint);
  }
  return OkStatus();
}

StatusOr<std::string> FindText(const ConfigNode* map, std::string_view key, std::string_view path) {
  RESMGR_ASSIGN_OR_RETURN(const ConfigNode* const value,
                          FindKey(map, key, ConfigNode::Kind::kScalar, path));
  return value == nullptr ? std::string() : value->text;
}

StatusOr<StringMap> FindTexts(const ConfigNode* map, std::string_view key, std::string_view path) {
  RESMGR_ASSIGN_OR_RETURN(const ConfigNode* const values,
                          FindKey(map, key, ConfigNode::Kind::kMap, path));
  if (values == nullptr) return StringMap();
  std::vector<StringMap::value_type> texts;
  for (const ConfigNode::Entry& entry : values->entries) {
    const bool single = entry.value.kind == ConfigNode::Kind::kScalar;
    if (!single && entry.value.kind != ConfigNode::Kind::kNull) {
      return ErrorAt(entry.value, fmt::format("{}{}.{}", path, key, Printable(entry.key, 64)),
                     "must be a single value");
    }
    texts.emplace_back(entry.key, entry.value.text);
  }
  return StringMap(texts);
}

}  // namespace resmgr
