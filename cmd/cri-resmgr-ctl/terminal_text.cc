// SPDX-License-Identifier: Apache-2.0
#include "cmd/cri-resmgr-ctl/terminal_text.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <utility>

#include <fmt/format.h>
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

std::string CpusText(int64_t milli_cpus) {
  // Adding 0 turns a negative zero into zero.
  return fmt::format("{:g}", std::round(static_cast<double>(milli_cpus) / 10) / 100 + 0.0);
}

std::string TimeText(std::chrono::seconds time) {
  const int64_t seconds = time.count();
  const int64_t minutes = seconds / 60;
  const int64_t hours = minutes / 60;
  if (seconds < 60) return fmt::format("{} s", seconds);
  if (minutes < 60) return fmt::format("{} min", minutes);
  if (hours < 24) return fmt::format("{} h {} min", hours, minutes % 60);
  return fmt::format("{} d {} h", hours / 24, hours % 24);
}

}  // namespace resmgr
