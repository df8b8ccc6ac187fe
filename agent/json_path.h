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

// The value below nested objects; nullptr where there is none.
const Json* Find(const Json& value, std::initializer_list<std::string_view> path);

// A string there, or "".
std::string TextAt(const Json& value, std::initializer_list<std::string_view> path);

// A number there that is an int, or 0.
int IntAt(const Json& value, std::initializer_list<std::string_view> path);

}  // namespace resmgr::agent
