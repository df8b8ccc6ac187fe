// SPDX-License-Identifier: Apache-2.0
#include "pkg/docker/exchange.h"

#include <string>

#include <gtest/gtest.h>

#include "test/support/status_matchers.h"

namespace resmgr::docker {
namespace {

using test::HasCode;
using test::IsOk;

constexpr std::string_view kGet = "GET /info HTTP/1.1\r\nHost: d\r\n\r\n";
constexpr std::string_view kOk = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n";

// All of the bytes pass.
void ExpectFromClient(Exchange& exchange, std::string_view bytes) {
  while (!bytes.empty()) {
    const auto passing = exchange.FromClient(bytes);
    ASSERT_THAT(passing, IsOk());
    ASSERT_GT(*passing, 0u) << bytes;
    bytes.remove_prefix(*passing);
  }
}
void ExpectFromEngine(Exchange& exchange, std::string_view bytes) {
  while (!bytes.empty()) {
    const auto passing = exchange.FromEngine(bytes);
    ASSERT_THAT(passing, IsOk());
    ASSERT_GT(*passing, 0u) << bytes;
    bytes.remove_prefix(*passing);
  }
}

TEST(ExchangeTest, HoldsTheNextRequestUntilTheReplyHasEnded) {
  Exchange exchange;
  EXPECT_TRUE(exchange.idle());
  ExpectFromClient(exchange, kGet);
  EXPECT_EQ(exchange.FromClient(kGet).value(), 0u);
  ExpectFromEngine(exchange, kOk);
  ExpectFromEngine(exchange, "a");
  EXPECT_EQ(exchange.FromClient(kGet).value(), 0u);
  ExpectFromEngine(exchange, "b");
  EXPECT_TRUE(exchange.idle());
  ExpectFromClient(exchange, kGet);
  EXPECT_FALSE(exchange.idle());
}

TEST(ExchangeTest, RefusesBytesThatBelongToNoReply) {
  Exchange exchange;
  EXPECT_THAT(exchange.FromEngine(kOk), HasCode(StatusCode::kInvalidArgument));
  ExpectFromClient(exchange, kGet);
  ExpectFromEngine(exchange, std::string(kOk) + "ab");
  EXPECT_THAT(exchange.FromEngine(kOk), HasCode(StatusCode::kInvalidArgument));
}

// dockerd reads no request after it, and closes.
TEST(ExchangeTest, SendsNoRequestAfterTheLastReply) {
  for (const std::string reply :
       {"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nab",
        "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nab"}) {
    Exchange exchange;
    ExpectFromClient(exchange, kGet);
    EXPECT_FALSE(exchange.over());
    ExpectFromEngine(exchange, reply);
    EXPECT_TRUE(exchange.over()) << reply;
    EXPECT_FALSE(exchange.awaits_request());
    EXPECT_EQ(exchange.FromClient(kGet).value(), 0u);
    EXPECT_THAT(exchange.EngineEnds(), IsOk());
  }
  Exchange exchange;
  ExpectFromClient(exchange, kGet);
  ExpectFromEngine(exchange,
                   "HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\nContent-Length: 0\r\n\r\n");
  EXPECT_FALSE(exchange.over());
  ExpectFromClient(exchange, kGet);
}

TEST(ExchangeTest, PassesRepliesBeforeTheFinalOne) {
  Exchange exchange;
  ExpectFromClient(exchange,
                   "POST /build HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n");
  ExpectFromEngine(exchange, "HTTP/1.1 100 Continue\r\n\r\n");
  EXPECT_FALSE(exchange.reply_begun());
  ExpectFromClient(exchange, "abc");
  ExpectFromEngine(exchange, std::string(kOk) + "ok");
  EXPECT_TRUE(exchange.idle());
}

TEST(ExchangeTest, AHeadRequestHasNoBodyInItsReply) {
  Exchange exchange;
  ExpectFromClient(exchange, "HEAD /_ping HTTP/1.1\r\n\r\n");
  ExpectFromEngine(exchange, kOk);
  EXPECT_TRUE(exchange.idle());
}

TEST(ExchangeTest, IsATunnelOnceDockerdHasSwitched) {
  Exchange exchange;
  ExpectFromClient(exchange,
                   "POST /exec/1/start HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n"
                   "Content-Length: 2\r\n\r\n{}");
  EXPECT_EQ(exchange.FromClient("stdin").value(), 0u);
  ExpectFromEngine(exchange, "HTTP/1.1 101 UPGRADED\r\n\r\n\x01output");
  EXPECT_TRUE(exchange.tunnel());
  ExpectFromClient(exchange, "stdin");
  EXPECT_THAT(exchange.EngineEnds(), IsOk());
}

TEST(ExchangeTest, IsATunnelForAnOldClientOfAttach) {
  const std::string reply =
      "HTTP/1.1 200 OK\r\nContent-Type: application/vnd.docker.raw-stream\r\n\r\n";
  Exchange exchange;
  ExpectFromClient(exchange, "POST /containers/a/attach?stdin=1 HTTP/1.1\r\n\r\n");
  ExpectFromEngine(exchange, reply);
  EXPECT_TRUE(exchange.tunnel());
  // The same reply to a request that cannot become a tunnel.
  Exchange get;
  ExpectFromClient(get, kGet);
  ExpectFromEngine(get, reply);
  EXPECT_FALSE(get.tunnel());
  EXPECT_EQ(get.FromClient(kGet).value(), 0u);
}

TEST(ExchangeTest, RefusesASwitchThatWasNotAskedFor) {
  Exchange exchange;
  ExpectFromClient(exchange, kGet);
  EXPECT_THAT(exchange.FromEngine("HTTP/1.1 101 UPGRADED\r\n\r\n"),
              HasCode(StatusCode::kInvalidArgument));
}

TEST(ExchangeTest, TellsWhetherTheEndIsThatOfAReply) {
  Exchange exchange;
  EXPECT_THAT(exchange.EngineEnds(), IsOk());
  ExpectFromClient(exchange, kGet);
  EXPECT_THAT(exchange.EngineEnds(), HasCode(StatusCode::kUnavailable));
  ExpectFromEngine(exchange, kOk);
  EXPECT_THAT(exchange.EngineEnds(), HasCode(StatusCode::kUnavailable));
  ExpectFromEngine(exchange, "ab");
  EXPECT_THAT(exchange.EngineEnds(), IsOk());
  ExpectFromClient(exchange, kGet);
  ExpectFromEngine(exchange, "HTTP/1.0 200 OK\r\n\r\nuntil the end");
  EXPECT_THAT(exchange.EngineEnds(), IsOk());
}

TEST(ExchangeTest, KnowsWhatMayLastForEver) {
  Exchange exchange;
  ExpectFromClient(exchange, "POST /containers/a/wait?condition=removed HTTP/1.1\r\n\r\n");
  EXPECT_TRUE(exchange.lasting());
  ExpectFromEngine(exchange, std::string(kOk) + "{}");
  ExpectFromClient(exchange, "POST /containers/create?name=wait HTTP/1.1\r\n\r\n");
  EXPECT_FALSE(exchange.lasting());
}

}  // namespace
}  // namespace resmgr::docker
