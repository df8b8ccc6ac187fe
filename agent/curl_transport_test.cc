// SPDX-License-Identifier: Apache-2.0
#include "agent/curl_transport.h"

#include <chrono>
#include <condition_variable>
#include <cstring>
#include <fstream>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netdb.h>

#include "pkg/sys/temp_dir.h"
#include "test/support/api_server/certificates.h"
#include "test/support/api_server/http_server.h"
#include "test/support/status_matchers.h"

namespace resmgr::agent {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using test::Must;
using testing::ElementsAre;

// The name of a host whose address no name server tells.
constexpr char kLostName[] = "lost.example";

// Holds the look-ups of kLostName until it is told to end them.
class LostName {
 public:
  static LostName& Get() {
    static LostName name;
    return name;
  }

  // Called by a look-up. Ends by itself, so that a test whose loop waits for it fails.
  void Wait() {
    std::unique_lock lock(mutex_);
    ++waiting_;
    changed_.wait_for(lock, seconds(20), [this] { return ended_; });
    --waiting_;
    changed_.notify_all();
  }
  void EndLookUps() {
    std::unique_lock lock(mutex_);
    ended_ = true;
    changed_.notify_all();
    changed_.wait_for(lock, seconds(20), [this] { return waiting_ == 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int waiting_ = 0;
  bool ended_ = false;
};

// Runs the loop until the request has its result.
StatusOr<HttpReply> ResultOf(EventLoop& loop, HttpTransport& transport, HttpRequest request) {
  StatusOr<HttpReply> result = Unavailable("no result");
  const auto call =
      transport.Send(std::move(request), nullptr, [&](const StatusOr<HttpReply>& reply) {
        result = reply;
        loop.Stop();
      });
  const auto limit = loop.After(seconds(30), [&loop] { loop.Stop(); });
  loop.Run();
  return result;
}

HttpRequest Impatient(milliseconds first_byte_timeout) {
  return {.target = "/", .first_byte_timeout = first_byte_timeout, .timeout = seconds(30)};
}

// The kubelet's certificate, for example, which is in one file with its key, is replaced in time,
// but the API server refuses each request on a connection whose certificate has expired since the
// connection began.
TEST(CurlTransportTest, AReplacedClientCertificateIsUsedAtOnce) {
  const test::TestAuthority authority;
  std::vector<std::string> clients;
  test::HttpServer server(
      [&](const test::HttpServerRequest& request, test::HttpServerReply& reply) {
        clients.push_back(request.client);
        reply.Send(200, "{}");
      });
  const test::KeyPair own = authority.Issue("server");
  const test::HttpServer::Tls tls{
      .certificate = own.certificate, .key = own.key, .ca = authority.certificate()};
  ASSERT_THAT(server.Start(0, &tls), test::IsOk());

  TempDir directory;
  const auto show = [&](const std::string& name) {
    const test::KeyPair client = authority.Issue(name);
    std::ofstream(directory.File("client.pem")) << client.certificate << client.key;
  };
  EventLoop loop;
  auto transport = Must(
      CurlTransport::Create(loop, {.server = fmt::format("https://127.0.0.1:{}", server.port()),
                                   .ca = {.data = authority.certificate()},
                                   .user = {.certificate = {.file = directory.File("client.pem")},
                                            .key = {.file = directory.File("client.pem")}}}));
  for (const char* name : {"first", "second"}) {
    show(name);
    ASSERT_THAT(ResultOf(loop, *transport, {.target = "/"}), test::IsOk());
  }
  server.Stop();
  EXPECT_THAT(clients, ElementsAre("first", "second"));
}

// A name server that does not answer holds a look-up for a minute and more.
TEST(CurlTransportTest, ARequestThatIsGivenUpDoesNotWaitForTheLookUpOfAName) {
  EventLoop loop;
  auto transport =
      Must(CurlTransport::Create(loop, {.server = fmt::format("http://{}:1", kLostName)}));
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(ResultOf(loop, *transport, Impatient(milliseconds(50))).status().code(),
            StatusCode::kDeadlineExceeded);
  auto call = transport->Send({.target = "/"}, nullptr, [](const StatusOr<HttpReply>&) {});
  const auto soon = loop.After(milliseconds(50), [&loop] { loop.Stop(); });
  loop.Run();
  call.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, seconds(10));
  LostName::Get().EndLookUps();
}

// A proxy that accepts connections for a server that it does not reach.
TEST(CurlTransportTest, TheAnswerOfAProxyIsNotTheBeginOfTheReply) {
  test::HttpServer proxy([](const test::HttpServerRequest& request, test::HttpServerReply& reply) {
    if (request.method == "CONNECT") reply.Send(200, "");
  });
  ASSERT_THAT(proxy.Start(0), test::IsOk());
  EventLoop loop;
  auto transport = Must(
      CurlTransport::Create(loop, {.server = "https://192.0.2.1:6443",
                                   .proxy_url = fmt::format("http://127.0.0.1:{}", proxy.port())}));
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(ResultOf(loop, *transport, Impatient(milliseconds(200))).status().code(),
            StatusCode::kDeadlineExceeded);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, seconds(10));
}

}  // namespace
}  // namespace resmgr::agent

// Takes the place of the C library's function.
extern "C" int getaddrinfo(const char* node, const char* service, const addrinfo* hints,
                           addrinfo** result) {
  if (node != nullptr && std::strcmp(node, resmgr::agent::kLostName) == 0) {
    resmgr::agent::LostName::Get().Wait();
    return EAI_AGAIN;
  }
  using Function = int (*)(const char*, const char*, const addrinfo*, addrinfo**);
  static const auto kReal = reinterpret_cast<Function>(::dlsym(RTLD_NEXT, "getaddrinfo"));
  return kReal(node, service, hints, result);
}
