// SPDX-License-Identifier: Apache-2.0
#include "pkg/kube/label_selector.h"

#include <algorithm>
#include <utility>

#include "pkg/base/parse.h"

namespace resmgr {
namespace {

Status Wrong(std::string_view requirement) {
  return InvalidArgument(
      "label selector: \"{}\" is none of KEY=VALUE, KEY!=VALUE, KEY in (A,B), KEY notin (A,B), "
      "KEY, !KEY",
      Printable(requirement));
}

bool IsWordCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '_' || c == '.';
}

bool IsKey(std::string_view text) {
  return !text.empty() &&
         std::ranges::all_of(text, [](char c) { return IsWordCharacter(c) || c == '/'; });
}

bool IsValue(std::string_view text) {
  return std::ranges::all_of(text, IsWordCharacter);
}

// Splits at the commas outside of parentheses.
std::vector<std::string_view> SplitRequirements(std::string_view text) {
  std::vector<std::string_view> pieces;
  size_t begin = 0;
  bool inside = false;
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '(') inside = true;
    if (text[at] == ')') inside = false;
    if (text[at] != ',' || inside) continue;
    pieces.push_back(text.substr(begin, at - begin));
    begin = at + 1;
  }
  pieces.push_back(text.substr(begin));
  return pieces;
}

}  // namespace

StatusOr<LabelSelector> LabelSelector::Parse(std::string_view text) {
  LabelSelector selector;
  if (Trim(text).empty()) return selector;
  for (const std::string_view piece : SplitRequirements(text)) {
    RESMGR_ASSIGN_OR_RETURN(Requirement requirement, ParseRequirement(Trim(piece)));
    selector.requirements_.push_back(std::move(requirement));
  }
  return selector;
}

StatusOr<LabelSelector::Requirement> LabelSelector::ParseRequirement(std::string_view text) {
  if (const size_t open = text.find('('); open != std::string_view::npos) {
    return ParseSet(text, open);
  }
  const size_t equals = text.find('=');
  if (equals == std::string_view::npos) {
    const bool absent = text.starts_with('!');
    const std::string_view key = Trim(text.substr(absent ? 1 : 0));
    if (!IsKey(key)) return Wrong(text);
    return Requirement{.key = std::string(key),
                       .relation = absent ? Relation::kAbsent : Relation::kExists};
  }
  std::string_view key = text.substr(0, equals);
  std::string_view value = text.substr(equals + 1);
  const bool differs = key.ends_with('!');
  if (differs) {
    key.remove_suffix(1);
  } else if (value.starts_with('=')) {
    value.remove_prefix(1);
  }
  key = Trim(key);
  value = Trim(value);
  if (!IsKey(key) || !IsValue(value)) return Wrong(text);
  return Requirement{.key = std::string(key),
                     .relation = differs ? Relation::kNotIn : Relation::kIn,
                     .values = {std::string(value)}};
}

// Parses KEY in (A,B) or KEY notin (A,B); `open` is the position of the parenthesis.
StatusOr<LabelSelector::Requirement> LabelSelector::ParseSet(std::string_view text, size_t open) {
  const std::string_view head = Trim(text.substr(0, open));
  const size_t blank = head.find_last_of(" \t");
  if (blank == std::string_view::npos || !text.ends_with(')')) return Wrong(text);
  const std::string_view word = head.substr(blank + 1);
  const std::string_view key = Trim(head.substr(0, blank));
  if (!IsKey(key) || (word != "in" && word != "notin")) return Wrong(text);
  Requirement requirement{.key = std::string(key),
                          .relation = word == "in" ? Relation::kIn : Relation::kNotIn};
  for (const std::string_view piece : Split(text.substr(open + 1, text.size() - open - 2), ',')) {
    const std::string_view value = Trim(piece);
    if (!IsValue(value)) return Wrong(text);
    requirement.values.emplace_back(value);
  }
  return requirement;
}

bool LabelSelector::Matches(const StringMap& labels) const {
  return std::ranges::all_of(requirements_, [&labels](const Requirement& requirement) {
    const auto label = labels.find(requirement.key);
    const bool exists = label != labels.end();
    const auto has_value = [&] {
      return exists &&
             std::ranges::find(requirement.values, label->second) != requirement.values.end();
    };
    switch (requirement.relation) {
      case Relation::kIn:
        return has_value();
      case Relation::kNotIn:
        return !has_value();
      case Relation::kExists:
        return exists;
      case Relation::kAbsent:
        return !exists;
    }
    return false;
  });
}

}  // namespace resmgr
