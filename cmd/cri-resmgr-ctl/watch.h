// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <ostream>
#include <string>

#include "pkg/base/status.h"

namespace resmgr {

// Calls `look` every second and shows its text whenever it has changed: on a terminal in place of
// the former text, elsewhere below it. Returns the first error of `look`, or when the output cannot
// be written; Ctrl-C ends the program.
Status Watch(const std::function<StatusOr<std::string>()>& look, std::ostream& out);

}  // namespace resmgr
