// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/dump/dumped_call.h"
#include "pkg/dump/event_queue.h"
#include "pkg/dump/output_file.h"
#include "pkg/dump/rules.h"
#include "pkg/dump/text_dump.h"

namespace resmgr::dump {

class Writer;

// Writes about calls as they pass: to the log, to a file, to a recording (README.md). The relay
// reports calls here and is never held up: one thread of the dumper's own does the
// decoding and writing, and what it cannot keep up with is dropped and counted. That thread exists
// only once there is something to write.
//
// Thread-safe; the relay calls it on its loop.
class Dumper {
 public:
  using OpenFile = std::function<StatusOr<std::unique_ptr<OutputFile>>(const OutputPlace&)>;
  using Decompress = std::function<StatusOr<std::string>(const Payload&)>;

  struct Options {
    std::vector<std::string> specs = {};  // each value of -dump, or the one of dump.Config
    std::string file = {};                // -dump-file; empty is none
    // Where the file and the recording must be when the one who names them is not trusted with
    // others: OutputPlace::directory.
    std::string file_directory = {};
    std::string recording_directory = {};
    bool show_secrets = false;  // -dump-secrets
    std::chrono::milliseconds count_period{60'000};
    // What follows is for the life of the dumper. Of what waits to be written:
    size_t queue_events = size_t{64} * 1024;
    size_t queue_bytes = size_t{64} * 1024 * 1024;
    // Called for each call whose events find no room, on the thread that reports them.
    std::function<void()> on_lost = {};
    // What a compressed message is, which is here as a whole; runs on the dumper's thread. Without
    // it, and for what it refuses, only the size is shown.
    Decompress decompress = {};
    // For tests.
    OpenFile open = &OutputFile::Create;
    std::chrono::milliseconds retry_pause{OutputFile::kPause};
  };

  // Options with their rules read.
  struct Settings {
    Options options;
    Rules rules;

    OutputPlace file() const { return {options.file, options.file_directory}; }
    OutputPlace recording() const { return {rules.record_file(), options.recording_directory}; }
  };

  // InvalidArgument: a specification is wrong, or a file is not where it may be. Touches no disk.
  static StatusOr<Settings> Read(Options options);
  // InvalidArgument: a file could not be opened now. Changes nothing; blocks on the disk.
  static Status Probe(const Settings& settings);

  // With neither specifications nor a file nothing is dumped; else the built-in rules come first.
  // InvalidArgument as of Read.
  static StatusOr<std::unique_ptr<Dumper>> Create(Options options, const LogSink& log);
  ~Dumper();
  Dumper(const Dumper&) = delete;
  Dumper& operator=(const Dumper&) = delete;

  // How much of this method's calls is to be reported. One load while nothing is dumped.
  Interest WantsMethod(std::string_view path) {
    return active_.load(std::memory_order_relaxed) ? LookUpInterest(path) : Interest::kNone;
  }

  // Room for messages that are being collected, within the same limit as what waits to be written:
  // false when there is none, and the call is given up then. What was reserved is released before
  // the message is reported.
  bool Reserve(size_t bytes);
  void Release(size_t bytes);
  // A message of the call found no room: of the call follows OnEnd alone. `request_reported`:
  // OnRequest was called.
  void GiveUp(const CallRef& call, bool request_reported);

  // Each call: OnRequest, then OnReply for each reply (several for a server stream), then OnEnd
  // once, whatever came before. What the rules do not want is ignored. The code and message are
  // gRPC's.
  void OnRequest(const CallRef& call, Payload message);
  // The request goes to the runtime otherwise than it came; between OnRequest and the first
  // OnReply. For calls of Interest::kMessages.
  void OnChanged(const CallRef& call, Payload before, std::string after);
  void OnReply(const CallRef& call, Payload message);
  void OnEnd(const CallRef& call, int code, std::string_view message);

  // Calls that the dump lacks in part or as a whole, since the start.
  uint64_t lost_calls() const { return lost_calls_.load(std::memory_order_relaxed); }

  // Goes on with other rules and files; those whose names stay are not emptied again. The files are
  // opened by the dumper's thread; one that cannot be is a warning, and tried again every
  // Options::retry_pause. FailedPrecondition after Close.
  Status Reconfigure(Settings settings);

  // Writes what is queued and ends; false when that took longer than the deadline, so that the
  // rest was given up. The destructor allows a second.
  bool Close(std::chrono::milliseconds deadline);

 private:
  Dumper(const Options& options, const LogSink& log);

  Interest LookUpInterest(std::string_view path);
  std::shared_ptr<const MethodPlan> PlanLocked(std::string_view path);
  void Report(const CallRef& call, Event event);
  void CountLost();
  void StartWriterLocked();

  std::atomic<bool> active_{false};
  std::atomic<uint64_t> lost_calls_{0};
  std::mutex mutex_;
  Settings settings_;
  bool rules_in_force_ = false;
  bool closed_ = false;
  std::map<std::string, std::shared_ptr<const MethodPlan>, std::less<>> plans_;
  // Shared with the thread, which may outlive a Close that ran out of time.
  std::shared_ptr<Writer> writer_;
  const std::function<void()> on_lost_;
  std::thread thread_;
};

}  // namespace resmgr::dump
