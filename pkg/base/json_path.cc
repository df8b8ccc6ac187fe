// SPDX-License-Identifier: Apache-2.0
#include "pkg/base/json_path.h"

#include <cstdint>
#include <limits>

namespace resmgr::json_path {

const nlohmann::json* Find(const nlohmann::json& value, Path path) {
  const nlohmann::json* at = &value;
  for (const std::string_view key : path) {
    if (!at->is_object()) return nullptr;
    const auto found = at->find(key);
    if (found == at->end()) return nullptr;
    at = &*found;
  }
  return at;
}

std::string TextAt(const nlohmann::json& value, Path path) {
  const nlohmann::json* const found = Find(value, path);
  return found != nullptr && found->is_string() ? found->get<std::string>() : "";
}

int IntAt(const nlohmann::json& value, Path path) {
  const nlohmann::json* const found = Find(value, path);
  if (found == nullptr || !found->is_number_integer()) return 0;
  const auto number = found->get<int64_t>();
  if (number < std::numeric_limits<int>::min() || number > std::numeric_limits<int>::max()) {
    return 0;
  }
  return static_cast<int>(number);
}

}  // namespace resmgr::json_path
