// SPDX-License-Identifier: Apache-2.0
#include "pkg/log/line_sink.h"

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <utility>

#include <poll.h>
#include <unistd.h>

namespace resmgr {

LineSink::LineSink(int fd) : fd_(fd) {}

void LineSink::SetWriter(LogWriter writer) {
  const std::lock_guard lock(mutex_);
  writer_ = std::move(writer);
}

void LineSink::SetStyle(LineStyle style) {
  const std::lock_guard lock(mutex_);
  style_ = style;
}

void LineSink::StartThread() {
  const auto lines = std::make_shared<RecordLines>(kLongestLine);
  auto queue = std::make_unique<LineQueue>(
      fd_, LineQueue::kMostBytes,
      [lines](std::string_view records) { return lines->Lines(records); });
  const std::lock_guard lock(mutex_);
  queue_ = std::move(queue);
}

void LineSink::EndThread() {
  std::unique_ptr<LineQueue> queue;
  // Destroyed outside of the lock, since it may wait for its last lines.
  const std::lock_guard lock(mutex_);
  queue_.swap(queue);
}

void LineSink::Log(LogLevel level, std::string_view source, std::string_view text) {
  LogRecord record{
      .time = std::chrono::system_clock::now(), .level = level, .source = source, .text = text};
  const std::lock_guard lock(mutex_);
  record.style = style_;
  if (queue_ == nullptr || writer_) return Write(record);
  record_.clear();
  RecordLines::AppendTo(record_, record, kLongestLine);
  queue_->Push(record_, style_);
}

void LineSink::Write(const LogRecord& record) {
  spdlog::memory_buf_t buffer;
  maker_.Append(record, writer_ ? SIZE_MAX : kLongestLine, buffer);
  const std::string_view line(buffer.data(), buffer.size());
  if (writer_) return writer_(line);
  if (dropped_ > 0 && WriteToFd(LostLine(dropped_, style_))) dropped_ = 0;
  if (!WriteToFd(line)) ++dropped_;
}

bool LineSink::WriteToFd(std::string_view line) const {
  pollfd writable{fd_, POLLOUT, 0};
  // A pipe without a reader is writable and broken: writing would raise SIGPIPE.
  if (::poll(&writable, 1, 0) != 1 || writable.revents != POLLOUT) return false;
  ssize_t written = 0;
  do {
    written = ::write(fd_, line.data(), line.size());
  } while (written < 0 && errno == EINTR);
  return written >= 0;
}

}  // namespace resmgr
