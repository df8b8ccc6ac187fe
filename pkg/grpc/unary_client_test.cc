// SPDX-License-Identifier: Apache-2.0
#include "pkg/grpc/unary_client.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/sys/temp_dir.h"
#include "test/support/gzip.h"
#include "test/support/raw_http2/raw_http2.h"

namespace resmgr {
namespace {

using std::chrono::seconds;

constexpr size_t kMebi = size_t{1} << 20;

// A client and a server that answers each call with one gzip message.
class UnaryClientTest : public testing::Test {
 protected:
  void Answer(const std::string& compressed) {
    using namespace test;
    const auto answer = [compressed](uint32_t stream, const std::string&) {
      return Frame(1, 4, stream,
                   Fields({{":status", "200"},
                           {"content-type", "application/grpc"},
                           {"grpc-encoding", "gzip"}})) +
             WithoutEnd(Body(stream, compressed, true)) +
             Frame(1, 5, stream, Fields({{"grpc-status", "0"}}));
    };
    auto server = RawRuntime::Start(socket_, {.answer = answer, .greeting = Frame(4, 0, 0, "")});
    ASSERT_TRUE(server.ok());
    server_ = *std::move(server);
    ASSERT_TRUE(client_.Connect([](const Status&) {}).ok());
  }
  // Body() ends the stream; here the trailers do.
  static std::string WithoutEnd(std::string body) {
    for (size_t at = 0; at < body.size();) {
      const auto byte = [&](size_t i) {
        return static_cast<size_t>(static_cast<uint8_t>(body[i]));
      };
      const size_t length = byte(at) << 16 | byte(at + 1) << 8 | byte(at + 2);
      body[at + 4] = '\0';
      at += 9 + length;
    }
    return body;
  }

  // The result of one call; counts the turns of the loop meanwhile.
  StatusOr<std::string> Call() {
    std::optional<StatusOr<std::string>> result;
    client_.Call("/test/Method", "", seconds(60), [&](StatusOr<std::string> reply) {
      result = std::move(reply);
      loop_.Stop();
    });
    std::function<void()> count = [this, &count] {
      ++turns_;
      turn_ = loop_.After(std::chrono::milliseconds(0), count);
    };
    count();
    loop_.Run();
    turn_.reset();
    return *std::move(result);
  }

  const TempDir directory_;
  const std::string socket_ = directory_.File("socket");
  EventLoop loop_;
  h2::FlushQueue flushes_{loop_};
  std::unique_ptr<test::RawRuntime> server_;
  UnaryClient client_{loop_, flushes_, socket_};
  EventLoop::HandlePtr turn_;
  int turns_ = 0;
};

// Decompression in one step would take the loop 40 ms.
TEST_F(UnaryClientTest, UnpacksReplyInTurnsOfTheLoop) {
  const std::string text(15 * kMebi, 'x');
  Answer(test::Gzip(text));
  const StatusOr<std::string> reply = Call();
  ASSERT_TRUE(reply.ok()) << Describe(reply.status());
  EXPECT_TRUE(*reply == text);
  EXPECT_GE(turns_, 60);
}

TEST_F(UnaryClientTest, RefusesReplyThatBecomesTooLong) {
  Answer(test::Gzip(std::string(17 * kMebi, 'x')));
  EXPECT_EQ(Call().status().code(), StatusCode::kResourceExhausted);
}

TEST_F(UnaryClientTest, RefusesReplyThatIsNoGzip) {
  Answer("no gzip");
  EXPECT_EQ(Call().status().code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace resmgr
