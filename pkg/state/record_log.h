// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/state/file_system.h"
#include "pkg/state/state_label.h"

namespace resmgr {

// Named records that survive crashes of the process and of the machine. In a directory:
//
//   state           a header with the version and the machine's labels, then one entry per change
//                   (pkg/state/log_entry.h); the last entry of a name counts
//   state.previous  what `state` was before it was last rewritten
//   state.new       the rewriting that a crash interrupted; never read
//   state.newer     of a newer version of this program, put aside
//   state.unusable  was `state`, and too long or no file: put aside unread
//
// Changes are appended; when most of the file is history, the live records are written to a new
// file that takes its place. Not thread-safe; calls may block on the disk.
class RecordLog {
 public:
  using Records = std::map<std::string, std::string, std::less<>>;

  // Limit of the file that is read, and therefore of the file that is written. A thousand
  // containers need a few MiB.
  static constexpr size_t kMaxFile = size_t{48} << 20;

  // The entries, as far as they can be used. Never an error: without its history the owner still
  // has to work.
  struct Found {
    Records records;
    // Faults of the file, for the log; empty when all was read, or when there was nothing.
    std::vector<std::string> complaints;
  };

  // The records of another machine than that of the label are not taken. Files of former versions
  // are read. A `state` that is of a newer version, longer than kMaxFile or no file is put aside,
  // never overwritten. In a damaged file, the entries before the damage count; if its header cannot
  // be read, `state.previous` counts.
  RecordLog(FileSystem& files, std::string directory, StateLabel label);

  // Reads. Nothing is written yet.
  Found Load();

  // Writes the entries of the live records to a new file, with the one that was read kept as the
  // previous one. Until it succeeds, Append fails. ResourceExhausted: it would be longer than
  // kMaxFile.
  Status Rewrite(std::string_view live);
  bool writable() const { return file_ != nullptr; }

  // Writes entries behind the others, which lets them survive the process; Sync makes them durable.
  // After an error the file's end is unknown or kMaxFile reached: nothing more is taken until
  // Rewrite.
  Status Append(std::string_view entries);
  Status Sync();

  // Whether most of the file is history, or much of a file near its limit. The entries of all live
  // records have `live_bytes`.
  bool WantsRewrite(size_t live_bytes) const;

  // Removes everything, for -reset-policy. OK if there are no files.
  static Status Reset(FileSystem& files, const std::string& directory);

 private:
  enum class Verdict { kAbsent, kUsable, kForeign, kNewer, kDamaged };

  Verdict Read(const std::string& name, Found& found);
  // Takes the labels off a file's entries.
  Verdict ReadLabels(const std::string& path, uint32_t version, std::string_view& rest,
                     std::vector<std::string>& complaints) const;
  // "; it is now PATH", or why it stays where it is.
  std::string PutAside(const std::string& path, const std::string& aside);
  std::string PathOf(std::string_view name) const;

  FileSystem& files_;
  const std::string directory_;
  const StateLabel label_;
  bool keep_previous_ = true;  // `state` is worth keeping when it is replaced
  std::unique_ptr<FileSystem::File> file_;
  size_t size_ = 0;
};

}  // namespace resmgr
