// SPDX-License-Identifier: Apache-2.0
// Ambiguous HTTP is refused before dockerd sees it, or dockerd sees exactly the same bytes as
// without us: its own log has the requests that it found in them.
#include <chrono>
#include <memory>
#include <regex>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/e2e/docker/docker_node.h"
#include "test/e2e/docker/raw_http.h"
#include "test/support/status_matchers.h"

namespace resmgr::test {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// The engine is idle otherwise, so this is long for a reply.
constexpr milliseconds kSilence{400};

const std::string kPing = "GET /_ping HTTP/1.1\r\nHost: d\r\n\r\n";
// The request that an attacker hides in another one.
const std::string kHidden = "POST /v1.41/containers/prune HTTP/1.1\r\nHost: d\r\n\r\n";

std::string Get(const std::string& fields) {
  return "GET /_ping HTTP/1.1\r\nHost: d\r\n" + fields + "\r\n";
}
std::string Post(const std::string& fields, const std::string& body) {
  return "POST /v1.41/auth HTTP/1.1\r\nHost: d\r\nContent-Type: application/json\r\n" + fields +
         "\r\n" + body;
}

struct Case {
  const char* name;
  std::string bytes;
  // The status of our refusal, or 0: it passes.
  int refused = 0;
  // The number of requests that dockerd sees before a refusal.
  size_t before = 0;
};

constexpr const char* kChunked = "Transfer-Encoding: chunked\r\n";

std::vector<Case> RefusedCases() {
  const std::string chunked = kChunked;
  const std::string many(70'000, 'x');
  return {
      {"TwoLengths", Post("Content-Length: 2\r\nContent-Length: 50\r\n", "{}" + kHidden), 400},
      {"EqualLengths", Post("Content-Length: 2\r\nContent-Length: 2\r\n", "{}"), 400},
      {"ListOfLengths", Post("Content-Length: 2, 2\r\n", "{}"), 400},
      {"SignedLength", Post("Content-Length: +2\r\n", "{}"), 400},
      {"NegativeLength", Post("Content-Length: -2\r\n", "{}"), 400},
      {"HexLength", Post("Content-Length: 0x2\r\n", "{}"), 400},
      {"HugeLength", Post("Content-Length: 99999999999999999999\r\n", "{}"), 400},
      {"ChunkedWithLength", Post(chunked + "Content-Length: 5\r\n", "0\r\n\r\n" + kHidden), 400},
      {"LengthBeforeChunked", Post("Content-Length: 5\r\n" + chunked, "0\r\n\r\n" + kHidden), 400},
      {"TwoCodings", Post("Transfer-Encoding: gzip, chunked\r\n", "0\r\n\r\n"), 501},
      {"UnknownCoding", Post("Transfer-Encoding: xchunked\r\nContent-Length: 2\r\n", "{}"), 501},
      {"ChunkedTwice", Post(chunked + chunked, "0\r\n\r\n" + kHidden), 400},
      {"SpaceBeforeColon", Post("Content-Length : 60\r\n", kHidden), 400},
      {"ControlBeforeColon", Post("Transfer-Encoding\v: chunked\r\n", "0\r\n\r\n"), 400},
      {"ControlInCoding", Post("Transfer-Encoding: \vchunked\r\n", "0\r\n\r\n"), 400},
      {"FoldedField", Get("X-A: b\r\n c\r\n"), 400},
      {"FoldedLength", Post("Content-Length:\r\n 60\r\n", kHidden), 400},
      {"BareLf", "GET /_ping HTTP/1.1\nHost: d\n\n", 400},
      {"BareLfInField", Get("X-A: b\nContent-Length: 60\r\n") + kHidden, 400},
      {"BareCrInField", Get("X-A: b\rContent-Length: 60\r\n") + kHidden, 400},
      {"NulInField", Get(std::string("X-A: b\0c\r\n", 10)), 400},
      {"NulInTarget", std::string("GET /_pi\0ng HTTP/1.1\r\nHost: d\r\n\r\n", 34), 400},
      {"NoColon", Get("X-A\r\n"), 400},
      {"EmptyName", Get(": b\r\n"), 400},
      {"LongHead", Get("X-A: " + many + "\r\n"), 431},
      {"LongTarget", "GET /" + many + " HTTP/1.1\r\nHost: d\r\n\r\n", 431},
      {"OtherVersion", "GET /_ping HTTP/2.0\r\nHost: d\r\n\r\n", 501},
      {"Http2Preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 501},
      {"NoVersion", "GET /_ping\r\n\r\n", 400},
      {"NoHttp", "\x16\x03\x01\x02\x01\x01\xfc\r\n\r\n", 400},
      {"Connect", "CONNECT d:1 HTTP/1.1\r\nHost: d\r\n\r\n", 501},
      {"SpaceInTarget", "GET /_ping /info HTTP/1.1\r\nHost: d\r\n\r\n", 400},
      {"HugeChunk", Post(chunked, "fffffffffffffffff\r\n{}"), 400, 1},
      {"NegativeChunk", Post(chunked, "-2\r\n{}\r\n0\r\n\r\n"), 400, 1},
      {"HexChunk", Post(chunked, "0x2\r\n{}\r\n0\r\n\r\n"), 400, 1},
      {"LfInChunkSize", Post(chunked, "2\n{}\r\n0\r\n\r\n"), 400, 1},
      {"LfBehindChunk", Post(chunked, "2\r\n{}\n0\r\n\r\n"), 400, 1},
      {"LongChunk", Post(chunked, "2\r\n{}XX\r\n0\r\n\r\n" + kHidden), 400, 1},
      {"LongExtension", Post(chunked, "2;" + many + "\r\n{}\r\n0\r\n\r\n"), 400, 1},
      {"LfInExtension", Post(chunked, "2;a\nb\r\n{}\r\n0\r\n\r\n"), 400, 1},
      {"ManyTrailers", Post(chunked, "2\r\n{}\r\n0\r\nX: " + many + "\r\n\r\n"), 400, 1},
      {"RefusedBehindAnother", kPing + Get("X-A: b\r\n c\r\n"), 400, 1},
  };
}

std::vector<Case> PassingCases() {
  const std::string chunked = kChunked;
  const std::string many(60'000, 'x');
  return {
      {"Plain", kPing},
      {"Pipelined", kPing + kPing + "GET /v1.41/version HTTP/1.1\r\nHost: d\r\n\r\n"},
      {"PipelinedBehindBody", Post("Content-Length: 2\r\n", "{}") + kPing},
      {"BodyOfGet", Get(fmt::format("Content-Length: {}\r\n", kHidden.size())) + kHidden + kPing},
      {"Chunked", Post(chunked, "1\r\n{\r\n1\r\n}\r\n0\r\n\r\n") + kPing},
      {"ChunkExtensions", Post(chunked, "2;a=b;c=\"d\"\r\n{}\r\n0;e\r\n\r\n") + kPing},
      {"LeadingZeros", Post(chunked, "0002\r\n{}\r\n000\r\n\r\n") + kPing},
      {"Trailers", Post("Trailer: X-A\r\n" + chunked, "2\r\n{}\r\n0\r\nX-A: b\r\n\r\n") + kPing},
      {"UpperCase", Post("CONTENT-LENGTH: 2\r\n", "{}") + kPing},
      {"ManyFields", Get("X-A: " + many + "\r\n")},
      {"PercentEncoded", "GET /%5fping HTTP/1.1\r\nHost: d\r\n\r\n" + kPing},
      {"EncodedSlash", "GET /v1.41/containers/a%2Fb/json HTTP/1.1\r\nHost: d\r\n\r\n" + kPing},
      {"EncodedNul", "GET /v1.41/containers/a%00b/json HTTP/1.1\r\nHost: d\r\n\r\n" + kPing},
      {"BadEscape", "GET /v1.41/%zz HTTP/1.1\r\nHost: d\r\n\r\n"},
      {"DotPath", "GET /v1.41/containers/../version HTTP/1.1\r\nHost: d\r\n\r\n" + kPing},
      {"DoubleSlash", "GET //v1.41//version HTTP/1.1\r\nHost: d\r\n\r\n" + kPing},
      {"AbsoluteForm", "GET http://other/_ping HTTP/1.1\r\nHost: d\r\n\r\n" + kPing},
      {"Asterisk", "OPTIONS * HTTP/1.1\r\nHost: d\r\n\r\n"},
      {"NoHost", "GET /_ping HTTP/1.1\r\n\r\n"},
      {"TwoHosts", "GET /_ping HTTP/1.1\r\nHost: d\r\nHost: e\r\n\r\n"},
      {"Http10", "GET /_ping HTTP/1.0\r\n\r\n"},
      {"Http10KeepAlive", "GET /_ping HTTP/1.0\r\nConnection: keep-alive\r\n\r\n" + kPing},
      {"Close", Get("Connection: close\r\n") + kPing},
      {"Head", "HEAD /_ping HTTP/1.1\r\nHost: d\r\n\r\n" + kPing},
      {"UpgradeOfPing", Get("Connection: Upgrade\r\nUpgrade: tcp\r\n") + kPing},
      {"UpgradeToHttp2", Get("Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n"
                             "HTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n") +
                             kPing},
      {"UnknownMethod", "BREW /_ping HTTP/1.1\r\nHost: d\r\n\r\n" + kPing},
      {"UnknownVersion", "GET /v9.99/version HTTP/1.1\r\nHost: d\r\n\r\n" + kPing},
      {"Expectation", Post("Expect: 100-continue\r\nContent-Length: 2\r\n", "{}") + kPing},
      {"OtherExpectation", Post("Expect: more\r\nContent-Length: 2\r\n", "{}") + kPing},
  };
}

class HostileHttpTest : public ::testing::Test {
 protected:
  struct Seen {
    std::string replies;             // without times
    std::vector<std::string> calls;  // calls that dockerd found
    bool closed = false;
  };

  void SetUp() override {
    auto node = DockerNode::Start({.engine = {.debug = true}});
    ASSERT_THAT(node, IsOk());
    node_ = *std::move(node);
  }

  Seen Send(const std::filesystem::path& socket, std::string_view bytes, size_t piece = 0,
            milliseconds pause = {}) {
    static const std::regex call(R"re(msg="Calling ([^"]*)")re");
    static const std::regex date("\r\nDate: [^\r]*");
    const size_t before = node_->dockerd().Log().size();
    auto connection = RawHttp::Connect(socket);
    EXPECT_THAT(connection, IsOk());
    if (!connection.ok()) return {};
    connection->Send(bytes, piece, pause);
    Seen seen;
    seen.replies = std::regex_replace(connection->ReadAll(kSilence), date, "");
    seen.closed = connection->closed();
    const std::string log = node_->dockerd().Log().substr(before);
    for (auto it = std::sregex_iterator(log.begin(), log.end(), call); it != std::sregex_iterator();
         ++it) {
      seen.calls.push_back((*it)[1]);
    }
    return seen;
  }

  Seen Directly(std::string_view bytes) { return Send(node_->dockerd().socket(), bytes); }
  Seen Through(std::string_view bytes) { return Send(node_->socket(), bytes); }

  DockerNode& node() { return *node_; }

 private:
  std::unique_ptr<DockerNode> node_;
};

TEST_F(HostileHttpTest, PassesAsItIs) {
  for (const Case& each : PassingCases()) {
    SCOPED_TRACE(each.name);
    const Seen through = Through(each.bytes);
    const Seen direct = Directly(each.bytes);
    EXPECT_EQ(through.replies, direct.replies);
    EXPECT_EQ(through.calls, direct.calls);
    EXPECT_EQ(through.closed, direct.closed);
  }
}

TEST_F(HostileHttpTest, IsRefused) {
  for (const Case& each : RefusedCases()) {
    SCOPED_TRACE(each.name);
    const Seen through = Through(each.bytes);
    EXPECT_LE(through.calls.size(), each.before) << ::testing::PrintToString(through.calls);
    EXPECT_THAT(through.calls, ::testing::Not(::testing::Contains(HasSubstr("prune"))));
    EXPECT_TRUE(through.closed);
    const std::string refusal = fmt::format("HTTP/1.1 {} ", each.refused);
    EXPECT_THAT(through.replies, HasSubstr(refusal));
    if (each.before == 0) {
      EXPECT_THAT(through.replies, StartsWith(refusal));
    }
  }
}

// The same bytes in any pieces are the same requests.
TEST_F(HostileHttpTest, PiecesChangeNothing) {
  const std::string bytes =
      kPing + Post("Transfer-Encoding: chunked\r\n", "2;x\r\n{}\r\n0\r\n\r\n") + kPing;
  const Seen whole = Directly(bytes);
  ASSERT_EQ(whole.calls.size(), 3U);
  for (const size_t piece : {1U, 2U, 3U, 7U}) {
    const Seen pieces = Send(node().socket(), bytes, piece, milliseconds(1));
    EXPECT_EQ(pieces.replies, whole.replies) << piece;
    EXPECT_EQ(pieces.calls, whole.calls) << piece;
  }
}

// A slow head ends with 408, and delays no other client.
TEST_F(HostileHttpTest, ASlowHeadIsNotWaitedForLong) {
  auto slow = Must(RawHttp::Connect(node().socket()));
  slow.Send("GET /_ping HTTP/1.1\r\nX-A: ");
  EXPECT_THAT(Through(kPing).replies, StartsWith("HTTP/1.1 200 OK"));
  slow.Send("b");
  EXPECT_THAT(slow.ReadAll(milliseconds(15'000)), StartsWith("HTTP/1.1 408 "));
}

// A connection that dockerd has not taken over must not become a tunnel.
TEST_F(HostileHttpTest, NoTunnelWithoutDockerd) {
  const std::string refused =
      "POST /v1.41/containers/absent/attach?stream=1&stdin=1 HTTP/1.1\r\nHost: d\r\n"
      "Connection: Upgrade\r\nUpgrade: tcp\r\n\r\n" +
      kHidden;
  const Seen direct = Directly(refused);
  const Seen through = Through(refused);
  EXPECT_THAT(through.replies, StartsWith("HTTP/1.1 404 "));
  EXPECT_EQ(through.replies, direct.replies);
  EXPECT_THAT(through.calls, ElementsAre(HasSubstr("/attach")));
}

}  // namespace
}  // namespace resmgr::test
