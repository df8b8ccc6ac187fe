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

// A file of the host that has a value of ours, or is about to get one.
struct JournalEntry {
  std::string first;   // the file's text before our first write, byte for byte
  std::string wanted;  // the value that is written, or was
  std::string was;     // the value before `wanted`

  friend bool operator==(const JournalEntry&, const JournalEntry&) = default;
};

// Keeps the values that the host's files had before we wrote them, on the disk before that happens
// (ADR 16). The whole journal is one file, which each change replaces: it has no torn end. A
// damaged journal is put aside. All functions may block on the disk. Thread-compatible.
class ClassJournal {
 public:
  using Entries = std::map<std::string, JournalEntry, std::less<>>;
  // The bound of all files together: each interrupt and CPU of a very large machine.
  static constexpr size_t kMostEntries = 65'536;
  static constexpr size_t kMostBytes = size_t{16} << 20;

  // `boot` names the life of the kernel: an earlier one's values have ended with it. "": unknown,
  // and each journal counts.
  ClassJournal(std::string directory, std::string boot)
      : directory_(std::move(directory)), boot_(std::move(boot)) {}

  // Reads what an earlier process left, until it has succeeded once. AlreadyExists: another process
  // uses the directory. FailedPrecondition: a newer version wrote it.
  Status Open();
  const Entries& entries() const { return entries_; }
  // After OK the disk has these entries; before, or after an error, it has the former ones.
  Status Save(Entries entries);
  // Why values of an earlier process are not known; "": they are.
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

// The form on the disk.
std::string JournalText(const ClassJournal::Entries& entries, std::string_view boot);
// Empty entries for another life of the kernel, if both are known. InvalidArgument: it is damaged.
// FailedPrecondition: of a newer version.
StatusOr<ClassJournal::Entries> ParseJournal(std::string_view text, std::string_view boot);

}  // namespace resmgr
