// SPDX-License-Identifier: Apache-2.0
#include "pkg/base/json.h"

#include <cstdint>
#include <limits>

namespace resmgr {

std::optional<nlohmann::json> ParseJson(std::string_view text) {
  if (!IsShallowJson(text, kDeepestJson)) return std::nullopt;
  nlohmann::json value = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (value.is_discarded()) return std::nullopt;
  return value;
}

std::string JsonText(const nlohmann::json& value, int indent) {
  return value.dump(indent, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string OrderedJsonText(const nlohmann::ordered_json& value) {
  return value.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

bool IsShallowJson(std::string_view text, size_t most) {
  size_t depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      if (++depth > most) return false;
    } else if ((c == ']' || c == '}') && depth > 0) {
      --depth;
    }
  }
  return true;
}

}  // namespace resmgr

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
