// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/base/status.h"

namespace resmgr::docker {

// Finds members and elements of JSON texts in place, so that single ones can be replaced while all
// other bytes stay. Texts are read as Go's encoding/json, which dockerd uses, reads them. Pure
// functions.

// Depth of nested lists and objects.
inline constexpr size_t kMaxJsonDepth = 100;

// kInvalidArgument: not exactly one JSON value, or nested deeper than kMaxJsonDepth. Texts need not
// be UTF-8: Go reads invalid bytes as U+FFFD.
Status CheckJson(std::string_view text);

// The following functions take texts that have passed CheckJson, or parts of such texts.

inline bool IsJsonObject(std::string_view value) {
  return value.starts_with('{');
}
inline bool IsJsonList(std::string_view value) {
  return value.starts_with('[');
}
inline bool IsJsonText(std::string_view value) {
  return value.starts_with('"');
}
inline bool IsJsonNull(std::string_view value) {
  return value == "null";
}

// Called for each member of an object, or element of a list, in order, with views into the text.
// `name` has its quotes.
using OnMember = std::function<void(std::string_view name, std::string_view value)>;
void ForEachMember(std::string_view object, const OnMember& on_member);
using OnElement = std::function<void(std::string_view value)>;
void ForEachElement(std::string_view list, const OnElement& on_element);

// The values of members with exactly these names, as dockerd writes them itself; "" for one that is
// absent, and for all if the value is not an object.
template <size_t N>
std::array<std::string_view, N> MembersOf(std::string_view value,
                                          const std::string_view (&names)[N]) {
  std::array<std::string_view, N> values{};
  if (!IsJsonObject(value)) return values;
  ForEachMember(value, [&](std::string_view quoted, std::string_view member) {
    const std::string_view name = quoted.substr(1, quoted.size() - 2);
    for (size_t i = 0; i < N; ++i)
      if (name == names[i]) values[i] = member;
  });
  return values;
}

// Joins the elements of a list, or the members of an object.
std::string JoinJson(const std::vector<std::string>& parts);

// The elements of the list for which `drops` is false; none if the value is not a list.
std::vector<std::string> ElementsWithout(std::string_view list,
                                         const std::function<bool(std::string_view value)>& drops);

// Decodes a quoted string.
std::string DecodeJsonText(std::string_view quoted);
// The same for a value of any type; "" if it is not a text.
std::string TextOf(std::string_view value);
std::string EncodeJsonText(std::string_view text);

// Whether Go reads a member with this quoted name into the field `field`: case is ignored, also for
// the Unicode characters that fold to "k" and "s".
bool IsField(std::string_view quoted, std::string_view field);
// The last member of the object that Go reads into the field, the one that counts; "" if absent.
std::string_view LastMember(std::string_view object, std::string_view field);

// The last such member that is a text. `body` need not have passed CheckJson, nor be an object.
std::optional<std::string> LastText(std::string_view body, std::string_view field);

}  // namespace resmgr::docker
