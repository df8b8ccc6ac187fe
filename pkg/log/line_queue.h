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

// Lines on their way to an fd. A thread writes them, so that a caller never waits for the reader of
// the fd, be it slow, hung or gone. It can make them, too: what waits are then records, and many of
// them in a row are made lines by code and data that stay in the processor's cache. The first line
// after a pause is written at once; lines that follow it are collected for kPause and written
// together, since waking the thread and writing cost several times as much as making a line. What
// waits is bounded: a line that finds no room, or that cannot be written, is lost; a line that
// tells how many were lost stands in their place. Thread-safe. SIGPIPE has to be ignored in the
// process.
class LineQueue {
 public:
  static constexpr size_t kMostBytes = size_t{1} << 20;
  // Between two writes.
  static constexpr std::chrono::milliseconds kPause{10};
  // For what still waits when the queue ends.
  static constexpr std::chrono::milliseconds kLastWords{500};

  // Makes whole lines of one or more records in a row, one of each: valid until the next call. The
  // queue's thread calls it, and may outlive the queue.
  using MakeLines = std::function<std::string_view(std::string_view records)>;

  // The fd stays the caller's and has to stay open: a thread that hangs in a write is left behind.
  // Without `make_lines`, a record is the line.
  explicit LineQueue(int fd, size_t most_bytes = kMostBytes, MakeLines make_lines = nullptr);
  // Waits for kLastWords at most.
  ~LineQueue();
  LineQueue(const LineQueue&) = delete;
  LineQueue& operator=(const LineQueue&) = delete;

  // A whole record. `style` is for the line that tells of lost ones.
  void Push(std::string_view record, LineStyle style);
  // Waits until all lines are written; false when they are not within the time.
  bool Flush(std::chrono::milliseconds timeout);

 private:
  struct Shared;
  // The thread's, too, which may outlive this.
  const std::shared_ptr<Shared> shared_;
};

// One line: "N log messages were dropped: they were not read".
std::string LostLine(size_t lost, LineStyle style);

}  // namespace resmgr
