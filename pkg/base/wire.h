// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace resmgr {

// Reads the fields of one protobuf message from its bytes, without copying and without knowing the
// rest of it. Bytes that are not protobuf end the reading with failed(). A group, which only proto2
// has, is one field, of neither bytes nor a number.
//
//   for (WireReader reader(bytes); reader.Next();) {
//     if (reader.field() == 1) name = reader.bytes();
//   }
class WireReader {
 public:
  explicit WireReader(std::string_view message)
      : at_(message.data()), end_(message.data() + message.size()) {}

  // Moves to the next field. False at the end and on malformed bytes. In the header, because a
  // creation reads a hundred fields and nearly all are a short tag, a short length and bytes to
  // skip.
  bool Next() {
    if (at_ == end_) return false;
    const char* start = at_;
    if (end_ - start >= 2) {
      const uint32_t tag = Byte(start[0]);
      const uint32_t length = Byte(start[1]);
      if ((tag & 0x87) == 2 && tag >> 3 != 0 && length < 0x80 && end_ - start - 2 >= length) {
        field_ = tag >> 3;
        wire_type_ = 2;
        number_ = 0;
        bytes_ = {start + 2, length};
        at_ = start + 2 + length;
        return true;
      }
    }
    return NextOfAnyKind();
  }
  // As Next, but skips to the next field whose number is a bit of `wanted`; wanted numbers are
  // below 32. A CreateContainer request carries a hundred environment variables that need not be
  // read.
  bool NextOf(uint32_t wanted) {
    for (;;) {
      SkipShort(wanted);
      if (!Next()) return false;
      if (field_ < 32 && (wanted >> field_ & 1) != 0) return true;
    }
  }
  bool failed() const { return failed_; }
  // True if reading failed because the bytes end in the middle of a field.
  bool cut_short() const { return cut_short_; }

  uint32_t field() const { return field_; }
  // A length-delimited field; empty for the other wire types.
  std::string_view bytes() const { return bytes_; }
  // A varint or fixed field; 0 for length-delimited ones.
  uint64_t number() const { return number_; }
  bool is_bytes() const { return wire_type_ == 2; }
  // The bytes behind the field, which show where the field lies in the message.
  std::string_view rest() const { return {at_, left()}; }

 private:
  // Skips unwanted fields as long as both tag and length have one byte.
  void SkipShort(uint32_t wanted) {
    const uint32_t unwanted = ~wanted & 0xfffe;  // fields of one-byte tags
    const char* at = at_;
    while (end_ - at >= 2) {
      const uint32_t tag = Byte(at[0]);
      const uint32_t length = Byte(at[1]);
      const bool skip = (tag & 0x87) == 2 && (unwanted >> (tag >> 3) & 1) != 0 && length < 0x80;
      if (!skip || end_ - at < length + 2) break;
      at += length + 2;
      // Unwanted fields mostly come in runs of one field number. As long as a short field cannot
      // reach the end, one comparison of tag and length together is enough.
      const char* const safe = end_ - std::min<ptrdiff_t>(end_ - at, kLongestShort);
      while (at < safe) {
        const size_t head = (Byte(at[0]) | Byte(at[1]) << 8) ^ tag;
        if ((head & 0x80ff) != 0) break;
        at += 2 + (head >> 8);
      }
    }
    at_ = at;
  }
  static uint32_t Byte(char c) { return static_cast<uint8_t>(c); }
  // The most bytes of a short field: tag, length and contents.
  static constexpr ptrdiff_t kLongestShort = 2 + 0x7f;

  bool NextOfAnyKind();
  bool TakeVarint(uint64_t& value);
  bool FailAtEnd();
  bool ReadTag();
  bool ReadValue();
  bool SkipGroup();
  bool Fail();
  size_t left() const { return static_cast<size_t>(end_ - at_); }

  const char* at_;
  const char* end_;
  std::string_view bytes_;
  uint64_t number_ = 0;
  uint32_t field_ = 0;
  uint32_t wire_type_ = 0;
  bool failed_ = false;
  bool cut_short_ = false;
};

// Appends protobuf fields to a string, with one check of the room for each field. Until the writer
// ends, the string has junk behind the message, so it must not be read or returned before.
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
  // Begin and End enclose a message as a field: fields added in between are its content.
  //   const size_t begin = fields.Begin(1);
  //   fields.Number(...);
  //   fields.End(begin);
  size_t Begin(uint32_t field) {
    Advance(AddTag(field, kLengthDelimited, Room(2 * kMaxVarint)));
    ++size_;  // one byte, enough for a short length
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
  size_t size_;  // bytes of the string that are written
};

}  // namespace resmgr
