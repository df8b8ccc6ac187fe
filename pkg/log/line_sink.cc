// SPDX-License-Identifier: Apache-2.0
#include "pkg/log/line_sink.h"

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <deque>
#include <utility>

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include "pkg/sys/thread.h"

namespace resmgr {
namespace {

// Limit of the bytes of one write. As many bytes may be in a write besides the waiting ones.
constexpr size_t kBlockBytes = size_t{64} << 10;

// Writes everything, and waits for the reader. If the reader is gone or the disk is full, returns
// the unwritten rest.
std::string_view WriteWhole(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written >= 0) {
      text.remove_prefix(static_cast<size_t>(written));
    } else if (errno == EAGAIN) {
      // The fd is non-blocking: another process that shares it has set that.
      pollfd writable{fd, POLLOUT, 0};
      ::poll(&writable, 1, -1);
      if (writable.revents != POLLOUT) break;
    } else if (errno != EINTR) {
      break;
    }
  }
  return text;
}

// Whole records, one for each line, and how many lines were lost before them.
struct Block {
  std::string records;
  size_t lines = 0;
  size_t lost = 0;
};

// How many lines of the block are lost if `rest` is not written.
size_t LostOf(const Block& block, std::string_view rest) {
  const auto ends = static_cast<size_t>(std::count(rest.begin(), rest.end(), '\n'));
  // If `rest` still has the first line, which reports earlier losses, these count again.
  return block.lost > 0 && ends > block.lines ? block.lost + block.lines : ends;
}

std::string LostLine(size_t lost, LineStyle style) {
  const std::string text = fmt::format("{} log messages were dropped: they were not read", lost);
  spdlog::memory_buf_t line;
  MakeLineFormatter(style)->format(
      spdlog::details::log_msg("log", spdlog::level::warn, spdlog::string_view_t(text)), line);
  return {line.data(), line.size()};
}

}  // namespace

struct LineQueue::Shared {
  Shared(int file, size_t bytes_limit, MakeLines make)
      : fd(file), most_bytes(bytes_limit), make_lines(std::move(make)) {}

  void Run();
  bool NothingWaits() const { return blocks.empty() && lost == 0; }
  Block TakeFirst();
  // Returns the unwritten rest. Called without the lock.
  std::string_view Write(const Block& block, LineStyle now);

  const int fd;
  const size_t most_bytes;
  const MakeLines make_lines;
  // Used by the thread alone: the line about losses and a block, and whether the last write ended
  // within a line.
  std::string with_lost;
  bool within_line = false;
  std::mutex mutex;
  std::condition_variable wake;
  std::condition_variable written;
  std::deque<Block> blocks;
  std::string spare;  // an empty text that keeps the memory of a written block
  size_t bytes = 0;   // bytes of all blocks
  size_t lost = 0;    // lines lost after all blocks
  LineStyle style;
  bool asleep = false;  // the thread waits for a line
  bool writing = false;
  bool hurry = false;  // a flush waits, so write without a pause
  bool ending = false;
};

Block LineQueue::Shared::TakeFirst() {
  if (blocks.empty()) return {.records = "", .lines = 0, .lost = std::exchange(lost, 0)};
  Block first = std::move(blocks.front());
  blocks.pop_front();
  bytes -= first.records.size();
  return first;
}

std::string_view LineQueue::Shared::Write(const Block& block, LineStyle now) {
  std::string_view lines = block.records;
  if (make_lines != nullptr) lines = make_lines(lines);
  if (block.lost > 0) {
    with_lost = LostLine(block.lost, now).append(lines);
    lines = with_lost;
  }
  // A disk that was full may have taken a part of a line.
  if (within_line && !WriteWhole(fd, "\n").empty()) return lines;
  const std::string_view rest = WriteWhole(fd, lines);
  within_line = !rest.empty() && rest.size() < lines.size() && *(rest.data() - 1) != '\n';
  return rest;
}

void LineQueue::Shared::Run() {
  std::unique_lock lock(mutex);
  bool reader = true;
  for (;;) {
    asleep = true;
    // After the reader has gone, nothing is tried until another line comes.
    wake.wait(lock, [&] { return ending || (reader ? !NothingWaits() : !blocks.empty()); });
    asleep = false;
    if (ending) return;
    reader = true;
    while (reader && !NothingWaits()) {
      Block block = TakeFirst();
      const LineStyle now = style;
      writing = true;
      lock.unlock();
      const std::string_view rest = Write(block, now);
      lock.lock();
      writing = false;
      lost += LostOf(block, rest);
      reader = rest.empty() || !blocks.empty();
      block.records.clear();
      if (block.records.capacity() > spare.capacity()) spare = std::move(block.records);
    }
    written.notify_all();
    wake.wait_for(lock, kPause, [this] { return ending || hurry; });
  }
}

LineQueue::LineQueue(int fd, size_t most_bytes, MakeLines make_lines)
    : shared_(std::make_shared<Shared>(fd, most_bytes, std::move(make_lines))) {
  // Detached, since a write may hang for ever and cannot be interrupted.
  StartThread("log", [shared = shared_] { shared->Run(); }).detach();
}

LineQueue::~LineQueue() {
  Flush(kLastWords);
  const std::lock_guard lock(shared_->mutex);
  shared_->ending = true;
  shared_->blocks.clear();
  shared_->lost = 0;
  shared_->wake.notify_all();
}

void LineQueue::Push(std::string_view record, LineStyle style) {
  const std::lock_guard lock(shared_->mutex);
  shared_->style = style;
  if (shared_->bytes + record.size() > shared_->most_bytes) {
    ++shared_->lost;
    return;
  }
  std::deque<Block>& blocks = shared_->blocks;
  if (blocks.empty() || shared_->lost > 0 ||
      blocks.back().records.size() + record.size() > kBlockBytes) {
    // The memory of a written block is reused: growing a block anew costs as much as formatting its
    // lines.
    blocks.push_back({.records = std::exchange(shared_->spare, {}),
                      .lines = 0,
                      .lost = std::exchange(shared_->lost, 0)});
  }
  blocks.back().records += record;
  ++blocks.back().lines;
  shared_->bytes += record.size();
  if (std::exchange(shared_->asleep, false)) shared_->wake.notify_one();
}

bool LineQueue::Flush(std::chrono::milliseconds timeout) {
  std::unique_lock lock(shared_->mutex);
  shared_->hurry = true;
  shared_->wake.notify_all();
  const bool all = shared_->written.wait_for(
      lock, timeout, [this] { return shared_->blocks.empty() && !shared_->writing; });
  shared_->hurry = false;
  return all;
}

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
  // The old queue is destroyed after the lock is released, since it may wait for its last lines.
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
  // A pipe without a reader is reported as writable with an error: writing would raise SIGPIPE.
  if (::poll(&writable, 1, 0) != 1 || writable.revents != POLLOUT) return false;
  ssize_t written = 0;
  do {
    written = ::write(fd_, line.data(), line.size());
  } while (written < 0 && errno == EINTR);
  return written >= 0;
}

}  // namespace resmgr
