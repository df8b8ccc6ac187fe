// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "pkg/log/line_format.h"
#include "pkg/log/line_maker.h"
#include "pkg/log/line_queue.h"
#include "pkg/log/log.h"

namespace resmgr {

// Where all messages end up as lines: a writer when one is set, or else an fd, stderr, to which a
// thread may write them.
//
// A reader of stderr that is slow or gone must not stop the thread that logs. Without a thread a
// line that the fd cannot take at once is dropped, and the next one that fits is preceded by how
// many were: with no thread and no buffer nothing is lost at exit, as short-lived tools want it.
// Thread-safe.
class LineSink {
 public:
  // A pipe that is writable at all takes this much (PIPE_BUF). Longer lines are cut.
  static constexpr size_t kLongestLine = 4096;

  // The fd stays the caller's.
  explicit LineSink(int fd = 2);

  void SetWriter(LogWriter writer);
  void SetStyle(LineStyle style);
  // From now on a thread makes the lines and writes them to the fd (pkg/log/line_queue.h).
  void StartThread();
  // Waits for what waits there, for LineQueue::kLastWords at most; then as before StartThread.
  void EndThread();

  // A message of now.
  void Log(LogLevel level, std::string_view source, std::string_view text);

  int fd() const { return fd_; }

 private:
  void Write(const LogRecord& record);
  // False when the fd cannot take the line now.
  bool WriteToFd(std::string_view line) const;

  const int fd_;
  std::mutex mutex_;
  LineStyle style_;
  LineMaker maker_;
  LogWriter writer_;
  std::unique_ptr<LineQueue> queue_;
  std::string record_;  // in memory that is kept
  uint64_t dropped_ = 0;
};

}  // namespace resmgr
