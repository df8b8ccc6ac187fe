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
// reports calls here and never waits: the dumper's own thread decodes and writes, and events that
// it cannot keep up with are dropped and counted. The thread is started when there is something to
// write.
//
// Thread-safe; the relay calls it on its loop.
class Dumper {
 public:
  using OpenFile = std::function<StatusOr<std::unique_ptr<OutputFile>>(const OutputPlace&)>;
  using Decompress = std::function<StatusOr<std::string>(const Payload&)>;

  struct Options {
    std::vector<std::string> specs = {};  // values of -dump, or that of dump.Config
    std::string file = {};                // -dump-file; empty: none
    // If names of files come from an untrusted source: the directories that must have the file and
    // the recording (OutputPlace::directory).
    std::string file_directory = {};
    std::string recording_directory = {};
    bool show_secrets = false;  // -dump-secrets
    std::chrono::milliseconds count_period{60'000};
    // The following options cannot be changed later. Limits of the events that wait to be written:
    size_t queue_events = size_t{64} * 1024;
    size_t queue_bytes = size_t{64} * 1024 * 1024;
    // Called on the reporting thread for each call that loses an event because there is no room.
    std::function<void()> on_lost = {};
    // Decompresses a whole message, on the dumper's thread. If there is no such function, or it
    // refuses the message, only the size is shown.
    Decompress decompress = {};
    // Replaced by tests.
    OpenFile open = [](const OutputPlace& place) { return OutputFile::Create(place); };
    std::chrono::milliseconds retry_pause{OutputFile::kPause};
  };

  // Options with parsed rules.
  struct Settings {
    Options options;
    Rules rules;

    OutputPlace file() const { return {options.file, options.file_directory}; }
    OutputPlace recording() const { return {rules.record_file(), options.recording_directory}; }
  };

  // kInvalidArgument: a malformed specification, or a file outside of file_directory. Does not
  // touch the disk.
  static StatusOr<Settings> Read(Options options);
  // kInvalidArgument: a file could not be opened now. Changes nothing; blocks on the disk.
  static Status Probe(const Settings& settings);

  // With neither specifications nor a file nothing is dumped; else the built-in rules come first.
  // kInvalidArgument as from Read.
  static StatusOr<std::unique_ptr<Dumper>> Create(Options options, const LogSink& log);
  ~Dumper();
  Dumper(const Dumper&) = delete;
  Dumper& operator=(const Dumper&) = delete;

  // Returns which events of the method's calls must be reported. While nothing is dumped this costs
  // one load.
  Interest WantsMethod(std::string_view path) {
    return active_.load(std::memory_order_relaxed) ? LookUpInterest(path) : Interest::kNone;
  }

  // Reserves room for messages that are being collected, which count against the limit of the
  // waiting events. False if there is no room: the call must then be given up. The reservation must
  // be released before the message is reported.
  bool Reserve(size_t bytes);
  void Release(size_t bytes);
  // Reports that a message of the call found no room: only OnEnd may follow. `request_reported`:
  // OnRequest was called.
  void GiveUp(const CallRef& call, bool request_reported);

  // For each call: OnRequest, then OnReply for each reply (several for a server stream), then OnEnd
  // once, in every case. Events that the rules exclude are ignored. Code and message are gRPC's.
  void OnRequest(const CallRef& call, Payload message);
  // The request that goes to the runtime differs from the client's. Called between OnRequest and
  // the first OnReply, for calls of Interest::kMessages.
  void OnChanged(const CallRef& call, Payload before, std::string after);
  void OnReply(const CallRef& call, Payload message);
  void OnEnd(const CallRef& call, int code, std::string_view message);

  // Number of calls since the start that the dump lacks in part or as a whole.
  uint64_t lost_calls() const { return lost_calls_.load(std::memory_order_relaxed); }
  // Whether the writer has not come to the end of its queue since it lost a call.
  bool losing() const;
  // Whether a file cannot be opened or written now.
  bool failing() const;

  // The number of the present recording; 0: none. Changes with each Reconfigure, and where the
  // recording has a gap or goes on in another file.
  uint64_t recording() const;
  // Adds a line about the use of containers to the recording. False: the writer is behind, and the
  // line is dropped; log and recording report this, and Options::on_lost is called.
  bool RecordUse(std::vector<RecordedUse> use);

  // Continues with other rules and files; a file whose name stays is not emptied again. The
  // dumper's thread opens the files; one that cannot be opened causes a warning, and is tried again
  // every Options::retry_pause. kFailedPrecondition after Close. kUnavailable: there is no thread,
  // and nothing is dumped until another Reconfigure.
  Status Reconfigure(Settings settings);

  // Reports the calls that pass from now on also to `trace`, whatever the rules say. It replaces a
  // former trace; nullptr ends this. Errors are those of Reconfigure.
  Status Trace(std::shared_ptr<PodTrace> trace);

  // Writes the queued events and ends; false if the deadline has passed and the remaining events
  // were dropped. The destructor allows a second.
  bool Close(std::chrono::milliseconds deadline);

 private:
  Dumper(const Options& options, const LogSink& log);

  Interest LookUpInterest(std::string_view path);
  std::shared_ptr<const MethodPlan> PlanLocked(std::string_view path);
  void Report(const CallRef& call, Event event);
  void CountLostCall();
  void CountLost();
  Status UpdateActiveLocked();
  Status StartWriterLocked();

  std::atomic<bool> active_{false};
  std::atomic<uint64_t> lost_calls_{0};
  std::atomic<uint64_t> recording_{0};
  uint64_t last_recording_ = 0;
  std::mutex mutex_;
  Settings settings_;
  bool rules_in_force_ = false;
  bool closed_ = false;
  std::shared_ptr<PodTrace> trace_;
  std::map<std::string, std::shared_ptr<const MethodPlan>, std::less<>> plans_;
  // Shared with the thread, which may outlive a Close that exceeded its deadline.
  std::shared_ptr<Writer> writer_;
  const std::function<void()> on_lost_;
  std::thread thread_;
};

}  // namespace resmgr::dump
