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

// A message that is formatted elsewhere or later. A value of views.
struct LogRecord {
  std::chrono::system_clock::time_point time{};
  LogLevel level = LogLevel::kInfo;
  std::string_view source{};
  std::string_view text{};
  LineStyle style{};
};

// Formats messages as lines: escaped, so that each stays one line and cannot control a terminal,
// whatever its caller forgot. Thread-compatible.
class LineMaker {
 public:
  // Appends the record's line, cut to `most` bytes.
  void Append(const LogRecord& record, size_t most, spdlog::memory_buf_t& lines);

 private:
  LineStyle style_;
  std::unique_ptr<spdlog::formatter> formatter_ = MakeLineFormatter(style_);
};

// Serializes records for a queue: AppendTo adds one, Lines formats all of them as lines of at most
// `most` bytes, in their order. A longer text is cut to the length that a line can have.
class RecordLines {
 public:
  explicit RecordLines(size_t most) : most_(most) {}

  static void AppendTo(std::string& records, const LogRecord& record, size_t most);
  // The result is valid until the next call.
  std::string_view Lines(std::string_view records);

 private:
  const size_t most_;
  LineMaker maker_;
  spdlog::memory_buf_t lines_;
};

}  // namespace resmgr
