// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include <spdlog/formatter.h>

#include "pkg/log/line_format.h"
#include "pkg/log/log.h"

namespace resmgr {

// A message that becomes a line elsewhere or later. A value of views.
struct LogRecord {
  std::chrono::system_clock::time_point time{};
  LogLevel level = LogLevel::kInfo;
  std::string_view source{};
  std::string_view text{};
  LineStyle style{};
};

// Makes lines of messages: escaped, so that each stays one line and a terminal only shows it,
// whatever its caller forgot. Thread-compatible.
class LineMaker {
 public:
  // Appends the line of the record, cut to `most` bytes.
  void Append(const LogRecord& record, size_t most, spdlog::memory_buf_t& lines);

 private:
  LineStyle style_;
  std::unique_ptr<spdlog::formatter> formatter_ = MakeLineFormatter(style_);
};

// How a record stands among others in a queue: AppendTo adds one, Lines makes all of them lines of
// `most` bytes at most, in their order.
//
// Of a text no more is kept than a line of `most` bytes can have.
class RecordLines {
 public:
  explicit RecordLines(size_t most) : most_(most) {}

  static void AppendTo(std::string& records, const LogRecord& record, size_t most);
  // Valid until the next call.
  std::string_view Lines(std::string_view records);

 private:
  const size_t most_;
  LineMaker maker_;
  spdlog::memory_buf_t lines_;
};

}  // namespace resmgr
