// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mutex>
#include <string_view>

#include "pkg/log/log.h"
#include "pkg/log/rate_limit.h"

namespace resmgr {

// Logs the messages of a library. Peers may provoke any number of them, so they are escaped, and at
// most ten a minute are logged, besides debug messages. Thread-safe.
class LibraryLog {
 public:
  explicit LibraryLog(std::string_view source) : log_(GetLogger(source)) {}

  void Say(LogLevel level, std::string_view text);

 private:
  Logger& log_;
  std::mutex mutex_;
  RateLimit limit_{10, std::chrono::minutes(1)};
};

}  // namespace resmgr
