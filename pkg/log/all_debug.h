// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace resmgr {

// Turns the debug messages of all sources on, or off again if they were turned on by this; returns
// whether they are on. While they are on, ConfigureLogging (log.h) takes effect when they are
// turned off. SetLogLevel for all sources turns them off, too. Thread-safe.
bool ToggleAllDebug();

}  // namespace resmgr
