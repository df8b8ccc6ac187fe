// SPDX-License-Identifier: Apache-2.0
#include "pkg/grpc/grpc_message.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/support/grpc_framing.h"
#include "test/support/gzip.h"
#include "test/support/status_matchers.h"

namespace resmgr {
namespace {

using resmgr::test::Framed;
using resmgr::test::Gzip;
using resmgr::test::HasCode;
using testing::ElementsAre;

TEST(GrpcMessageReaderTest, SplitsHoweverTheBytesArrive) {
  const std::string body = Framed("first") + Framed("") + Framed("third", true);
  for (size_t step = 1; step <= body.size(); ++step) {
    std::vector<std::string> payloads;
    std::vector<bool> compressed;
    GrpcMessageReader reader(100, [&](const GrpcMessage& message) {
      payloads.push_back(message.payload);
      compressed.push_back(message.compressed);
    });
    for (size_t at = 0; at < body.size(); at += step) {
      reader.Feed(std::string_view(body).substr(at, step));
    }
    EXPECT_THAT(payloads, ElementsAre("first", "", "third")) << step;
    EXPECT_THAT(compressed, ElementsAre(false, false, true)) << step;
    EXPECT_TRUE(reader.complete());
  }
}

TEST(GrpcMessageReaderTest, KeepsOnlyTheBeginningOfLongMessages) {
  std::vector<GrpcMessage> messages;
  GrpcMessageReader reader(4, [&](GrpcMessage message) { messages.push_back(std::move(message)); });
  reader.Feed(Framed("123456") + Framed("ab"));
  ASSERT_EQ(messages.size(), 2U);
  EXPECT_EQ(messages[0].payload, "1234");
  EXPECT_EQ(messages[0].size, 6U);
  EXPECT_TRUE(messages[0].truncated());
  EXPECT_EQ(messages[1].payload, "ab");
  EXPECT_FALSE(messages[1].truncated());
}

TEST(GrpcMessageReaderTest, AHalfMessageIsNotComplete) {
  GrpcMessageReader reader(100, [](const GrpcMessage&) { FAIL(); });
  reader.Feed(std::string_view(Framed("hello")).substr(0, 7));
  EXPECT_FALSE(reader.complete());
}

TEST(DecompressGrpcTest, UnpacksGzip) {
  const std::string text(100'000, 'a');
  const auto plain = DecompressGrpc(Gzip(text), "gzip", 200'000);
  ASSERT_TRUE(plain.ok()) << plain.status();
  EXPECT_EQ(*plain, text);
}

TEST(DecompressGrpcTest, UnpacksAllMembersOfGzip) {
  EXPECT_EQ(DecompressGrpc(Gzip("one, ") + Gzip("two"), "gzip", 100).value(), "one, two");
  EXPECT_EQ(DecompressGrpc(Gzip("one") + "two", "gzip", 100).status().code(),
            StatusCode::kInvalidArgument);
}

TEST(DecompressGrpcTest, RefusesBombsBrokenDataAndUnknownEncodings) {
  const std::string bomb = Gzip(std::string(8'000'000, '\0'));
  EXPECT_EQ(DecompressGrpc(bomb, "gzip", 1'000'000).status().code(),
            StatusCode::kResourceExhausted);
  EXPECT_EQ(DecompressGrpc("not gzip", "gzip", 1000).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(DecompressGrpc(Gzip("abc").substr(0, 10), "gzip", 1000).status().code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(DecompressGrpc("x", "snappy", 1000).status().code(), StatusCode::kUnimplemented);
}

TEST(GrpcStatusTest, TextSurvivesTheTrip) {
  h2::HeaderBlock trailers;
  AddGrpcStatus(ResourceExhausted("100% of CPUs\ntaken, größe"), trailers);
  const GrpcStatus status = ReadGrpcStatus(trailers);
  EXPECT_EQ(status.code, 8);
  EXPECT_EQ(status.message, "100% of CPUs\ntaken, größe");
  EXPECT_EQ(trailers.Find("grpc-message").find('\n'), std::string_view::npos);
}

TEST(GrpcTimeoutTest, ReadsAllUnits) {
  using std::chrono::milliseconds;
  const auto read = [](std::string_view text) {
    h2::HeaderBlock headers;
    headers.Add("grpc-timeout", text);
    return ReadGrpcTimeout(headers);
  };
  EXPECT_EQ(read("2H"), milliseconds(7'200'000));
  EXPECT_EQ(read("3M"), milliseconds(180'000));
  EXPECT_EQ(read("4S"), milliseconds(4'000));
  EXPECT_EQ(read("5m"), milliseconds(5));
  EXPECT_EQ(read("6000u"), milliseconds(6));
  EXPECT_EQ(read("7000000n"), milliseconds(7));
  for (const std::string_view silly : {"", "S", "-1S", "1", "1s", "123456789S", "x1S"})
    EXPECT_FALSE(read(silly).has_value()) << silly;
  EXPECT_FALSE(ReadGrpcTimeout(h2::HeaderBlock()).has_value());
}

TEST(GrpcStatusTest, AMissingOrSillyStatusIsUnknown) {
  h2::HeaderBlock none;
  EXPECT_EQ(ReadGrpcStatus(none).code, 2);
  h2::HeaderBlock silly;
  silly.Add("grpc-status", "ok");
  silly.Add("grpc-message", "50%");
  EXPECT_EQ(ReadGrpcStatus(silly).code, 2);
  EXPECT_EQ(ReadGrpcStatus(silly).message, "50%");
}

constexpr size_t kMostBytes = 100'000;

StatusOr<std::string> Inflate(const std::string& data, size_t step, size_t room = 0) {
  Inflater inflater(data, room, kMostBytes);
  bool whole = false;
  while (!whole) {
    RESMGR_ASSIGN_OR_RETURN(whole, inflater.Step(step));
  }
  return std::string(inflater.output().view().substr(room));
}

TEST(InflaterTest, AllMembersAreRead) {
  const std::string data = Gzip("first, ") + Gzip("") + Gzip(std::string(10'000, 'x')) + Gzip("!");
  for (const size_t step : {1U, 7U, 5000U, 1'000'000U})
    EXPECT_EQ(Inflate(data, step, step % 6).value(), "first, " + std::string(10'000, 'x') + "!");
}

TEST(InflaterTest, WhatFollowsTheMembersIsAnError) {
  for (const std::string& rest : {std::string("x"), std::string(8, '\0'), Gzip("y").substr(0, 12)})
    EXPECT_THAT(Inflate(Gzip("text") + rest, 1000), HasCode(StatusCode::kInvalidArgument));
}

TEST(InflaterTest, TheLimitIsExact) {
  EXPECT_EQ(Inflate(Gzip(std::string(kMostBytes, 'x')), 1000, 5).value().size(), kMostBytes);
  EXPECT_THAT(Inflate(Gzip(std::string(kMostBytes + 1, 'x')), 1000, 5),
              HasCode(StatusCode::kResourceExhausted));
}

TEST(InflaterTest, ABombTakesManySteps) {
  const std::string bomb = Gzip(std::string(kMostBytes, '\0'));
  Inflater inflater(bomb, 0, kMostBytes);
  int steps = 1;
  while (!inflater.Step(1000).value())
    ++steps;
  EXPECT_GE(steps, 100);
  EXPECT_LT(inflater.memory(), 2 * kMostBytes);
}

// Input without output costs time, too.
TEST(InflaterTest, EmptyMembersTakeStepsOfTheirOwn) {
  std::string data;
  for (int i = 0; i < 100; ++i)
    data += Gzip("");
  Inflater inflater(data, 0, kMostBytes);
  int steps = 1;
  while (!inflater.Step(4096).value())
    ++steps;
  EXPECT_GE(steps, 100);
}

}  // namespace
}  // namespace resmgr
