// SPDX-License-Identifier: Apache-2.0
#include "pkg/grpc/unary_server.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <sys/socket.h>

#include "pkg/sys/temp_dir.h"
#include "test/support/raw_http2/frames.h"
#include "test/support/status_matchers.h"

namespace resmgr {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr size_t kFrameHeader = 9;
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
      if (text_[3] == kHeaders) ++((text_[4] & kEndStream) != 0 ? refused_ : answered_);
      text_.erase(0, kFrameHeader + length);
    }
  }

  UniqueFd connection_;
  EventLoop::HandlePtr watch_;
  std::string text_;
  int refused_ = 0;
  int answered_ = 0;
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

}  // namespace
}  // namespace resmgr
