// SPDX-License-Identifier: Apache-2.0
#include "pkg/kube/names.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "pkg/base/characters.h"
#include "pkg/base/parse.h"

namespace resmgr {
namespace {

constexpr size_t kMaxSubdomain = 253;
constexpr size_t kMaxLabelName = 63;

bool IsSmallOrDigit(char c) {
  return IsLowerCase(c) || IsDigit(c);
}

bool IsWordCharacter(char c) {
  return IsLetterOrDigit(c) || c == '-' || c == '_' || c == '.';
}

bool IsSubdomainPart(std::string_view part) {
  return !part.empty() && IsSmallOrDigit(part.front()) && IsSmallOrDigit(part.back()) &&
         std::all_of(part.begin(), part.end(),
                     [](char c) { return IsSmallOrDigit(c) || c == '-'; });
}

bool IsLabelName(std::string_view name) {
  return !name.empty() && name.size() <= kMaxLabelName && IsLetterOrDigit(name.front()) &&
         IsLetterOrDigit(name.back()) && std::ranges::all_of(name, IsWordCharacter);
}

constexpr std::string_view::size_type kNone = std::string_view::npos;

// Returns where the bracket expression that begins at `at` ends; kNone if it has no end. A `]` may
// be its first member.
size_t ClassEnd(std::string_view pattern, size_t at) {
  const size_t first = at + 1;
  const bool negated = first < pattern.size() && pattern[first] == '^';
  return pattern.find(']', first + (negated ? 2 : 1));
}

// Whether the bracket expression contains `c`; `members` is the text between the brackets.
bool InClass(std::string_view members, char c) {
  const bool negated = members.starts_with('^');
  if (negated) members.remove_prefix(1);
  bool found = false;
  while (!members.empty()) {
    const bool range = members.size() > 2 && members[1] == '-';
    found |= range ? members[0] <= c && c <= members[2] : members[0] == c;
    members.remove_prefix(range ? 3 : 1);
  }
  return found != negated;
}

// If the part of the pattern at `at` matches the character, returns the position behind that part;
// else kNone.
size_t AfterMatch(std::string_view pattern, size_t at, char c) {
  if (at >= pattern.size()) return kNone;
  const size_t end = pattern[at] == '[' ? ClassEnd(pattern, at) : kNone;
  if (end != kNone) {
    return InClass(pattern.substr(at + 1, end - at - 1), c) ? end + 1 : kNone;
  }
  return pattern[at] == '?' || pattern[at] == c ? at + 1 : kNone;
}

Status Wrong(std::string_view requirement) {
  return InvalidArgument(
      "label selector: \"{}\" is none of KEY=VALUE, KEY!=VALUE, KEY in (A,B), KEY notin (A,B), "
      "KEY, !KEY",
      Printable(requirement));
}

bool IsLabelValue(std::string_view text) {
  return text.empty() || IsLabelName(text);
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

bool IsSubdomain(std::string_view name) {
  const auto parts = Split(name, '.');
  return name.size() <= kMaxSubdomain && std::all_of(parts.begin(), parts.end(), IsSubdomainPart);
}

bool IsLabelKey(std::string_view key) {
  const size_t slash = key.find('/');
  if (slash == std::string_view::npos) return IsLabelName(key);
  return IsSubdomain(key.substr(0, slash)) && IsLabelName(key.substr(slash + 1));
}

bool IsGlob(std::string_view pattern) {
  for (size_t at = pattern.find('['); at != kNone; at = pattern.find('[', at)) {
    at = ClassEnd(pattern, at);
    if (at == kNone) return false;
  }
  return true;
}

// Only the last star is tried again with a longer match: a longer match of an earlier star could
// not help.
bool MatchesGlob(std::string_view pattern, std::string_view text) {
  size_t p = 0;
  size_t t = 0;
  size_t star = std::string_view::npos;
  size_t after_star = 0;  // end of the star's match in `text`
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      after_star = t;
    } else if (const size_t next = AfterMatch(pattern, p, text[t]); next != kNone) {
      p = next;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++after_star;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*')
    ++p;
  return p == pattern.size();
}

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
    if (!IsLabelKey(key)) return Wrong(text);
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
  if (!IsLabelKey(key) || !IsLabelValue(value)) return Wrong(text);
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
  if (!IsLabelKey(key) || (word != "in" && word != "notin")) return Wrong(text);
  Requirement requirement{.key = std::string(key),
                          .relation = word == "in" ? Relation::kIn : Relation::kNotIn};
  for (const std::string_view piece : Split(text.substr(open + 1, text.size() - open - 2), ',')) {
    const std::string_view value = Trim(piece);
    if (!IsLabelValue(value)) return Wrong(text);
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
