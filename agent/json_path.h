// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "pkg/base/json_path.h"

namespace resmgr::agent {

using Json = nlohmann::json;
using json_path::Find;
using json_path::IntAt;
using json_path::TextAt;

}  // namespace resmgr::agent
