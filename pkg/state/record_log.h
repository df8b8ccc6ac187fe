// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pkg/base/ids.h"
#include "pkg/base/status.h"
#include "pkg/state/file_system.h"
#include "pkg/state/state_label.h"

namespace resmgr {

// The entries of the log of records. An entry: checksum of what follows it, kind, size of the name,
// size of the value; name; value. Numbers have their low byte first. An entry is built once, in the
// memory from which it is written to the file.
//
// The checksum is the lower half of XXH3: it is computed for each change of each container, and
// CRC-32 takes eight instructions for every byte.
constexpr uint32_t kLogVersion = 2;

enum class EntryKind : uint8_t { kLabel = 0, kPut = 1, kErase = 2 };

// Offsets in an entry: of the name's size, and of the name.
constexpr size_t kEntryNameSizeAt = 5;
constexpr size_t kEntryNameAt = 13;
// Limits: no entry is made with a longer name or value.
constexpr size_t kMaxEntryName = 4096;
constexpr size_t kMaxEntryValue = size_t{16} << 20;

// An entry; its views refer to the text that was read.
struct EntryView {
  EntryKind kind{};  // may be one that this version does not know
  std::string_view name;
  std::string_view value;
};

// Adds an entry to `text`; the text appended between the two calls is its value.
//   const size_t begin = BeginEntry(EntryKind::kPut, name, text);
//   text += ...
//   EndEntry(begin, text);
size_t BeginEntry(EntryKind kind, std::string_view name, std::string& text);
void EndEntry(size_t begin, std::string& text);
void AppendEntry(EntryKind kind, std::string_view name, std::string_view value, std::string& text);

// Removes the next whole entry from the beginning of `rest`; false if there is none.
bool TakeEntry(std::string_view& rest, EntryView& entry);

// Writes a number as entries have it to `at`, where there is room for four bytes.
inline void SetNumber(uint32_t number, char* at) {
  for (size_t i = 0; i < 4; ++i)
    at[i] = static_cast<char>(number >> (8 * i) & 0xff);
}

inline uint32_t NumberAt(const char* at) {
  uint32_t number = 0;
  for (size_t i = 0; i < 4; ++i)
    number |= uint32_t{static_cast<uint8_t>(at[i])} << (8 * i);
  return number;
}

// An entry that is kept in memory and found by its name.
class Record {
 public:
  explicit Record(std::string_view entry) : entry_(entry) {}

  std::string_view entry() const { return entry_; }
  std::string_view name() const { return entry().substr(kEntryNameAt, name_size()); }
  std::string_view value() const { return entry().substr(kEntryNameAt + name_size()); }

  // Hash for sets of records that are searched by name.
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view name) const { return TextHash()(name); }
    size_t operator()(const Record& record) const { return (*this)(record.name()); }
  };
  struct Equal {
    using is_transparent = void;
    bool operator()(const Record& a, std::string_view name) const { return a.name() == name; }
    bool operator()(const Record& a, const Record& b) const { return a.name() == b.name(); }
  };

 private:
  size_t name_size() const { return NumberAt(entry_.data() + kEntryNameSizeAt); }

  std::string entry_;
};

// Named records that survive crashes of the process and of the machine. In a directory:
//
//   state           a header with the version and the machine's labels, then one entry per change
//                   (see above); the last entry of a name counts
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

  // The entries, as far as they can be used. There is never an error, since the owner has to work
  // even without the saved state.
  struct Found {
    Records records;
    // Problems with the file, for the log; empty if everything was read, or if there was nothing to
    // read.
    std::vector<std::string> complaints;
  };

  // Records of a machine with another label are not loaded. A `state` that is of another version,
  // is longer than kMaxFile or is not a file is put aside, never overwritten. In a damaged file,
  // the entries before the damage count; if its header cannot be read, `state.previous` is read.
  RecordLog(FileSystem& files, std::string directory, StateLabel label);

  // Reads the records. Nothing is written yet.
  Found Load();

  // Writes the entries of the live records to a new file, and keeps the file that was read as the
  // previous one. Until this succeeds, Append fails. ResourceExhausted: the file would be longer
  // than kMaxFile.
  Status Rewrite(std::string_view live);
  bool writable() const { return file_ != nullptr; }

  // Appends entries, which then survive the process; Sync makes them durable. After an error the
  // end of the file is unknown, or it has reached kMaxFile: then Append fails until Rewrite.
  Status Append(std::string_view entries);
  Status Sync();

  // Whether most of the file is out of date, or much of a file that is near its limit.
  // `live_bytes`: the size of the entries of all live records.
  bool WantsRewrite(size_t live_bytes) const;

  // Removes everything, for -reset-policy. OK if there are no files.
  static Status Reset(FileSystem& files, const std::string& directory);

 private:
  enum class Verdict { kAbsent, kUsable, kForeign, kNewer, kDamaged };

  Verdict Read(const std::string& name, Found& found);
  // Removes the labels from the beginning of a file's entries.
  Verdict ReadLabels(const std::string& path, std::string_view& rest,
                     std::vector<std::string>& complaints) const;
  // Returns "; it is now PATH", or why the file stays where it is.
  std::string PutAside(const std::string& path, const std::string& aside);
  std::string PathOf(std::string_view name) const;

  FileSystem& files_;
  const std::string directory_;
  const StateLabel label_;
  bool keep_previous_ = true;  // whether a rewriting keeps the present `state`
  std::unique_ptr<FileSystem::File> file_;
  size_t size_ = 0;
};

}  // namespace resmgr
