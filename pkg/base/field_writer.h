// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace resmgr {

// Adds protobuf fields to a string, each behind one look at the room that is left. The string has
// junk behind the message until the writer ends: before it is returned or read.
class FieldWriter {
 public:
  static constexpr size_t kMaxVarint = 10;

  explicit FieldWriter(std::string& out) : out_(out), size_(out.size()) {}
  ~FieldWriter() { out_.resize(size_); }
  FieldWriter(const FieldWriter&) = delete;
  FieldWriter& operator=(const FieldWriter&) = delete;

  // Makes room at once for `size` bytes that are about to be added.
  void Reserve(size_t size) { Room(size); }

  void Number(uint32_t field, uint64_t value) {
    char* at = Room(2 * kMaxVarint);
    at = AddTag(field, kVarint, at);
    Advance(AddVarint(value, at));
  }
  void Bytes(uint32_t field, std::string_view bytes) {
    char* at = Room(2 * kMaxVarint + bytes.size());
    at = AddTag(field, kLengthDelimited, at);
    at = AddVarint(bytes.size(), at);
    Advance(at + bytes.copy(at, bytes.size()));
  }
  // Begins a message as a field; the caller adds its content of `size` bytes.
  void Header(uint32_t field, size_t size) {
    char* at = Room(2 * kMaxVarint);
    at = AddTag(field, kLengthDelimited, at);
    Advance(AddVarint(size, at));
  }
  // The encoded size of a field with this many bytes.
  static constexpr size_t SizeOf(uint32_t field, size_t bytes) {
    return VarintSize(uint64_t{field} << 3) + VarintSize(bytes) + bytes;
  }
  // Room for `size` bytes of whole fields, which the caller fills before it adds more.
  char* Extend(size_t size) {
    char* const at = Room(size);
    size_ += size;
    return at;
  }
  // A message as a field: what is added between the two is its content.
  //
  //   const size_t begin = fields.Begin(1);
  //   fields.Number(...);
  //   fields.End(begin);
  size_t Begin(uint32_t field) {
    Advance(AddTag(field, kLengthDelimited, Room(2 * kMaxVarint)));
    ++size_;  // a short length
    return size_;
  }
  void End(size_t begin) {
    const size_t size = size_ - begin;
    if (size >= 0x80) return EndLong(begin);
    out_[begin - 1] = static_cast<char>(size);
  }

 private:
  static constexpr uint32_t kVarint = 0;
  static constexpr uint32_t kLengthDelimited = 2;

  static char* AddTag(uint32_t field, uint32_t wire_type, char* at) {
    return AddVarint(uint64_t{field} << 3 | wire_type, at);
  }
  static char* AddVarint(uint64_t value, char* at) {
    for (; value >= 0x80; value >>= 7)
      *at++ = static_cast<char>(static_cast<uint8_t>(value) | 0x80);
    *at++ = static_cast<char>(value);
    return at;
  }
  static constexpr size_t VarintSize(uint64_t value) {
    return (static_cast<size_t>(std::bit_width(value | 1)) + 6) / 7;
  }
  char* Room(size_t size) {
    if (out_.size() - size_ < size) Grow(size);
    return out_.data() + size_;
  }
  void Advance(const char* end) { size_ = static_cast<size_t>(end - out_.data()); }

  void Grow(size_t size);
  void EndLong(size_t begin);

  std::string& out_;
  size_t size_;  // of what is written
};

}  // namespace resmgr
