// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>
#include <string_view>

#include "pkg/base/status.h"

namespace resmgr {

// Reports this process's state to the service manager: one datagram to the socket named by
// $NOTIFY_SOCKET, as in systemd's sd_notify(3). Without that variable nothing is sent, and the
// result is OK. Never blocks; kUnavailable if the manager does not take the message.

// Whether a service manager runs this process, and so would start it again after its end.
bool HasServiceManager();
// This process serves now.
Status NotifyReady();
// This process is shutting down.
Status NotifyStopping();
// This process is alive. Must be sent more often than every WatchdogPeriod.
Status NotifyWatchdog();
// $WATCHDOG_USEC, if $WATCHDOG_PID is this process or unset (sd_watchdog_enabled(3)); nullopt:
// there is no watchdog.
std::optional<std::chrono::microseconds> WatchdogPeriod();
// One line for the status display; line breaks in it become spaces.
Status NotifyStatus(std::string_view text);

}  // namespace resmgr
