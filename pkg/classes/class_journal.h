// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "pkg/base/status.h"
#include "pkg/sys/unique_fd.h"

namespace resmgr {

// A file of the host that has a value of this daemon, or is about to get one.
struct JournalEntry {
  std::string first;   // the file's text before our first write, byte for byte
  std::string wanted;  // the value that is written, or was
  std::string was;     // the value before `wanted`

  friend bool operator==(const JournalEntry&, const JournalEntry&) = default;
};

// Keeps the values that the host's files had before this daemon wrote them; they are on the disk
// before the first write (ADR 16). The whole journal is one file, which is replaced with each
// change, so its end is never torn. A damaged journal is put aside. All functions may block on the
// disk. Thread-compatible.
class ClassJournal {
 public:
  using Entries = std::map<std::string, JournalEntry, std::less<>>;
  // Limits of the whole journal: enough for each interrupt and CPU of a very large machine.
  static constexpr size_t kMostEntries = 65'536;
  static constexpr size_t kMostBytes = size_t{16} << 20;

  // `boot` identifies the boot of the kernel: values from an earlier boot have ended with it,
  // except those of files on a disk. "": unknown, so the journal of any boot counts.
  ClassJournal(std::string directory, std::string boot)
      : directory_(std::move(directory)), boot_(std::move(boot)) {}

  // Reads what an earlier process left; does nothing after the first success. AlreadyExists:
  // another process uses the directory. FailedPrecondition: a newer version wrote the journal.
  Status Open();
  const Entries& entries() const { return entries_; }
  // After OK the disk has these entries. Until then, or after an error, it has the former ones.
  Status Save(Entries entries);
  // Why values of an earlier process are not known; "" if they are known.
  const std::string& damage() const { return damage_; }

  std::string path() const { return directory_ + "/journal"; }

 private:
  Status Claim();
  Status Read();

  const std::string directory_;
  const std::string boot_;
  bool opened_ = false;
  UniqueFd claim_;
  Entries entries_;
  std::string damage_;
};

// The journal as text for its file.
std::string JournalText(const ClassJournal::Entries& entries, std::string_view boot);
// Returns only entries of files on a disk if the journal is of another boot and both boots are
// known. InvalidArgument: it is damaged. FailedPrecondition: a newer version wrote it.
StatusOr<ClassJournal::Entries> ParseJournal(std::string_view text, std::string_view boot);

}  // namespace resmgr
