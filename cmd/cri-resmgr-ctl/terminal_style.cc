// SPDX-License-Identifier: Apache-2.0
#include "cmd/cri-resmgr-ctl/terminal_style.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <iostream>
#include <utility>

#include <sys/ioctl.h>
#include <unistd.h>

namespace resmgr {
namespace {

constexpr std::string_view kGreen = "32";
constexpr std::string_view kRed = "31";
constexpr std::string_view kYellow = "33";
constexpr std::string_view kBlue = "34";

constexpr std::array<std::pair<std::string_view, std::string_view>, 18> kColours = {{
    {"running", kGreen},
    {"ready", kGreen},
    {"connected", kGreen},
    {"placed", kGreen},
    {"refused", kRed},
    {"failed", kRed},
    {"hanging", kRed},
    {"disconnected", kRed},
    {"unreachable", kRed},
    {"offline", kRed},
    {"let through", kYellow},
    {"written", kYellow},
    {"moved", kYellow},
    {"creating", kYellow},
    {"exited", kYellow},
    {"unassigned", kYellow},
    {"exclusive", kBlue},
    {"isolated", kBlue},
}};

}  // namespace

TableStyle StyleFor(const std::ostream& out, bool wide) {
  TableStyle style;
  if (out.rdbuf() != std::cout.rdbuf() || ::isatty(STDOUT_FILENO) != 1) return style;
  winsize size = {};
  if (!wide && ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0) style.width = size.ws_col;
  const char* const no_colour = std::getenv("NO_COLOR");
  if (no_colour == nullptr || *no_colour == '\0') style.colour = &ColourOfState;
  return style;
}

std::string_view ColourOfState(std::string_view state) {
  const auto found =
      std::ranges::find(kColours, state, [](const auto& each) { return each.first; });
  return found == kColours.end() ? std::string_view() : found->second;
}

}  // namespace resmgr
