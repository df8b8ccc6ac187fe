// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace resmgr {

// JSON from untrusted text and back, in one place for all: nothing throws, depth is bounded, and
// bytes that are not UTF-8 are replaced. The library's parser and writer are templates, which each
// user would compile again. Pure functions.

// Limit of objects and arrays within each other. Kubernetes' own objects have fewer than 40 levels;
// copying, comparing and writing a value takes stack for each level.
inline constexpr size_t kDeepestJson = 200;

// nullopt for what is not JSON, or is nested deeper than kDeepestJson.
std::optional<nlohmann::json> ParseJson(std::string_view text);

// On one line, or with `indent` spaces for each level; bytes that are not UTF-8 are replaced.
std::string JsonText(const nlohmann::json& value, int indent = -1);

// As JsonText, for values that keep the order of their members.
std::string OrderedJsonText(const nlohmann::ordered_json& value);

// Whether no value in a JSON text is within more than `most` lists and objects. To be checked
// before an untrusted text is parsed: each level costs the parser memory and its destructor a call.
// The result is arbitrary if the text is not JSON. Takes time in proportion to the text. Pure
// function.
bool IsShallowJson(std::string_view text, size_t most);

}  // namespace resmgr

// Reading parts of a value: a part that is absent or has another type yields a default, and nothing
// throws. Pure functions.
namespace resmgr::json_path {

using Path = std::initializer_list<std::string_view>;

// The value at a path of nested objects; nullptr if absent.
const nlohmann::json* Find(const nlohmann::json& value, Path path);

// The string at the path, or "".
std::string TextAt(const nlohmann::json& value, Path path);

// The number at the path if it is an int, else 0.
int IntAt(const nlohmann::json& value, Path path);

}  // namespace resmgr::json_path
