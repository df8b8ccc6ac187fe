// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace resmgr {

// JSON from untrusted text and back, in one place for all: nothing throws, depth is bounded, and
// bytes that are not UTF-8 are replaced. The library's parser and writer are templates, which each
// user would compile again. Pure functions.

// Objects and arrays within each other. Kubernetes' own objects have fewer than 40; copying,
// comparing and writing a value takes stack for each level.
inline constexpr size_t kDeepestJson = 200;

// nullopt for what is not JSON, or is nested deeper than kDeepestJson.
std::optional<nlohmann::json> ParseJson(std::string_view text);

// On one line, or with `indent` spaces for each level; bytes that are not UTF-8 are replaced.
std::string JsonText(const nlohmann::json& value, int indent = -1);

// As JsonText, for values that keep the order of their members.
std::string OrderedJsonText(const nlohmann::ordered_json& value);

}  // namespace resmgr
