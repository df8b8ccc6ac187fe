// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <nlohmann/json.hpp>

#include "pkg/model/problem.h"
#include "pkg/node/problem_times.h"

namespace resmgr {

// A fixed outside contract of `cri-resmgr-ctl status -o json`: a list of
//   {"kind","since" (RFC 3339),"message","objects":[],"next"}
nlohmann::ordered_json ProblemsJson(const std::vector<Problem>& problems);

}  // namespace resmgr
