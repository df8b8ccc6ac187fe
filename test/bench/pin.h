// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace resmgr::bench {

// Puts this process, and those that it starts from now on, on this CPU; -1: on none. The costs of
// client, backend and proxies then add up instead of hiding behind wake-ups of another CPU. Others
// on it are noise, and come behind where the user may say so. False: the CPU cannot be had.
bool Pin(int cpu);

}  // namespace resmgr::bench
