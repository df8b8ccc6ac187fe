// SPDX-License-Identifier: Apache-2.0
#include "pkg/docker/exchange.h"

#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "pkg/docker/http_message.h"
#include "pkg/docker/request_target.h"
#include "test/support/status_matchers.h"

namespace resmgr::docker {
namespace {

using test::HasCode;
using test::IsOk;
using test::Must;

constexpr std::string_view kGet = "GET /info HTTP/1.1\r\nHost: d\r\n\r\n";
constexpr std::string_view kOk = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n";

// All of the bytes pass.
void ExpectPass(std::string_view bytes, const auto& from) {
  while (!bytes.empty()) {
    const StatusOr<size_t> passing = from(bytes);
    ASSERT_THAT(passing, IsOk());
    ASSERT_GT(*passing, 0u) << bytes;
    bytes.remove_prefix(*passing);
  }
}
void ExpectFromClient(Exchange& exchange, std::string_view bytes) {
  ExpectPass(bytes, [&](std::string_view rest) { return exchange.FromClient(rest); });
}
void ExpectFromEngine(Exchange& exchange, std::string_view bytes) {
  ExpectPass(bytes, [&](std::string_view rest) { return exchange.FromEngine(rest); });
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

using Kind = BodyFraming::Kind;

StatusOr<RequestHead> ParseWith(std::string_view fields) {
  static std::string head;
  head = "POST /v1.41/containers/a%2Fb/start?t=1 HTTP/1.1\r\n" + std::string(fields) + "\r\n";
  return ParseRequestHead(head);
}

TEST(HttpHeadTest, FindsTheEndHoweverTheBytesArrive) {
  const std::string head = "GET /_ping HTTP/1.1\r\nHost: docker\r\n\r\n";
  const std::string bytes = head + "GET /next";
  HeadFinder finder;
  for (size_t size = 0; size < head.size(); ++size) {
    const auto found = finder.Find(bytes.substr(0, size));
    ASSERT_THAT(found, IsOk()) << size;
    EXPECT_EQ(*found, 0u) << size;
  }
  const auto found = Must(finder.Find(bytes));
  EXPECT_EQ(found, head.size());
}

TEST(HttpHeadTest, RefusesLinesWithoutCarriageReturn) {
  for (const char* text : {"GET / HTTP/1.1\n", "GET / HTTP/1.1\r\nHost: a\n", "\r\nGET", "\n"}) {
    EXPECT_THAT(HeadFinder().Find(text), HasCode(StatusCode::kInvalidArgument)) << text;
  }
}

TEST(HttpHeadTest, RefusesAHeadThatIsTooLong) {
  const std::string start = "GET / HTTP/1.1\r\nX: ";
  const auto with = [&start](size_t size) {
    return start + std::string(size - start.size() - 4, 'x') + "\r\n\r\n";
  };
  EXPECT_EQ(HeadFinder().Find(with(kMaxHead)).value(), kMaxHead);
  EXPECT_THAT(HeadFinder().Find(with(kMaxHead + 1)), HasCode(StatusCode::kResourceExhausted));
}

TEST(HttpHeadTest, ReadsARequest) {
  const auto head = Must(ParseWith("Host: docker\r\ncontent-length: 12\r\n"));
  EXPECT_EQ(head.method, "POST");
  EXPECT_EQ(head.target, "/v1.41/containers/a%2Fb/start?t=1");
  EXPECT_EQ(head.body.kind, Kind::kLength);
  EXPECT_EQ(head.body.length, 12u);
  EXPECT_FALSE(head.upgrade);
  EXPECT_EQ(ParseWith("")->body.kind, Kind::kNone);
  EXPECT_EQ(ParseWith("Transfer-Encoding: Chunked\r\n")->body.kind, Kind::kChunked);
  EXPECT_TRUE(ParseWith("Connection: x, Upgrade\r\nUpgrade: tcp\r\n")->upgrade);
  EXPECT_FALSE(ParseWith("Upgrade: tcp\r\n")->upgrade);
}

TEST(HttpHeadTest, RefusesWhatTwoReadersCouldSeeDifferently) {
  for (const char* fields :
       {"Content-Length: 1\r\nContent-Length: 1\r\n", "Content-Length: 1, 1\r\n",
        "Content-Length: +1\r\n", "Content-Length: 0x1\r\n", "Content-Length:\r\n",
        "Content-Length: 9999999999999999999\r\n",
        "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding : chunked\r\n", "A: b\r\n c\r\n", "A: b\r\n\tc\r\n", ": b\r\n",
        "no colon\r\n", "A: b\rc\r\n", "A: \x01\r\n", "A\x80: b\r\n"}) {
    EXPECT_THAT(ParseWith(fields), HasCode(StatusCode::kInvalidArgument)) << fields;
  }
  EXPECT_THAT(ParseWith("Transfer-Encoding: gzip, chunked\r\n"),
              HasCode(StatusCode::kUnimplemented));
  for (const char* line : {"GET /", "GET / HTTP/1.1 ", "GET  HTTP/1.1", " / HTTP/1.1",
                           "G(T / HTTP/1.1", "GET /a b HTTP/1.1", "GET / http/1.1"}) {
    EXPECT_THAT(ParseRequestHead(std::string(line) + "\r\n\r\n"),
                HasCode(StatusCode::kInvalidArgument))
        << line;
  }
  EXPECT_THAT(ParseRequestHead("PRI * HTTP/2.0\r\n\r\n"), HasCode(StatusCode::kUnimplemented));
  EXPECT_THAT(ParseRequestHead("CONNECT a:1 HTTP/1.1\r\n\r\n"),
              HasCode(StatusCode::kUnimplemented));
  EXPECT_THAT(ParseRequestHead("GET / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"),
              HasCode(StatusCode::kInvalidArgument));
}

TEST(HttpHeadTest, KnowsWhichRepliesHaveABody) {
  const auto kind = [](const std::string& text, std::string_view method) {
    return ParseReplyHead(text + "\r\n\r\n", method)->body.kind;
  };
  EXPECT_EQ(kind("HTTP/1.1 200 OK\r\nContent-Length: 3", "GET"), Kind::kLength);
  EXPECT_EQ(kind("HTTP/1.1 200 OK\r\nContent-Length: 3", "HEAD"), Kind::kNone);
  EXPECT_EQ(kind("HTTP/1.1 200\r\nTransfer-Encoding: chunked", "GET"), Kind::kChunked);
  EXPECT_EQ(kind("HTTP/1.0 200 OK", "GET"), Kind::kUntilClose);
  for (const char* line : {"HTTP/1.1 204 No Content", "HTTP/1.1 304 Not Modified",
                           "HTTP/1.1 100 Continue", "HTTP/1.1 101 UPGRADED"}) {
    EXPECT_EQ(kind(line, "POST"), Kind::kNone) << line;
  }
  for (const char* line : {"HTTP/1.1 20 OK", "HTTP/1.1 2000 OK", "HTTP/1.1  200", "ICY 200 OK"}) {
    EXPECT_THAT(ParseReplyHead(std::string(line) + "\r\n\r\n", "GET"),
                HasCode(StatusCode::kInvalidArgument))
        << line;
  }
}

// The number of bytes that belong to a chunked body, when they arrive in pieces of `step`.
StatusOr<size_t> ScanChunked(std::string_view bytes, size_t step) {
  BodyScanner scanner;
  scanner.Start({.kind = Kind::kChunked});
  size_t at = 0;
  while (at < bytes.size() && !scanner.done()) {
    RESMGR_ASSIGN_OR_RETURN(const size_t taken, scanner.Scan(bytes.substr(at, step)));
    at += taken;
  }
  if (!scanner.done()) return Unavailable("more must come");
  return at;
}

TEST(BodyScannerTest, FindsTheEndOfChunksWithExtensionsAndTrailers) {
  const std::string body =
      "5;a=\"b\"\r\nhello\r\n0A\r\n\r\n\r\n012345\r\n0\r\nX-Sum: 1\r\nY:\r\n\r\n";
  for (size_t step = 1; step <= body.size() + 4; ++step) {
    const auto size = ScanChunked(body + "GET ", step);
    ASSERT_THAT(size, IsOk()) << step;
    EXPECT_EQ(*size, body.size()) << step;
  }
}

TEST(BodyScannerTest, RefusesMalformedChunks) {
  const std::string long_size = "1;" + std::string(BodyScanner::kMaxLine, 'x') + "\r\n";
  const std::string long_trailer = "0\r\nA:" + std::string(BodyScanner::kMaxTrailers, 'x');
  for (const std::string& body :
       {std::string("\r\n"), std::string("g\r\n"), std::string("-1\r\n"), std::string("0x1\r\n"),
        std::string("1\na"), std::string("1 \r\n"), std::string(";\r\n"), std::string("1\r\nab"),
        std::string("1\r\na\n"), std::string("0\r\n continued\r\n"), std::string("0\r\nA\n"),
        std::string("1000000000000000\r\n"), std::string("0\r\n\rx"), long_size, long_trailer}) {
    EXPECT_THAT(ScanChunked(body, 3), HasCode(StatusCode::kInvalidArgument)) << body;
  }
}

TEST(RequestTargetTest, ReadsWhatChangesContainers) {
  const auto create = ReadTarget("POST", "/v1.41/containers/create?name=k8s_a%5Fb&platform=");
  ASSERT_TRUE(create.has_value());
  EXPECT_EQ(create->action, Action::kCreate);
  EXPECT_EQ(create->name, "k8s_a_b");
  EXPECT_EQ(create->api_minor, 41U);
  EXPECT_FALSE(ReadTarget("POST", "/containers/create")->api_minor);
  EXPECT_EQ(ReadTarget("POST", "/containers/create")->name, "");
  const auto start = ReadTarget("POST", "/containers/a.b-c_1/start");
  EXPECT_EQ(start->action, Action::kStart);
  EXPECT_EQ(start->container, "a.b-c_1");
  EXPECT_EQ(ReadTarget("POST", "/v1.24/containers/abc/stop?t=3")->action, Action::kStop);
  EXPECT_EQ(ReadTarget("POST", "/v1.24/containers/abc/restart")->action, Action::kRestart);
  EXPECT_EQ(ReadTarget("POST", "/v1.24/containers/abc/update")->action, Action::kUpdate);
  const auto kill = ReadTarget("POST", "http://docker/v1.41/containers/abc/kill?signal=SIGHUP");
  EXPECT_EQ(kill->action, Action::kKill);
  EXPECT_EQ(kill->signal, "SIGHUP");
  EXPECT_EQ(ReadTarget("DELETE", "/v1.41/containers/abc?force=1")->container, "abc");
}

TEST(RequestTargetTest, ReadsPercentEncodedPathsAsDockerdDoes) {
  EXPECT_EQ(ReadTarget("POST", "/%63ontainers/%61bc/st%61rt")->container, "abc");
  EXPECT_EQ(ReadTarget("POST", "/v1%2E41/containers/abc%2Fstop")->action, Action::kStop);
  EXPECT_FALSE(ReadTarget("POST", "/containers/%zz/start").has_value());
}

// dockerd 20.10 creates a container for each.
TEST(RequestTargetTest, ReadsAbsoluteUrlsAsDockerdDoes) {
  for (const char* const target :
       {"x:/v1.41/containers/create", "http:/v1.41/containers/create", "X:/containers/create",
        "a+b.c-d:/v1.41/containers/create", "http://host/v1.41/containers/create",
        "http:///v1.41/containers/create", "x:///containers/create",
        "x://[::1]/v1.41/containers/create", "x://user@host:99999/v1.41/containers/create",
        "x:/v1.41/%63ontainers%2Fcreate", "x:/v1.41/containers/create?name=x:/y",
        "/v1.41%2Fcontainers%2Fcreate", "/%761.41/containers/create"}) {
    const auto read = ReadTarget("POST", target);
    ASSERT_TRUE(read.has_value()) << target;
    EXPECT_EQ(read->action, Action::kCreate) << target;
  }
  // dockerd redirects these or does not find the page.
  for (const char* const target :
       {"x:v1.41/containers/create", "http://host?/containers/create", "x://host",
        "x:", "x:/%2e/v1.41/containers/create", "x://host//containers/create",
        "/V1.41/containers/create", "/v1.41/Containers/create", "/a:b/../v1.41/containers/create"})
    EXPECT_FALSE(ReadTarget("POST", target).has_value()) << target;
}

TEST(RequestTargetTest, EverythingElsePasses) {
  for (const char* const target :
       {"/containers/abc/exec", "/containers/abc/wait", "/containers/abc/attach?stream=1", "/build",
        "/images/create", "/containers/prune", "/v1.41x/containers/create", "//containers/create",
        "/a/../containers/create", "/containers/create/", "/containers//start", "*", "abc"}) {
    EXPECT_FALSE(ReadTarget("POST", target).has_value()) << target;
  }
  EXPECT_FALSE(ReadTarget("GET", "/containers/abc/json").has_value());
  EXPECT_FALSE(ReadTarget("DELETE", "/images/abc").has_value());
}

// "docker rm --link" removes a name that another container gave this one, which goes on running.
TEST(RequestTargetTest, TheRemovalOfALinkIsNotThatOfAContainer) {
  for (const char* const value : {"1", "true", "True", "yes", "%20x"})
    EXPECT_FALSE(ReadTarget("DELETE", fmt::format("/v1.41/containers/web/db?link={}", value)))
        << value;
  for (const char* const query : {"", "?link", "?link=", "?link=0", "?link=No", "?link=false&v=1",
                                  "?link=None", "?link=0&link=1", "?v=1"})
    EXPECT_TRUE(ReadTarget("DELETE", fmt::format("/v1.41/containers/web{}", query))) << query;
}

TEST(RequestTargetTest, OnlyTheSignalThatNothingSurvivesIsAKill) {
  for (const char* const signal : {"", "KILL", "SIGKILL", "sigkill", "9"})
    EXPECT_TRUE(IsKill(signal)) << signal;
  for (const char* const signal : {"TERM", "15", "HUP"})
    EXPECT_FALSE(IsKill(signal)) << signal;
}

}  // namespace
}  // namespace resmgr::docker
