// SPDX-License-Identifier: Apache-2.0
#include "pkg/simulator/yaml_access.h"

#include <algorithm>
#include <vector>

#include "pkg/base/parse.h"
#include "pkg/base/suggest.h"
#include "pkg/kube/names.h"

namespace resmgr {

StatusOr<const ConfigNode*> FindKey(const ConfigNode* map, std::string_view key,
                                    ConfigNode::Kind kind, std::string_view path) {
  const ConfigNode* const value = map == nullptr ? nullptr : FindMember(*map, key);
  if (value == nullptr || value->kind == ConfigNode::Kind::kNull) return nullptr;
  if (value->kind == kind) return value;
  return ErrorAt(*value, fmt::format("{}{}", path, key),
                 fmt::format("must be {}, not {}", ToString(kind), ToString(value->kind)));
}

StatusOr<const ConfigNode*> FindAt(const ConfigNode& document, std::string_view path,
                                   ConfigNode::Kind kind) {
  const ConfigNode* map = &document;
  const size_t last = path.rfind('.') + 1;
  for (size_t at = 0; at < last;) {
    const size_t end = path.find('.', at);
    RESMGR_ASSIGN_OR_RETURN(
        map, FindKey(map, path.substr(at, end - at), ConfigNode::Kind::kMap, path.substr(0, at)));
    at = end + 1;
  }
  return FindKey(map, path.substr(last), kind, path.substr(0, last));
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

StatusOr<std::string> FindTextAt(const ConfigNode& document, std::string_view path) {
  RESMGR_ASSIGN_OR_RETURN(const ConfigNode* const value,
                          FindAt(document, path, ConfigNode::Kind::kScalar));
  return value == nullptr ? std::string() : value->text;
}

StatusOr<ObjectName> ReadObjectName(const ConfigNode& object, std::string_view what,
                                    const std::vector<std::string_view>& known) {
  RESMGR_ASSIGN_OR_RETURN(const ConfigNode* const metadata,
                          FindAt(object, "metadata", ConfigNode::Kind::kMap));
  if (metadata != nullptr) RESMGR_RETURN_IF_ERROR(CheckSpelling(*metadata, known, "metadata."));
  ObjectName read;
  RESMGR_ASSIGN_OR_RETURN(read.name, FindText(metadata, "name", "metadata."));
  if (read.name.empty())
    return ErrorAt(object, "metadata.name", fmt::format("{} needs a name", what));
  RESMGR_ASSIGN_OR_RETURN(read.namespace_name, FindText(metadata, "namespace", "metadata."));
  if (read.namespace_name.empty()) read.namespace_name = "default";
  for (const std::string& name : {read.name, read.namespace_name}) {
    if (IsSubdomain(name)) continue;
    return ErrorAt(*metadata, "metadata",
                   fmt::format("\"{}\" is not a valid name", Printable(name, 64)));
  }
  RESMGR_ASSIGN_OR_RETURN(read.uid, FindText(metadata, "uid", "metadata."));
  return read;
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
