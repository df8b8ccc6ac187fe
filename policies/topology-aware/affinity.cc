// SPDX-License-Identifier: Apache-2.0
#include "policies/topology-aware/affinity.h"

#include <algorithm>
#include <array>

#include "pkg/base/parse.h"
#include "pkg/config/yaml_reader.h"

namespace resmgr {
namespace {

using Keys = std::array<std::string_view, 2>;  // the first one that is there counts
constexpr Keys kAffinity = {"cri-resource-manager.intel.com/affinity",
                            "resource-policy.nri.io/affinity"};
constexpr Keys kAntiAffinity = {"cri-resource-manager.intel.com/anti-affinity",
                                "resource-policy.nri.io/anti-affinity"};

StatusOr<int> ReadWeight(const ConfigNode& node) {
  const std::optional<int64_t> weight = ParseInt(node.text);
  if (node.kind != ConfigNode::Kind::kScalar || !weight) {
    return ErrorAt(node, "weight", "not a whole number");
  }
  return static_cast<int>(
      std::clamp<int64_t>(*weight, -Affinity::kMaxWeight, Affinity::kMaxWeight));
}

StatusOr<Affinity> ReadFull(const ConfigNode& node, int sign) {
  Affinity affinity;
  bool has_match = false;
  for (const auto& [name, line, value] : node.entries) {
    if (name == "scope") {
      RESMGR_ASSIGN_OR_RETURN(affinity.scope, Expression::Parse(value));
    } else if (name == "match") {
      RESMGR_ASSIGN_OR_RETURN(affinity.match, Expression::Parse(value));
      has_match = true;
    } else if (name == "weight") {
      RESMGR_ASSIGN_OR_RETURN(affinity.weight, ReadWeight(value));
    } else {
      return ErrorAt(value, name, "not part of an affinity");
    }
  }
  if (!has_match) return ErrorAt(node, "match", "is missing");
  affinity.weight *= sign;
  return affinity;
}

bool IsListOfNames(const ConfigNode& node) {
  if (node.kind == ConfigNode::Kind::kScalar) return true;
  return node.kind == ConfigNode::Kind::kList &&
         std::all_of(node.items.begin(), node.items.end(),
                     [](const ConfigNode& item) { return item.kind == ConfigNode::Kind::kScalar; });
}

std::vector<std::string> NamesIn(const ConfigNode& node) {
  if (node.kind == ConfigNode::Kind::kScalar) return {node.text};
  std::vector<std::string> names;
  for (const ConfigNode& item : node.items)
    names.push_back(item.text);
  return names;
}

Status ReadEntry(const ConfigNode::Entry& entry, std::string_view container, int sign,
                 std::vector<Affinity>& affinities) {
  const bool own = entry.key == container;
  if (IsListOfNames(entry.value)) {
    std::vector<std::string> names = NamesIn(entry.value);
    const bool named = std::find(names.begin(), names.end(), container) != names.end();
    if (own) affinities.push_back({sign, std::nullopt, Expression::In("name", std::move(names))});
    if (!own && named) {
      affinities.push_back({sign, std::nullopt, Expression::In("name", {entry.key})});
    }
    return OkStatus();
  }
  if (entry.value.kind != ConfigNode::Kind::kList) {
    return ErrorAt(entry.value, entry.key, "neither a list of names nor of affinities");
  }
  for (const ConfigNode& item : entry.value.items) {
    StatusOr<Affinity> affinity = ReadFull(item, sign);
    if (!affinity.ok()) return affinity.status();
    if (own) affinities.push_back(*std::move(affinity));
  }
  return OkStatus();
}

// End of the annotations when there is none.
StringMap::const_iterator FindFirst(const StringMap& annotations, const Keys& keys) {
  for (const std::string_view key : keys) {
    const auto found = annotations.find(key);
    if (found != annotations.end()) return found;
  }
  return annotations.end();
}

Status ReadAnnotation(const StringMap& annotations, const Keys& keys, std::string_view container,
                      int sign, std::vector<Affinity>& affinities) {
  const auto found = FindFirst(annotations, keys);
  if (found == annotations.end()) return OkStatus();
  RESMGR_ASSIGN_OR_RETURN(const ConfigNode node, ParseYaml(found->second, found->first));
  if (node.kind != ConfigNode::Kind::kMap && node.kind != ConfigNode::Kind::kNull) {
    return ErrorAt(node, "", "not a map from containers to affinities");
  }
  for (const ConfigNode::Entry& entry : node.entries)
    RESMGR_RETURN_IF_ERROR(ReadEntry(entry, container, sign, affinities));
  return OkStatus();
}

}  // namespace

bool Affinity::Meets(const Pod& own_pod, const Pod& pod, const Container& container) const {
  const bool in_scope = scope ? scope->Holds(pod, container) : pod.id == own_pod.id;
  return in_scope && match.Holds(pod, container);
}

StatusOr<std::vector<Affinity>> ReadAffinities(const StringMap& pod_annotations,
                                               std::string_view container_name) {
  std::vector<Affinity> affinities;
  if (pod_annotations.empty()) return affinities;
  RESMGR_RETURN_IF_ERROR(ReadAnnotation(pod_annotations, kAffinity, container_name, 1, affinities));
  RESMGR_RETURN_IF_ERROR(
      ReadAnnotation(pod_annotations, kAntiAffinity, container_name, -1, affinities));
  if (affinities.size() > kMaxAffinities) {
    return InvalidArgument("container {} has {} affinities, {} at most are possible",
                           container_name, affinities.size(), kMaxAffinities);
  }
  return affinities;
}

const StatusOr<std::vector<Affinity>>& AffinityReader::Read(const StringMap& pod_annotations,
                                                            std::string_view container_name) {
  // All that the result depends on, with lengths, so that no text can pass for two.
  std::string key = fmt::format("{}:{}", container_name.size(), container_name);
  bool any = false;
  for (const Keys& keys : {kAffinity, kAntiAffinity}) {
    const auto found = FindFirst(pod_annotations, keys);
    if (found == pod_annotations.end()) continue;
    any = true;
    key += fmt::format("{}:{}:{}", found->first, found->second.size(), found->second);
  }
  if (!any || key.size() > kMaxRememberedSize) {
    not_remembered_ =
        any ? ReadAffinities(pod_annotations, container_name) : std::vector<Affinity>();
    return not_remembered_;
  }
  auto known = known_.find(key);
  if (known == known_.end()) {
    if (known_.size() == kRemembered) {
      known_.erase(std::min_element(known_.begin(), known_.end(), [](const auto& a, const auto& b) {
        return a.second.asked < b.second.asked;
      }));
    }
    known = known_.emplace(std::move(key), Known{ReadAffinities(pod_annotations, container_name)})
                .first;
  }
  known->second.asked = ++clock_;
  return known->second.affinities;
}

}  // namespace resmgr
