// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "pkg/base/status.h"

namespace resmgr::docker {

// The code by which metrics, dumps and stages count a status of HTTP; kUnknown for other errors.
StatusCode CodeOfStatus(int http_status);
// The status with which dockerd answers errors of this code.
int StatusOfCode(StatusCode code);
// "Bad Request".
std::string_view ReasonOf(int http_status);

}  // namespace resmgr::docker
