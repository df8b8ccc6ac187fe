// SPDX-License-Identifier: Apache-2.0
#include "pkg/base/json.h"

#include "pkg/base/json_depth.h"

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

}  // namespace resmgr
