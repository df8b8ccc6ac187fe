// SPDX-License-Identifier: Apache-2.0
// A page on the address of the metrics.
#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/metrics/metrics_server.h"
#include "test/support/scrape/scrape.h"

namespace resmgr {
namespace {

using testing::AllOf;
using testing::HasSubstr;

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
  const auto server = MetricsServer::Create("127.0.0.1:0", ServedMetrics{.page = page});
  ASSERT_TRUE(server.ok()) << server.status();
  const auto ask = [&](const std::string& line) {
    return test::Exchange((*server)->port(),
                          line + " HTTP/1.1\r\nHost: h\r\nSec-Fetch-Site: none\r\n\r\n");
  };
  const std::string got = ask("GET /page/a%20b?c=%20");
  EXPECT_THAT(got, testing::StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(got, HasSubstr("\r\nX-Test: yes\r\n"));
  EXPECT_THAT(got, testing::EndsWith("\r\n\r\nGET /page/a b?c=%20 of h, none"));
  EXPECT_THAT(ask("HEAD /page"),
              AllOf(HasSubstr("\r\nContent-Length: 22\r\n"), testing::EndsWith("\r\n\r\n")));
  for (const char* const method : {"PUT", "DELETE", "PATCH", "OPTIONS"})
    EXPECT_THAT(ask(std::string(method) + " /page/"), HasSubstr(std::string(method) + " /page/"));
  EXPECT_THAT(ask("POST /page/"), testing::StartsWith("HTTP/1.1 405 Method Not Allowed\r\n"));
  EXPECT_THAT(ask("GET /"), testing::EndsWith("\r\n\r\nGET /? of h, none"));
  EXPECT_THAT(ask("GET /pages"), testing::StartsWith("HTTP/1.1 404"));
  EXPECT_THAT(ask("GET /metrics"), testing::StartsWith("HTTP/1.1 200"));
}

TEST(ServedPageTest, ThereIsNoPageUnlessAskedFor) {
  const auto server = MetricsServer::Create("127.0.0.1:0", ServedMetrics());
  ASSERT_TRUE(server.ok()) << server.status();
  for (const char* const path : {"/", "/page", "/page/", "/page/data/status"})
    EXPECT_THAT(test::Scrape((*server)->port(), path), testing::StartsWith("HTTP/1.1 404")) << path;
}

TEST(ServedPageTest, IsScrapedWhileReadersOfThePageWait) {
  const auto page = std::make_shared<FakePage>();
  const auto server = MetricsServer::Create("127.0.0.1:0", ServedMetrics{.page = page});
  ASSERT_TRUE(server.ok()) << server.status();
  const int port = (*server)->port();
  std::vector<std::thread> readers;
  readers.reserve(8);
  for (int i = 0; i < 8; ++i)
    readers.emplace_back([port] { test::Scrape(port, "/page/slow"); });
  while (page->waiting < 8)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_THAT(test::Scrape(port), testing::StartsWith("HTTP/1.1 200"));
  page->go_on = true;
  page->go_on.notify_all();
  for (std::thread& reader : readers)
    reader.join();
}

}  // namespace
}  // namespace resmgr
