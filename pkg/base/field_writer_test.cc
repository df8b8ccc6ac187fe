// SPDX-License-Identifier: Apache-2.0
#include "pkg/base/field_writer.h"

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <string>

#include <gtest/gtest.h>

namespace resmgr {
namespace {

// Encodes a number by the description of the format, byte by byte.
std::string Varint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7)
    bytes += static_cast<char>((value & 0x7f) | 0x80);
  return bytes + static_cast<char>(value);
}

std::string NumberField(uint64_t field, uint64_t value) {
  return Varint(field << 3) + Varint(value);
}

std::string BytesField(uint64_t field, const std::string& bytes) {
  return Varint(field << 3 | 2) + Varint(bytes.size()) + bytes;
}

TEST(FieldWriterTest, WritesNumbersAndBytes) {
  std::string expected = "before";
  std::string text = expected;
  {
    FieldWriter fields(text);
    for (const uint32_t field : {1U,  2U,  3U,  4U,  5U,  6U,  7U,  8U,    9U,    10U,
                                 11U, 12U, 13U, 14U, 15U, 16U, 17U, 2047U, 2048U, (1U << 29) - 1}) {
      for (int shift = 0; shift < 64; ++shift) {
        const uint64_t number = (uint64_t{1} << shift) - (field & 1);
        fields.Number(field, number);
        expected += NumberField(field, number);
      }
      fields.Number(field, std::numeric_limits<uint64_t>::max());
      expected += NumberField(field, std::numeric_limits<uint64_t>::max());
      for (const size_t size : std::initializer_list<size_t>{0, 1, 127, 128, 300, 20'000}) {
        fields.Bytes(field, std::string(size, 'x'));
        expected += BytesField(field, std::string(size, 'x'));
      }
    }
  }
  EXPECT_EQ(text, expected);
}

TEST(FieldWriterTest, WritesMessagesOfAnyLength) {
  for (const size_t size : std::initializer_list<size_t>{0, 1, 120, 125, 126, 127, 128, 253, 254,
                                                         255, 16'380, 16'384, 70'000}) {
    const std::string within = BytesField(3, std::string(size, 'x'));
    const std::string expected =
        BytesField(1, BytesField(200, within) + NumberField(4, 5)) + NumberField(6, 7);

    std::string text;
    {
      FieldWriter fields(text);
      const size_t outer = fields.Begin(1);
      const size_t inner = fields.Begin(200);
      fields.Bytes(3, std::string(size, 'x'));
      fields.End(inner);
      fields.Number(4, 5);
      fields.End(outer);
      fields.Number(6, 7);
    }
    EXPECT_EQ(text, expected) << size;

    std::string known;
    {
      FieldWriter fields(known);
      const size_t inner = FieldWriter::SizeOf(3, size);
      const size_t outer = FieldWriter::SizeOf(200, inner) + FieldWriter::SizeOf(4, 0);
      fields.Header(1, outer);
      fields.Header(200, inner);
      fields.Bytes(3, std::string(size, 'x'));
      fields.Number(4, 5);
      fields.Number(6, 7);
    }
    EXPECT_EQ(known, expected) << size;
  }
}

TEST(FieldWriterTest, TellsTheSizeOfAField) {
  for (int field_bits = 0; field_bits < 29; ++field_bits) {
    const uint32_t field = uint32_t{1} << field_bits;
    for (const size_t size :
         std::initializer_list<size_t>{0, 1, 127, 128, 16'383, 16'384, 70'000}) {
      EXPECT_EQ(FieldWriter::SizeOf(field, size), BytesField(field, std::string(size, 'x')).size())
          << field << " " << size;
    }
  }
}

}  // namespace
}  // namespace resmgr
