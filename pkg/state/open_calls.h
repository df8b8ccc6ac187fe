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

// The calls about containers that a runtime may still be busy with, for the daemon that comes after
// a
// kill -9: while such a call is open, what the runtime tells of its container need not be what is
// in force. Noted before the call is sent and until its outcome is known, so the notes are never
// too few.
//
// A note is one small append by the caller itself, not synced: it survives the process, which is
// all it has to, since no call survives the machine. Notes of several calls are one append where
// they are gathered; that a call has ended is written with the next note or by Write. Not
// thread-safe.
class OpenCalls {
 public:
  enum class Kind : uint8_t { kStart = 1, kUpdate = 2 };
  using Report = std::function<void(std::string_view line)>;

  // Kept only in this object.
  OpenCalls() = default;
  // Reads what the last daemon left in the file `path`; writes there from the first note on. It
  // belongs into memory (tmpfs): a disk that others keep busy would hold the calls up. `files` must
  // outlive this.
  OpenCalls(FileSystem& files, std::string path, Report report);

  // The kind and the container of a call. To make one takes longer than all that is done with it:
  // keep it where a container has many calls. Two that are equal by chance cost no more than a
  // needless look at a container.
  enum class Key : uint64_t {};
  static Key KeyOf(Kind kind, const ContainerId& id);

  void Begin(Key key);
  void Begin(Kind kind, const ContainerId& id) { Begin(KeyOf(kind, id)); }
  void End(Key key);
  void End(Kind kind, const ContainerId& id) {
    if (!open_.empty()) End(KeyOf(kind, id));
  }
  // Calls that begin until Write are written by that, which comes before any of them is sent.
  void Gather() { gathering_ = true; }
  void Write();
  // Something is not written yet. A daemon that comes after a kill takes a call that has ended for
  // open then.
  bool unwritten() const { return !unwritten_.empty(); }
  bool Contains(Kind kind, const ContainerId& id) const {
    return !open_.empty() && open_.contains(Entry(KeyOf(kind, id)));
  }

  // Calls about other containers than these are over. The calls under way are known from then on.
  void Retain(const std::vector<ContainerId>& ids);
  size_t size() const { return open_.size(); }

  // The last daemon's notes were found and could be read: what is not noted was not under way.
  bool complete() const { return complete_; }

 private:
  // Journal entry: an odd value records the begin of a call, value - 1 its end.
  static constexpr uint64_t Entry(Key key) { return static_cast<uint64_t>(key); }

  void Load();
  void Note(uint64_t entry);
  Status Rewrite();
  Status Append();

  FileSystem* files_ = nullptr;
  std::string path_;
  Report report_;
  bool complete_ = false;
  bool complained_ = false;
  absl::flat_hash_set<uint64_t> open_;
  std::unique_ptr<FileSystem::File> file_;
  size_t written_ = 0;  // entries in the file
  bool gathering_ = false;
  std::string unwritten_;  // entries
};

}  // namespace resmgr
