// SPDX-License-Identifier: Apache-2.0
#include "pkg/metrics/http_server.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "pkg/metrics/metrics_server.h"
#include "pkg/sys/unique_fd.h"
#include "test/support/scrape/scrape.h"
#include "test/support/status_matchers.h"

namespace resmgr {
namespace {

using test::Must;
using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

TEST(HttpHeadTest, ReadsWhatHandlersNeed) {
  const auto request = Must(ParseHttpHead(
      "GET /a%20b%2?c=%20 HTTP/1.1\r\nhost: h:1 \r\nX: y\r\nnonsense\r\nOrigin: http://h:1\r\n"
      "SEC-FETCH-SITE:none"));
  EXPECT_EQ(request.method, "GET");
  EXPECT_EQ(request.path, "/a b%2");
  EXPECT_EQ(request.query, "c=%20");
  EXPECT_EQ(request.host, "h:1");
  EXPECT_EQ(request.origin, "http://h:1");
  EXPECT_EQ(request.fetch_site, "none");
}

TEST(HttpHeadTest, WhatIsNoRequestIsRefused) {
  for (const char* head : {"", " ", "GET", "GET / ", "GET /", "GET  HTTP/1.1", " / HTTP/1.1",
                           "GET * HTTP/1.1", "GET http://h/ HTTP/1.1", "PRI * HTTP/2.0"})
    EXPECT_FALSE(ParseHttpHead(head).ok()) << head;
}

class HttpServerTest : public testing::Test {
 protected:
  HttpServerTest() {
    auto server =
        HttpServer::Create("127.0.0.1", 0, {.answer = [this](const HttpRequest& request) {
                             return HttpAnswer{.body = request.path == "/big" ? big_ : "ok"};
                           }});
    EXPECT_TRUE(server.ok());
    server_ = *std::move(server);
  }
  std::string Ask(const std::string& request) { return test::Exchange(server_->port(), request); }
  UniqueFd Connect(std::string_view sent) const {
    UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const int buffer = 1;
    ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVBUF, &buffer, sizeof(buffer));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(server_->port()));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
    EXPECT_EQ(::send(fd.get(), sent.data(), sent.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(sent.size()));
    return fd;
  }

  const std::string big_ = std::string(size_t{8} << 20, 'x');
  std::unique_ptr<HttpServer> server_;
};

TEST_F(HttpServerTest, AnswersAndRefuses) {
  EXPECT_THAT(Ask("GET / HTTP/1.1\r\n\r\n"), StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(Ask("HEAD / HTTP/1.0\r\n\r\n"), EndsWith("Connection: close\r\n\r\n"));
  EXPECT_THAT(Ask("nonsense\r\n\r\n"), StartsWith("HTTP/1.1 400"));
  EXPECT_THAT(Ask("GET / HTTP/1.1\r\nX: " + std::string(20'000, 'x') + "\r\n\r\n"),
              StartsWith("HTTP/1.1 400"));
  EXPECT_THAT(Ask("PUT / HTTP/1.1\r\nContent-Length: 9000\r\n\r\n" + std::string(9000, 'x')),
              EndsWith("\r\n\r\nok"));
  EXPECT_EQ(Ask("GET /big HTTP/1.1\r\n\r\n").size() > big_.size(), true);
}

// Without a host the server has all addresses of the machine: on a node without IPv4 addresses,
// kubelet and Prometheus know only those of IPv6.
TEST(HttpServerAddressTest, NoHostIsEachAddress) {
  const UniqueFd fd(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_addr = in6addr_loopback;
  if (!fd.valid() ||
      ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0)
    GTEST_SKIP() << "no IPv6 here";
  const auto server =
      Must(HttpServer::Create("", 0, {.answer = [](const HttpRequest&) { return HttpAnswer(); }}));
  address.sin6_port = htons(static_cast<uint16_t>(server->port()));
  EXPECT_EQ(::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  EXPECT_THAT(test::Exchange(server->port(), "GET / HTTP/1.1\r\n\r\n"),
              StartsWith("HTTP/1.1 200 OK\r\n"));
}

// A lasting error does not make the server's thread spin.
TEST_F(HttpServerTest, ErrorsOfAcceptTakeNoProcessor) {
  const auto used = [] {
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    const auto of = [](const timeval& time) {
      return std::chrono::seconds(time.tv_sec) + std::chrono::microseconds(time.tv_usec);
    };
    return of(usage.ru_utime) + of(usage.ru_stime);
  };
  // Finds the listening socket and shuts it down, so that each accept fails with EINVAL.
  bool found = false;
  for (int fd = 3; fd < 1024 && !found; ++fd) {
    sockaddr_in address{};
    socklen_t size = sizeof(address);
    int listens = 0;
    socklen_t listens_size = sizeof(listens);
    found = ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0 &&
            address.sin_family == AF_INET && ntohs(address.sin_port) == server_->port() &&
            ::getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &listens_size) == 0 &&
            listens == 1 && ::shutdown(fd, SHUT_RD) == 0;
  }
  ASSERT_TRUE(found);
  const auto before = used();
  std::this_thread::sleep_for(std::chrono::seconds(2));
  EXPECT_LT(used() - before, std::chrono::milliseconds(200));
}

// More silent clients than the limit, and some that do not read: an answer comes at once.
TEST_F(HttpServerTest, ManyClientsDelayNoOther) {
  std::vector<UniqueFd> clients;
  clients.reserve(600);
  for (int i = 0; i < 600; ++i)
    clients.push_back(Connect(i % 20 == 0 ? "GET /big HTTP/1.1\r\n\r\n" : ""));
  // Each wait for a silent client would cost three seconds; a busy machine delays some answers.
  auto quickest = std::chrono::steady_clock::duration::max();
  for (int i = 0; i < 5; ++i) {
    const auto start = std::chrono::steady_clock::now();
    EXPECT_THAT(Ask("GET / HTTP/1.1\r\n\r\n"), StartsWith("HTTP/1.1 200"));
    quickest = std::min(quickest, std::chrono::steady_clock::now() - start);
  }
  EXPECT_LT(quickest, std::chrono::milliseconds(2'900));
}

TEST_F(HttpServerTest, ASilentClientIsGivenUp) {
  const UniqueFd silent = Connect("GET / HT");
  const auto start = std::chrono::steady_clock::now();
  char byte = 0;
  EXPECT_EQ(::recv(silent.get(), &byte, 1, 0), 0);
  EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(2'500));
}

// Answers with a copy of the request, or waits until the test lets it go on.
class FakePage final : public HttpHandler {
 public:
  HttpAnswer Answer(const HttpRequest& request) override {
    if (request.path == "/page/slow") {
      ++waiting;
      go_on.wait(false);
    }
    return {.code = request.method == "POST" ? 405 : 200,
            .headers = {{"X-Test", "yes"}},
            .body = fmt::format("{} {}?{} of {}, {}", request.method, request.path, request.query,
                                request.host, request.fetch_site)};
  }
  std::atomic<int> waiting = 0;
  std::atomic<bool> go_on = false;
};

TEST(ServedPageTest, ServesAPageWhereThereIsOne) {
  const auto page = std::make_shared<FakePage>();
  const auto server = Must(MetricsServer::Create("127.0.0.1:0", ServedMetrics{.page = page}));
  const auto ask = [&](const std::string& line) {
    return test::Exchange(server->port(),
                          line + " HTTP/1.1\r\nHost: h\r\nSec-Fetch-Site: none\r\n\r\n");
  };
  const std::string got = ask("GET /page/a%20b?c=%20");
  EXPECT_THAT(got, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(got, HasSubstr("\r\nX-Test: yes\r\n"));
  EXPECT_THAT(got, EndsWith("\r\n\r\nGET /page/a b?c=%20 of h, none"));
  EXPECT_THAT(ask("HEAD /page"),
              AllOf(HasSubstr("\r\nContent-Length: 22\r\n"), EndsWith("\r\n\r\n")));
  for (const char* const method : {"PUT", "DELETE", "PATCH", "OPTIONS"})
    EXPECT_THAT(ask(std::string(method) + " /page/"), HasSubstr(std::string(method) + " /page/"));
  EXPECT_THAT(ask("POST /page/"), StartsWith("HTTP/1.1 405 Method Not Allowed\r\n"));
  EXPECT_THAT(ask("GET /"), EndsWith("\r\n\r\nGET /? of h, none"));
  EXPECT_THAT(ask("GET /pages"), StartsWith("HTTP/1.1 404"));
  EXPECT_THAT(ask("GET /metrics"), StartsWith("HTTP/1.1 200"));
}

TEST(ServedPageTest, ThereIsNoPageUnlessAskedFor) {
  const auto server = Must(MetricsServer::Create("127.0.0.1:0", ServedMetrics()));
  for (const char* const path : {"/", "/page", "/page/", "/page/data/status"})
    EXPECT_THAT(test::Scrape(server->port(), path), StartsWith("HTTP/1.1 404")) << path;
}

TEST(ServedPageTest, IsScrapedWhileReadersOfThePageWait) {
  const auto page = std::make_shared<FakePage>();
  const auto server = Must(MetricsServer::Create("127.0.0.1:0", ServedMetrics{.page = page}));
  const int port = server->port();
  std::vector<std::thread> readers;
  readers.reserve(8);
  for (int i = 0; i < 8; ++i)
    readers.emplace_back([port] { test::Scrape(port, "/page/slow"); });
  while (page->waiting < 8)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_THAT(test::Scrape(port), StartsWith("HTTP/1.1 200"));
  page->go_on = true;
  page->go_on.notify_all();
  for (std::thread& reader : readers)
    reader.join();
}

}  // namespace
}  // namespace resmgr
