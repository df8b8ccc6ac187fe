// SPDX-License-Identifier: Apache-2.0
#include "pkg/cri/wire.h"

#include <limits>
#include <string>

#include <gtest/gtest.h>

namespace resmgr {
namespace {

using namespace std::string_view_literals;

TEST(WireTest, ReadsWhatItWrote) {
  std::string bytes;
  AppendNumberField(1, 150, bytes);
  AppendBytesField(2, "text", bytes);
  AppendNumberField(3, std::numeric_limits<uint64_t>::max(), bytes);
  AppendBytesField(1000, "", bytes);

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
                                         "\x0b"sv,          // a group
                                         "\x0f\x01"sv,      // wire type 7
                                         "\x0d\x01\x02"sv,  // half of a fixed32
                                         "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80"sv,
                                         "\x0a\xff\xff\xff\xff\xff\xff\xff\xff\x7f"sv));

}  // namespace
}  // namespace resmgr
