// SPDX-License-Identifier: Apache-2.0
#include "pkg/base/wire.h"

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <random>
#include <string>

#include <gtest/gtest.h>

namespace resmgr {
namespace {

using namespace std::string_view_literals;

TEST(WireTest, ReadsWhatItWrote) {
  std::string bytes;
  {
    FieldWriter fields(bytes);
    fields.Number(1, 150);
    fields.Bytes(2, "text");
    fields.Number(3, std::numeric_limits<uint64_t>::max());
    fields.Bytes(1000, "");
  }
  WireReader reader(bytes);
  ASSERT_TRUE(reader.Next());
  EXPECT_EQ(reader.field(), 1U);
  EXPECT_EQ(reader.number(), 150U);
  EXPECT_FALSE(reader.is_bytes());
  ASSERT_TRUE(reader.Next());
  EXPECT_EQ(reader.field(), 2U);
  EXPECT_EQ(reader.bytes(), "text");
  EXPECT_TRUE(reader.is_bytes());
  ASSERT_TRUE(reader.Next());
  EXPECT_EQ(reader.number(), std::numeric_limits<uint64_t>::max());
  ASSERT_TRUE(reader.Next());
  EXPECT_EQ(reader.field(), 1000U);
  EXPECT_FALSE(reader.Next());
  EXPECT_FALSE(reader.failed());
}

TEST(WireTest, ReadsMessagesOfAnyLength) {
  for (const size_t size : {0U, 1U, 125U, 126U, 127U, 200U, 20'000U}) {
    std::string bytes = "before";
    const std::string text(size, 'x');
    {
      FieldWriter fields(bytes);
      const size_t begin = fields.Begin(5);
      fields.Bytes(1, text);
      fields.End(begin);
      fields.Number(6, 7);
    }
    WireReader reader(std::string_view(bytes).substr(6));
    ASSERT_TRUE(reader.Next());
    EXPECT_EQ(reader.field(), 5U);
    WireReader message(reader.bytes());
    ASSERT_TRUE(message.Next());
    EXPECT_EQ(message.bytes(), text);
    EXPECT_FALSE(message.Next());
    ASSERT_TRUE(reader.Next());
    EXPECT_EQ(reader.number(), 7U);
  }
}

// For any bytes, the wanted fields and the failure are the same as when all fields are read.
TEST(WireTest, PassesOverWhatIsNotWanted) {
  std::mt19937 random(11);
  for (int round = 0; round < 20'000; ++round) {
    std::string bytes;
    for (auto i = random() % 8; i > 0; --i) {
      const auto field = static_cast<uint32_t>(1 + random() % 40);
      if (random() % 8 == 0) {
        for (auto row = random() % 20; row > 0; --row)
          FieldWriter(bytes).Bytes(field, std::string(random() % 150, 'x'));
      } else if (random() % 3 == 0) {
        FieldWriter(bytes).Number(field, random());
      } else {
        FieldWriter(bytes).Bytes(field, std::string(random() % 4 == 0 ? 200 : random() % 5, 'x'));
      }
    }
    if (random() % 3 == 0 && !bytes.empty()) {
      bytes.resize(bytes.size() - std::min<size_t>(bytes.size(), random() % 200));
    }
    const auto wanted = static_cast<uint32_t>(random());
    WireReader all(bytes);
    WireReader some(bytes);
    while (all.Next()) {
      if (all.field() >= 32 || (wanted >> all.field() & 1) == 0) continue;
      ASSERT_TRUE(some.NextOf(wanted));
      EXPECT_EQ(some.field(), all.field());
      EXPECT_EQ(some.bytes(), all.bytes());
      EXPECT_EQ(some.number(), all.number());
    }
    EXPECT_FALSE(some.NextOf(wanted));
    EXPECT_EQ(some.failed(), all.failed());
  }
}

TEST(WireTest, ReadsFixedFields) {
  WireReader reader("\x09\x01\x00\x00\x00\x00\x00\x00\x80\x15\x02\x00\x00\x00"sv);
  ASSERT_TRUE(reader.Next());
  EXPECT_EQ(reader.number(), 0x8000000000000001U);
  ASSERT_TRUE(reader.Next());
  EXPECT_EQ(reader.field(), 2U);
  EXPECT_EQ(reader.number(), 2U);
  EXPECT_FALSE(reader.Next());
  EXPECT_FALSE(reader.failed());
}

// {1: group {2: 1, 2: group {}}, 3: "x"}
TEST(WireTest, GroupIsOneField) {
  const std::string_view bytes = "\x0b\x10\x01\x13\x14\x0c\x1a\x01x"sv;
  WireReader reader(bytes);
  ASSERT_TRUE(reader.Next());
  EXPECT_EQ(reader.field(), 1U);
  EXPECT_FALSE(reader.is_bytes());
  EXPECT_EQ(reader.bytes(), "");
  EXPECT_EQ(reader.number(), 0U);
  EXPECT_EQ(reader.rest(), bytes.substr(6));
  ASSERT_TRUE(reader.Next());
  EXPECT_EQ(reader.bytes(), "x");
  EXPECT_EQ(reader.rest(), "");
  EXPECT_FALSE(reader.Next());
  EXPECT_FALSE(reader.failed());
}

TEST(WireTest, GroupsAreNestedToALimit) {
  const auto nested = [](size_t depth) {
    return std::string(depth, '\x0b') + std::string(depth, '\x0c');
  };
  const std::string deepest = nested(100);
  EXPECT_TRUE(WireReader(deepest).Next());
  const std::string deeper = nested(101);
  EXPECT_FALSE(WireReader(deeper).Next());
}

class WireMalformedTest : public testing::TestWithParam<std::string_view> {};

TEST_P(WireMalformedTest, EndsWithFailure) {
  WireReader reader(GetParam());
  while (reader.Next()) {
  }
  EXPECT_TRUE(reader.failed());
  EXPECT_FALSE(reader.Next());
}

INSTANTIATE_TEST_SUITE_P(Bytes, WireMalformedTest,
                         testing::Values("\x08"sv,  // no number behind the tag
                                         "\x0a\x05"
                                         "abc"sv,           // shorter than its length says
                                         "\x00\x01"sv,      // field 0
                                         "\x0b"sv,          // a group without an end
                                         "\x0b\x14"sv,      // a group with the end of another
                                         "\x0c"sv,          // the end of a group that did not begin
                                         "\x0f\x01"sv,      // wire type 7
                                         "\x0d\x01\x02"sv,  // half of a fixed32
                                         "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80"sv,
                                         "\x0a\xff\xff\xff\xff\xff\xff\xff\xff\x7f"sv));

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
