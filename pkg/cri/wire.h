// SPDX-License-Identifier: Apache-2.0
#pragma once

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
  explicit WireReader(std::string_view message) : rest_(message) {}

  // Moves to the next field. False at the end and on malformed bytes.
  bool Next();
  bool failed() const { return failed_; }

  uint32_t field() const { return field_; }
  // A length-delimited field; empty for the other wire types.
  std::string_view bytes() const { return bytes_; }
  // A varint or fixed field; 0 for length-delimited ones.
  uint64_t number() const { return number_; }
  bool is_bytes() const { return wire_type_ == 2; }

 private:
  bool ReadVarint(uint64_t& value);
  bool Fail();

  std::string_view rest_;
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
