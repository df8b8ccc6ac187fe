// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include <nlohmann/json.hpp>

#include "pkg/classes/class_report.h"

namespace resmgr {

// A fixed outside contract of `cri-resmgr-ctl classes -o json`: a list of
//   {"kind","name","state":"active"|"inactive","reason","containers":["namespace/pod/container"]}
nlohmann::ordered_json ClassesJson(const ClassReport& report);

// Those of one container, for `explain`: a list of
//   {"kind","name","state","source","way","inForce","reason"}
nlohmann::ordered_json ContainerClassesJson(const ClassReport& report, std::string_view id);

// The files of the host that have values of ours, and what they had before: {"file","before"}
nlohmann::ordered_json ChangedFilesJson(const ClassReport& report);

}  // namespace resmgr
