// SPDX-License-Identifier: Apache-2.0
#include "cmd/cri-resmgr-ctl/amounts.h"

#include <cmath>

#include <fmt/format.h>

namespace resmgr {

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
