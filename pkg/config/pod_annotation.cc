// SPDX-License-Identifier: Apache-2.0
#include "pkg/config/pod_annotation.h"

#include <algorithm>

#include <fmt/format.h>

#include "pkg/base/characters.h"
#include "pkg/base/parse.h"
#include "pkg/base/suggest.h"
#include "pkg/config/yaml_reader.h"
#include "pkg/kube/annotations.h"

namespace resmgr {
namespace {

// Whether the text has no characters with a meaning in YAML.
bool IsPlainWord(std::string_view text) {
  if (text.empty() || !IsLetter(text.front()) || EqualsIgnoreCase(text, "null")) return false;
  return std::ranges::all_of(
      text, [](char c) { return IsLetterOrDigit(c) || c == ',' || c == '.' || c == '-'; });
}

StatusOr<ConfigNode> Parse(std::string_view text, std::string_view key) {
  // Most values are single words, which need no YAML parser.
  if (!ParseBool(text) && !IsPlainWord(text)) return ParseYaml(text, key);
  return ScalarNode(text);
}

StatusOr<ConfigNode> ValueOf(const ScopedAnnotation& annotation, std::string_view key,
                             std::string_view container_name) {
  if (annotation.value.size() > kMaxAnnotationText) {
    return InvalidArgument("it has {} bytes, {} at most are read", annotation.value.size(),
                           kMaxAnnotationText);
  }
  StatusOr<ConfigNode> value = Parse(annotation.value, key);
  if (!value.ok() || !annotation.old_form || value->kind != ConfigNode::Kind::kMap) return value;
  const ConfigNode* const own = FindMember(*value, container_name);
  return own == nullptr ? ConfigNode{} : ConfigNode(*own);
}

// Limits of what MistypedInMaps reports.
constexpr size_t kMostTypos = 5;
constexpr size_t kMostValue = 64;

// Why an entry of a map is probably mistyped; "" if it is not.
std::string WhyMistyped(const ConfigNode::Entry& entry, bool is_boolean,
                        const std::vector<std::string_view>& containers) {
  const bool there = std::ranges::find(containers, entry.key) != containers.end();
  const std::string_view closest = there ? "" : ClosestName(entry.key, containers);
  if (!closest.empty()) {
    return fmt::format("the pod has no container {} now; did you mean {}?", Printable(entry.key),
                       Printable(closest));
  }
  const ConfigNode& value = entry.value;
  if (!is_boolean || value.kind == ConfigNode::Kind::kNull ||
      (value.kind == ConfigNode::Kind::kScalar && ParseBool(value.text)))
    return "";
  return fmt::format("{} is not true or false", value.kind == ConfigNode::Kind::kScalar
                                                    ? '"' + Printable(value.text, kMostValue) + '"'
                                                    : std::string(ToString(value.kind)));
}

}  // namespace

std::vector<std::string> MistypedInMaps(const StringMap& annotations,
                                        const std::vector<std::string_view>& containers) {
  std::vector<std::string> typos;
  for (const auto& [annotation, text] : annotations) {
    const std::optional<MapAnnotation> known = AsMapAnnotation(annotation);
    if (!known || (!known->has_booleans && containers.empty())) continue;
    if (text.size() > kMaxAnnotationText || text.find(':') == std::string_view::npos) continue;
    const StatusOr<ConfigNode> map = ParseYaml(text, annotation);
    if (!map.ok() || map->kind != ConfigNode::Kind::kMap) continue;
    for (const ConfigNode::Entry& entry : map->entries) {
      const std::string why = WhyMistyped(entry, known->has_booleans, containers);
      if (why.empty()) continue;
      typos.push_back(fmt::format("annotation {}: {} ignored: {}", Printable(annotation),
                                  Printable(entry.key), why));
      if (typos.size() == kMostTypos) return typos;
    }
  }
  return typos;
}

StatusOr<ConfigNode> ReadAnnotation(const StringMap& annotations, std::string_view key,
                                    std::string_view container_name) {
  const auto found = FindAnnotation(annotations, key, container_name);
  return found ? ValueOf(*found, key, container_name) : ConfigNode{};
}

std::optional<bool> ReadBoolAnnotation(const StringMap& annotations, std::string_view key,
                                       std::string_view container_name) {
  const auto found = FindAnnotation(annotations, key, container_name);
  if (!found) return std::nullopt;
  // Policies ask on every decision, so only a map is parsed as YAML.
  if (const auto plain = BoolOfAnnotation(found->value); plain || !MayBeMap(*found)) return plain;
  const StatusOr<ConfigNode> value = ValueOf(*found, key, container_name);
  if (!value.ok() || value->kind != ConfigNode::Kind::kScalar) return std::nullopt;
  return ParseBool(value->text);
}

}  // namespace resmgr
