// SPDX-License-Identifier: Apache-2.0
#include "pkg/grpc/unary_server.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <sys/socket.h>

#include "pkg/sys/temp_dir.h"
#include "test/support/raw_http2/raw_http2.h"
#include "test/support/status_matchers.h"
#include "test/support/wait.h"

namespace resmgr {
namespace {

constexpr size_t kFrameHeader = 9;
constexpr uint8_t kData = 0;
constexpr uint8_t kHeaders = 1;
constexpr uint8_t kEndStream = 1;

// A client on the loop of its server.
class RawClient {
 public:
  RawClient(EventLoop& loop, const std::string& socket) {
    auto connection = ConnectUnix(socket);
    EXPECT_THAT(connection, test::IsOk());
    if (!connection.ok()) return;
    connection_ = *std::move(connection);
    watch_ = loop.Watch(connection_.get(), EventLoop::kReadable, [this](int) { Read(); });
  }

  void Send(const std::string& bytes) const {
    EXPECT_EQ(::send(connection_.get(), bytes.data(), bytes.size(), 0),
              static_cast<ssize_t>(bytes.size()));
  }
  // Answers that are a status only, and answers that are incomplete.
  int refused() const { return refused_; }
  int answered() const { return answered_; }
  size_t data() const { return data_; }  // bytes
  void Leave() {
    watch_.reset();
    connection_.Reset();
  }

 private:
  void Read() {
    char block[4096];
    const ssize_t count = ::recv(connection_.get(), block, sizeof block, 0);
    if (count <= 0) return watch_.reset();
    text_.append(block, static_cast<size_t>(count));
    while (text_.size() >= kFrameHeader) {
      size_t length = 0;
      for (size_t i = 0; i < 3; ++i)
        length = length << 8 | static_cast<uint8_t>(text_[i]);
      if (text_.size() < kFrameHeader + length) return;
      if (text_[3] == kData) data_ += length;
      if (text_[3] == kHeaders) ++((text_[4] & kEndStream) != 0 ? refused_ : answered_);
      text_.erase(0, kFrameHeader + length);
    }
  }

  UniqueFd connection_;
  EventLoop::HandlePtr watch_;
  std::string text_;
  int refused_ = 0;
  int answered_ = 0;
  size_t data_ = 0;
};

constexpr int kWindow = 4;  // SETTINGS_INITIAL_WINDOW_SIZE

// A server, and raw clients on its loop.
class UnaryServerTest : public testing::Test {
 protected:
  void Serve(UnaryServer::Methods methods, UnaryServer::Streams streams = {}) {
    auto listener = ListeningSocket::Create(socket_);
    ASSERT_THAT(listener, test::IsOk());
    server_.emplace(loop_, flushes_, *std::move(listener), std::move(methods), std::move(streams));
  }
  // Serves a stream, and calls it as a client with this window.
  RawClient& Watch(uint32_t window) {
    Serve({}, {{"/x/Watch", [this](const std::string&, UnaryServer::Send send) {
                  sends_.push_back(std::move(send));
                }}});
    return Call("/x/Watch", 1, window);
  }
  // A client that calls the method this often, with this window for each answer.
  RawClient& Call(const std::string& path, uint32_t times, uint32_t window) {
    std::string bytes = test::kHttp2Preface + test::Settings(kWindow, window);
    for (uint32_t call = 0; call < times; ++call)
      bytes += test::Request(2 * call + 1, path, "");
    clients_.push_back(std::make_unique<RawClient>(loop_, socket_));
    clients_.back()->Send(bytes);
    return *clients_.back();
  }

  const TempDir directory_;
  const std::string socket_ = directory_.File("s.sock");
  EventLoop loop_;
  h2::FlushQueue flushes_{loop_};
  std::vector<UnaryServer::Send> sends_;
  std::optional<UnaryServer> server_;
  std::vector<std::unique_ptr<RawClient>> clients_;
};

// The clients open no window, so that the server has to hold every answer.
TEST_F(UnaryServerTest, UnreadAnswersAreBounded) {
  constexpr size_t kAnswer = size_t{4} << 20;
  constexpr int kClients = 3;
  constexpr int kCalls = 10;
  Serve({{"/x/Big", [](const std::string&, const UnaryServer::Reply& reply) {
            reply(std::string(kAnswer, 'x'));
          }}});
  for (int i = 0; i < kClients; ++i)
    Call("/x/Big", kCalls, 0);
  int refused = 0;
  int answered = 0;
  EXPECT_TRUE(test::RunUntil(loop_, [&] {
    refused = 0;
    answered = 0;
    for (const auto& client : clients_) {
      refused += client->refused();
      answered += client->answered();
    }
    return refused + answered == kClients * kCalls;
  }));
  EXPECT_GT(answered, 0);
  EXPECT_LE(static_cast<size_t>(answered) * kAnswer, UnaryServer::kMaxHeld);
}

// gRPC libraries do not queue calls that the server has announced room for.
TEST_F(UnaryServerTest, AsManyCallsAreOpenAsAreAnnounced) {
  constexpr uint32_t kCalls = 500;
  std::vector<UnaryServer::Reply> replies;
  Serve({{"/x/Slow",
          [&](const std::string&, const UnaryServer::Reply& reply) { replies.push_back(reply); }}});
  const RawClient& client = Call("/x/Slow", kCalls, 0);
  EXPECT_TRUE(test::RunUntil(loop_, [&] { return replies.size() == kCalls; })) << replies.size();
  EXPECT_EQ(client.refused(), 0);
}

TEST_F(UnaryServerTest, AStreamHasAnswersUntilItsClientLeaves) {
  constexpr size_t kPrefix = 5;  // of each message
  RawClient& client = Watch(1 << 16);
  ASSERT_TRUE(test::RunUntil(loop_, [&] { return !sends_.empty(); }));
  size_t expected = 0;
  for (const std::string message : {"one", "two more", ""}) {
    EXPECT_TRUE(sends_[0](message));
    expected += kPrefix + message.size();
    EXPECT_TRUE(test::RunUntil(loop_, [&] { return client.data() == expected; })) << client.data();
  }
  client.Leave();
  EXPECT_TRUE(test::RunUntil(loop_, [&] { return !sends_[0](std::string("late")); }));
}

// Without a window nothing leaves: of many answers the first and the last one wait.
TEST_F(UnaryServerTest, OfUnreadAnswersOfAStreamTheLastOneIsKept) {
  const RawClient& client = Watch(0);
  ASSERT_TRUE(test::RunUntil(loop_, [&] { return !sends_.empty(); }));
  for (int i = 0; i < 100; ++i)
    EXPECT_TRUE(sends_[0](std::string(10, 'x')));
  // SETTINGS again: the window is open.
  client.Send(test::Settings(kWindow, 1 << 16));
  EXPECT_TRUE(test::RunUntil(loop_, [&] { return client.data() == 2 * (5 + 10); }))
      << client.data();
  EXPECT_FALSE(sends_[0](Unavailable("the end"))) << "an error ends the stream";
}

}  // namespace
}  // namespace resmgr
