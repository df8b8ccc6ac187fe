// SPDX-License-Identifier: Apache-2.0
#include "pkg/grpc/unary_server.h"

#include <algorithm>
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

using std::chrono::milliseconds;
using std::chrono::seconds;

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

// The clients open no window, so that the server has to hold every answer.
TEST(UnaryServerTest, UnreadAnswersAreBounded) {
  constexpr size_t kAnswer = size_t{4} << 20;
  constexpr int kClients = 3;
  constexpr int kCalls = 10;
  constexpr int kWindow = 4;  // SETTINGS_INITIAL_WINDOW_SIZE
  const TempDir directory;
  EventLoop loop;
  h2::FlushQueue flushes(loop);
  const auto server =
      UnaryServer::Create(loop, flushes, directory.File("s.sock"),
                          {{"/x/Big", [](const std::string&, const UnaryServer::Reply& reply) {
                              reply(std::string(kAnswer, 'x'));
                            }}});
  ASSERT_THAT(server, test::IsOk());

  std::vector<std::unique_ptr<RawClient>> clients;
  for (int i = 0; i < kClients; ++i) {
    std::string bytes = test::kHttp2Preface + test::Settings(kWindow, 0);
    for (uint32_t call = 0; call < kCalls; ++call)
      bytes += test::Request(2 * call + 1, "/x/Big", "");
    clients.push_back(std::make_unique<RawClient>(loop, directory.File("s.sock")));
    clients.back()->Send(bytes);
  }
  int refused = 0;
  int answered = 0;
  const auto deadline = loop.After(seconds(20), [&loop] { loop.Stop(); });
  const auto check = loop.Every(milliseconds(1), [&] {
    refused = 0;
    answered = 0;
    for (const auto& client : clients) {
      refused += client->refused();
      answered += client->answered();
    }
    if (refused + answered == kClients * kCalls) loop.Stop();
  });
  loop.Run();
  EXPECT_EQ(refused + answered, kClients * kCalls);
  EXPECT_GT(answered, 0);
  EXPECT_LE(static_cast<size_t>(answered) * kAnswer, UnaryServer::kMaxHeld);
}

// gRPC libraries do not queue calls that the server has announced room for.
TEST(UnaryServerTest, AsManyCallsAreOpenAsAreAnnounced) {
  constexpr uint32_t kCalls = 500;
  const TempDir directory;
  EventLoop loop;
  h2::FlushQueue flushes(loop);
  std::vector<UnaryServer::Reply> replies;
  const auto server =
      UnaryServer::Create(loop, flushes, directory.File("s.sock"),
                          {{"/x/Slow", [&](const std::string&, const UnaryServer::Reply& reply) {
                              replies.push_back(reply);
                              if (replies.size() == kCalls) loop.Stop();
                            }}});
  ASSERT_THAT(server, test::IsOk());
  std::string bytes = test::kHttp2Preface + test::Settings(4, 0);
  for (uint32_t call = 0; call < kCalls; ++call)
    bytes += test::Request(2 * call + 1, "/x/Slow", "");
  RawClient client(loop, directory.File("s.sock"));
  client.Send(bytes);
  const auto deadline = loop.After(seconds(20), [&loop] { loop.Stop(); });
  loop.Run();
  EXPECT_EQ(replies.size(), kCalls);
  EXPECT_EQ(client.refused(), 0);
}

TEST(UnaryServerTest, AStreamHasAnswersUntilItsClientLeaves) {
  constexpr size_t kPrefix = 5;  // of each message
  constexpr int kWindow = 4;     // SETTINGS_INITIAL_WINDOW_SIZE
  const TempDir directory;
  EventLoop loop;
  h2::FlushQueue flushes(loop);
  std::vector<UnaryServer::Send> sends;
  auto listener = ListeningSocket::Create(directory.File("s.sock"));
  ASSERT_THAT(listener, test::IsOk());
  const UnaryServer server(loop, flushes, *std::move(listener), {},
                           {{"/x/Watch", [&](const std::string&, UnaryServer::Send send) {
                               sends.push_back(std::move(send));
                             }}});
  RawClient client(loop, directory.File("s.sock"));
  client.Send(std::string(test::kHttp2Preface) + test::Settings(kWindow, 1 << 16) +
              test::Request(1, "/x/Watch", ""));
  ASSERT_TRUE(test::RunUntil(loop, [&] { return !sends.empty(); }));
  size_t expected = 0;
  for (const std::string message : {"one", "two more", ""}) {
    EXPECT_TRUE(sends[0](message));
    expected += kPrefix + message.size();
    EXPECT_TRUE(test::RunUntil(loop, [&] { return client.data() == expected; })) << client.data();
  }
  client.Leave();
  EXPECT_TRUE(test::RunUntil(loop, [&] { return !sends[0](std::string("late")); }));
}

// Without a window nothing leaves: of many answers the first and the last one wait.
TEST(UnaryServerTest, OfUnreadAnswersOfAStreamTheLastOneIsKept) {
  constexpr int kWindow = 4;
  const TempDir directory;
  EventLoop loop;
  h2::FlushQueue flushes(loop);
  std::vector<UnaryServer::Send> sends;
  auto listener = ListeningSocket::Create(directory.File("s.sock"));
  ASSERT_THAT(listener, test::IsOk());
  const UnaryServer server(loop, flushes, *std::move(listener), {},
                           {{"/x/Watch", [&](const std::string&, UnaryServer::Send send) {
                               sends.push_back(std::move(send));
                             }}});
  RawClient client(loop, directory.File("s.sock"));
  client.Send(std::string(test::kHttp2Preface) + test::Settings(kWindow, 0) +
              test::Request(1, "/x/Watch", ""));
  ASSERT_TRUE(test::RunUntil(loop, [&] { return !sends.empty(); }));
  for (int i = 0; i < 100; ++i)
    EXPECT_TRUE(sends[0](std::string(10, 'x')));
  // SETTINGS again: the window is open.
  client.Send(test::Settings(kWindow, 1 << 16));
  EXPECT_TRUE(test::RunUntil(loop, [&] { return client.data() == 2 * (5 + 10); })) << client.data();
  EXPECT_FALSE(sends[0](Unavailable("the end"))) << "an error ends the stream";
}

}  // namespace
}  // namespace resmgr
