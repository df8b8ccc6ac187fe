// SPDX-License-Identifier: Apache-2.0
#include "pkg/log/log.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "pkg/base/parse.h"
#include "pkg/log/all_debug.h"
#include "pkg/log/line_format.h"
#include "pkg/log/line_sink.h"

namespace resmgr {
namespace {

// All sources and their levels. Never destroyed, since code may log until the process ends.
class Registry {
 public:
  static Registry& Instance() {
    static Registry& registry = *new Registry;
    return registry;
  }

  Logger& Get(std::string_view source) {
    const std::lock_guard lock(mutex_);
    auto found = loggers_.find(source);
    if (found == loggers_.end()) {
      const std::string name(source);
      found = loggers_.emplace(name, std::make_unique<Logger>(name)).first;
      found->second->SetThreshold(ThresholdOf(source));
    }
    return *found->second;
  }

  void Configure(LogSettings settings) {
    const std::lock_guard lock(mutex_);
    settings_ = std::move(settings);
    sink_->SetStyle({.format = settings_.format, .journal = journal_});
    level_.reset();
    levels_.clear();
    Apply();
  }

  bool ToggleAllDebug() {
    const std::lock_guard lock(mutex_);
    all_debug_ = !all_debug_;
    level_.reset();
    levels_.clear();
    Apply();
    return all_debug_;
  }

  void SetLevel(LogLevel level, std::string_view source) {
    const std::lock_guard lock(mutex_);
    if (source.empty()) {
      all_debug_ = false;
      level_ = level;
      levels_.clear();
    } else {
      levels_.insert_or_assign(std::string(source), level);
    }
    Apply();
  }

  std::vector<std::string> Sources() {
    const std::lock_guard lock(mutex_);
    std::vector<std::string> sources;
    for (const auto& [source, logger] : loggers_)
      sources.push_back(source);
    return sources;
  }

  LineSink& sink() { return *sink_; }

 private:
  Registry() { sink_->SetStyle({.format = LogFormat::kText, .journal = journal_}); }

  LogLevel ThresholdOf(std::string_view source) const {
    const auto own = levels_.find(source);
    if (own != levels_.end()) return own->second;
    if (all_debug_) return LogLevel::kDebug;
    if (level_) return *level_;
    if (settings_.debug.Contains(source)) return LogLevel::kDebug;
    if (settings_.enabled.Contains(source)) return settings_.level;
    return std::max(settings_.level, LogLevel::kWarn);
  }

  void Apply() {
    for (const auto& [source, logger] : loggers_) {
      logger->SetThreshold(ThresholdOf(source));
    }
  }

  std::mutex mutex_;
  std::map<std::string, std::unique_ptr<Logger>, std::less<>> loggers_;
  LogSettings settings_;
  bool all_debug_ = false;  // by ToggleAllDebug
  // Levels set by SetLogLevel: for all sources, and for single ones.
  std::optional<LogLevel> level_;
  std::map<std::string, LogLevel, std::less<>> levels_;

  const std::unique_ptr<LineSink> sink_ = std::make_unique<LineSink>();
  const bool journal_ = IsJournal(sink_->fd(), std::getenv("JOURNAL_STREAM"));
};

}  // namespace

StatusOr<LogLevel> ParseLogLevel(std::string_view text) {
  if (EqualsIgnoreCase(text, "debug")) return LogLevel::kDebug;
  if (EqualsIgnoreCase(text, "info")) return LogLevel::kInfo;
  if (EqualsIgnoreCase(text, "warn") || EqualsIgnoreCase(text, "warning")) return LogLevel::kWarn;
  if (EqualsIgnoreCase(text, "error")) return LogLevel::kError;
  return InvalidArgument("log level \"{}\" is not one of debug, info, warn, error",
                         Printable(text));
}

StatusOr<LogFormat> ParseLogFormat(std::string_view text) {
  if (EqualsIgnoreCase(text, "text")) return LogFormat::kText;
  if (EqualsIgnoreCase(text, "json")) return LogFormat::kJson;
  return InvalidArgument("log format \"{}\" is not one of text, json", Printable(text));
}

void Logger::Write(LogLevel level, fmt::string_view format, fmt::format_args args) {
  fmt::memory_buffer buffer;
  fmt::vformat_to(std::back_inserter(buffer), format, args);
  WriteText(level, {buffer.data(), buffer.size()});
}

void Logger::WriteText(LogLevel level, std::string_view text) {
  Registry::Instance().sink().Log(level, source_, text);
}

Logger& GetLogger(std::string_view source) {
  return Registry::Instance().Get(source);
}

void ConfigureLogging(LogSettings settings) {
  Registry::Instance().Configure(std::move(settings));
}

void SetLogLevel(LogLevel level, std::string_view source) {
  Registry::Instance().SetLevel(level, source);
}

bool ToggleAllDebug() {
  return Registry::Instance().ToggleAllDebug();
}

std::vector<std::string> LogSources() {
  return Registry::Instance().Sources();
}

void SetLogWriter(LogWriter writer) {
  Registry::Instance().sink().SetWriter(std::move(writer));
}

LogThread::LogThread() {
  Registry::Instance().sink().StartThread();
}

LogThread::~LogThread() {
  Registry::Instance().sink().EndThread();
}

}  // namespace resmgr
