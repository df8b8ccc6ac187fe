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
// for a disk: a thread of the store writes the changes that Commit passes to it. If state cannot be
// read or written, this is reported and never fatal, since the runtime knows where its containers
// run.
//
// Except for the thread, everything is for the loop's thread.
//
// If the thread hangs on its disk, it outlives the store: `files` must exist as long.
class StateStore {
 public:
  // How long the start waits for the files: longer than any working disk needs, however busy it is.
  static constexpr std::chrono::seconds kPatience{5};

  // Takes lines for the log, on any thread.
  using Report = std::function<void(std::string_view line)>;

  // Loads from `directory`; `machine` identifies the machine that the CPUs belong to. `calls` is
  // the file of the open calls, `directory`/calls if empty; the constructor reads it. Waits for the
  // other files for at most `patience`, and begins without them if they do not come: later they
  // would be out of date, and the present state is written anew.
  StateStore(FileSystem& files, const std::string& directory, const StateLabel& machine,
             Report report, const std::string& calls = "",
             std::chrono::milliseconds patience = kPatience);
  // Calls Close(kLastWords).
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
  // Removes all other records, which belong to containers that are gone.
  void Retain(const std::function<bool(std::string_view id)>& wanted);
  size_t size() const { return records_.size(); }  // containers

  // A text that is saved about a pod sandbox, by the runtime's id. Only the owner of its kind reads
  // it.
  enum class PodNote : char {
    kHandler = 'h',  // the handler that the client named: an alias (pkg/cri/handler_aliases.h)
    // The client's request for a container that has no id yet; state_writer.h makes the names of
    // these notes.
    kCreation = 'c',
    kOthers = 'o',   // not of a pod: others have set numbers on this node (state_writer.h)
    kAsked = 'a',    // the client's request, if a stage changed it (state_writer.h)
    kRefusal = 'r',  // by "namespace/pod/container": a refused container (history.h)
    kStated = 's',   // resources that kubelets stated for the pod later (pkg/resmgr/state_writer.h)
    kClaim = 'k',    // not of a pod: a claim, by its uid (pkg/state/saved_claim.h)
    // Not of a pod: a DRA driver, by its name, whose sockets may be on the node
    // (pkg/node/dra_host.h).
    kDriver = 'd',
  };
  std::optional<std::string> FindNote(PodNote kind, const PodSandboxId& id) const;
  void PutNote(PodNote kind, const PodSandboxId& id, std::string_view text);
  void EraseNote(PodNote kind, const PodSandboxId& id);
  // Whether there is any note.
  bool HasNotes() const { return !notes_.empty(); }
  // Visits all notes of this kind, in no order. `visit` must not change the store.
  void ForEachNote(
      PodNote kind,
      const std::function<void(std::string_view id, std::string_view text)>& visit) const;
  // Removes all notes of this kind that are not wanted.
  void RetainNotes(PodNote kind, const std::function<bool(std::string_view id)>& wanted);

  // Passes the changes since the last Commit to the thread; they are durable within a second.
  void Commit();

  // Commits, and runs `written` when everything put here until now survives the process: within the
  // call, or on the thread. Never runs it after Close, nor while writes fail.
  void WhenWritten(std::function<void()> written);

  // Whether the disk has the state that was committed, or will have it soon: not after a failed
  // write, nor while one has taken longer than five seconds.
  bool Saved();

  // Counts of the thread's writes since the start, without the open calls.
  struct Written {
    uint64_t writes = 0;    // number of writes that succeeded
    uint64_t failures = 0;  // number of writes that failed
    uint64_t bytes = 0;     // bytes of successful writes
  };
  Written written() const;

  // The open calls have a file of their own, and are written at once.
  OpenCalls& open_calls() { return open_calls_; }

  // Sets a function that Flush calls first, so that changes gathered elsewhere are put here. May be
  // nullptr.
  void BeforeFlush(std::function<void()> gather) { before_flush_ = std::move(gather); }
  // Commits, and waits until everything is written and survives the process; false if the time is
  // over before.
  bool Flush(std::chrono::milliseconds timeout);
  // Flushes and ends the thread. If the thread hangs, it is left behind: this is reported, and
  // false returned. Nothing is saved after this.
  bool Close(std::chrono::milliseconds timeout);

 private:
  using Records = absl::flat_hash_set<Record, Record::Hash, Record::Equal>;
  struct Shared;

  static constexpr std::chrono::seconds kLastWords{1};

  // Replaces the record of this name by the entry at the end of `gathered_` that begins at `begin`.
  void Replace(Records& records, std::string_view name, size_t begin);
  void EraseFrom(Records& records, std::string_view name);
  void RetainIn(Records& records, const std::function<bool(std::string_view name)>& wanted);

  const Report report_;
  std::function<void()> before_flush_;
  std::string gathered_;  // entries made since the last Commit
  OpenCalls open_calls_;
  // Shared with the thread, which may outlive this.
  const std::shared_ptr<Shared> shared_;
  // Refer to data in `shared_`. Only the loop changes these, so it reads them without the mutex.
  Records& records_;  // of containers
  Records& notes_;    // of pod sandboxes
  std::thread thread_;
};

}  // namespace resmgr
