// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/base/status.h"

namespace resmgr::docker {

// JSON texts in place: where members and elements lie, so that one can be replaced and all other
// bytes stay. Read as Go's encoding/json reads them, which dockerd is made with. Pure functions.

// Lists and objects within each other.
inline constexpr size_t kMaxJsonDepth = 100;

// kInvalidArgument: not exactly one value of JSON, or deeper than kMaxJsonDepth. Texts need not be
// UTF-8: Go reads what is not as U+FFFD.
Status CheckJson(std::string_view text);

// What follows takes texts that have passed CheckJson, or parts of such.

// The value without white space around it.
std::string_view TrimJson(std::string_view text);
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

// One after the other, in their order; views into `object` (`list`). `name` has its quotes.
using OnMember = std::function<void(std::string_view name, std::string_view value)>;
void ForEachMember(std::string_view object, const OnMember& on_member);
using OnElement = std::function<void(std::string_view value)>;
void ForEachElement(std::string_view list, const OnElement& on_element);

// The elements of a list, or members of an object, one behind the other.
std::string JoinJson(const std::vector<std::string>& parts);

// Of a text in quotes.
std::string DecodeJsonText(std::string_view quoted);
std::string EncodeJsonText(std::string_view text);
// nullopt: no integer of 64 bits.
std::optional<int64_t> DecodeJsonInteger(std::string_view value);

// Whether Go reads a member with this name, in quotes, into the field `field`: small and capital
// letters are the same, and so are "k" and "s" and what Unicode folds to these.
bool IsField(std::string_view quoted, std::string_view field);
// The last member of the object that Go reads into the field, which counts; "": there is none.
std::string_view LastMember(std::string_view object, std::string_view field);

}  // namespace resmgr::docker
