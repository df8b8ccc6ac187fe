// SPDX-License-Identifier: Apache-2.0
#include "pkg/state/log_entry.h"

// The algorithm itself, without the library: it inlines well.
#define XXH_INLINE_ALL
#include <xxhash.h>
#include <zlib.h>

namespace resmgr {
namespace {

constexpr size_t kKindAt = 4;
constexpr size_t kValueSizeAt = 9;

uint32_t Checksum(std::string_view bytes) {
  return static_cast<uint32_t>(XXH3_64bits(bytes.data(), bytes.size()));
}

uint32_t ChecksumOfVersion1(std::string_view bytes) {
  static_assert(sizeof(uInt) >= 4);
  const uLong sum = crc32(0, reinterpret_cast<const Bytef*>(bytes.data()),  // zlib's type
                          static_cast<uInt>(bytes.size()));
  return static_cast<uint32_t>(sum);
}

}  // namespace

size_t BeginEntry(EntryKind kind, std::string_view name, std::string& text) {
  const size_t begin = text.size();
  text.resize(begin + kEntryNameAt + name.size());
  char* const entry = text.data() + begin;
  entry[kKindAt] = static_cast<char>(kind);
  SetNumber(static_cast<uint32_t>(name.size()), entry + kEntryNameSizeAt);
  name.copy(entry + kEntryNameAt, name.size());
  return begin;
}

void EndEntry(size_t begin, std::string& text) {
  char* const entry = text.data() + begin;
  const size_t size = text.size() - begin;
  const size_t value_size = size - kEntryNameAt - NumberAt(entry + kEntryNameSizeAt);
  SetNumber(static_cast<uint32_t>(value_size), entry + kValueSizeAt);
  SetNumber(Checksum({entry + kKindAt, size - kKindAt}), entry);
}

void AppendEntry(EntryKind kind, std::string_view name, std::string_view value, std::string& text) {
  const size_t begin = BeginEntry(kind, name, text);
  text += value;
  EndEntry(begin, text);
}

bool TakeEntry(uint32_t version, std::string_view& rest, EntryView& entry) {
  if (rest.size() < kEntryNameAt) return false;
  const size_t name_size = NumberAt(rest.data() + kEntryNameSizeAt);
  const size_t value_size = NumberAt(rest.data() + kValueSizeAt);
  if (name_size > kMaxEntryName || value_size > kMaxEntryValue) return false;
  const size_t size = kEntryNameAt + name_size + value_size;
  if (rest.size() < size) return false;
  const std::string_view summed = rest.substr(kKindAt, size - kKindAt);
  const uint32_t sum = version == 1 ? ChecksumOfVersion1(summed) : Checksum(summed);
  if (NumberAt(rest.data()) != sum) return false;
  entry.kind = static_cast<EntryKind>(rest[kKindAt]);
  entry.name = rest.substr(kEntryNameAt, name_size);
  entry.value = rest.substr(kEntryNameAt + name_size, value_size);
  rest.remove_prefix(size);
  return true;
}

}  // namespace resmgr
