// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "pkg/base/status.h"
#include "pkg/log/source_filter.h"

namespace resmgr {

// Every part of the daemon logs under the name of its source ("cri/relay"), and each source can be
// made more or less talkative while the daemon runs. Lines go to stderr, in the style of systemd's
// journal when that is what reads it. Everything here is thread-safe.
//
// Text that came from outside goes through Printable (pkg/base/parse.h) before it is logged.

enum class LogLevel { kDebug, kInfo, kWarn, kError };

// debug, info, warn (or warning), error, in any case; otherwise kInvalidArgument.
StatusOr<LogLevel> ParseLogLevel(std::string_view text);

enum class LogFormat { kText, kJson };

// text, json, in any case; otherwise kInvalidArgument.
StatusOr<LogFormat> ParseLogFormat(std::string_view text);

class Logger {
 public:
  explicit Logger(std::string source) : source_(std::move(source)) {}
  Logger(const Logger&) = delete;
  Logger& operator=(const Logger&) = delete;

  // Arguments that are costly to compute are worth asking this first; formatting happens only for
  // levels that are on.
  bool Enabled(LogLevel level) const { return level >= threshold_.load(std::memory_order_relaxed); }

  template <typename... Args>
  void Debug(fmt::format_string<Args...> format, Args&&... args) {
    if (Enabled(LogLevel::kDebug)) Write(LogLevel::kDebug, format, fmt::make_format_args(args...));
  }
  template <typename... Args>
  void Info(fmt::format_string<Args...> format, Args&&... args) {
    if (Enabled(LogLevel::kInfo)) Write(LogLevel::kInfo, format, fmt::make_format_args(args...));
  }
  template <typename... Args>
  void Warn(fmt::format_string<Args...> format, Args&&... args) {
    if (Enabled(LogLevel::kWarn)) Write(LogLevel::kWarn, format, fmt::make_format_args(args...));
  }
  template <typename... Args>
  void Error(fmt::format_string<Args...> format, Args&&... args) {
    if (Enabled(LogLevel::kError)) Write(LogLevel::kError, format, fmt::make_format_args(args...));
  }

  // A message that needs no formatting.
  void Text(LogLevel level, std::string_view text) {
    if (Enabled(level)) WriteText(level, text);
  }

  const std::string& source() const { return source_; }
  void SetThreshold(LogLevel level) { threshold_.store(level, std::memory_order_relaxed); }

 private:
  void Write(LogLevel level, fmt::string_view format, fmt::format_args args);
  void WriteText(LogLevel level, std::string_view text);

  const std::string source_;
  std::atomic<LogLevel> threshold_{LogLevel::kInfo};
};

// The logger of that source: the same one each time, and it is never destroyed.
Logger& GetLogger(std::string_view source);

// What -logger-level, -logger-debug, -logger-source and -logger-format say.
struct LogSettings {
  LogLevel level = LogLevel::kInfo;
  LogFormat format = LogFormat::kText;
  // Sources whose debug messages are on whatever the level says.
  SourceFilter debug = SourceFilter::None();
  // Sources that are on. The others still report warnings and errors.
  SourceFilter enabled = SourceFilter::All();
};

// Applies to the sources that exist and to those that come, and undoes all SetLogLevel.
void ConfigureLogging(LogSettings settings);

// From now on, and in place of what the settings say: for one source, or for all of them when
// `source` is empty.
void SetLogLevel(LogLevel level, std::string_view source = {});

// Takes each line, with its line break. Calls of it never overlap.
using LogWriter = std::function<void(std::string_view line)>;
// Sends the lines there in place of stderr; nullptr returns to stderr.
void SetLogWriter(LogWriter writer);

// For as long as it exists, lines for stderr are written by a thread, so that no caller waits
// for what reads them (pkg/log/line_queue.h). For daemons, in `main`; one at a time. At its end
// what still waits is written, for at most half a second. SIGPIPE has to be ignored.
class LogThread {
 public:
  LogThread();
  ~LogThread();
  LogThread(const LogThread&) = delete;
  LogThread& operator=(const LogThread&) = delete;
};

}  // namespace resmgr
