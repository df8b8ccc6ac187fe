// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "pkg/log/line_format.h"

namespace resmgr {

// Lines on their way to an fd. A thread writes them, so that a caller never waits for the fd's
// reader, be it slow, hung or gone. The thread can format them, too: records wait then, and many of
// them in a row are formatted by code and data that stay in the processor's cache. The first line
// after a pause is written at once; further lines are collected for kPause and written together,
// since waking the thread and writing cost several times as much as formatting a line. The waiting
// bytes are bounded: a line that finds no room, or that cannot be written, is lost, and replaced by
// a line with the number of lost ones. Thread-safe. SIGPIPE must be ignored in the process.
class LineQueue {
 public:
  static constexpr size_t kMostBytes = size_t{1} << 20;
  // Pause between two writes.
  static constexpr std::chrono::milliseconds kPause{10};
  // Time for the waiting lines when the queue ends.
  static constexpr std::chrono::milliseconds kLastWords{500};

  // Formats one or more records in a row as lines, one of each; the result is valid until the next
  // call. The queue's thread calls it, and may outlive the queue.
  using MakeLines = std::function<std::string_view(std::string_view records)>;

  // The fd stays the caller's and must stay open: a thread that hangs in a write is left behind.
  // Without `make_lines`, a record is the line.
  explicit LineQueue(int fd, size_t most_bytes = kMostBytes, MakeLines make_lines = nullptr);
  // Waits for at most kLastWords.
  ~LineQueue();
  LineQueue(const LineQueue&) = delete;
  LineQueue& operator=(const LineQueue&) = delete;

  // Queues a whole record. `style` is the style of the line about lost lines.
  void Push(std::string_view record, LineStyle style);
  // Waits until all lines are written; false after `timeout`.
  bool Flush(std::chrono::milliseconds timeout);

 private:
  struct Shared;
  // Shared with the thread, which may outlive this object.
  const std::shared_ptr<Shared> shared_;
};

// One line: "N log messages were dropped: they were not read".
std::string LostLine(size_t lost, LineStyle style);

}  // namespace resmgr
