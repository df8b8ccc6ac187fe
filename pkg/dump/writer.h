// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string_view>

#include "pkg/dump/dumper.h"
#include "pkg/dump/event_queue.h"
#include "pkg/dump/output_file.h"
#include "pkg/dump/recorder.h"
#include "pkg/dump/text_dump.h"

namespace resmgr::dump {

// The body of the dumper's thread: takes events from the queue and writes them to the log, the file
// and the recording, which it opens itself. A file that cannot be opened is reported, and tried
// again until it can be opened; meanwhile its lines are lost.
class Writer {
 public:
  // Uses only those options that cannot be changed later.
  Writer(const Dumper::Options& options, const LogSink& log);

  // Thread-safe.
  EventQueue& queue() { return queue_; }
  // Notes that an event found no room: `losing` is true until the queue is empty again. This and
  // the next two functions are thread-safe.
  void NoteLoss() { losing_ = true; }
  bool losing() const { return losing_; }
  // How often the recording lacks lines or goes on in another file, whose readers do not know the
  // use that was told before. Thread-safe.
  uint64_t gaps() const { return gaps_.load(std::memory_order_relaxed); }
  // Whether a file is missing, or could not be written at the last try.
  bool failing() const { return failing_; }

  // Runs until the queue is closed and empty. Only the thread in this function uses the other
  // members.
  void Run();

 private:
  using Clock = std::chrono::steady_clock;

  // A file and the state of its opening.
  struct Wanted {
    OutputPlace place{};
    bool open = false;
    bool reported = false;  // the failure was reported
    bool begun = false;     // a file was recorded into before

    bool missing() const { return !place.path.empty() && !open; }
  };

  void Write(Event& event);
  void Decompress(Payload& payload) const;
  void Apply(const WriterSettings& settings);
  void FollowMoves();
  void OpenMissing();
  // Records into this file; nullptr: nothing is recorded.
  void Record(std::unique_ptr<OutputFile> file);
  std::unique_ptr<OutputFile> Open(Wanted& wanted);
  void Flush();
  void NoteFiles();
  void Report(const OutputFile& file, const Status& status);

  EventQueue queue_;
  std::atomic<bool> losing_{false};
  std::atomic<bool> failing_{false};
  std::atomic<uint64_t> gaps_{0};
  const LogSink log_;
  const Dumper::OpenFile open_;
  const Dumper::Decompress decompress_;
  const std::chrono::milliseconds retry_pause_;
  TextDump text_;
  std::optional<Recorder> recorder_;
  Wanted file_;
  Wanted recording_;
  Clock::time_point recording_start_;
  std::chrono::system_clock::time_point recording_wall_start_;
  EventQueue::Deadline next_try_;  // set while a file is missing
};

}  // namespace resmgr::dump
