// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include <absl/container/flat_hash_set.h>

#include "pkg/base/ids.h"
#include "pkg/state/file_system.h"
#include "pkg/state/open_calls.h"
#include "pkg/state/record_log.h"
#include "pkg/state/saved_container.h"

namespace resmgr {

// The durable state of the brain: a record of each container, by the runtime's id. No call waits
// for a disk: one thread of the store's own writes the changes that Commit hands over. State that
// cannot be read or written is reported and never fatal, since the runtime knows where its
// containers run.
//
// All but the thread's work is for one thread, the loop's.
//
// A thread that hangs on its disk outlives the store: `files` has to be there as long as it is.
class StateStore {
 public:
  // More than any working disk needs, however busy it is.
  static constexpr std::chrono::seconds kPatience{5};

  // Lines for the log, from any thread.
  using Report = std::function<void(std::string_view line)>;

  // Loads from `directory`; `machine` tells which machine the CPUs are of. `calls` is the file of
  // the open calls, `directory`/calls when empty; it is read in here. Waits for the other files for
  // `patience` at most, and begins empty if they do not come: later they would be out of date, and
  // the present state is written anew.
  StateStore(FileSystem& files, const std::string& directory, const StateLabel& machine,
             Report report, const std::string& calls = "",
             std::chrono::milliseconds patience = kPatience);
  // As Close(kLastWords).
  ~StateStore();
  StateStore(const StateStore&) = delete;
  StateStore& operator=(const StateStore&) = delete;

  // The record saved before this start or since; nullopt without one.
  std::optional<SavedContainer> Find(const ContainerId& id) const;
  void Put(const ContainerId& id, const Container& container, QosClass qos,
           const SavedExtras& extras = {});
  // Visits all records, in no order. `visit` must not change the store.
  void ForEach(
      const std::function<void(std::string_view id, const SavedContainer& saved)>& visit) const;
  void Erase(const ContainerId& id);
  // Forgets all other records, which belong to containers that are gone.
  void Retain(const std::function<bool(std::string_view id)>& wanted);
  size_t size() const { return records_.size(); }  // containers

  // A text that is kept of a pod sandbox, by the runtime's id. Only its owner reads it.
  enum class PodNote : char {
    kHandler = 'h',  // the handler that the client named: an alias (pkg/cri/handler_aliases.h)
    // The client's request for a container that has no id yet; state_writer.h makes the names of
    // these notes.
    kCreation = 'c',
    kOthers = 'o',   // not of a pod: numbers were set by others on this node (state_writer.h)
    kAsked = 'a',    // the client's request, where a stage changed it (state_writer.h)
    kRefusal = 'r',  // by "namespace/pod/container" of one that was refused (history.h)
    kStated = 's',   // resources that kubelets stated for the pod later (pkg/resmgr/state_writer.h)
    kClaim = 'k',    // of no pod: a claim by its uid (pkg/state/saved_claim.h)
  };
  std::optional<std::string> FindNote(PodNote kind, const PodSandboxId& id) const;
  void PutNote(PodNote kind, const PodSandboxId& id, std::string_view text);
  void EraseNote(PodNote kind, const PodSandboxId& id);
  // False where no note of any kind is kept.
  bool HasNotes() const { return !notes_.empty(); }
  // All of this kind, in no order. `visit` must not change the store.
  void ForEachNote(
      PodNote kind,
      const std::function<void(std::string_view id, std::string_view text)>& visit) const;
  // Forgets all of this kind but these.
  void RetainNotes(PodNote kind, const std::function<bool(std::string_view id)>& wanted);

  // Changes since the last one are written together, and are durable within a second.
  void Commit();

  // Commits, and runs `written` when all that was put here until now survives the process: within
  // the call, or on the thread. Not at all once the store is closed, nor while the disk refuses.
  void WhenWritten(std::function<void()> written);

  // Whether the disk has the state that was handed over, or gets it soon: not after a failed
  // writing, and not while one has taken longer than five seconds.
  bool Saved();

  // Writes of the thread since the start, the open calls apart.
  struct Written {
    uint64_t writes = 0;    // number of writes that succeeded
    uint64_t failures = 0;  // number of writes that failed
    uint64_t bytes = 0;     // bytes of successful writes
  };
  Written written() const;

  // Kept apart from the rest, and written at once.
  OpenCalls& open_calls() { return open_calls_; }

  // Called by Flush first, so that changes gathered elsewhere are put here. May be nullptr.
  void BeforeFlush(std::function<void()> gather) { before_flush_ = std::move(gather); }
  // Commits, and waits until everything is written, which survives the process; false when it is
  // not within the time.
  bool Flush(std::chrono::milliseconds timeout);
  // Flushes and ends the thread; false, and reported, when it hangs and is left behind. Nothing is
  // kept from then on.
  bool Close(std::chrono::milliseconds timeout);

 private:
  using Records = absl::flat_hash_set<Record, Record::Hash, Record::Equal>;
  struct Shared;

  static constexpr std::chrono::seconds kLastWords{1};

  // Replaces the record of this name by the entry that is the end of `gathered_`, from `begin` on.
  void Replace(Records& records, std::string_view name, size_t begin);
  void EraseFrom(Records& records, std::string_view name);
  void RetainIn(Records& records, const std::function<bool(std::string_view name)>& wanted);

  const Report report_;
  std::function<void()> before_flush_;
  std::string gathered_;  // entries since the last Commit
  OpenCalls open_calls_;
  // Shared with the thread, which may outlive this.
  const std::shared_ptr<Shared> shared_;
  // References into the shared state. Only the loop changes these, so it reads them without the
  // mutex.
  Records& records_;  // of containers
  Records& notes_;    // of pod sandboxes
  std::thread thread_;
};

}  // namespace resmgr
