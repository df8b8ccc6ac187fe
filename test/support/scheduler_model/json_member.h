// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include <nlohmann/json.hpp>

namespace resmgr::test {

// A member of an object, or an empty object where it is absent or null. The reference is as long
// valid as the object, so that a loop may run over its items().
inline const nlohmann::json& MemberOf(const nlohmann::json& object, std::string_view key) {
  static const nlohmann::json kEmpty = nlohmann::json::object();
  const auto found = object.find(key);
  return found == object.end() || found->is_null() ? kEmpty : *found;
}

}  // namespace resmgr::test
