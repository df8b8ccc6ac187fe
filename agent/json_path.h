// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace resmgr::agent {

using Json = nlohmann::json;

// Reading JSON from untrusted sources: a value that is absent or of another type is nothing,
// and nothing throws.

// The value at a path of nested objects; nullptr if absent.
const Json* Find(const Json& value, std::initializer_list<std::string_view> path);

// The string at the path, or "".
std::string TextAt(const Json& value, std::initializer_list<std::string_view> path);

// The number at the path if it is an int, else 0.
int IntAt(const Json& value, std::initializer_list<std::string_view> path);

}  // namespace resmgr::agent
