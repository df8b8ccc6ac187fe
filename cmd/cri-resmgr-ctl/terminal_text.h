// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <ostream>
#include <string>
#include <string_view>

#include "pkg/base/amount_text.h"
#include "pkg/base/terminal.h"

namespace resmgr {

// The style of a table that goes to `out`: if that is standard output and a terminal reads it, cut
// to its width unless `wide`, and with states in colours unless NO_COLOR is set (no-color.org).
TableStyle StyleFor(const std::ostream& out, bool wide);

// The colour (SGR) of a state that the daemon reports: good, bad, or to be noticed; "" for all
// else.
std::string_view ColourOfState(std::string_view state);

// Amounts in readable form; for memory see pkg/base/amount_text.h.

// Milli-CPUs as CPUs, to a hundredth: "2", "0.5", "0.25"; "0" for less than that.
std::string CpusText(int64_t milli_cpus);

// The time in its two largest units: "45 s", "12 min", "3 h 5 min", "9 d 4 h".
std::string TimeText(std::chrono::seconds time);

}  // namespace resmgr
