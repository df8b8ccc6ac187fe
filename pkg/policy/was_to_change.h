// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace resmgr {

// The reason of a found placement until the first decision after a restart, where a change of it
// was admitted and is not in force or not known: exclusive CPUs that are saved and on which the
// container is not yet, or an update that is not saved. So the shared CPUs of such a container do
// not show that there was no room for CPUs of its own.
inline constexpr std::string_view kWasToChange = "was to change when the daemon ended";

}  // namespace resmgr
