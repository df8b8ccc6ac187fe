// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace resmgr {

// The JSON text with another text as the value of this member of its outermost object; every other
// byte stays. nullopt: it has no such member, or one that is no text. `key` and `value` need no
// escapes. Takes time in proportion to the text. Pure function.
std::optional<std::string> WithJsonText(std::string_view json, std::string_view key,
                                        std::string_view value);

}  // namespace resmgr
