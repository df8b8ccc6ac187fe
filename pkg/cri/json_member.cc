// SPDX-License-Identifier: Apache-2.0
#include "pkg/cri/json_member.h"

#include <cstddef>

namespace resmgr {

namespace {

// The position after the closing quote of a text that begins at `at`; npos: there is none.
size_t EndOfText(std::string_view json, size_t at) {
  for (size_t i = at + 1; i < json.size(); ++i) {
    if (json[i] == '\\') {
      ++i;
    } else if (json[i] == '"') {
      return i + 1;
    }
  }
  return std::string_view::npos;
}

size_t SkipSpace(std::string_view json, size_t at) {
  while (at < json.size() && std::string_view(" \t\r\n").find(json[at]) != std::string_view::npos)
    ++at;
  return at;
}

}  // namespace

std::optional<std::string> WithJsonText(std::string_view json, std::string_view key,
                                        std::string_view value) {
  int depth = 0;
  for (size_t at = 0; at < json.size();) {
    const char c = json[at];
    if (c == '{' || c == '[') ++depth;
    if (c == '}' || c == ']') --depth;
    if (c != '"') {
      ++at;
      continue;
    }
    const size_t end = EndOfText(json, at);
    if (end == std::string_view::npos) return std::nullopt;
    const std::string_view text = json.substr(at + 1, end - at - 2);
    at = SkipSpace(json, end);
    // A value is not followed by a colon, unlike a key.
    if (depth != 1 || text != key || at >= json.size() || json[at] != ':') continue;
    const size_t begin = SkipSpace(json, at + 1);
    if (begin >= json.size() || json[begin] != '"') return std::nullopt;
    const size_t value_end = EndOfText(json, begin);
    if (value_end == std::string_view::npos) return std::nullopt;
    std::string changed(json.substr(0, begin + 1));
    changed += value;
    changed += json.substr(value_end - 1);
    return changed;
  }
  return std::nullopt;
}

}  // namespace resmgr
