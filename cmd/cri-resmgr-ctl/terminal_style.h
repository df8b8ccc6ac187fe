// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ostream>
#include <string_view>

#include "pkg/base/table.h"

namespace resmgr {

// The style of a table that goes to `out`: if that is standard output and a terminal reads it, cut
// to its width unless `wide`, and with states in colours unless NO_COLOR is set (no-color.org).
TableStyle StyleFor(const std::ostream& out, bool wide);

// The colour (SGR) of a state that the daemon tells: good, bad, or to be noticed; "" for all else.
std::string_view ColourOfState(std::string_view state);

}  // namespace resmgr
