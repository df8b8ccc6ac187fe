// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string_view>

#include <spdlog/sinks/base_sink.h>

#include "pkg/log/line_format.h"
#include "pkg/log/line_queue.h"
#include "pkg/log/log.h"

namespace resmgr {

// Where all lines end up: a writer when one is set, or else a queue when there is one, or else an
// fd, stderr.
//
// A reader of stderr that is slow or gone must not stop the thread that logs. Without a queue a
// line that the fd cannot take at once is dropped, and the next one that fits is preceded by how
// many were: with no thread and no buffer nothing is lost at exit, as short-lived tools want it.
// Thread-safe.
class LineSink : public spdlog::sinks::base_sink<std::mutex> {
 public:
  // A pipe that is writable at all takes this much (PIPE_BUF). Longer lines are cut.
  static constexpr size_t kLongestLine = 4096;

  // The fd stays the caller's.
  explicit LineSink(int fd = 2);

  void SetWriter(LogWriter writer);
  void SetStyle(LineStyle style);
  // From now on lines go there; nullptr: to the fd again.
  void SetQueue(std::shared_ptr<LineQueue> queue);

  int fd() const { return fd_; }

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override;
  void flush_() override {}

 private:
  // False when the fd cannot take the line now.
  bool WriteToFd(std::string_view line) const;

  const int fd_;
  LineStyle style_;
  LogWriter writer_;
  std::shared_ptr<LineQueue> queue_;
  uint64_t dropped_ = 0;
};

}  // namespace resmgr
