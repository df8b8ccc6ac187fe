// SPDX-License-Identifier: Apache-2.0
#include "test/bench/pin.h"

#include <cstddef>

#include <sched.h>
#include <sys/resource.h>

namespace resmgr::bench {

bool Pin(int cpu) {
  constexpr int kHighestPriority = -20;
  if (cpu < 0) return true;
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<size_t>(cpu), &set);
  (void)::setpriority(PRIO_PROCESS, 0, kHighestPriority);
  return ::sched_setaffinity(0, sizeof(set), &set) == 0;
}

}  // namespace resmgr::bench
