// SPDX-License-Identifier: Apache-2.0
#include "policies/balloons/balloon_groups.h"

#include <algorithm>
#include <optional>

#include "pkg/base/parse.h"
#include "pkg/policy/expression.h"

namespace resmgr {
namespace {

struct GroupPart {
  std::string_view text{};
  bool key = false;
  bool closed = true;
};

// Takes the first part of a text; nullopt at its end.
std::optional<GroupPart> NextGroupPart(std::string_view& text) {
  if (text.empty()) return std::nullopt;
  const size_t dollar = std::min(text.find('$'), text.size());
  if (dollar > 0) {
    const std::string_view plain = text.substr(0, dollar);
    text.remove_prefix(dollar);
    return GroupPart{.text = plain};
  }
  text.remove_prefix(1);
  if (text.empty() || text.front() == '$') {
    const GroupPart part{.text = text.substr(0, 1)};
    text.remove_prefix(part.text.size());
    return part;
  }
  const bool braces = text.front() == '{';
  if (braces) text.remove_prefix(1);
  const size_t found = text.find(braces ? '}' : '$');
  const size_t end = std::min(found, text.size());
  const GroupPart part{.text = text.substr(0, end), .key = true, .closed = !braces || end == found};
  text.remove_prefix(std::min(end + (braces ? 1 : 0), text.size()));
  return part;
}

}  // namespace

std::string ExpandGroup(std::string_view text, const Pod& pod, const Container& container) {
  std::string group;
  while (const std::optional<GroupPart> part = NextGroupPart(text)) {
    std::string scratch;
    const auto value =
        part->key ? ResolveKey(part->text, pod, container, scratch) : std::optional(part->text);
    if (!value) return {};
    group += *value;
  }
  return group;
}

Status CheckGroup(std::string_view text) {
  while (const std::optional<GroupPart> part = NextGroupPart(text)) {
    if (!part->closed)
      return InvalidArgument("\"{}\" has ${{ without }}", Printable(part->text, 64));
    if (!part->key) continue;
    const ConfigNode expression = MapNode({{.key = "key", .value = ScalarNode(part->text)},
                                           {.key = "operator", .value = ScalarNode("Exists")}});
    if (Expression::Parse(expression).ok()) continue;
    return InvalidArgument("there is no key \"{}\"; the keys are those of matchExpressions",
                           Printable(part->text, 64));
  }
  return OkStatus();
}

}  // namespace resmgr
