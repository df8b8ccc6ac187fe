// SPDX-License-Identifier: Apache-2.0
#include "pkg/h2/hpack.h"

#include <random>
#include <string>

#include <gtest/gtest.h>

namespace resmgr::h2 {
namespace {

constexpr size_t kLimit = 100'000;

HeaderBlock Fields(std::initializer_list<std::pair<std::string, std::string>> fields) {
  HeaderBlock headers;
  for (const auto& [name, value] : fields)
    headers.Add(name, value);
  return headers;
}

TEST(HpackTest, FieldsKeepTheirOrderAndRepetitions) {
  HpackEncoder encoder;
  HpackDecoder decoder;
  const HeaderBlock headers =
      Fields({{":path", "/a/b"}, {"x", "1"}, {"y", ""}, {"x", "2"}, {"bin-bin", "\x01\xff"}});
  const std::string block(encoder.Encode(headers));
  const auto decoded = decoder.Decode(block, kLimit);
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(*decoded, headers);
}

TEST(HpackTest, RememberedBlocksNeverSurviveAChangeOfTheTable) {
  // Few names and values, so that blocks repeat, and a small table, so that entries are pushed out.
  HpackEncoder encoder;
  encoder.SetTableSize(200);
  HpackDecoder decoder;
  std::mt19937 random(7);
  for (int round = 0; round < 20'000; ++round) {
    HeaderBlock headers;
    headers.Add(":method", "POST");
    for (uint32_t i = random() % 4; i > 0; --i) {
      headers.Add("name-" + std::to_string(random() % 6), std::string(random() % 3, 'v'),
                  random() % 5 == 0);
    }
    const std::string block(encoder.Encode(headers));
    const auto decoded = decoder.Decode(block, kLimit);
    ASSERT_TRUE(decoded.ok()) << "round " << round << ": " << decoded.status();
    ASSERT_EQ(*decoded, headers) << "round " << round;
  }
}

TEST(HpackTest, TooManyFieldsAreRefusedAndTheTableStaysRight) {
  HpackEncoder encoder;
  HpackDecoder decoder;
  const std::string block(
      encoder.Encode(Fields({{"long", std::string(5000, 'x')}, {"kept", "v"}})));
  EXPECT_EQ(decoder.Decode(block, 1000).status().code(), StatusCode::kResourceExhausted);
  const auto decoded = decoder.Decode(encoder.Encode(Fields({{"kept", "v"}})), 1000);
  ASSERT_TRUE(decoded.ok());
  EXPECT_EQ(decoded->Find("kept"), "v");
}

TEST(HpackTest, WhatWasTooMuchOnceIsTooMuchAgain) {
  HpackDecoder decoder;
  std::string block("\x00\x04name\x64", 7);  // a literal that does not enter the table
  block.append(100, 'v');
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(decoder.Recall(block), nullptr);
    EXPECT_EQ(decoder.Decode(block, 100).status().code(), StatusCode::kResourceExhausted);
  }
}

// A runtime's error with the output of a failed hook, for example. libnghttp2 takes such a text for
// a broken block, which would end the connection with all its calls.
TEST(HpackTest, ALongTextIsTooMuchAndTheTableStaysRight) {
  HpackEncoder encoder;
  HpackDecoder decoder;
  const HeaderBlock known = Fields({{"known", "field"}});
  ASSERT_TRUE(decoder.Decode(encoder.Encode(known), kLimit).ok());
  for (const size_t size : {size_t{65'536}, size_t{65'537}, size_t{200'000}}) {
    const std::string text(size, 'x');
    for (const HeaderBlock& block : {Fields({{"a", "b"}, {"long", text}, {"c", "d"}}),
                                     Fields({{text, "value"}}), Fields({{"known", text}})}) {
      const auto headers = decoder.Decode(encoder.Encode(block), size_t{1} << 20);
      EXPECT_EQ(headers.status().code(),
                size == 65'536 ? StatusCode::kOk : StatusCode::kResourceExhausted);
      const auto next = decoder.Decode(encoder.Encode(known), kLimit);
      ASSERT_TRUE(next.ok());
      EXPECT_EQ(*next, known);
    }
  }
  // A literal that enters the table empties it, as every entry that is larger than the table does.
  std::string long_entry("\x40\x01n\x7f\x80\x80\x04", 7);  // 127 + 65,536 bytes of text follow
  long_entry.append(127 + 65'536, 'x');
  EXPECT_EQ(decoder.Decode(long_entry, size_t{1} << 20).status().code(),
            StatusCode::kResourceExhausted);
  EXPECT_EQ(decoder.Decode("\xbe", kLimit).status().code(), StatusCode::kInvalidArgument);
}

TEST(HpackTest, AnnouncesTheSmallestTableThatItHad) {
  HpackEncoder encoder;
  HpackDecoder decoder;
  const HeaderBlock headers = Fields({{"name", "value"}});
  const auto pass = [&] {
    const std::string block(encoder.Encode(headers));
    const auto decoded = decoder.Decode(block, kLimit);
    EXPECT_TRUE(decoded.ok() && *decoded == headers);
    return block;
  };
  pass();
  encoder.SetTableSize(0);
  encoder.SetTableSize(4096);
  EXPECT_EQ(pass().substr(0, 4), "\x20\x3f\xe1\x1f") << "none at all, then 4096";
  EXPECT_EQ(pass().size(), 1U) << "a reference to the table";
  encoder.SetTableSize(100);
  EXPECT_EQ(pass().substr(0, 2), "\x3f\x45") << "100, once";
}

TEST(HpackTest, BrokenBlocksAreErrors) {
  EXPECT_EQ(HpackDecoder().Decode("\x40", kLimit).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(HpackDecoder().Decode("\xff\xff\xff\xff\xff\xff", kLimit).status().code(),
            StatusCode::kInvalidArgument);
}

TEST(HpackTest, ARepeatedRequestIsAFewReferences) {
  HpackEncoder encoder;
  const HeaderBlock request = Fields({{":method", "POST"},
                                      {":scheme", "http"},
                                      {":path", "/runtime.v1.RuntimeService/Version"},
                                      {"content-type", "application/grpc"}});
  encoder.Encode(request);
  EXPECT_EQ(encoder.Encode(request).size(), 4U);
}

TEST(HpackTest, ALongBlockIsGivenBack) {
  HpackEncoder encoder;
  EXPECT_GT(encoder.Encode(Fields({{"a", std::string(100'000, 'x')}})).size(), 100'000U);
  encoder.GiveBack();
  EXPECT_LT(encoder.kept(), 100U);
  encoder.Encode(Fields({{"a", std::string(100, 'x')}}));
  encoder.GiveBack();
  EXPECT_GE(encoder.kept(), 100U) << "the memory of short ones is used again";
}

TEST(HpackTest, TellsWhichBlocksChangeTheTable) {
  using namespace std::string_view_literals;
  EXPECT_TRUE(LeavesTableAlone("\x82\x86\x84"sv));         // three references
  EXPECT_TRUE(LeavesTableAlone("\x04\x02/a"sv));           // literal, not indexed
  EXPECT_TRUE(LeavesTableAlone("\x10\x01n\x01v"sv));       // literal, never indexed
  EXPECT_FALSE(LeavesTableAlone("\x82\x40\x01n\x01v"sv));  // literal, indexed
  EXPECT_FALSE(LeavesTableAlone("\x20"sv));                // a new table size
  EXPECT_FALSE(LeavesTableAlone("\x04\x05/a"sv));          // malformed
}

TEST(HeaderBlockTest, CopiesShareUntilOneChanges) {
  HeaderBlock first = Fields({{"a", "1"}, {"b", "2"}});
  HeaderBlock second = first;
  second.Remove("a");
  second.Add("c", "3");
  EXPECT_EQ(first, Fields({{"a", "1"}, {"b", "2"}}));
  EXPECT_EQ(second.Find("a"), "");
  EXPECT_EQ(second.Find("c"), "3");
  EXPECT_EQ(second.fields().size(), 2U);
  EXPECT_TRUE(HeaderBlock().empty());
}

}  // namespace
}  // namespace resmgr::h2
