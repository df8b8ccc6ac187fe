// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include "pkg/h2/hpack.h"
#include "pkg/h2/limits.h"
#include "pkg/h2/session.h"
#include "test/support/wait.h"

// Helpers for tests of sessions: two ends of a connection in one process, or one end and raw
// frames.
namespace resmgr::h2 {

// Collects the events of a stream; consumes data unless the test forbids it.
class Recorder : public StreamHandler {
 public:
  Recorder() = default;
  // Sends this request, and records its answer.
  Recorder(Session& session, const HeaderBlock& request, bool end = false)
      : stream(session.OpenStream(request, end, *this)) {}
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
  std::vector<bool> output_waits;  // arguments of OnOutputWaits
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
    ASSERT_TRUE(resmgr::test::RunUntil(loop_, condition));
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

// A session; the test writes and reads frames at its other end.
class FramesTest : public SessionTest {
 protected:
  explicit FramesTest(Session::Role role = Session::Role::kClient) {
    int fds[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
    peer_ = UniqueFd(fds[1]);
    end_ = std::make_unique<End>(loop_, flushes_, fds[0], role);
    preface_ = role == Session::Role::kClient ? kPreface.size() : 0;
  }

  static std::string Frame(FrameType type, uint8_t flags, int32_t stream,
                           std::string_view payload) {
    std::string frame(kFrameHeaderSize, '\0');
    WriteFrameHeader({.length = static_cast<uint32_t>(payload.size()),
                      .type = type,
                      .flags = flags,
                      .stream = stream},
                     reinterpret_cast<uint8_t*>(frame.data()));
    return frame.append(payload);
  }
  void Send(FrameType type, uint8_t flags, int32_t stream, std::string_view payload) {
    const std::string frame = Frame(type, flags, stream, payload);
    ASSERT_EQ(::send(peer_.get(), frame.data(), frame.size(), 0),
              static_cast<ssize_t>(frame.size()));
  }
  // Further streams have to wait.
  void AllowOneStream() {
    Send(FrameType::kSettings, 0, 0, std::string_view("\0\3\0\0\0\1", 6));
    RunUntil([&] { return Count(FrameType::kSettings) == 2; });  // its own and an ACK
  }

  // All frames so far; the second form filters by type.
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

  // Sends the first bytes of a client.
  void Greet() {
    ASSERT_EQ(::send(peer_.get(), kPreface.data(), kPreface.size(), 0),
              static_cast<ssize_t>(kPreface.size()));
    Send(FrameType::kSettings, 0, 0, "");
  }
};

}  // namespace resmgr::h2
