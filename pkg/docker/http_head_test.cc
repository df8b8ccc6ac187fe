// SPDX-License-Identifier: Apache-2.0
#include "pkg/docker/http_head.h"

#include <string>

#include <gtest/gtest.h>

#include "pkg/docker/body_scanner.h"
#include "test/support/status_matchers.h"

namespace resmgr::docker {
namespace {

using Kind = BodyFraming::Kind;
using test::HasCode;
using test::IsOk;

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
  const auto found = finder.Find(bytes);
  ASSERT_THAT(found, IsOk());
  EXPECT_EQ(*found, head.size());
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
  const auto head = ParseWith("Host: docker\r\ncontent-length: 12\r\n");
  ASSERT_THAT(head, IsOk());
  EXPECT_EQ(head->method, "POST");
  EXPECT_EQ(head->target, "/v1.41/containers/a%2Fb/start?t=1");
  EXPECT_EQ(head->body.kind, Kind::kLength);
  EXPECT_EQ(head->body.length, 12u);
  EXPECT_FALSE(head->upgrade);
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

}  // namespace
}  // namespace resmgr::docker
