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

// The destination of all lines: a writer if one is set, or else an fd, stderr, which a thread may
// write.
//
// A slow or missing reader of stderr must not stop the thread that logs. Without a writing thread a
// line that the fd cannot take at once is dropped, and the next one that fits is preceded by the
// number of dropped ones: with neither thread nor buffer nothing is lost at exit, which suits
// short-lived tools. Thread-safe.
class LineSink {
 public:
  // Bytes; a writable pipe takes this many at once (PIPE_BUF). Longer lines are cut.
  static constexpr size_t kLongestLine = 4096;

  // The fd stays the caller's.
  explicit LineSink(int fd = 2);

  void SetWriter(LogWriter writer);
  void SetStyle(LineStyle style);
  // From now on a thread formats the lines and writes them to the fd (pkg/log/line_queue.h).
  void StartThread();
  // Waits at most LineQueue::kLastWords for the waiting lines; then lines are written as before
  // StartThread.
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
