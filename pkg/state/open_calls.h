// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <absl/container/flat_hash_set.h>

#include "pkg/base/ids.h"
#include "pkg/state/file_system.h"

namespace resmgr {

// The calls about containers that a runtime may still be carrying out, for the daemon that comes
// after a kill -9: while such a call is open, the runtime's report about its container may differ
// from the values in force. A call is noted before it is sent, and until its outcome is known, so
// no open call is ever missing.
//
// If notes cannot be written, calls go on without them, and the file is removed: the next daemon
// then takes any call for open, as without a former daemon.
//
// A note is one small append by the caller itself, not synced: it survives the process, which is
// enough, since no call survives the machine. Notes of several calls are one append if they are
// gathered; the end of a call is written with the next note or by Write. Not thread-safe.
class OpenCalls {
 public:
  enum class Kind : uint8_t { kStart = 1, kUpdate = 2 };
  using Report = std::function<void(std::string_view line)>;

  // Without a file: the calls are only kept in this object.
  OpenCalls() = default;
  // Reads the last daemon's notes from the file `path`, and writes there from the first note on.
  // The file should be in memory (tmpfs): a busy disk would delay the calls. `files` must outlive
  // this.
  OpenCalls(FileSystem& files, std::string path, Report report);

  // Identifies a call by its kind and container. Making a key takes longer than all uses of it, so
  // keep it if a container has many calls. If two keys are equal by chance, a container is examined
  // without need, and nothing worse.
  enum class Key : uint64_t {};
  static Key KeyOf(Kind kind, const ContainerId& id);

  void Begin(Key key);
  void Begin(Kind kind, const ContainerId& id) { Begin(KeyOf(kind, id)); }
  void End(Key key);
  void End(Kind kind, const ContainerId& id) {
    if (!open_.empty()) End(KeyOf(kind, id));
  }
  // Notes of calls that begin before Write are written by Write, before any of these calls is sent.
  void Gather() { gathering_ = true; }
  void Write();
  // Whether a note is not written yet. After a kill, the next daemon would then take an ended call
  // for an open one.
  bool unwritten() const { return !unwritten_.empty(); }
  bool Contains(Kind kind, const ContainerId& id) const {
    return !open_.empty() && open_.contains(Entry(KeyOf(kind, id)));
  }

  // The error of the last write; OK if notes are written.
  const Status& noted() const { return noted_; }

  // Ends the calls about all containers except these. From then on all open calls are known.
  void Retain(const std::vector<ContainerId>& ids);
  size_t size() const { return open_.size(); }

  // Whether the last daemon's notes were found and read: then calls without a note were not under
  // way.
  bool complete() const { return complete_; }

 private:
  // An entry of the file: an odd value means that the call has begun, that value less 1 that it has
  // ended.
  static constexpr uint64_t Entry(Key key) { return static_cast<uint64_t>(key); }

  void Load();
  void Note(uint64_t entry);
  Status Rewrite();
  Status Append();

  FileSystem* files_ = nullptr;
  std::string path_;
  Report report_;
  bool complete_ = false;
  Status noted_;
  absl::flat_hash_set<uint64_t> open_;
  std::unique_ptr<FileSystem::File> file_;
  size_t written_ = 0;  // number of entries in the file
  bool gathering_ = false;
  std::string unwritten_;  // entries that are not written yet
};

}  // namespace resmgr
