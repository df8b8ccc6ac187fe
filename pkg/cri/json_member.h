// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace resmgr {

// The JSON text with another string as the value of this member of its outermost object; every
// other byte stays. nullopt: there is no such member, or its value is not a string. `key` and
// `value` must not need escapes. Takes time in proportion to the text. Pure function.
std::optional<std::string> WithJsonText(std::string_view json, std::string_view key,
                                        std::string_view value);

}  // namespace resmgr
