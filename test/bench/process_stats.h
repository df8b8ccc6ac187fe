// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <string_view>

#include <sys/types.h>

namespace resmgr::bench {

// CPU time of the process so far, as the scheduler counts it, in nanoseconds, with that of threads
// that have ended: a sample of use is taken on a thread of its own. 0: no such process.
std::chrono::nanoseconds CpuTime(pid_t pid);
// The CPU time of the present threads with another name.
std::chrono::nanoseconds CpuTimeWithout(pid_t pid, std::string_view thread_name);

// The greatest and the present memory of the process, in KiB. 0: no such process.
int64_t PeakRssKib(pid_t pid);
int64_t RssKib(pid_t pid);

}  // namespace resmgr::bench
