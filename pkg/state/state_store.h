// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <vector>

#include "pkg/base/ids.h"
#include "pkg/state/file_system.h"
#include "pkg/state/open_calls.h"
#include "pkg/state/record_log.h"
#include "pkg/state/saved_container.h"

namespace resmgr {

// The durable state of the brain: what it knows of each container, by the runtime's id. Put and
// Erase return at once; one thread of the store's own writes, soon and what came together at once,
// so that no disk ever delays a container. State that cannot be read or written is reported and
// done without, never fatal: the runtime knows where its containers run.
//
// All but the thread's work is for one thread, the loop's.
class StateStore {
 public:
  // Lines for the log, from any thread.
  using Report = std::function<void(std::string_view line)>;

  // Loads from `directory`; `machine` is the fingerprint of the machine that the CPUs are of.
  // `calls` is the file of the open calls, `directory`/calls when empty. Blocks on the disk.
  StateStore(FileSystem& files, const std::string& directory, const std::string& machine,
             Report report, const std::string& calls = "");
  // Writes what is queued, for at most a second.
  ~StateStore();
  StateStore(const StateStore&) = delete;
  StateStore& operator=(const StateStore&) = delete;

  // As it was saved before this start or since; nullptr when it was not.
  const SavedContainer* Find(const ContainerId& id) const;
  // Costs little when nothing changed that is saved.
  void Put(const ContainerId& id, const Container& container);
  void Erase(const ContainerId& id);
  // Forgets all but these: what else was saved is of containers that are gone.
  void Retain(const std::function<bool(const ContainerId&)>& wanted);
  size_t size() const { return known_.size(); }

  // Kept apart from the rest, and written at once.
  OpenCalls& open_calls() { return open_calls_; }

  // Waits until everything is durable; false when it is not within the time.
  bool Flush(std::chrono::milliseconds timeout);

 private:
  // What waits for the disk: the latest value of each, nothing for one that is gone.
  using Changes = std::unordered_map<std::string, std::optional<std::string>>;

  void Queue(const ContainerId& id, std::optional<std::string> text);
  void Run();
  bool Write(Changes&& changes);
  void Complain(const Status& status);

  const Report report_;
  std::unordered_map<ContainerId, SavedContainer> known_;
  OpenCalls open_calls_;

  // The thread's.
  RecordLog log_;
  RecordLog::Records live_;
  size_t live_bytes_ = 0;
  bool complained_ = false;

  std::mutex mutex_;
  std::condition_variable wake_;
  std::condition_variable written_;
  Changes changes_;
  bool writing_ = false;
  bool behind_ = false;  // the last writing failed: live_ has what the disk has not
  int flushes_ = 0;      // waiting now
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace resmgr
