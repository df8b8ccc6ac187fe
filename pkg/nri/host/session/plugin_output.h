// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "pkg/log/log.h"
#include "pkg/log/rate_limit.h"
#include "pkg/sys/event_loop.h"
#include "pkg/sys/unique_fd.h"

namespace resmgr::nri {

// Writes a plugin's output as lines to the log. A plugin that prints more than kMostBytes in a
// second waits for the next one, as for a slow terminal; only some of many lines are logged. Loop's
// thread only.
class PluginOutput {
 public:
  static constexpr size_t kMostBytes = size_t{64} << 10;
  static constexpr size_t kLongestLine = 1024;  // longer ones are cut

  // `pipe` must be non-blocking. The loop outlives this object.
  PluginOutput(EventLoop& loop, UniqueFd pipe, std::string plugin);
  // Reads the available output, within limits, and returns its last line; "": none.
  const std::string& LastLine();
  PluginOutput(const PluginOutput&) = delete;
  PluginOutput& operator=(const PluginOutput&) = delete;

 private:
  void Read();
  void Take(std::string_view bytes);
  void EndLine();

  EventLoop& loop_;
  const UniqueFd pipe_;
  const std::string plugin_;
  Logger& log_;
  RateLimit limit_;
  std::string line_;
  std::string last_line_;
  size_t read_ = 0;  // bytes in this second
  EventLoop::HandlePtr watch_;
  EventLoop::HandlePtr second_;
};

}  // namespace resmgr::nri
