// SPDX-License-Identifier: Apache-2.0
#include "pkg/h2/session.h"

#include <algorithm>
#include <list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include "pkg/h2/session_fixture.h"

namespace resmgr::h2 {
namespace {

TEST_F(SessionTest, CarriesARequestAndItsAnswer) {
  Echo();
  Recorder call(*client_->session, Request("/a/b"));
  call.stream->SendData(Slice::Copy("hello"));
  call.stream->SendEnd();
  RunUntil([&] { return call.closed; });
  EXPECT_EQ(server_->recorders.front().path, "/a/b");
  EXPECT_EQ(call.status, "200");
  EXPECT_EQ(call.body, "hello");
  EXPECT_EQ(call.grpc_status, "0");
  EXPECT_EQ(call.error_code, 0U);
  EXPECT_EQ(call.sent, 5U);
  EXPECT_EQ(client_->session->open_streams(), 0);
}

TEST_F(SessionTest, CarriesAnAnswerWithoutBody) {
  server_->on_request = [](Recorder& recorder) {
    HeaderBlock headers = Answer();
    headers.Add("grpc-status", "14");
    recorder.stream->SendHeaders(headers, true);
  };
  Recorder call(*client_->session, Request("/a/b"), true);
  RunUntil([&] { return call.closed; });
  EXPECT_TRUE(call.headers_end);
  EXPECT_TRUE(server_->recorders.front().headers_end);
}

TEST_F(SessionTest, AReaderThatDoesNotConsumeStopsTheSenderAtTheWindow) {
  constexpr size_t kTotal = size_t{8} << 20;
  server_->on_request = [](Recorder& recorder) { recorder.consume = false; };
  Recorder call(*client_->session, Request("/a/b"));
  constexpr size_t kChunk = size_t{64} << 10;
  const std::string chunk(kChunk, 'x');
  for (size_t i = 0; i < kTotal / chunk.size(); ++i)
    call.stream->SendData(Slice::Copy(chunk));
  call.stream->SendEnd();
  RunUntil([&] {
    return !server_->recorders.empty() && server_->recorders.front().received >= kStreamWindow;
  });
  Recorder& received = server_->recorders.front();
  EXPECT_EQ(received.received, static_cast<size_t>(kStreamWindow));
  EXPECT_GE(call.stream->queued(), kTotal - kStreamWindow - kChunk);

  received.consume = true;
  received.stream->Consume(received.received);
  RunUntil([&] { return received.ended; });
  EXPECT_EQ(received.received, kTotal);
}

TEST_F(SessionTest, APeerThatDoesNotReadStopsTheSenderAtTheSocket) {
  Echo();
  Recorder call(*client_->session, Request("/a/b"));
  RunUntil([&] { return !server_->recorders.empty(); });
  server_->session->SetReading(false);
  // Fits the window, but not the socket's buffer.
  const std::string body(static_cast<size_t>(kStreamWindow), 'x');
  call.stream->SendData(Slice::Copy(body));
  call.stream->SendEnd();
  RunUntil([&] { return client_->session->output_waits(); });
  EXPECT_THAT(client_->output_waits, testing::ElementsAre(true));
  Recorder& received = server_->recorders.front();
  EXPECT_EQ(received.received, 0U);

  server_->session->SetReading(true);
  RunUntil([&] { return call.closed; });
  EXPECT_EQ(received.received, body.size());
  EXPECT_THAT(client_->output_waits, testing::ElementsAre(true, false));
  EXPECT_FALSE(client_->session->output_waits());
}

TEST_F(SessionTest, AStreamThatIsDroppedUnreadDoesNotEatTheConnectionsWindow) {
  Echo();
  const std::string chunk(static_cast<size_t>(kStreamWindow) / 2, 'x');
  // Together more than the connection's window, none of it consumed explicitly.
  for (int i = 0; i < 8; ++i) {
    Recorder call(*client_->session, Request("/drop"));
    call.stream->SendData(Slice::Copy(chunk));
    const size_t before = server_->recorders.size();
    server_->on_request = [](Recorder& recorder) { recorder.consume = false; };
    RunUntil([&] {
      return server_->recorders.size() > before &&
             server_->recorders.back().received == chunk.size();
    });
    call.stream->Reset(static_cast<uint32_t>(ErrorCode::kCancel));
    RunUntil([&] { return server_->recorders.back().closed; });
    server_->recorders.back().stream.reset();
  }
  Echo();
  Recorder call(*client_->session, Request("/a/b"));
  call.stream->SendData(Slice::Copy("still alive"));
  call.stream->SendEnd();
  RunUntil([&] { return call.closed; });
  EXPECT_EQ(call.body, "still alive");
}

TEST_F(SessionTest, AResetReachesTheOtherSideWithItsCode) {
  Recorder call(*client_->session, Request("/a/b"));
  RunUntil([&] { return !server_->recorders.empty(); });
  call.stream->Reset(static_cast<uint32_t>(ErrorCode::kCancel));
  RunUntil([&] { return server_->recorders.front().closed && call.closed; });
  EXPECT_EQ(server_->recorders.front().error_code, static_cast<uint32_t>(ErrorCode::kCancel));
  EXPECT_FALSE(server_->recorders.front().lost);
}

TEST_F(SessionTest, DestroyingAnOpenStreamCancelsIt) {
  Recorder call(*client_->session, Request("/a/b"));
  RunUntil([&] { return !server_->recorders.empty(); });
  call.stream.reset();
  RunUntil([&] { return server_->recorders.front().closed; });
  EXPECT_EQ(server_->recorders.front().error_code, static_cast<uint32_t>(ErrorCode::kCancel));
}

TEST_F(SessionTest, AnEarlyAnswerClosesTheStreamTowardsASendingClient) {
  server_->on_request = [](Recorder& recorder) {
    recorder.stream->SendHeaders(Answer(), false);
    recorder.stream->SendEnd(Trailers());
    recorder.stream->StopReceiving();
  };
  Recorder call(*client_->session, Request("/a/b"));
  RunUntil([&] { return call.closed; });
  EXPECT_TRUE(call.ended);
  EXPECT_EQ(call.grpc_status, "0");
  EXPECT_EQ(call.error_code, static_cast<uint32_t>(ErrorCode::kNoError));
}

TEST_F(SessionTest, ALostConnectionEndsItsStreams) {
  Recorder call(*client_->session, Request("/a/b"));
  RunUntil([&] { return !server_->recorders.empty(); });
  server_->recorders.clear();
  server_->session.reset();
  RunUntil([&] { return !client_->disconnect.ok(); });
  EXPECT_TRUE(call.closed);
  EXPECT_TRUE(call.lost);
  EXPECT_EQ(client_->disconnect.code(), StatusCode::kUnavailable);
  EXPECT_EQ(client_->session->OpenStream(Request("/a/b"), true, call), nullptr);
}

TEST_F(SessionTest, AStreamOutlivesItsSession) {
  Recorder call(*client_->session, Request("/a/b"));
  client_->session.reset();
  EXPECT_TRUE(call.closed);
  call.stream->SendData(Slice::Copy("too late"));
  call.stream->Consume(1);
  call.stream->SendEnd();
  EXPECT_FALSE(call.stream->open());
}

TEST_F(SessionTest, GoAwayLetsOpenStreamsEndAndThenCloses) {
  Echo();
  Recorder call(*client_->session, Request("/a/b"));
  RunUntil([&] { return !server_->recorders.empty(); });
  server_->session->GoAway();
  RunUntil([&] { return client_->going_away; });
  EXPECT_EQ(client_->session->OpenStream(Request("/late"), true, call), nullptr);
  call.stream->SendData(Slice::Copy("last"));
  call.stream->SendEnd();
  RunUntil([&] { return !server_->disconnect.ok(); });
  EXPECT_EQ(call.body, "last");
  EXPECT_EQ(call.grpc_status, "0");
}

// Writes like a client that has not read its answer yet: gRPC C++ drops the answer if the write
// fails.
TEST_F(ServerFramesTest, AClientMayWriteUntilItHasReadTheLastAnswer) {
  end_->on_request = [](Recorder& recorder) {
    recorder.stream->SendHeaders(Answer(), false);
    recorder.stream->SendEnd(Trailers());
  };
  Greet();
  Send(FrameType::kHeaders, kFlagEndHeaders | kFlagEndStream, 1,
       HpackEncoder().Encode(Request("/a/b")));
  RunUntil([&] { return !end_->recorders.empty(); });
  end_->session->GoAway();
  end_->recorders.clear();
  RunUntil([&] { return Count(FrameType::kGoAway) == 1; });
  Send(FrameType::kPing, 0, 0, "12345678");
  EXPECT_TRUE(end_->disconnect.ok());
  EXPECT_EQ(Count(FrameType::kHeaders), 2U);
  peer_.Reset();
  RunUntil([&] { return !end_->disconnect.ok(); });
  EXPECT_THAT(std::string(Message(end_->disconnect)), testing::HasSubstr("closed the connection"));
}

TEST_F(ServerFramesTest, AClientThatDoesNotCloseIsLetGo) {
  end_->session->GoAway();
  RunUntil([&] { return !end_->disconnect.ok(); });
  EXPECT_THAT(std::string(Message(end_->disconnect)), testing::HasSubstr("the connection ended"));
}

TEST_F(SessionTest, ARequestThatCrossesGoAwayHarmsNoOther) {
  Echo();
  Recorder call(*client_->session, Request("/a/b"));
  RunUntil([&] { return !server_->recorders.empty(); });
  server_->session->GoAway();
  Recorder late(*client_->session, Request("/late"));
  late.stream->SendData(Slice::Copy("body"));
  late.stream->SendEnd();
  RunUntil([&] { return late.closed; });
  EXPECT_EQ(late.error_code, static_cast<uint32_t>(ErrorCode::kRefusedStream));
  EXPECT_FALSE(late.lost);
  call.stream->SendData(Slice::Copy("goes on"));
  call.stream->SendEnd();
  RunUntil([&] { return call.closed; });
  EXPECT_EQ(call.body, "goes on");
  EXPECT_EQ(server_->recorders.size(), 1U);
}

TEST_F(SessionTest, ARequestThatCrossesTheBeginOfADrainIsServed) {
  Echo();
  server_->session->Drain();
  Recorder crossing(*client_->session, Request("/crossing"));
  crossing.stream->SendData(Slice::Copy("served"));
  RunUntil([&] { return client_->going_away && !server_->recorders.empty(); });
  EXPECT_EQ(client_->session->OpenStream(Request("/late"), true, crossing), nullptr);
  EXPECT_TRUE(server_->disconnect.ok());
  crossing.stream->SendEnd();
  RunUntil([&] { return !server_->disconnect.ok(); });
  EXPECT_TRUE(crossing.closed);
  EXPECT_EQ(crossing.body, "served");
  EXPECT_EQ(crossing.grpc_status, "0");
}

class DrainTest : public ServerFramesTest {
 protected:
  DrainTest() {
    end_->on_request = [](Recorder& recorder) {
      recorder.stream->SendHeaders(Answer(), false);
      recorder.stream->SendEnd(Trailers());
    };
    Greet();
  }
  void Ask(int32_t stream) {
    Send(FrameType::kHeaders, kFlagEndHeaders | kFlagEndStream, stream,
         HpackEncoder().Encode(Request("/a/b")));
  }
  // The last stream of each GOAWAY frame so far.
  std::vector<uint32_t> GoneAfter() {
    Frames();
    std::vector<uint32_t> last;
    for (size_t at = 0; at + kFrameHeaderSize <= sent_.size();) {
      const auto* bytes = reinterpret_cast<const uint8_t*>(sent_.data()) + at;
      const FrameHeader header = ReadFrameHeader(bytes);
      if (header.type == FrameType::kGoAway) {
        last.push_back(ReadUint32(bytes + kFrameHeaderSize));
        EXPECT_EQ(ReadUint32(bytes + kFrameHeaderSize + 4), 0U) << "NO_ERROR";
      }
      at += kFrameHeaderSize + header.length;
    }
    return last;
  }

  static constexpr uint32_t kAny = 0x7fffffff;
};

TEST_F(DrainTest, TheLastStreamIsToldWhenTheClientHasReadTheFirstGoAway) {
  Ask(1);
  RunUntil([&] { return Count(FrameType::kHeaders) == 2; });
  end_->session->Drain();
  end_->session->Drain();  // a second call changes nothing
  RunUntil([&] { return Count(FrameType::kPing) == 1; });
  EXPECT_THAT(GoneAfter(), testing::ElementsAre(kAny));
  // A request from before the client reads that.
  Ask(3);
  RunUntil([&] { return Count(FrameType::kHeaders) == 4; });
  Send(FrameType::kPing, kFlagAck, 0, "another1");
  Send(FrameType::kPing, 0, 0, "12345678");
  RunUntil([&] { return Count(FrameType::kPing) == 2; });
  EXPECT_THAT(GoneAfter(), testing::ElementsAre(kAny)) << "that was no answer to its PING";
  Send(FrameType::kPing, kFlagAck, 0, "draining");
  RunUntil([&] { return GoneAfter().size() == 2; });
  EXPECT_THAT(GoneAfter(), testing::ElementsAre(kAny, 3U));
  // A request after that is an error.
  Ask(5);
  RunUntil([&] { return !end_->disconnect.ok(); });
  EXPECT_EQ(end_->recorders.size(), 2U);
  EXPECT_EQ(Count(FrameType::kHeaders), 4U);
}

TEST_F(DrainTest, AClientThatDoesNotAnswerIsLetGo) {
  RunUntil([&] { return Count(FrameType::kSettings) == 2; });
  const auto begin = loop_.Now();
  end_->session->Drain();
  RunUntil([&] { return GoneAfter().size() == 2; });
  EXPECT_GE(loop_.Now() - begin, kDrainPingTimeout);
  EXPECT_THAT(GoneAfter(), testing::ElementsAre(kAny, 0U));
  RunUntil([&] { return !end_->disconnect.ok(); });
  EXPECT_LT(loop_.Now() - begin, kDrainPingTimeout + kLastWordTimeout + std::chrono::seconds(10));
}

TEST_F(DrainTest, AConnectionThatIsLostMeanwhileEnds) {
  end_->session->Drain();
  RunUntil([&] { return Count(FrameType::kPing) == 1; });
  peer_.Reset();
  RunUntil([&] { return !end_->disconnect.ok(); });
  EXPECT_THAT(std::string(Message(end_->disconnect)), testing::HasSubstr("closed the connection"));
}

TEST_F(DrainTest, AnEndAtOnceIsOneGoAway) {
  end_->session->GoAway();
  end_->session->Drain();
  RunUntil([&] { return GoneAfter().size() == 1; });
  RunUntil([&] { return !end_->disconnect.ok(); });
  EXPECT_EQ(GoneAfter().size(), 1U);
  EXPECT_EQ(Count(FrameType::kPing), 0U);
}

TEST_F(SessionTest, ManyStreamsAtOnceEachGetTheirOwnAnswer) {
  Echo();
  std::list<Recorder> calls;
  for (int i = 0; i < 500; ++i) {
    Recorder& call = calls.emplace_back(*client_->session, Request("/a/b"));
    call.stream->SendData(Slice::Copy(std::to_string(i)));
    call.stream->SendEnd();
  }
  RunUntil([&] {
    for (const Recorder& call : calls) {
      if (!call.closed) return false;
    }
    return true;
  });
  int i = 0;
  for (const Recorder& call : calls)
    EXPECT_EQ(call.body, std::to_string(i++));
}

TEST_F(FramesTest, LittleDataAndItsEndAreOneFrame) {
  Recorder call(*end_->session, Request("/a/b"));
  call.stream->SendData(Slice::Copy("hello "));
  call.stream->SendData(Slice::Copy("world"));
  call.stream->SendEnd();
  RunUntil([&] { return Count(FrameType::kData) == 2; });
  const std::vector<FrameHeader> data = Frames(FrameType::kData);
  EXPECT_FALSE(data[0].Has(kFlagEndStream));
  EXPECT_TRUE(data[1].Has(kFlagEndStream));
}

TEST_F(FramesTest, ARequestThatWasGivenUpWhileItWaitedIsNeverSent) {
  AllowOneStream();
  Recorder first(*end_->session, Request("/a/first"), true);
  Recorder second(*end_->session, Request("/a/second"), true);
  // A client with two calls that leaves resets both streams in one event.
  first.stream->Reset(static_cast<uint32_t>(ErrorCode::kCancel));
  second.stream->Reset(static_cast<uint32_t>(ErrorCode::kCancel));
  RunUntil([&] { return first.closed && second.closed; });
  EXPECT_EQ(Count(FrameType::kHeaders), 1U);
  Recorder third(*end_->session, Request("/a/third"), true);
  RunUntil([&] { return Count(FrameType::kHeaders) == 2; });
  EXPECT_EQ(Count(FrameType::kRstStream), 1U);
}

TEST_F(FramesTest, AStreamThatIsDestroyedMakesRoomForOneThatWaits) {
  AllowOneStream();
  Recorder first(*end_->session, Request("/a/first"), true);
  Recorder second(*end_->session, Request("/a/second"), true);
  RunUntil([&] { return Count(FrameType::kHeaders) == 1; });
  first.stream.reset();
  RunUntil([&] { return Count(FrameType::kHeaders) == 2; });
  EXPECT_EQ(second.stream->id(), 3);
}

TEST_F(FramesTest, NothingFollowsAReset) {
  Recorder call(*end_->session, Request("/a/b"));
  call.stream->SendData(Slice::Copy(std::string(20'000, 'x')));
  call.stream->SendEnd();
  call.stream->Reset(static_cast<uint32_t>(ErrorCode::kCancel));
  Recorder next(*end_->session, Request("/a/b"), true);
  RunUntil([&] { return call.closed && Count(FrameType::kHeaders) == 2; });
  EXPECT_EQ(Count(FrameType::kRstStream), 1U);
  EXPECT_EQ(Count(FrameType::kData), 0U);
}

TEST_F(ServerFramesTest, PaddingAloneDoesNotShutAStreamsWindow) {
  Greet();
  Send(FrameType::kHeaders, kFlagEndHeaders, 1, HpackEncoder().Encode(Request("/a/b")));
  const std::string padding = '\xff' + std::string(255, '\0');
  const size_t enough = static_cast<size_t>(kStreamWindow) / 2 / padding.size();
  for (size_t i = 0; i < enough; ++i) {
    Send(FrameType::kData, kFlagPadded, 1, padding);
    if (i % 64 == 0) resmgr::test::RunFor(loop_, std::chrono::milliseconds(1));
  }
  RunUntil([&] {
    const std::vector<FrameHeader> updates = Frames(FrameType::kWindowUpdate);
    return std::ranges::any_of(updates, [](const FrameHeader& one) { return one.stream == 1; });
  });
  EXPECT_EQ(end_->recorders.front().received, 0U);
}

TEST_F(SessionTest, GarbageEndsTheConnectionAndNothingElse) {
  int fds[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
  End victim(loop_, flushes_, fds[0], Session::Role::kServer);
  const UniqueFd peer(fds[1]);
  const std::string garbage = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
  ASSERT_EQ(::send(peer.get(), garbage.data(), garbage.size(), 0),
            static_cast<ssize_t>(garbage.size()));
  RunUntil([&] { return !victim.disconnect.ok(); });
  EXPECT_THAT(Describe(victim.disconnect), testing::HasSubstr("does not speak HTTP/2"));
  EXPECT_TRUE(victim.recorders.empty());
}

}  // namespace
}  // namespace resmgr::h2
