// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "pkg/log/line_format.h"

namespace resmgr {

// Lines on their way to an fd. A thread writes them, so that a caller never waits for the reader of
// the fd, be it slow, hung or gone. The first line after a pause is written at once; lines that
// follow it are collected for kPause and written together, since waking the thread and writing
// cost several times as much as making a line. What waits is bounded: a line that finds no room, or
// that cannot be written, is lost; a line that tells how many were lost stands in their place.
// Thread-safe. SIGPIPE has to be ignored in the process.
class LineQueue {
 public:
  static constexpr size_t kMostBytes = size_t{1} << 20;
  // Between two writes.
  static constexpr std::chrono::milliseconds kPause{10};
  // For what still waits when the queue ends.
  static constexpr std::chrono::milliseconds kLastWords{500};

  // The fd stays the caller's and has to stay open: a thread that hangs in a write is left behind.
  explicit LineQueue(int fd, size_t most_bytes = kMostBytes);
  // Waits for kLastWords at most.
  ~LineQueue();
  LineQueue(const LineQueue&) = delete;
  LineQueue& operator=(const LineQueue&) = delete;

  // A whole line. `style` is for the line that tells of lost ones.
  void Push(std::string_view line, LineStyle style);
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
