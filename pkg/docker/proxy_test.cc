// SPDX-License-Identifier: Apache-2.0
#include "pkg/docker/proxy.h"

#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/docker/exchange.h"
#include "pkg/docker/testing/client_end.h"
#include "pkg/sys/temp_dir.h"

namespace resmgr::docker {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

constexpr const char* kPing = "GET /_ping HTTP/1.1\r\nHost: docker\r\n\r\n";
constexpr const char* kPost = "POST /containers/create HTTP/1.1\r\n\r\n";
constexpr const char* kPong = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nOK";

// A proxy on a loop of its own; the test plays its clients and dockerd.
class DockerProxyTest : public testing::Test {
 protected:
  ~DockerProxyTest() override { Stop(); }

  void Start(Proxy::Options options = {}) {
    options.engine_socket = dir_.File("engine.sock");
    auto listener = ListeningSocket::Create(dir_.File("proxy.sock"));
    ASSERT_TRUE(listener.ok());
    proxy_.emplace(loop_, *std::move(listener), options);
    thread_ = std::thread([this] { loop_.Run(); });
  }
  void StartWithEngine(Proxy::Options options = {}) {
    auto engine = ListeningSocket::Create(dir_.File("engine.sock"));
    ASSERT_TRUE(engine.ok());
    engine_.emplace(*std::move(engine));
    Start(std::move(options));
  }
  void Stop() {
    if (!thread_.joinable()) return;
    loop_.Stop();
    thread_.join();
    proxy_.reset();
  }
  End Client() {
    auto fd = ConnectUnix(dir_.File("proxy.sock"));
    EXPECT_TRUE(fd.ok());
    return End(fd.ok() ? *std::move(fd) : UniqueFd());
  }
  End Engine() {
    EXPECT_TRUE(Ready(engine_->fd(), POLLIN));
    auto fd = engine_->Accept();
    EXPECT_TRUE(fd.ok() && fd->has_value());
    return End(fd.ok() && *fd ? **std::move(fd) : UniqueFd());
  }
  // A client's request that dockerd has received, and both ends.
  std::pair<End, End> Ask(std::string_view request) {
    std::pair ends(Client(), End(UniqueFd()));
    ends.first.Send(request);
    ends.second = Engine();
    ends.second.Expect(request);
    return ends;
  }
  size_t Connections() {
    std::promise<size_t> count;
    loop_.Post([&] { count.set_value(proxy_->connections()); });
    return count.get_future().get();
  }
  // Takes the drain back in the turn of the loop in which it begins.
  void DrainAndResume(std::function<void()> done) {
    std::promise<void> resumed;
    loop_.Post([&] {
      proxy_->Drain(std::chrono::seconds(20), std::move(done));
      Resume();
      resumed.set_value();
    });
    resumed.get_future().wait();
  }
  // Accepts clients again.
  void Listen() {
    std::promise<void> resumed;
    loop_.Post([&] {
      Resume();
      resumed.set_value();
    });
    resumed.get_future().wait();
  }
  bool AllGone() {
    // Each check takes a turn of the proxy's loop.
    return test::Eventually([this] { return Connections() == 0; });
  }

  TempDir dir_;
  EventLoop loop_;
  std::optional<ListeningSocket> engine_;
  std::optional<Proxy> proxy_;
  std::thread thread_;

 private:
  void Resume() {
    auto listener = ListeningSocket::Create(dir_.File("proxy.sock"));
    ASSERT_TRUE(listener.ok()) << listener.status();
    proxy_->Resume(*std::move(listener));
  }
};

TEST_F(DockerProxyTest, PassesRequestsAndRepliesByteForByte) {
  StartWithEngine();
  const std::string request =
      "POST /v1.99/containers/%41%2fb/start?x=%20 HTTP/1.1\r\nhOST:  docker \r\nX-Odd:\r\n"
      "Transfer-Encoding: chunked\r\n\r\n3;e=1\r\nabc\r\n0\r\nX-Trailer: 1\r\n\r\n";
  const auto [client, engine] = Ask(request);
  engine.Send(kPong);
  client.Expect(kPong);
  // The same again on the same two connections.
  client.Send(kPing);
  engine.Expect(kPing);
  engine.Send("HTTP/1.1 204 No Content\r\n\r\n");
  client.Expect("HTTP/1.1 204 No Content\r\n\r\n");
}

TEST_F(DockerProxyTest, SendsAPipelinedRequestAfterTheReply) {
  StartWithEngine();
  const End client = Client();
  client.Send(std::string(kPing) + kPing);
  const End engine = Engine();
  engine.Expect(kPing);
  EXPECT_TRUE(engine.Silent());
  engine.Send(kPong);
  engine.Expect(kPing);
  engine.Send(kPong);
  client.Expect(std::string(kPong) + kPong);
}

TEST_F(DockerProxyTest, HalfClosesATunnelInBothDirections) {
  StartWithEngine();
  auto [client, engine] =
      Ask("POST /exec/1/start HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n");
  engine.Send("HTTP/1.1 101 UPGRADED\r\n\r\n");
  client.Expect("HTTP/1.1 101 UPGRADED\r\n\r\n");
  client.Send("input");
  client.HalfClose();
  EXPECT_EQ(engine.ReceiveAll(), "input");
  engine.Send("output after the end of the input");
  engine.Close();
  EXPECT_EQ(client.ReceiveAll(), "output after the end of the input");
  EXPECT_TRUE(AllGone());
}

TEST_F(DockerProxyTest, TellsDockerdThatAClientOfAStreamIsGone) {
  StartWithEngine();
  auto [client, engine] = Ask(kPing);
  engine.Send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n");
  client.Receive(10);
  client.Close();
  EXPECT_EQ(engine.ReceiveAll(), "");
}

TEST_F(DockerProxyTest, ASlowReaderMakesTheOtherSideWaitAndGetsAll) {
  StartWithEngine();
  auto [client, engine] = Ask(kPing);
  engine.Send("HTTP/1.1 200 OK\r\n\r\n");
  const size_t sent = engine.Fill();
  EXPECT_LT(sent, size_t{4} * 1024 * 1024);
  engine.Close();
  const std::string head = "HTTP/1.1 200 OK\r\n\r\n";
  EXPECT_EQ(client.ReceiveAll().size(), head.size() + sent);
}

TEST_F(DockerProxyTest, AnswersForADockerdThatIsAwayAndFindsItWhenItIsBack) {
  Start();
  {
    const End client = Client();
    client.Send(kPing);
    const std::string reply = client.ReceiveAll();
    EXPECT_THAT(reply, StartsWith("HTTP/1.1 503 Service Unavailable\r\n"));
    EXPECT_THAT(reply, HasSubstr("\r\n\r\n{\"message\":\"cannot connect to the Docker engine"));
    EXPECT_THAT(reply, EndsWith("\"}\n"));
  }
  const End head = Client();
  head.Send("HEAD /_ping HTTP/1.1\r\n\r\n");
  EXPECT_THAT(head.ReceiveAll(), EndsWith("Connection: close\r\n\r\n"));
  engine_.emplace(*ListeningSocket::Create(dir_.File("engine.sock")));
  const End client = Client();
  client.Send(kPing);
  Engine().Expect(kPing);
  EXPECT_THAT(client.ReceiveAll(), StartsWith("HTTP/1.1 502 Bad Gateway\r\n"));
}

TEST_F(DockerProxyTest, CutsAReplyThatDockerdCuts) {
  StartWithEngine();
  auto [client, engine] = Ask(kPing);
  engine.Send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab");
  engine.Close();
  EXPECT_EQ(client.ReceiveAll(), "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab");
}

TEST_F(DockerProxyTest, RefusesHostileRequestsBeforeDockerdSeesThem) {
  StartWithEngine();
  const std::string get = "GET /_ping HTTP/1.1\r\n";
  const std::string long_field = get + "X: " + std::string(kMaxHead, 'x') + "\r\n\r\n";
  for (const auto& [request, code] :
       {std::pair(get + "Content-Length: 1\r\nContent-Length: 2\r\n\r\nab", "400"),
        std::pair(get + "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", "400"),
        std::pair(std::string("GET /_ping HTTP/1.1\n\n"), "400"),
        std::pair(get + "A: b\r\n c\r\n\r\n", "400"), std::pair(long_field, "431"),
        std::pair(get + "Transfer-Encoding: gzip\r\n\r\n", "501")}) {
    const End client = Client();
    client.Send(request);
    EXPECT_THAT(client.ReceiveAll(), StartsWith(std::string("HTTP/1.1 ") + code)) << request;
  }
  EXPECT_FALSE(Ready(engine_->fd(), POLLIN, 0));
}

TEST_F(DockerProxyTest, EndsARequestWithMalformedChunks) {
  StartWithEngine();
  const auto [client, engine] = Ask("POST /build HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n");
  client.Send("zz\r\n");
  EXPECT_THAT(client.ReceiveAll(), StartsWith("HTTP/1.1 400 Bad Request\r\n"));
  EXPECT_EQ(engine.ReceiveAll(), "");
}

TEST_F(DockerProxyTest, RefusesAHeadThatDoesNotArriveInTime) {
  StartWithEngine({.head_timeout = std::chrono::milliseconds(50)});
  const End idle = Client();
  const End slow = Client();
  slow.Send("GET /_ping HT");
  EXPECT_THAT(slow.ReceiveAll(), StartsWith("HTTP/1.1 408 Request Timeout\r\n"));
  // A connection without a partial head may wait.
  idle.Send(kPing);
  Engine().Expect(kPing);
}

TEST_F(DockerProxyTest, OneClientTooManyEndsTheOneThatIsIdleForLongest) {
  StartWithEngine({.max_clients = 2});
  const auto [busy, engine] = Ask(kPing);
  const End idle = Client();
  const End next = Client();
  EXPECT_EQ(idle.ReceiveAll(), "");
  engine.Send(kPong);
  busy.Expect(kPong);
  next.Send(kPing);
  Engine().Expect(kPing);
}

TEST_F(DockerProxyTest, DrainWaitsForTheRequestsThatEnd) {
  StartWithEngine();
  const End idle = Client();
  const auto lasting = Ask("GET /events HTTP/1.1\r\n\r\n");
  const auto [client, engine] = Ask("POST /containers/create HTTP/1.1\r\n\r\n");
  std::promise<void> drained;
  loop_.Post([&] { proxy_->Drain(std::chrono::seconds(20), [&] { drained.set_value(); }); });
  EXPECT_EQ(idle.ReceiveAll(), "");
  auto future = drained.get_future();
  EXPECT_EQ(future.wait_for(std::chrono::milliseconds(50)), std::future_status::timeout);
  engine.Send(kPong);
  EXPECT_EQ(client.ReceiveAll(), kPong);
  client.HalfClose();
  EXPECT_EQ(future.wait_for(std::chrono::seconds(20)), std::future_status::ready);
}

// A client sees its connection closed and cannot tell whether dockerd has got the request.
TEST_F(DockerProxyTest, DrainServesRequestsThatHaveArrived) {
  StartWithEngine();
  const std::string_view create = kPost;
  for (const size_t before : {create.size(), size_t{0}, size_t{20}}) {
    const auto [client, engine] = Ask(kPing);
    engine.Send(kPong);
    client.Expect(kPong);
    std::promise<void> drained;
    std::promise<void> begun;
    // All in one turn of the loop, so that the proxy has not read what arrived.
    loop_.Post([&, &client = client] {
      client.Send(create.substr(0, before));
      proxy_->Drain(std::chrono::seconds(20), [&] { drained.set_value(); });
      begun.set_value();
    });
    begun.get_future().wait();
    auto end = drained.get_future();
    if (before > 0) {
      EXPECT_EQ(end.wait_for(std::chrono::milliseconds(50)), std::future_status::timeout);
      client.Send(create.substr(before));
      engine.Expect(create);
      engine.Send(kPong);
    }
    EXPECT_EQ(client.ReceiveAll(), before > 0 ? kPong : "");
    client.HalfClose();
    EXPECT_EQ(end.wait_for(std::chrono::seconds(20)), std::future_status::ready);
    EXPECT_TRUE(AllGone()) << "before the end of the drain's time";
    Listen();
  }
}

TEST_F(DockerProxyTest, DrainServesTheRequestBehindTheOneUnderWay) {
  StartWithEngine();
  const auto [client, engine] = Ask(kPost);
  std::promise<void> drained;
  loop_.Post([&, &client = client, &engine = engine] {
    engine.Send(kPong);
    client.Send(kPost);
    proxy_->Drain(std::chrono::seconds(20), [&] { drained.set_value(); });
  });
  client.Expect(kPong);
  engine.Expect(kPost);
  engine.Send(kPong);
  EXPECT_EQ(client.ReceiveAll(), kPong);
  client.HalfClose();
  EXPECT_EQ(drained.get_future().wait_for(std::chrono::seconds(20)), std::future_status::ready);
}

TEST_F(DockerProxyTest, DrainThatIsTakenBackServesOn) {
  StartWithEngine();
  const auto [client, engine] = Ask("POST /containers/create HTTP/1.1\r\n\r\n");
  std::atomic<bool> drained = false;
  DrainAndResume([&] { drained = true; });
  const auto another = Ask(kPing);
  engine.Send(kPong);
  client.Expect(kPong);
  EXPECT_FALSE(drained);
}

// Nothing is under way, so the drain has ended at once, and is told a turn later.
TEST_F(DockerProxyTest, ADrainThatIsTakenBackInTheTurnOfItsEndIsNotTold) {
  StartWithEngine();
  std::atomic<bool> drained = false;
  DrainAndResume([&] { drained = true; });
  // An exchange takes more turns of the loop.
  const auto [client, engine] = Ask(kPing);
  engine.Send(kPong);
  client.Expect(kPong);
  EXPECT_FALSE(drained);
}

}  // namespace
}  // namespace resmgr::docker
