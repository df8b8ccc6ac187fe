// SPDX-License-Identifier: Apache-2.0
#include "pkg/admin/rfc3339.h"

#include <ctime>

#include <fmt/format.h>

namespace resmgr {

std::string Rfc3339(std::chrono::system_clock::time_point time) {
  const auto since = time.time_since_epoch();
  const auto millis = std::chrono::floor<std::chrono::milliseconds>(since).count();
  const std::time_t seconds = static_cast<std::time_t>(millis / 1000);
  std::tm utc{};
  ::gmtime_r(&seconds, &utc);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", utc.tm_year + 1900,
                     utc.tm_mon + 1, utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec,
                     millis % 1000);
}

}  // namespace resmgr
