// SPDX-License-Identifier: Apache-2.0
#include "pkg/log/line_format.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <spdlog/details/log_msg.h>
#include <spdlog/details/os.h>
#include <sys/stat.h>

#include "pkg/base/append.h"
#include "pkg/base/json.h"
#include "pkg/base/parse.h"

namespace resmgr {
namespace {

// The priorities of syslog(3).
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

// Formats "2026-01-02T03:04:05.678+01:00", in local time. The part that changes once a second is
// kept, since a log line costs its caller CPU time: with fmt a line took 9,900 instructions, more
// than the decision that it reports. Not thread-safe.
class Timestamp {
 public:
  std::string_view At(std::chrono::system_clock::time_point now) {
    using std::chrono::floor;
    using std::chrono::milliseconds;
    const auto second = floor<std::chrono::seconds>(now);
    if (second != second_) Begin(second);
    const auto rest = static_cast<unsigned>(floor<milliseconds>(now - second).count());
    char* const digits = text_.data() + milliseconds_;
    digits[0] = Digit(rest / 100);
    digits[1] = Digit(rest / 10 % 10);
    digits[2] = Digit(rest % 10);
    return text_;
  }

 private:
  using Second = std::chrono::time_point<std::chrono::system_clock, std::chrono::seconds>;

  static char Digit(unsigned digit) { return static_cast<char>('0' + digit); }

  void Begin(Second second) {
    second_ = second;
    const std::time_t time = std::chrono::system_clock::to_time_t(second);
    const std::tm local = spdlog::details::os::localtime(time);
    text_ = fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.", local.tm_year + 1900,
                        local.tm_mon + 1, local.tm_mday, local.tm_hour, local.tm_min, local.tm_sec);
    milliseconds_ = text_.size();
    const long minutes = std::labs(local.tm_gmtoff) / 60;
    text_ += fmt::format("000{}{:02}:{:02}", local.tm_gmtoff < 0 ? '-' : '+', minutes / 60,
                         minutes % 60);
  }

  Second second_ = Second::min();
  std::string text_;
  size_t milliseconds_ = 0;  // position of the milliseconds' digits
};

// Formats "[state] the message". Time and level precede it, except for a reader that keeps them
// itself.
class TextFormatter final : public spdlog::formatter {
 public:
  explicit TextFormatter(bool with_time) : with_time_(with_time) {}

  void format(const spdlog::details::log_msg& message, spdlog::memory_buf_t& out) override {
    const std::string_view time = with_time_ ? time_.At(message.time) : std::string_view();
    const std::string_view origin = OriginOf(message);
    const size_t start = out.size();
    // resize and copy, since appending these pieces with fmt was a fifth of the cost of a line.
    out.resize(start + time.size() + origin.size() + message.payload.size() + 1);
    char* at = std::copy(time.begin(), time.end(), out.data() + start);
    at = std::copy(origin.begin(), origin.end(), at);
    at = std::copy(message.payload.begin(), message.payload.end(), at);
    *at = '\n';
  }

  std::unique_ptr<spdlog::formatter> clone() const override {
    return std::make_unique<TextFormatter>(with_time_);
  }

 private:
  // Level and source: " info [state] ", or "[state] " without a time. Most lines reuse the text of
  // the line before, so that formatting takes 250 instructions in place of 1,430 (callgrind).
  std::string_view OriginOf(const spdlog::details::log_msg& message) {
    if (origin_.empty() || message.level != level_ || View(message.logger_name) != source_) {
      level_ = message.level;
      source_ = View(message.logger_name);
      origin_ = fmt::format("[{}] ", source_);
      if (with_time_) {
        origin_ = fmt::format(" {} {}", View(spdlog::level::to_string_view(level_)), origin_);
      }
    }
    return origin_;
  }

  const bool with_time_;
  Timestamp time_;
  spdlog::level::level_enum level_ = spdlog::level::info;
  std::string source_;
  std::string origin_;
};

class JsonFormatter final : public spdlog::formatter {
 public:
  void format(const spdlog::details::log_msg& message, spdlog::memory_buf_t& out) override {
    const nlohmann::ordered_json line = {
        {"time", time_.At(message.time)},
        {"level", View(spdlog::level::to_string_view(message.level))},
        {"source", View(message.logger_name)},
        {"message", View(message.payload)}};
    Append(OrderedJsonText(line), out);
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

constexpr std::string_view kCut = "...";
// A long text is cut to a line's length and this many bytes more, since the cut may split an
// escaped character of four bytes.
constexpr size_t kBeyond = 16;

// The fixed part of a record, in front of its source and text.
struct Head {
  std::chrono::system_clock::time_point time;
  uint32_t text_size = 0;
  uint16_t source_size = 0;
  LogLevel level = LogLevel::kInfo;
  LineStyle style;
};
constexpr size_t kLongestSource = 256;

spdlog::level::level_enum ToSpdlog(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarn:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
  }
  return spdlog::level::err;
}

// Removes `excess` bytes, and any partial character, from the end of the text. Its line becomes
// shorter by at least as much, since escapes only lengthen texts.
std::string Cut(std::string_view text, size_t excess) {
  size_t size = text.size() > excess ? text.size() - excess : 0;
  while (size > 0 && (static_cast<unsigned char>(text[size]) & 0xc0) == 0x80)
    --size;
  return std::string(text.substr(0, size)).append(kCut);
}

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

void LineMaker::Append(const LogRecord& record, size_t most, spdlog::memory_buf_t& lines) {
  if (record.style != style_) {
    style_ = record.style;
    formatter_ = MakeLineFormatter(style_);
  }
  std::string_view text = record.text;
  std::string escaped;
  if (!IsPlainAscii(text)) {
    escaped = Printable(text, text.size());
    text = escaped;
  }
  spdlog::details::log_msg message(record.time, {}, {record.source.data(), record.source.size()},
                                   ToSpdlog(record.level), {text.data(), text.size()});
  const size_t begin = lines.size();
  formatter_->format(message, lines);
  const size_t size = lines.size() - begin;
  if (size <= most) return;
  const std::string cut = Cut(text, size - most + kCut.size());
  message.payload = cut;
  lines.resize(begin);
  formatter_->format(message, lines);
}

void RecordLines::AppendTo(std::string& records, const LogRecord& record, size_t most) {
  const std::string_view source = record.source.substr(0, kLongestSource);
  const std::string_view text = record.text.substr(0, most + kBeyond);
  Head head;
  // memset, since the padding is copied with the other bytes.
  std::memset(static_cast<void*>(&head), 0, sizeof(head));
  head.time = record.time;
  head.text_size = static_cast<uint32_t>(text.size());
  head.source_size = static_cast<uint16_t>(source.size());
  head.level = record.level;
  head.style = record.style;
  AppendParts(records, std::string_view(reinterpret_cast<const char*>(&head), sizeof(head)), source,
              text);
}

std::string_view RecordLines::Lines(std::string_view records) {
  lines_.clear();
  while (!records.empty()) {
    Head head;
    std::memcpy(static_cast<void*>(&head), records.data(), sizeof(head));
    records.remove_prefix(sizeof(head));
    const std::string_view source = records.substr(0, head.source_size);
    const std::string_view text = records.substr(head.source_size, head.text_size);
    records.remove_prefix(source.size() + text.size());
    maker_.Append({.time = head.time,
                   .level = head.level,
                   .source = source,
                   .text = text,
                   .style = head.style},
                  most_, lines_);
  }
  return {lines_.data(), lines_.size()};
}

}  // namespace resmgr
