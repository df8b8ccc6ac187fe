// SPDX-License-Identifier: Apache-2.0
#include "pkg/page/page.h"

#include <optional>
#include <regex>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "pkg/admin/admin_service.h"
#include "pkg/admin/testing/served_node.h"
#include "pkg/page/web_files.h"

namespace resmgr {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;
using testing::Pair;
using testing::StartsWith;
using Json = nlohmann::json;

class PageTest : public test::ServedNode {
 protected:
  ~PageTest() override { page_.Close(); }

  static HttpRequest Get(const std::string& path, const std::string& query = "") {
    return {.method = "GET", .path = path, .query = query, .host = "127.0.0.1:8891"};
  }
  // Asks on a thread of its own, as the HTTP server does, while the loop runs.
  HttpAnswer Ask(const HttpRequest& request) {
    HttpAnswer answer;
    std::thread asks([&] {
      answer = page_.Answer(request);
      loop_.Stop();
    });
    RunLoop();
    asks.join();
    return answer;
  }
  HttpAnswer Data(const std::string& name, const std::string& query = "") {
    return Ask(Get("/page/data/" + name, query));
  }

  Page page_{{.methods = AdminMethods,
              .hosts = {"node7"},
              .limits = {.deadline = std::chrono::seconds(20)}}};
};

TEST_F(PageTest, ServesItsFilesBeforeThereIsData) {
  ASSERT_GE(WebFiles().size(), 10U);
  for (const WebFile& file : WebFiles()) {
    const HttpAnswer answer = page_.Answer(Get("/page/" + std::string(file.name)));
    EXPECT_EQ(answer.code, 200) << file.name;
    EXPECT_EQ(answer.body, file.content);
  }
  EXPECT_EQ(page_.Answer(Get("/page/")).body, page_.Answer(Get("/page/index.html")).body);
  EXPECT_THAT(page_.Answer(Get("/page/")).type, StartsWith("text/html"));
  EXPECT_THAT(page_.Answer(Get("/page/page.css")).type, StartsWith("text/css"));
  EXPECT_THAT(page_.Answer(Get("/page/page.js")).type, StartsWith("text/javascript"));
  EXPECT_EQ(page_.Answer(Get("/page/icon.svg")).type, "image/svg+xml");
  for (const char* const path : {"/", "/page"}) {
    const HttpAnswer root = page_.Answer(Get(path));
    EXPECT_EQ(root.code, 308);
    EXPECT_THAT(root.headers, Contains(Pair("Location", "/page/")));
  }
}

TEST_F(PageTest, EveryAnswerHasTheHeadersThatKeepABrowserWithinThePage) {
  HttpRequest post = Get("/page/");
  post.method = "POST";
  for (const HttpRequest& request : {Get("/page/"), Get("/page"), Get("/page/none"), post,
                                     Get("/page/data/status"), Get("/page/page.js")}) {
    const auto headers = page_.Answer(request).headers;
    EXPECT_THAT(headers, Contains(Pair("Content-Security-Policy",
                                       AllOf(StartsWith("default-src 'none'; script-src 'self'; "),
                                             HasSubstr("frame-ancestors 'none'"),
                                             Not(HasSubstr("unsafe")), Not(HasSubstr("http"))))));
    EXPECT_THAT(headers, Contains(Pair("X-Content-Type-Options", "nosniff")));
    EXPECT_THAT(headers, Contains(Pair("Referrer-Policy", "no-referrer")));
    EXPECT_THAT(headers, Contains(Pair("X-Frame-Options", "DENY")));
    EXPECT_THAT(headers, Contains(Pair("Cache-Control", "no-store")));
  }
}

// Names of pods become text; nothing is loaded from elsewhere; the policy allows nothing inline.
TEST_F(PageTest, FilesMakeNoMarkupOfTextAndNameNoOtherServer) {
  const std::regex markup(
      "innerHTML|outerHTML|insertAdjacentHTML|document\\.write|eval\\(|"
      "new Function|DOMParser|<style|style=|[ \n]on[a-z]+=");
  for (const WebFile& file : WebFiles()) {
    const std::string text(file.content);
    EXPECT_FALSE(std::regex_search(text, markup)) << file.name;
    // The name of a format, not an address.
    const std::string svg = "xmlns=\"http://www.w3.org/2000/svg\"";
    EXPECT_THAT(std::regex_replace(text, std::regex(svg), ""), Not(HasSubstr("://"))) << file.name;
  }
}

TEST_F(PageTest, WhatIsNotThereIs404) {
  page_.Open(View());
  for (const char* const path :
       {"/page/none", "/page/page.js/", "/page/web/page.js", "/page/../page/page.js", "/page//",
        "/page/data", "/page/data/", "/page/data/status/", "/page/data/Status", "/page/data/config",
        "/page/data/Uninstall", "/pages"}) {
    EXPECT_EQ(page_.Answer(Get(path)).code, 404) << path;
  }
}

TEST_F(PageTest, CanOnlyBeRead) {
  for (const char* const method : {"POST", "PUT", "DELETE", "PATCH", "OPTIONS", "get", ""}) {
    for (const char* const path : {"/page/", "/page/data/status", "/page/none"}) {
      HttpRequest request = Get(path);
      request.method = method;
      const HttpAnswer answer = page_.Answer(request);
      EXPECT_EQ(answer.code, 405) << method << path;
      EXPECT_THAT(answer.headers, Contains(Pair("Allow", "GET, HEAD")));
    }
  }
  HttpRequest head = Get("/page/");
  head.method = "HEAD";
  EXPECT_EQ(page_.Answer(head).code, 200);
}

TEST_F(PageTest, TellsWhatTheControlProgramShows) {
  page_.Open(View());
  const HttpAnswer status = Data("status");
  ASSERT_EQ(status.code, 200) << status.body;
  EXPECT_THAT(status.type, StartsWith("application/json"));
  EXPECT_EQ(Json::parse(status.body)["version"], "1.2");
  EXPECT_EQ(Json::parse(Data("topology").body)["cpus"].size(), 4U);
  for (const char* const list : {"containers", "pools", "history"})
    EXPECT_EQ(Json::parse(Data(list).body), Json::array()) << list;
}

TEST_F(PageTest, TellsTheNameOfTheNodeAndTheTime) {
  const HttpAnswer answer = page_.Answer(Get("/page/data/node"));
  ASSERT_EQ(answer.code, 200) << "without the loop, too";
  const Json node = Json::parse(answer.body);
  EXPECT_EQ(node["name"], HostName());
  EXPECT_THAT(node["time"].get<std::string>(), testing::MatchesRegex("20[0-9-]+T[0-9:.]+Z"));
}

TEST_F(PageTest, TellsHowBusyCpusAreWithoutTheContainersOnEach) {
  page_.Open(View());
  const Json busy = Json::parse(Data("busy").body);
  ASSERT_EQ(busy.size(), 4U);
  EXPECT_EQ(busy[0].dump(), R"({"busyPercent":null,"id":0,"state":"unassigned"})");
  for (const char* const use : {"top", "nodes"})
    EXPECT_EQ(Data(use).code, 503) << "use is not sampled";
}

TEST_F(PageTest, ExplainsTheContainerThatIsNamed) {
  SeenContainer seen;
  seen.pod.namespace_name = "shop";
  seen.pod.name = "web";
  seen.container.id = ContainerId("c1");
  seen.container.name = "main & more";
  seen_ = {seen};
  page_.Open(View());
  const HttpAnswer answer = Data("explain", "what=shop%2Fweb%2fmain%20%26%20more");
  ASSERT_EQ(answer.code, 200) << answer.body;
  EXPECT_EQ(Json::parse(answer.body)[0]["id"], "c1");
  EXPECT_EQ(Data("explain", "what=%ff%22").code, 404) << "no UTF-8";
}

TEST_F(PageTest, QuestionsThatSayNothingAreRefused) {
  page_.Open(View());
  EXPECT_EQ(Data("explain", "what=web").code, 404) << "the null policy places none";
  for (const std::string query : {"", "what=", "what", "who=a", "what=%", "what=%4", "what=%4g"})
    EXPECT_EQ(page_.Answer(Get("/page/data/explain", query)).code, 400) << query;
  EXPECT_EQ(page_.Answer(Get("/page/data/explain", "what=" + std::string(1025, 'a'))).code, 400);
}

TEST_F(PageTest, DataIsUnavailableWhileThereIsNoneToShow) {
  const HttpAnswer before = page_.Answer(Get("/page/data/status"));
  EXPECT_EQ(before.code, 503);
  EXPECT_THAT(before.headers, Contains(Pair("Retry-After", "1")));
  page_.Open(View());
  EXPECT_EQ(Data("status").code, 200);
  page_.Close();
  EXPECT_EQ(page_.Answer(Get("/page/data/pools")).code, 503);
}

TEST_F(PageTest, DataIsUnavailableWhileTheLoopStandsStill) {
  Page page{{.methods = AdminMethods, .limits = {.deadline = std::chrono::milliseconds(20)}}};
  page.Open(View());
  const HttpAnswer answer = page.Answer(Get("/page/data/status"));
  EXPECT_EQ(answer.code, 503);
  EXPECT_THAT(answer.body, HasSubstr("the event loop did not answer"));
  EXPECT_EQ(page.Answer(Get("/page/")).code, 200) << "the page itself needs no loop";
  page.Close();
}

TEST_F(PageTest, OtherSitesGetNoData) {
  page_.Open(View());
  HttpRequest request = Get("/page/data/status");
  for (const char* const site : {"cross-site", "same-site", "else"}) {
    request.fetch_site = site;
    EXPECT_EQ(page_.Answer(request).code, 403) << site;
  }
  for (const char* const site : {"same-origin", "none", ""}) {
    request.fetch_site = site;
    EXPECT_EQ(Ask(request).code, 200) << site;
  }
  request.host = "node7:8891";
  for (const char* const origin :
       {"http://evil.example", "null", "http://node7", "http://node7:8892"}) {
    request.origin = origin;
    EXPECT_EQ(page_.Answer(request).code, 403) << origin;
  }
  for (const char* const origin : {"http://node7:8891", "https://NODE7:8891", ""}) {
    request.origin = origin;
    EXPECT_EQ(Ask(request).code, 200) << origin;
  }
}

// To a browser, a site whose name is pointed here (DNS rebinding) would be the same origin.
TEST_F(PageTest, IsAskedByItsOwnNameOnly) {
  HttpRequest request = Get("/page/");
  for (const char* const host : {"10.0.0.7", "10.0.0.7:8891", "[::1]:8891", "[fe80::1]",
                                 "localhost", "LOCALHOST:1", "node7:8891", "Node7"}) {
    request.host = host;
    EXPECT_EQ(page_.Answer(request).code, 200) << host;
  }
  for (const char* const host :
       {"evil.example", "evil.example:8891", "", ":8891", "node7.evil.example",
        "10.0.0.7.evil.example", "[evil]", "1.2.3.4:5:6"}) {
    request.host = host;
    EXPECT_EQ(page_.Answer(request).code, 421) << host;
  }
  request.host = "evil\n\x1b[2J";
  EXPECT_THAT(page_.Answer(request).body, Not(HasSubstr("\x1b")));
}

TEST_F(PageTest, TheNamesOfANodeAreItsHostNameAndThatOfTheAddress) {
  const auto hosts = OwnHosts("Node.Example:8891");
  EXPECT_THAT(hosts, Contains("node.example"));
  EXPECT_THAT(OwnHosts(":8891"), Not(Contains("")));
}

}  // namespace
}  // namespace resmgr
