// SPDX-License-Identifier: Apache-2.0
#include "pkg/log/line_format.h"

#include <string>

#include <nlohmann/json.hpp>
#include <spdlog/pattern_formatter.h>
#include <sys/stat.h>

#include "pkg/base/parse.h"

namespace resmgr {
namespace {

constexpr char kTextPattern[] = "%Y-%m-%dT%H:%M:%S.%e%z %l [%n] %v";
constexpr char kJournalPattern[] = "[%n] %v";
constexpr char kTimePattern[] = "%Y-%m-%dT%H:%M:%S.%e%z";

// Those of syslog(3).
std::string_view PriorityOf(spdlog::level::level_enum level) {
  switch (level) {
    case spdlog::level::trace:
    case spdlog::level::debug:
      return "<7>";
    case spdlog::level::info:
      return "<6>";
    case spdlog::level::warn:
      return "<4>";
    default:
      return "<3>";
  }
}

void Append(std::string_view text, spdlog::memory_buf_t& out) {
  out.append(text.data(), text.data() + text.size());
}

std::string_view View(spdlog::string_view_t text) {
  return {text.data(), text.size()};
}

class JsonFormatter final : public spdlog::formatter {
 public:
  JsonFormatter() : time_(kTimePattern, spdlog::pattern_time_type::local, "") {}

  void format(const spdlog::details::log_msg& message, spdlog::memory_buf_t& out) override {
    spdlog::memory_buf_t time;
    time_.format(message, time);
    const nlohmann::ordered_json line = {
        {"time", std::string(time.data(), time.size())},
        {"level", View(spdlog::level::to_string_view(message.level))},
        {"source", View(message.logger_name)},
        {"message", View(message.payload)}};
    Append(line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace), out);
    Append("\n", out);
  }

  std::unique_ptr<spdlog::formatter> clone() const override {
    return std::make_unique<JsonFormatter>();
  }

 private:
  spdlog::pattern_formatter time_;
};

class PriorityFormatter final : public spdlog::formatter {
 public:
  explicit PriorityFormatter(std::unique_ptr<spdlog::formatter> line) : line_(std::move(line)) {}

  void format(const spdlog::details::log_msg& message, spdlog::memory_buf_t& out) override {
    Append(PriorityOf(message.level), out);
    line_->format(message, out);
  }

  std::unique_ptr<spdlog::formatter> clone() const override {
    return std::make_unique<PriorityFormatter>(line_->clone());
  }

 private:
  const std::unique_ptr<spdlog::formatter> line_;
};

}  // namespace

std::unique_ptr<spdlog::formatter> MakeLineFormatter(LineStyle style) {
  std::unique_ptr<spdlog::formatter> line;
  if (style.format == LogFormat::kJson) {
    line = std::make_unique<JsonFormatter>();
  } else {
    line =
        std::make_unique<spdlog::pattern_formatter>(style.journal ? kJournalPattern : kTextPattern);
  }
  if (!style.journal) return line;
  return std::make_unique<PriorityFormatter>(std::move(line));
}

bool IsJournal(int fd, const char* stream) {
  if (stream == nullptr) return false;
  const std::string_view named = stream;
  const size_t colon = named.find(':');
  if (colon == std::string_view::npos) return false;
  const auto device = ParseUint(named.substr(0, colon));
  const auto inode = ParseUint(named.substr(colon + 1));
  struct stat info {};
  return device && inode && ::fstat(fd, &info) == 0 && info.st_dev == *device &&
         info.st_ino == *inode;
}

}  // namespace resmgr
