// SPDX-License-Identifier: Apache-2.0
#include "pkg/h2/session.h"

#include <algorithm>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include "pkg/h2/hpack.h"
#include "pkg/h2/limits.h"

namespace resmgr::h2 {
namespace {

using std::chrono::seconds;

// Collects what happens on a stream; consumes data unless told otherwise.
class Recorder : public StreamHandler {
 public:
  void OnHeaders(Stream&, const HeaderBlock& headers, bool end) override {
    status = headers.Find(":status");
    headers_end = end;
  }
  void OnData(Stream& stream_ref, const Slice& data) override {
    received += data.size();
    if (received <= 4096) body += data.view();
    if (consume) stream_ref.Consume(data.size());
  }
  void OnEnd(Stream&, const HeaderBlock& trailers) override {
    ended = true;
    grpc_status = trailers.Find("grpc-status");
    if (on_end) on_end();
  }
  void OnSent(Stream&, size_t count) override { sent += count; }
  void OnClose(Stream& stream_ref, uint32_t code) override {
    closed = true;
    error_code = code;
    lost = stream_ref.connection_lost();
    if (on_close) on_close();
  }

  std::unique_ptr<Stream> stream;
  std::string path;
  std::string status;
  bool headers_end = false;
  std::string body;
  size_t received = 0;
  size_t sent = 0;
  bool consume = true;
  bool ended = false;
  std::string grpc_status;
  bool closed = false;
  bool lost = false;
  uint32_t error_code = 0;
  std::function<void()> on_end;
  std::function<void()> on_close;
};

// One end of the connection.
class End : public Session::Owner {
 public:
  End(EventLoop& loop, FlushQueue& flushes, int fd, Session::Role role)
      : session(std::make_unique<Session>(loop, flushes, UniqueFd(fd), role, *this)) {}

  void OnRequest(std::unique_ptr<Stream> stream, const HeaderBlock& headers, bool end) override {
    Recorder& recorder = recorders.emplace_back();
    recorder.path = headers.Find(":path");
    recorder.headers_end = end;
    recorder.stream = std::move(stream);
    recorder.stream->set_handler(&recorder);
    if (on_request) on_request(recorder);
  }
  void OnGoAway() override { going_away = true; }
  void OnOutputWaits(bool waits) override { output_waits.push_back(waits); }
  void OnDisconnect(const Status& reason) override { disconnect = reason; }

  std::list<Recorder> recorders;
  std::function<void(Recorder&)> on_request;
  Status disconnect;
  bool going_away = false;
  std::vector<bool> output_waits;  // as it was told
  std::unique_ptr<Session> session;
};

class SessionTest : public testing::Test {
 protected:
  SessionTest() {
    int fds[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
    server_ = std::make_unique<End>(loop_, flushes_, fds[0], Session::Role::kServer);
    client_ = std::make_unique<End>(loop_, flushes_, fds[1], Session::Role::kClient);
  }

  // Runs the loop until the condition holds; fails the test after a while.
  void RunUntil(const std::function<bool()>& condition) {
    bool timed_out = false;
    const auto check = loop_.Every(std::chrono::milliseconds(1), [&] {
      if (condition()) loop_.Stop();
    });
    const auto limit = loop_.After(seconds(20), [&] {
      timed_out = true;
      loop_.Stop();
    });
    loop_.Run();
    ASSERT_FALSE(timed_out);
  }

  static HeaderBlock Request(std::string_view path) {
    HeaderBlock headers;
    headers.Add(":method", "POST");
    headers.Add(":scheme", "http");
    headers.Add(":path", path);
    headers.Add(":authority", "localhost");
    return headers;
  }
  static HeaderBlock Answer() {
    HeaderBlock headers;
    headers.Add(":status", "200");
    return headers;
  }
  static HeaderBlock Trailers() {
    HeaderBlock trailers;
    trailers.Add("grpc-status", "0");
    return trailers;
  }
  // The server sends every request's body back, with trailers.
  void Echo() {
    server_->on_request = [](Recorder& recorder) {
      recorder.on_end = [&recorder] {
        recorder.stream->SendHeaders(Answer(), false);
        recorder.stream->SendData(Slice::Copy(recorder.body));
        recorder.stream->SendEnd(Trailers());
      };
    };
  }

  EventLoop loop_;
  FlushQueue flushes_{loop_};
  std::unique_ptr<End> server_;
  std::unique_ptr<End> client_;
};

TEST_F(SessionTest, CarriesARequestAndItsAnswer) {
  Echo();
  Recorder call;
  call.stream = client_->session->OpenStream(Request("/a/b"), false, call);
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
  Recorder call;
  call.stream = client_->session->OpenStream(Request("/a/b"), true, call);
  RunUntil([&] { return call.closed; });
  EXPECT_TRUE(call.headers_end);
  EXPECT_TRUE(server_->recorders.front().headers_end);
}

TEST_F(SessionTest, AReaderThatDoesNotConsumeStopsTheSenderAtTheWindow) {
  constexpr size_t kTotal = size_t{8} << 20;
  server_->on_request = [](Recorder& recorder) { recorder.consume = false; };
  Recorder call;
  call.stream = client_->session->OpenStream(Request("/a/b"), false, call);
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

TEST_F(SessionTest, WhoDoesNotReadStopsTheSenderAtTheSocket) {
  Echo();
  Recorder call;
  call.stream = client_->session->OpenStream(Request("/a/b"), false, call);
  RunUntil([&] { return !server_->recorders.empty(); });
  server_->session->SetReading(false);
  // Within the window, but more than a socket holds.
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
  // More in sum than the connection's window, none of it consumed by hand.
  for (int i = 0; i < 8; ++i) {
    Recorder call;
    call.stream = client_->session->OpenStream(Request("/drop"), false, call);
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
  Recorder call;
  call.stream = client_->session->OpenStream(Request("/a/b"), false, call);
  call.stream->SendData(Slice::Copy("still alive"));
  call.stream->SendEnd();
  RunUntil([&] { return call.closed; });
  EXPECT_EQ(call.body, "still alive");
}

TEST_F(SessionTest, AResetReachesTheOtherSideWithItsCode) {
  Recorder call;
  call.stream = client_->session->OpenStream(Request("/a/b"), false, call);
  RunUntil([&] { return !server_->recorders.empty(); });
  call.stream->Reset(static_cast<uint32_t>(ErrorCode::kCancel));
  RunUntil([&] { return server_->recorders.front().closed && call.closed; });
  EXPECT_EQ(server_->recorders.front().error_code, static_cast<uint32_t>(ErrorCode::kCancel));
  EXPECT_FALSE(server_->recorders.front().lost);
}

TEST_F(SessionTest, DestroyingAnOpenStreamCancelsIt) {
  Recorder call;
  call.stream = client_->session->OpenStream(Request("/a/b"), false, call);
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
  Recorder call;
  call.stream = client_->session->OpenStream(Request("/a/b"), false, call);
  RunUntil([&] { return call.closed; });
  EXPECT_TRUE(call.ended);
  EXPECT_EQ(call.grpc_status, "0");
  EXPECT_EQ(call.error_code, static_cast<uint32_t>(ErrorCode::kNoError));
}

TEST_F(SessionTest, ALostConnectionEndsItsStreams) {
  Recorder call;
  call.stream = client_->session->OpenStream(Request("/a/b"), false, call);
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
  Recorder call;
  call.stream = client_->session->OpenStream(Request("/a/b"), false, call);
  client_->session.reset();
  EXPECT_TRUE(call.closed);
  call.stream->SendData(Slice::Copy("nobody hears this"));
  call.stream->Consume(1);
  call.stream->SendEnd();
  EXPECT_FALSE(call.stream->open());
}

TEST_F(SessionTest, GoAwayLetsOpenStreamsEndAndThenCloses) {
  Echo();
  Recorder call;
  call.stream = client_->session->OpenStream(Request("/a/b"), false, call);
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

TEST_F(SessionTest, ARequestThatCrossesGoAwayHarmsNoOther) {
  Echo();
  Recorder call;
  call.stream = client_->session->OpenStream(Request("/a/b"), false, call);
  RunUntil([&] { return !server_->recorders.empty(); });
  server_->session->GoAway();
  Recorder late;
  late.stream = client_->session->OpenStream(Request("/late"), false, late);
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

TEST_F(SessionTest, ManyStreamsAtOnceEachGetTheirOwnAnswer) {
  Echo();
  std::list<Recorder> calls;
  for (int i = 0; i < 500; ++i) {
    Recorder& call = calls.emplace_back();
    call.stream = client_->session->OpenStream(Request("/a/b"), false, call);
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

// A session and, at its other end, frames.
class FramesTest : public SessionTest {
 protected:
  explicit FramesTest(Session::Role role = Session::Role::kClient) {
    int fds[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
    peer_ = UniqueFd(fds[1]);
    end_ = std::make_unique<End>(loop_, flushes_, fds[0], role);
    preface_ = role == Session::Role::kClient ? kPreface.size() : 0;
  }

  void Send(FrameType type, uint8_t flags, int32_t stream, std::string_view payload) {
    std::string frame(kFrameHeaderSize, '\0');
    WriteFrameHeader({.length = static_cast<uint32_t>(payload.size()),
                      .type = type,
                      .flags = flags,
                      .stream = stream},
                     reinterpret_cast<uint8_t*>(frame.data()));
    frame += payload;
    ASSERT_EQ(::send(peer_.get(), frame.data(), frame.size(), 0),
              static_cast<ssize_t>(frame.size()));
  }
  // Streams beyond one have to wait.
  void AllowOneStream() {
    Send(FrameType::kSettings, 0, 0, std::string_view("\0\3\0\0\0\1", 6));
    RunUntil([&] { return Count(FrameType::kSettings) == 2; });  // its own and an acknowledgement
  }

  // All that came so far; of one type.
  std::vector<FrameHeader> Frames() {
    char bytes[4096];
    ssize_t count = 0;
    while ((count = read(peer_.get(), bytes, sizeof(bytes))) > 0)
      sent_.append(bytes, static_cast<size_t>(count));
    std::vector<FrameHeader> frames;
    for (size_t at = preface_; at + kFrameHeaderSize <= sent_.size();) {
      frames.push_back(ReadFrameHeader(reinterpret_cast<const uint8_t*>(sent_.data()) + at));
      at += kFrameHeaderSize + frames.back().length;
    }
    return frames;
  }
  std::vector<FrameHeader> Frames(FrameType type) {
    std::vector<FrameHeader> frames = Frames();
    std::erase_if(frames, [type](const FrameHeader& frame) { return frame.type != type; });
    return frames;
  }
  size_t Count(FrameType type) { return Frames(type).size(); }

  UniqueFd peer_;
  std::unique_ptr<End> end_;
  size_t preface_ = 0;
  std::string sent_;
};

class ServerFramesTest : public FramesTest {
 protected:
  ServerFramesTest() : FramesTest(Session::Role::kServer) {}
};

TEST_F(FramesTest, LittleDataAndItsEndAreOneFrame) {
  Recorder call;
  call.stream = end_->session->OpenStream(Request("/a/b"), false, call);
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
  Recorder first;
  Recorder second;
  first.stream = end_->session->OpenStream(Request("/a/first"), true, first);
  second.stream = end_->session->OpenStream(Request("/a/second"), true, second);
  // In one event, as when a client with two calls goes.
  first.stream->Reset(static_cast<uint32_t>(ErrorCode::kCancel));
  second.stream->Reset(static_cast<uint32_t>(ErrorCode::kCancel));
  RunUntil([&] { return first.closed && second.closed; });
  EXPECT_EQ(Count(FrameType::kHeaders), 1U);
  Recorder third;
  third.stream = end_->session->OpenStream(Request("/a/third"), true, third);
  RunUntil([&] { return Count(FrameType::kHeaders) == 2; });
  EXPECT_EQ(Count(FrameType::kRstStream), 1U);
}

TEST_F(FramesTest, AStreamThatIsDestroyedMakesRoomForOneThatWaits) {
  AllowOneStream();
  Recorder first;
  Recorder second;
  first.stream = end_->session->OpenStream(Request("/a/first"), true, first);
  second.stream = end_->session->OpenStream(Request("/a/second"), true, second);
  RunUntil([&] { return Count(FrameType::kHeaders) == 1; });
  first.stream.reset();
  RunUntil([&] { return Count(FrameType::kHeaders) == 2; });
  EXPECT_EQ(second.stream->id(), 3);
}

TEST_F(FramesTest, NothingFollowsAReset) {
  Recorder call;
  call.stream = end_->session->OpenStream(Request("/a/b"), false, call);
  call.stream->SendData(Slice::Copy(std::string(20'000, 'x')));
  call.stream->SendEnd();
  call.stream->Reset(static_cast<uint32_t>(ErrorCode::kCancel));
  Recorder next;
  next.stream = end_->session->OpenStream(Request("/a/b"), true, next);
  RunUntil([&] { return call.closed && Count(FrameType::kHeaders) == 2; });
  EXPECT_EQ(Count(FrameType::kRstStream), 1U);
  EXPECT_EQ(Count(FrameType::kData), 0U);
}

TEST_F(ServerFramesTest, PaddingAloneDoesNotShutAStreamsWindow) {
  ASSERT_EQ(::send(peer_.get(), kPreface.data(), kPreface.size(), 0),
            static_cast<ssize_t>(kPreface.size()));
  Send(FrameType::kSettings, 0, 0, "");
  Send(FrameType::kHeaders, kFlagEndHeaders, 1, HpackEncoder().Encode(Request("/a/b")));
  const std::string padding = '\xff' + std::string(255, '\0');
  const size_t enough = static_cast<size_t>(kStreamWindow) / 2 / padding.size();
  for (size_t i = 0; i < enough; ++i) {
    Send(FrameType::kData, kFlagPadded, 1, padding);
    if (i % 64 == 0) RunUntil([&] { return !end_->recorders.empty(); });
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
