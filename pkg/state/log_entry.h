// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "pkg/base/text_hash.h"

namespace resmgr {

// The entries that the log of records (pkg/state/record_log.h) consists of. An entry: checksum of
// what follows it, kind, size of the name, size of the value; name; value. Numbers have their low
// byte first. It is built once, in the memory in which it goes to the file.
//
// The checksum is the lower half of XXH3: reckoned for each change of each container, where CRC-32,
// which version 1 of the format has, costs eight instructions for every byte.
constexpr uint32_t kLogVersion = 2;

enum class EntryKind : uint8_t { kLabel = 0, kPut = 1, kErase = 2 };

// Offsets in an entry of the name's size and of the name.
constexpr size_t kEntryNameSizeAt = 5;
constexpr size_t kEntryNameAt = 13;
// A longer name or value makes no entry.
constexpr size_t kMaxEntryName = 4096;
constexpr size_t kMaxEntryValue = size_t{16} << 20;

// Its views refer to the text that it was read from.
struct EntryView {
  EntryKind kind{};  // also one that this version does not know
  std::string_view name;
  std::string_view value;
};

// Adds an entry to `text`: its value is what is appended between the two.
//
//   const size_t begin = BeginEntry(EntryKind::kPut, name, text);
//   text += ...
//   EndEntry(begin, text);
size_t BeginEntry(EntryKind kind, std::string_view name, std::string& text);
void EndEntry(size_t begin, std::string& text);
void AppendEntry(EntryKind kind, std::string_view name, std::string_view value, std::string& text);

// Takes the next whole entry off `rest`, which is of that version; false when there is none.
bool TakeEntry(uint32_t version, std::string_view& rest, EntryView& entry);

// A number as in entries, at `at`, which has four bytes.
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

// An entry that is kept in memory, known by its name.
class Record {
 public:
  explicit Record(std::string_view entry) : entry_(entry) {}

  std::string_view entry() const { return entry_; }
  std::string_view name() const { return entry().substr(kEntryNameAt, name_size()); }
  std::string_view value() const { return entry().substr(kEntryNameAt + name_size()); }

  // Hash for sets in which a record is found by its name.
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

}  // namespace resmgr
