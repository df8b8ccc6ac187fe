// SPDX-License-Identifier: Apache-2.0
#include "pkg/log/line_sink.h"

#include <cerrno>
#include <string>
#include <utility>

#include <poll.h>
#include <unistd.h>

namespace resmgr {
namespace {

constexpr std::string_view kCut = "...";

// Without `excess` bytes of its end, and not in the middle of a character. The line of it is
// shorter by at least as many.
std::string Cut(std::string_view text, size_t excess) {
  size_t size = text.size() > excess ? text.size() - excess : 0;
  while (size > 0 && (static_cast<unsigned char>(text[size]) & 0xc0) == 0x80)
    --size;
  return std::string(text.substr(0, size)).append(kCut);
}

}  // namespace

LineSink::LineSink(int fd) : fd_(fd) {
  SetStyle({});
}

void LineSink::SetWriter(LogWriter writer) {
  const std::lock_guard lock(mutex_);
  writer_ = std::move(writer);
}

void LineSink::SetStyle(LineStyle style) {
  const std::lock_guard lock(mutex_);
  style_ = style;
  formatter_ = MakeLineFormatter(style);
}

void LineSink::SetQueue(std::shared_ptr<LineQueue> queue) {
  // What the former one still has to write is not waited for with the lock.
  const std::lock_guard lock(mutex_);
  queue_.swap(queue);
}

void LineSink::sink_it_(const spdlog::details::log_msg& message) {
  spdlog::memory_buf_t buffer;
  formatter_->format(message, buffer);
  if (buffer.size() > kLongestLine && !writer_) {
    const std::string text = Cut({message.payload.data(), message.payload.size()},
                                 buffer.size() - kLongestLine + kCut.size());
    spdlog::details::log_msg cut = message;
    cut.payload = text;
    buffer.clear();
    formatter_->format(cut, buffer);
  }
  const std::string_view line(buffer.data(), buffer.size());
  if (writer_) {
    writer_(line);
  } else if (queue_ != nullptr) {
    queue_->Push(line, style_);
  } else {
    if (dropped_ > 0 && WriteToFd(LostLine(dropped_, style_))) dropped_ = 0;
    if (!WriteToFd(line)) ++dropped_;
  }
}

bool LineSink::WriteToFd(std::string_view line) const {
  pollfd writable{fd_, POLLOUT, 0};
  // Writable and broken is what a pipe without a reader is: writing would raise SIGPIPE.
  if (::poll(&writable, 1, 0) != 1 || writable.revents != POLLOUT) return false;
  ssize_t written = 0;
  do {
    written = ::write(fd_, line.data(), line.size());
  } while (written < 0 && errno == EINTR);
  return written >= 0;
}

}  // namespace resmgr
