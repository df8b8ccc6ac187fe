// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace resmgr {

// Reads the fields of one protobuf message from its bytes, without copying and without knowing the
// rest of it. Bytes that are no protobuf end the reading with failed().
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
      const auto tag = static_cast<uint8_t>(start[0]);
      const auto length = static_cast<uint8_t>(start[1]);
      if (tag < 0x80 && (tag & 7) == 2 && tag >> 3 != 0 && length < 0x80 &&
          end_ - start - 2 >= length) {
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
  bool failed() const { return failed_; }

  uint32_t field() const { return field_; }
  // A length-delimited field; empty for the other wire types.
  std::string_view bytes() const { return bytes_; }
  // A varint or fixed field; 0 for length-delimited ones.
  uint64_t number() const { return number_; }
  bool is_bytes() const { return wire_type_ == 2; }

 private:
  bool NextOfAnyKind();
  bool ReadVarint(uint64_t& value);
  bool Fail();
  size_t left() const { return static_cast<size_t>(end_ - at_); }

  const char* at_;
  const char* end_;
  std::string_view bytes_;
  uint64_t number_ = 0;
  uint32_t field_ = 0;
  uint32_t wire_type_ = 0;
  bool failed_ = false;
};

// Builds protobuf fields at the end of a string.
void AppendVarint(uint64_t value, std::string& out);
void AppendNumberField(uint32_t field, uint64_t value, std::string& out);
void AppendBytesField(uint32_t field, std::string_view bytes, std::string& out);

}  // namespace resmgr
