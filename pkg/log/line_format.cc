// SPDX-License-Identifier: Apache-2.0
#include "pkg/log/line_format.h"

#include <chrono>
#include <cstdlib>
#include <ctime>
#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <spdlog/details/os.h>
#include <sys/stat.h>

#include "pkg/base/parse.h"

namespace resmgr {
namespace {

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

// "2026-01-02T03:04:05.678+01:00", in local time. What is the same for a second is kept: a line of
// the log costs a caller's CPU. Not thread-safe.
class Timestamp {
 public:
  void Append(std::chrono::system_clock::time_point now, spdlog::memory_buf_t& out) {
    using std::chrono::floor;
    using std::chrono::milliseconds;
    using std::chrono::seconds;
    const auto second = floor<seconds>(now);
    if (second != second_) Begin(second);
    const auto rest = static_cast<unsigned>(floor<milliseconds>(now - second).count());
    const char digits[] = {'.', Digit(rest / 100), Digit(rest / 10 % 10), Digit(rest % 10)};
    out.append(date_.data(), date_.data() + date_.size());
    out.append(std::begin(digits), std::end(digits));
    out.append(zone_.data(), zone_.data() + zone_.size());
  }

 private:
  using Second = std::chrono::time_point<std::chrono::system_clock, std::chrono::seconds>;

  static char Digit(unsigned digit) { return static_cast<char>('0' + digit); }

  void Begin(Second second) {
    second_ = second;
    const std::time_t time = std::chrono::system_clock::to_time_t(second);
    const std::tm local = spdlog::details::os::localtime(time);
    date_ = fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}", local.tm_year + 1900,
                        local.tm_mon + 1, local.tm_mday, local.tm_hour, local.tm_min, local.tm_sec);
    const long minutes = std::labs(local.tm_gmtoff) / 60;
    zone_ =
        fmt::format("{}{:02}:{:02}", local.tm_gmtoff < 0 ? '-' : '+', minutes / 60, minutes % 60);
  }

  Second second_ = Second::min();
  std::string date_;
  std::string zone_;
};

// "[state] the message", after the time and the level where the reader does not keep them.
class TextFormatter final : public spdlog::formatter {
 public:
  explicit TextFormatter(bool with_time) : with_time_(with_time) {}

  void format(const spdlog::details::log_msg& message, spdlog::memory_buf_t& out) override {
    if (with_time_) {
      time_.Append(message.time, out);
      Append(" ", out);
      Append(View(spdlog::level::to_string_view(message.level)), out);
      Append(" ", out);
    }
    Append("[", out);
    Append(View(message.logger_name), out);
    Append("] ", out);
    Append(View(message.payload), out);
    Append("\n", out);
  }

  std::unique_ptr<spdlog::formatter> clone() const override {
    return std::make_unique<TextFormatter>(with_time_);
  }

 private:
  const bool with_time_;
  Timestamp time_;
};

class JsonFormatter final : public spdlog::formatter {
 public:
  void format(const spdlog::details::log_msg& message, spdlog::memory_buf_t& out) override {
    spdlog::memory_buf_t time;
    time_.Append(message.time, time);
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
  Timestamp time_;
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
    line = std::make_unique<TextFormatter>(!style.journal);
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
