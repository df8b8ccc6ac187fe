// SPDX-License-Identifier: Apache-2.0
#include "pkg/kube/glob.h"

#include <cstddef>

namespace resmgr {
namespace {

constexpr std::string_view::size_type kNone = std::string_view::npos;

// Where the class that begins at `at` ends; kNone if none does. Its first member may be `]`.
size_t ClassEnd(std::string_view pattern, size_t at) {
  const size_t first = at + 1;
  const bool negated = first < pattern.size() && pattern[first] == '^';
  return pattern.find(']', first + (negated ? 2 : 1));
}

// `members` is the text between the brackets.
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

// Behind the part of the pattern at `at` that matches this one character; kNone if it does not.
size_t AfterMatch(std::string_view pattern, size_t at, char c) {
  if (at >= pattern.size()) return kNone;
  const size_t end = pattern[at] == '[' ? ClassEnd(pattern, at) : kNone;
  if (end != kNone) {
    return InClass(pattern.substr(at + 1, end - at - 1), c) ? end + 1 : kNone;
  }
  return pattern[at] == '?' || pattern[at] == c ? at + 1 : kNone;
}

}  // namespace

bool IsGlob(std::string_view pattern) {
  for (size_t at = pattern.find('['); at != kNone; at = pattern.find('[', at)) {
    at = ClassEnd(pattern, at);
    if (at == kNone) return false;
  }
  return true;
}

// Only the last star needs another try: a longer match of an earlier star could not help.
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

}  // namespace resmgr
