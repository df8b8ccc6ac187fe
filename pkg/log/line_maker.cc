// SPDX-License-Identifier: Apache-2.0
#include "pkg/log/line_maker.h"

#include <cstdint>
#include <cstring>

#include <spdlog/details/log_msg.h>

#include "pkg/base/append.h"
#include "pkg/base/parse.h"

namespace resmgr {
namespace {

constexpr std::string_view kCut = "...";
// Bytes kept beyond a line of a longer text: more than the first cut may split, an escaped
// character of four bytes.
constexpr size_t kBeyond = 16;

// Precedes the source and the text of a record.
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

// The text without `excess` bytes of its end, not cut within a character. Its line is shorter by at
// least as many.
std::string Cut(std::string_view text, size_t excess) {
  size_t size = text.size() > excess ? text.size() - excess : 0;
  while (size > 0 && (static_cast<unsigned char>(text[size]) & 0xc0) == 0x80)
    --size;
  return std::string(text.substr(0, size)).append(kCut);
}

}  // namespace

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
  // Clears the padding, too, since all bytes are copied.
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
