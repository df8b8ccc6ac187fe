// SPDX-License-Identifier: Apache-2.0
#include "pkg/ttrpc/frame.h"

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/ttrpc/envelope.h"
#include "pkg/ttrpc/multiplexer.h"
#include "pkg/ttrpc/testing/test_loop.h"
#include "test/support/status_matchers.h"

namespace resmgr::ttrpc {
namespace {

using resmgr::test::Must;
using test::ReadNow;
using test::RunUntil;
using test::SocketPair;
using test::WriteNow;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::string Bytes(const FrameHeader& header, std::string_view body = {}) {
  const auto bytes = Encode(header);
  return std::string(bytes.data(), bytes.size()).append(body);
}

FrameHeader RequestOf(uint32_t stream, size_t length) {
  return {.length = static_cast<uint32_t>(length), .stream = stream, .type = 1, .flags = 0};
}

// "stream:body", or "stream skipped", for each frame in the pieces.
std::vector<std::string> ReadAll(FrameReader& reader, const std::vector<std::string_view>& pieces) {
  std::vector<std::string> frames;
  for (std::string_view piece : pieces) {
    while (const std::optional<Frame> frame = reader.Next(piece)) {
      frames.push_back(std::to_string(frame->header.stream) +
                       (frame->skipped ? " skipped" : ":" + frame->body));
    }
    EXPECT_TRUE(piece.empty());
  }
  return frames;
}

TEST(FrameTest, AHeaderIsTenBytesInNetworkByteOrder) {
  const FrameHeader header{.length = 0x01020304, .stream = 0x0a0b0c0d, .type = 2, .flags = 5};
  EXPECT_EQ(Bytes(header), std::string("\x01\x02\x03\x04\x0a\x0b\x0c\x0d\x02\x05"));
  EXPECT_EQ(DecodeHeader(Bytes(header)), header);
}

TEST(FrameReaderTest, ReadsFramesThatAreSplitAtAnyByte) {
  const std::string bytes =
      Bytes(RequestOf(1, 5), "first") + Bytes(RequestOf(3, 0)) + Bytes(RequestOf(5, 4), "last");
  for (size_t split = 0; split <= bytes.size(); ++split) {
    MemoryBudget budget;
    FrameReader reader(budget);
    const std::string_view whole = bytes;
    EXPECT_THAT(ReadAll(reader, {whole.substr(0, split), whole.substr(split)}),
                ElementsAre("1:first", "3:", "5:last"));
    EXPECT_EQ(budget.held(), 0U);
  }
}

TEST(FrameReaderTest, ReadsFramesByteByByte) {
  const std::string bytes = Bytes(RequestOf(1, 5), "first") + Bytes(RequestOf(3, 6), "second");
  MemoryBudget budget;
  FrameReader reader(budget);
  std::vector<std::string_view> pieces;
  for (size_t i = 0; i < bytes.size(); ++i)
    pieces.push_back(std::string_view(bytes).substr(i, 1));
  EXPECT_THAT(ReadAll(reader, pieces), ElementsAre("1:first", "3:second"));
}

// A later version of the protocol may have more types (containerd/ttrpc, PROTOCOL.md).
TEST(FrameReaderTest, SkipsTypesThatItDoesNotKnow) {
  FrameHeader unknown = RequestOf(1, 4);
  MemoryBudget budget;
  FrameReader reader(budget);
  for (const int type : {0, 3, 4, 255}) {
    unknown.type = static_cast<uint8_t>(type);
    const std::string bytes = Bytes(unknown, "data") + Bytes(RequestOf(7, 4), "next");
    EXPECT_THAT(ReadAll(reader, {bytes}), ElementsAre("7:next"));
  }
}

TEST(FrameReaderTest, SkipsABodyThatIsTooLong) {
  const std::string most(kLongestMessage, 'x');
  const std::string bytes = Bytes(RequestOf(1, most.size() + 1), most + "x") +
                            Bytes(RequestOf(3, most.size()), most) + Bytes(RequestOf(5, 1), "y");
  MemoryBudget budget;
  FrameReader reader(budget);
  EXPECT_THAT(ReadAll(reader, {bytes}), ElementsAre("1 skipped", "3:" + most, "5:y"));
}

TEST(FrameReaderTest, SkipsABodyThatTheBudgetHasNoRoomFor) {
  MemoryBudget budget(10);
  FrameReader reader(budget);
  std::string_view first = "1234567890";
  std::string bytes = Bytes(RequestOf(1, 10), first);
  std::string_view rest = bytes;
  const std::optional<Frame> held = reader.Next(rest);
  ASSERT_TRUE(held.has_value());
  EXPECT_EQ(budget.held(), 10U);
  EXPECT_THAT(ReadAll(reader, {Bytes(RequestOf(3, 1), "x")}), ElementsAre("3 skipped"));
}

TEST(FrameReaderTest, AnEndInTheMiddleGivesItsMemoryBack) {
  MemoryBudget budget;
  {
    FrameReader reader(budget);
    EXPECT_THAT(ReadAll(reader, {Bytes(RequestOf(1, 100), "half")}), IsEmpty());
    EXPECT_EQ(budget.held(), 100U);
  }
  EXPECT_EQ(budget.held(), 0U);
}

std::string FromHex(std::string_view hex) {
  std::string bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2)
    bytes += static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16));
  return bytes;
}

// The bytes of a Go plugin's library: RegisterPlugin, name "logger", index "10", five seconds.
const std::string& RegisterPlugin() {
  static const std::string* const kBytes = new std::string(FromHex(
      "0a1c6e72692e706b672e6170692e7631616c706861312e52756e74696d65120e5265676973746572506c7567696e"
      "1a0c0a066c6f67676572120231302080e497d012"));
  return *kBytes;
}

TEST(EnvelopeTest, ReadsARequestOfAGoPeer) {
  const Request request = Must(DecodeRequest(RegisterPlugin()));
  EXPECT_EQ(request.service, "nri.pkg.api.v1alpha1.Runtime");
  EXPECT_EQ(request.method, "RegisterPlugin");
  EXPECT_EQ(request.payload, FromHex("0a066c6f6767657212023130"));
  EXPECT_EQ(request.timeout, std::chrono::seconds(5));
  EXPECT_THAT(request.metadata, IsEmpty());
  EXPECT_EQ(Encode(request), RegisterPlugin()) << "and it is written as that one writes it";
}

TEST(EnvelopeTest, ARequestComesBackAsItWas) {
  const Request request{.service = "s",
                        .method = "m",
                        .payload = "",
                        .timeout = std::chrono::nanoseconds(0),
                        .metadata = {{"traceparent", "00-1"}, {"traceparent", "00-2"}}};
  const std::string bytes = Encode(request);
  const Request decoded = Must(DecodeRequest(bytes));
  EXPECT_EQ(decoded.metadata, request.metadata);
  EXPECT_EQ(decoded.timeout.count(), 0);
}

TEST(EnvelopeTest, ATimeThatIsOverIsNone) {
  std::string bytes = "\x20";
  bytes += "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01";  // -1
  const Request request = Must(DecodeRequest(bytes));
  EXPECT_EQ(request.timeout.count(), 0);
}

TEST(EnvelopeTest, MetadataAreBounded) {
  Request request;
  request.metadata.assign(10 * kMostMetadata, {"k", "v"});
  const std::string bytes = Encode(request);
  EXPECT_EQ(DecodeRequest(bytes)->metadata.size(), kMostMetadata);
}

TEST(EnvelopeTest, AnErrorIsAStatus) {
  const std::string bytes = EncodeResponse(Unimplemented("method RunPodSandbox"));
  EXPECT_EQ(bytes, FromHex("0a18080c12146d6574686f642052756e506f6453616e64626f78"));
  const StatusOr<std::string_view> response = DecodeResponse(bytes);
  EXPECT_EQ(response.status().code(), StatusCode::kUnimplemented);
  EXPECT_EQ(Message(response.status()), "method RunPodSandbox");
}

TEST(EnvelopeTest, AnEmptyResponseIsNoBytes) {
  EXPECT_THAT(EncodeResponse(std::string()), IsEmpty());
  const std::string_view response = Must(DecodeResponse(""));
  EXPECT_THAT(response, IsEmpty());
}

TEST(EnvelopeTest, AStatusOfCodeZeroIsSuccess) {
  const std::string bytes = FromHex(
      "0a0208001202"
      "6869");
  const std::string_view response = Must(DecodeResponse(bytes));
  EXPECT_EQ(response, "hi");
}

TEST(EnvelopeTest, ACodeThatDoesNotExistIsUnknown) {
  EXPECT_EQ(DecodeResponse(FromHex("0a0208"
                                   "63"))
                .status()
                .code(),
            StatusCode::kUnknown);
}

TEST(EnvelopeTest, WhatAPeerSaysIsFitForALog) {
  const std::string bytes =
      EncodeResponse(Internal("{}", "\x1b]0;title" + std::string(100'000, 'x')));
  const std::string text(Message(DecodeResponse(bytes).status()));
  EXPECT_LT(text.size(), 2000U);
  EXPECT_THAT(text, testing::Not(HasSubstr("\x1b")));
}

TEST(EnvelopeTest, WhatIsNotProtobufIsRefused) {
  EXPECT_EQ(DecodeRequest("\xff\xff").status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(DecodeRequest(FromHex("2a020a05")).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(DecodeResponse("\x0a").status().code(), StatusCode::kInternal);
  EXPECT_EQ(DecodeResponse(FromHex("0a010a")).status().code(), StatusCode::kInternal);
}

std::string TrunkFrame(uint32_t id, std::string_view payload) {
  std::string bytes(8, '\0');
  PutUint32(id, bytes.data());
  PutUint32(static_cast<uint32_t>(payload.size()), bytes.data() + 4);
  return bytes.append(payload);
}

struct Collector final : Multiplexer::Receiver {
  void OnBytes(std::string_view bytes) override { all += bytes; }
  std::string all;
};

class MultiplexerTest : public testing::Test {
 protected:
  bool Until(const std::function<bool()>& condition) { return RunUntil(loop_, condition); }

  EventLoop loop_;
  SocketPair sockets_;
  std::optional<Status> lost_;
  std::optional<Multiplexer> multiplexer_{std::in_place, loop_, std::move(sockets_.ours),
                                          [this](const Status& why) { lost_ = why; }};
};

TEST_F(MultiplexerTest, AMessageIsAFrameOfItsHeaderAndOneOfItsBody) {
  multiplexer_->Send(2, "header", "body");
  multiplexer_->Send(1, "empty", "");
  EXPECT_EQ(ReadNow(sockets_.theirs),
            TrunkFrame(2, "header") + TrunkFrame(2, "body") + TrunkFrame(1, "empty"));
}

TEST_F(MultiplexerTest, BytesGoToTheirConnectionHoweverTheyAreSplit) {
  const std::string bytes = TrunkFrame(1, "a") + TrunkFrame(2, "bc") + TrunkFrame(1, "") +
                            TrunkFrame(7, "unopened") + TrunkFrame(1, "def");
  Collector first;
  Collector second;
  multiplexer_->Open(1, first);
  multiplexer_->Open(2, second);
  size_t expected = 0;
  for (size_t split = 0; split <= bytes.size(); ++split) {
    expected += 4;
    ASSERT_TRUE(WriteNow(sockets_.theirs, bytes.substr(0, split)));
    resmgr::test::RunFor(loop_, std::chrono::milliseconds(1));
    ASSERT_TRUE(WriteNow(sockets_.theirs, bytes.substr(split)));
    ASSERT_TRUE(Until([&] { return first.all.size() == expected; })) << split;
  }
  EXPECT_THAT(first.all, testing::StartsWith("adefadef"));
  EXPECT_THAT(second.all, testing::StartsWith("bcbc"));
  EXPECT_FALSE(lost_.has_value());
}

TEST_F(MultiplexerTest, TellsThatThePeerHasClosed) {
  sockets_.theirs.Reset();
  ASSERT_TRUE(Until([&] { return lost_.has_value(); }));
  EXPECT_EQ(lost_->code(), StatusCode::kUnavailable);
  multiplexer_->Send(1, "header", "body");
  EXPECT_EQ(multiplexer_->unsent(), 0U);
}

TEST_F(MultiplexerTest, AFrameLongerThanAnyPeerSendsEndsIt) {
  std::string bytes = TrunkFrame(1, "");
  PutUint32(static_cast<uint32_t>(kLongestTrunkFrame + 1), bytes.data() + 4);
  ASSERT_TRUE(WriteNow(sockets_.theirs, bytes));
  ASSERT_TRUE(Until([&] { return lost_.has_value(); }));
  EXPECT_EQ(lost_->code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(Message(*lost_)), HasSubstr("announces a frame"));
}

TEST_F(MultiplexerTest, APeerThatDoesNotReadIsGivenUp) {
  const std::string body(size_t{1} << 20, 'x');
  size_t sent = 0;
  while (!lost_ && sent < 20) {
    multiplexer_->Send(1, "header", body);
    EXPECT_LE(multiplexer_->unsent(), kMostUnsent + body.size() + 100);
    if (++sent % 4 == 0) resmgr::test::RunFor(loop_, std::chrono::milliseconds(0));
  }
  ASSERT_TRUE(Until([&] { return lost_.has_value(); }));
  EXPECT_EQ(lost_->code(), StatusCode::kResourceExhausted);
}

TEST_F(MultiplexerTest, AMessageThatIsReadSlowlyArrivesWhole) {
  const std::string body(size_t{3} << 20, 'x');
  multiplexer_->Send(1, "header", body);
  multiplexer_->Send(1, "next", "");
  const std::string expected =
      TrunkFrame(1, "header") + TrunkFrame(1, body) + TrunkFrame(1, "next");
  std::string all;
  EXPECT_TRUE(Until([&] {
    all += ReadNow(sockets_.theirs);
    return all.size() >= expected.size();
  }));
  EXPECT_TRUE(all == expected);
  EXPECT_EQ(multiplexer_->unsent(), 0U);
}

TEST_F(MultiplexerTest, AReceiverMayDestroyIt) {
  struct Destroyer final : Multiplexer::Receiver {
    void OnBytes(std::string_view) override { target->reset(); }
    std::optional<Multiplexer>* target = nullptr;
  } destroyer;
  destroyer.target = &multiplexer_;
  multiplexer_->Open(1, destroyer);
  ASSERT_TRUE(WriteNow(sockets_.theirs, TrunkFrame(1, "a") + TrunkFrame(1, "b")));
  EXPECT_TRUE(Until([&] { return !multiplexer_.has_value(); }));
}

}  // namespace
}  // namespace resmgr::ttrpc
