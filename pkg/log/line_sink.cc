// SPDX-License-Identifier: Apache-2.0
#include "pkg/log/line_sink.h"

#include <cerrno>
#include <string>
#include <utility>

#include <poll.h>
#include <unistd.h>

namespace resmgr {
namespace {

constexpr std::string_view kCut = "...\n";

}  // namespace

LineSink::LineSink(int fd) : fd_(fd) {
  set_pattern("%Y-%m-%dT%H:%M:%S.%e%z %l %v");
}

void LineSink::SetWriter(LogWriter writer) {
  const std::lock_guard lock(mutex_);
  writer_ = std::move(writer);
}

void LineSink::sink_it_(const spdlog::details::log_msg& message) {
  spdlog::memory_buf_t buffer;
  formatter_->format(message, buffer);
  const std::string_view line(buffer.data(), buffer.size());
  if (writer_) {
    writer_(line);
    return;
  }
  if (dropped_ > 0 &&
      WriteToFd(fmt::format("{} log messages were dropped: nobody read them\n", dropped_))) {
    dropped_ = 0;
  }
  const bool written =
      line.size() <= kLongestLine
          ? WriteToFd(line)
          : WriteToFd(std::string(line.substr(0, kLongestLine - kCut.size())).append(kCut));
  if (!written) ++dropped_;
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
