// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "pkg/base/bytes_text.h"

namespace resmgr {

// Amounts in readable form; for memory see pkg/base/bytes_text.h.

// Milli-CPUs as CPUs, to a hundredth: "2", "0.5", "0.25"; "0" for less than that.
std::string CpusText(int64_t milli_cpus);

// The time in its two largest units: "45 s", "12 min", "3 h 5 min", "9 d 4 h".
std::string TimeText(std::chrono::seconds time);

}  // namespace resmgr
