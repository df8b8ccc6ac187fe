// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "pkg/log/line_format.h"
#include "pkg/log/log.h"

namespace resmgr {

// Lines on their way to an fd. A thread writes them, so that a caller never waits for the fd's
// reader, be it slow, hung or gone. The thread can format them, too: then records wait and are
// formatted many in a row, while code and data stay in the processor's cache. The first line after
// a pause is written at once; further lines are collected for kPause and written together, since
// waking the thread and writing cost several times as much as formatting a line. The waiting bytes
// are bounded: a line that finds no room, or that cannot be written, is lost, and replaced by a
// line with the number of lost ones. Thread-safe. SIGPIPE must be ignored in the process.
class LineQueue {
 public:
  static constexpr size_t kMostBytes = size_t{1} << 20;
  // Pause between two writes.
  static constexpr std::chrono::milliseconds kPause{10};
  // How long the queue's end waits for lines to be written.
  static constexpr std::chrono::milliseconds kLastWords{500};

  // Formats one or more records, in a row, as one line each; the result is valid until the next
  // call. The queue's thread calls this function, and may outlive the queue.
  using MakeLines = std::function<std::string_view(std::string_view records)>;

  // The caller owns the fd, and must not close it even after the queue's end, when a thread may
  // still hang in a write. Without `make_lines`, each record is a line.
  explicit LineQueue(int fd, size_t most_bytes = kMostBytes, MakeLines make_lines = nullptr);
  // Waits for at most kLastWords.
  ~LineQueue();
  LineQueue(const LineQueue&) = delete;
  LineQueue& operator=(const LineQueue&) = delete;

  // Queues a whole record. `style` is for the line that reports losses.
  void Push(std::string_view record, LineStyle style);
  // Waits until all lines are written; false after `timeout`.
  bool Flush(std::chrono::milliseconds timeout);

 private:
  struct Shared;
  // Shared with the thread, which may outlive this object.
  const std::shared_ptr<Shared> shared_;
};

// The destination of all lines: a writer if one is set, or else an fd (stderr), to which a thread
// may write.
//
// A slow or missing reader of stderr must not stop the thread that logs. Without a writing thread a
// line that the fd cannot take at once is dropped, and the next one that fits is preceded by the
// number of dropped ones: since neither a thread nor a buffer holds lines, none are lost at exit,
// which suits short-lived tools. Thread-safe.
class LineSink {
 public:
  // Bytes: as many as a pipe that is writable takes at once (PIPE_BUF). Longer lines are cut.
  static constexpr size_t kLongestLine = 4096;

  // The caller owns the fd.
  explicit LineSink(int fd = 2);

  void SetWriter(LogWriter writer);
  void SetStyle(LineStyle style);
  // From now on a thread formats the lines and writes them to the fd (LineQueue).
  void StartThread();
  // Waits at most LineQueue::kLastWords until the waiting lines are written; from then on lines are
  // written as before StartThread.
  void EndThread();

  // Logs a message with the present time.
  void Log(LogLevel level, std::string_view source, std::string_view text);

  int fd() const { return fd_; }

 private:
  void Write(const LogRecord& record);
  // False if the fd cannot take the line now.
  bool WriteToFd(std::string_view line) const;

  const int fd_;
  std::mutex mutex_;
  LineStyle style_;
  LineMaker maker_;
  LogWriter writer_;
  std::unique_ptr<LineQueue> queue_;
  std::string record_;  // reused memory
  uint64_t dropped_ = 0;
};

}  // namespace resmgr
