// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "pkg/base/status.h"

namespace resmgr::webhook {

// The member of `object`, nullptr when it is absent or null. InvalidArgument when `object` is not
// an object, or the member is not one.
StatusOr<const nlohmann::json*> ObjectAt(const nlohmann::json& object, std::string_view name);

// The text of the member, empty when it is absent or null. InvalidArgument when `object` is not an
// object, or the member is not a string.
StatusOr<std::string> StringAt(const nlohmann::json& object, std::string_view name);

}  // namespace resmgr::webhook
