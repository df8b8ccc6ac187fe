// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include <spdlog/formatter.h>

#include "pkg/log/log.h"

namespace resmgr {

// The form of a log line.
//
//   text                 2026-01-02T03:04:05.678+01:00 warning [state] the message
//   text, to a journal   <4>[state] the message
//   JSON                 {"time":"...","level":"warning","source":"state","message":"the message"}
//   JSON, to a journal   <4>{"time":...}
//
// <4> is the priority that systemd's journal reads (sd-daemon(3)); the journal adds the time
// itself. JSON is valid UTF-8 whatever the message holds.
struct LineStyle {
  LogFormat format = LogFormat::kText;
  bool journal = false;

  friend bool operator==(const LineStyle&, const LineStyle&) = default;
};

std::unique_ptr<spdlog::formatter> MakeLineFormatter(LineStyle style);

// Whether systemd's journal reads the fd: `stream`, the value of $JOURNAL_STREAM, then names the
// fd's device and inode (systemd.exec(5)). nullptr: unset.
bool IsJournal(int fd, const char* stream);

// A message whose formatting is left to another thread or a later time. A value of views.
struct LogRecord {
  std::chrono::system_clock::time_point time{};
  LogLevel level = LogLevel::kInfo;
  std::string_view source{};
  std::string_view text{};
  LineStyle style{};
};

// Formats messages as lines: escaped, so that each stays one line and cannot control a terminal,
// even if its caller has not escaped it. Thread-compatible.
class LineMaker {
 public:
  // Appends the record's line, cut to `most` bytes.
  void Append(const LogRecord& record, size_t most, spdlog::memory_buf_t& lines);

 private:
  LineStyle style_;
  std::unique_ptr<spdlog::formatter> formatter_ = MakeLineFormatter(style_);
};

// Serializes records for a queue: AppendTo adds one, Lines formats all of them as lines of at most
// `most` bytes, in their order. A text that is longer than a line is cut.
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
