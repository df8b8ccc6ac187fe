// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>
#include <string_view>

#include "pkg/base/status.h"

namespace resmgr {

// Tells the service manager about our state: one datagram to the socket named by $NOTIFY_SOCKET, as
// systemd's sd_notify(3) describes it. Without that variable there is no receiver, and the result
// is OK. Never blocks; kUnavailable when the manager does not take the message.

// Whether there is such a manager, which would start us again when we end.
bool HasServiceManager();
// We serve.
Status NotifyReady();
// We are shutting down.
Status NotifyStopping();
// We are alive: to be said more often than every WatchdogPeriod.
Status NotifyWatchdog();
// $WATCHDOG_USEC, where $WATCHDOG_PID names this process or is unset (sd_watchdog_enabled(3));
// nullopt: there is no watchdog.
std::optional<std::chrono::microseconds> WatchdogPeriod();
// One line for the status display; line breaks in it become spaces.
Status NotifyStatus(std::string_view text);

}  // namespace resmgr
