// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>

#include <sys/types.h>

namespace resmgr::bench {

// CPU time of all threads of the process so far, as the scheduler counts it (exact to nanoseconds
// while the process sleeps). Threads that have ended are not counted.
std::chrono::nanoseconds CpuTime(pid_t pid);

// The most memory that the process ever held, and what it holds now, in KiB. 0: no such process.
int64_t PeakRssKib(pid_t pid);
int64_t RssKib(pid_t pid);

}  // namespace resmgr::bench
