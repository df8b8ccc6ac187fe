// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <thread>

namespace resmgr {

// A thread for blocking work beside the event loop's. Signals are left to the other threads. `name`
// has at most 15 bytes. Throws std::system_error where no thread can be made.
std::thread StartThread(const char* name, std::function<void()> run);

}  // namespace resmgr
