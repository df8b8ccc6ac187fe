// SPDX-License-Identifier: Apache-2.0
#include "pkg/log/library_log.h"

#include <string>

#include "pkg/base/parse.h"
#include "pkg/log/not_logged.h"

namespace resmgr {

void LibraryLog::Say(LogLevel level, std::string_view text) {
  if (level == LogLevel::kDebug) {
    log_.Debug("{}", Printable(text));
    return;
  }
  std::optional<uint64_t> suppressed;
  {
    const std::lock_guard lock(mutex_);
    suppressed = limit_.Pass(RateLimit::Clock::now());
  }
  if (!suppressed) return;
  std::string line = Printable(text);
  line += NotLogged(*suppressed);
  level == LogLevel::kError ? log_.Error("{}", line) : log_.Warn("{}", line);
}

}  // namespace resmgr
