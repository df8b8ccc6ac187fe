// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace resmgr {

// Amounts as people read them.

// In the largest unit of which there is at least one: "32 MiB", "1.5 GiB", "0".
std::string BytesText(int64_t bytes);
// "4 of 32 GiB", "32 MiB of 2 GiB"
std::string BytesOf(int64_t used, int64_t bytes);

// Milli-CPUs as CPUs, to a hundredth: "2", "0.5", "0.25"; "0" for less than that.
std::string CpusText(int64_t milli_cpus);

// "45 s", "12 min", "3 h 5 min", "9 d 4 h"
std::string TimeText(std::chrono::seconds time);

}  // namespace resmgr
