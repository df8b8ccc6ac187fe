// SPDX-License-Identifier: Apache-2.0
#include "pkg/log/line_queue.h"

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <utility>

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include "pkg/sys/thread.h"

namespace resmgr {
namespace {

// Waits for the reader. False when the line is lost: there is no reader any more, or no space.
bool WriteWhole(int fd, std::string_view line) {
  while (!line.empty()) {
    const ssize_t written = ::write(fd, line.data(), line.size());
    if (written >= 0) {
      line.remove_prefix(static_cast<size_t>(written));
    } else if (errno == EAGAIN) {
      // The fd is shared with a process that made it non-blocking.
      pollfd writable{fd, POLLOUT, 0};
      ::poll(&writable, 1, -1);
      if (writable.revents != POLLOUT) return false;
    } else if (errno != EINTR) {
      return false;
    }
  }
  return true;
}

// A line, or the place of lines that were lost.
struct Entry {
  std::string line;
  size_t lost = 0;
};

}  // namespace

struct LineQueue::Shared {
  Shared(int file, size_t bytes_limit) : fd(file), most_bytes(bytes_limit) {}

  void Run();
  bool idle() const { return lines.empty() && lost == 0 && !writing; }

  const int fd;
  const size_t most_bytes;
  std::mutex mutex;
  std::condition_variable wake;
  std::condition_variable written;
  std::deque<Entry> lines;
  size_t bytes = 0;  // of the lines
  size_t lost = 0;   // behind all lines
  LineStyle style;
  bool writing = false;
  bool ending = false;
};

void LineQueue::Shared::Run() {
  std::unique_lock lock(mutex);
  for (;;) {
    wake.wait(lock, [this] { return ending || !lines.empty() || lost > 0; });
    if (ending && lines.empty() && lost == 0) return;
    Entry next{.line = "", .lost = lost};
    if (lines.empty()) {
      lost = 0;
    } else {
      next = std::move(lines.front());
      lines.pop_front();
      bytes -= next.line.size();
    }
    const LineStyle now = style;
    writing = true;
    lock.unlock();
    const bool whole = WriteWhole(fd, next.lost > 0 ? LostLine(next.lost, now) : next.line);
    lock.lock();
    writing = false;
    if (!whole) {
      lost += std::max<size_t>(next.lost, 1);
      // Without a reader, the next try is for the next line.
      if (lines.empty()) {
        written.notify_all();
        if (ending) return;
        wake.wait(lock, [this] { return ending || !lines.empty(); });
        if (ending && lines.empty()) return;
      }
    }
    if (idle()) written.notify_all();
  }
}

LineQueue::LineQueue(int fd, size_t most_bytes)
    : shared_(std::make_shared<Shared>(fd, most_bytes)) {
  // It may hang in a write for ever, where nothing can wake it; so nobody joins it.
  StartThread("log", [shared = shared_] { shared->Run(); }).detach();
}

LineQueue::~LineQueue() {
  Flush(kLastWords);
  const std::lock_guard lock(shared_->mutex);
  shared_->ending = true;
  shared_->lines.clear();
  shared_->lost = 0;
  shared_->wake.notify_all();
}

void LineQueue::Push(std::string_view line, LineStyle style) {
  const std::lock_guard lock(shared_->mutex);
  shared_->style = style;
  const bool sleeps = shared_->idle();
  if (shared_->bytes + line.size() > shared_->most_bytes) {
    ++shared_->lost;
    return;
  }
  const size_t lost = std::exchange(shared_->lost, 0);
  if (lost > 0) shared_->lines.push_back({.line = "", .lost = lost});
  shared_->bytes += line.size();
  shared_->lines.push_back({.line = std::string(line), .lost = 0});
  if (sleeps || lost > 0) shared_->wake.notify_one();
}

bool LineQueue::Flush(std::chrono::milliseconds timeout) {
  std::unique_lock lock(shared_->mutex);
  return shared_->written.wait_for(lock, timeout,
                                   [this] { return shared_->lines.empty() && !shared_->writing; });
}

std::string LostLine(size_t lost, LineStyle style) {
  const std::string text = fmt::format("{} log messages were dropped: nobody read them", lost);
  spdlog::memory_buf_t line;
  MakeLineFormatter(style)->format(
      spdlog::details::log_msg("log", spdlog::level::warn, spdlog::string_view_t(text)), line);
  return {line.data(), line.size()};
}

}  // namespace resmgr
