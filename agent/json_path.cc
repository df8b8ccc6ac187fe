// SPDX-License-Identifier: Apache-2.0
#include "agent/json_path.h"

#include <cstdint>
#include <limits>

namespace resmgr::agent {

const Json* Find(const Json& value, std::initializer_list<std::string_view> path) {
  const Json* at = &value;
  for (const std::string_view key : path) {
    if (!at->is_object()) return nullptr;
    const auto found = at->find(key);
    if (found == at->end()) return nullptr;
    at = &*found;
  }
  return at;
}

std::string TextAt(const Json& value, std::initializer_list<std::string_view> path) {
  const Json* found = Find(value, path);
  return found != nullptr && found->is_string() ? found->get<std::string>() : "";
}

int IntAt(const Json& value, std::initializer_list<std::string_view> path) {
  const Json* found = Find(value, path);
  if (found == nullptr || !found->is_number_integer()) return 0;
  const auto number = found->get<int64_t>();
  if (number < std::numeric_limits<int>::min() || number > std::numeric_limits<int>::max()) {
    return 0;
  }
  return static_cast<int>(number);
}

}  // namespace resmgr::agent
