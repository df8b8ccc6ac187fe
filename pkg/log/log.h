// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "pkg/base/status.h"
#include "pkg/log/source_filter.h"

namespace resmgr {

// Every part of the daemon logs under the name of its source ("cri/relay"), and the level of each
// source can be changed while the daemon runs. Lines go to stderr, in the journal's style if
// systemd's journal reads it. Everything here is thread-safe.
//
// Text from outside must pass Printable (pkg/base/parse.h) before it is logged.

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

  // Whether messages of this level are logged. Called before arguments that are costly to compute;
  // formatting itself happens only for such levels.
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

  // Logs a message that needs no formatting.
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

// The logger of the source, always the same object; never destroyed.
Logger& GetLogger(std::string_view source);

// The settings of -logger-level, -logger-debug, -logger-source and -logger-format.
struct LogSettings {
  LogLevel level = LogLevel::kInfo;
  LogFormat format = LogFormat::kText;
  // Sources whose debug messages are logged, whatever `level` is.
  SourceFilter debug = SourceFilter::None();
  // Sources that are on. Other sources still log warnings and errors.
  SourceFilter enabled = SourceFilter::All();
};

// Applies to existing and later sources, and cancels all earlier calls of SetLogLevel.
void ConfigureLogging(LogSettings settings);

// Overrides the settings from now on, for one source, or for all of them if `source` is empty.
void SetLogLevel(LogLevel level, std::string_view source = {});

// Gets each line, with its line break. Its calls never overlap.
using LogWriter = std::function<void(std::string_view line)>;
// Sends the lines to `writer` instead of stderr; nullptr returns to stderr.
void SetLogWriter(LogWriter writer);

// As long as this object lives, a thread writes the lines for stderr, so that no caller waits for
// their reader (pkg/log/line_sink.h). For daemons, in `main`; one at a time. Its destructor waits
// at most half a second until the waiting lines are written. SIGPIPE must be ignored.
class LogThread {
 public:
  LogThread();
  ~LogThread();
  LogThread(const LogThread&) = delete;
  LogThread& operator=(const LogThread&) = delete;
};

// The sources for which there is a logger, ascending. Thread-safe.
std::vector<std::string> LogSources();

}  // namespace resmgr
