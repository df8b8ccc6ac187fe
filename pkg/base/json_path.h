// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

// Reading JSON from untrusted sources: a value that is absent or of another type is nothing, and
// nothing throws. Pure functions.
namespace resmgr::json_path {

using Path = std::initializer_list<std::string_view>;

// The value at a path of nested objects; nullptr if absent.
const nlohmann::json* Find(const nlohmann::json& value, Path path);

// The string at the path, or "".
std::string TextAt(const nlohmann::json& value, Path path);

// The number at the path if it is an int, else 0.
int IntAt(const nlohmann::json& value, Path path);

}  // namespace resmgr::json_path
