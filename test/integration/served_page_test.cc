// SPDX-License-Identifier: Apache-2.0
// The page for browsers of a real daemon, and the limits of its readers.
#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstdio>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <nlohmann/json.hpp>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "pkg/sys/unique_fd.h"
#include "test/integration/daemon_fixture.h"
#include "test/support/programs/programs.h"
#include "test/support/scrape/scrape.h"

namespace resmgr::test {
namespace {

using Clock = std::chrono::steady_clock;
using Json = nlohmann::json;
using testing::HasSubstr;
using testing::StartsWith;

class ServedPageTest : public DaemonTest {
 protected:
  static constexpr int kMostCpus = 512;

  ServedPageTest() : DaemonTest(kMostCpus) {}

  void StartWithPage(const std::vector<std::string>& more = {}) {
    StartRuntime();
    std::vector<std::string> flags =
        StaticFlags({"-metrics-address", "127.0.0.1:0", "-metrics-page"});
    flags.insert(flags.end(), more.begin(), more.end());
    StartDaemon(flags);
    if (HasFatalFailure()) return;
    ASSERT_TRUE(Logged("the runtime holds"));
    ReadPort();
  }
  void ReadPort() {
    constexpr std::string_view kBefore = "metrics are served on port ";
    ASSERT_TRUE(Logged(kBefore));
    const std::string log = daemon_->Log();
    const size_t at = log.find(kBefore) + kBefore.size();
    std::from_chars(log.data() + at, log.data() + log.size(), port_);
  }

  std::string Ask(const std::string& line, const std::string& headers = "") const {
    return Exchange(port_, line + " HTTP/1.1\r\nHost: localhost\r\n" + headers + "\r\n");
  }
  Json Data(const std::string& name) const {
    const std::string answer = Ask("GET /page/data/" + name);
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 200"));
    return Json::parse(answer.substr(answer.find("\r\n\r\n") + 4), nullptr, false);
  }
  // A client that has sent this, and reads nothing.
  UniqueFd Connect(std::string_view sent = "") const {
    UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    // Little is under way to it, as over a network: the server's buffer grows with the segments.
    const int buffer = 1;
    const int segment = 536;
    ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVBUF, &buffer, sizeof(buffer));
    ::setsockopt(fd.get(), IPPROTO_TCP, TCP_MAXSEG, &segment, sizeof(segment));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port_));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
    EXPECT_EQ(::send(fd.get(), sent.data(), sent.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(sent.size()));
    return fd;
  }
  static milliseconds Since(Clock::time_point start) {
    return std::chrono::duration_cast<milliseconds>(Clock::now() - start);
  }

  int port_ = 0;
};

TEST_F(ServedPageTest, IsThereOnlyWhereItIsAskedFor) {
  StartRuntime();
  StartDaemon(StaticFlags({"-metrics-address", "127.0.0.1:0"}));
  ASSERT_NE(daemon_, nullptr);
  ReadPort();
  EXPECT_THAT(Ask("GET /metrics"), StartsWith("HTTP/1.1 200"));
  for (const char* const path : {"/", "/page", "/page/", "/page/page.js", "/page/data/status"})
    EXPECT_THAT(Ask(std::string("GET ") + path), StartsWith("HTTP/1.1 404")) << path;
}

TEST_F(ServedPageTest, ShowsWhatRunsWhereAndWhy) {
  StartWithPage();
  CriClient client = Relayed();
  const Running running = Run(client, MakeGuaranteedPod("db"), MakeGuaranteedContainer("main", 2));
  const Json containers = Data("containers");
  ASSERT_EQ(containers.size(), 1U);
  EXPECT_EQ(containers[0]["id"], running.container);
  EXPECT_EQ(containers[0]["exclusive"], CpusAtRuntime(running.container).ToString());
  EXPECT_EQ(Data("topology")["cpus"].size(), 8U);
  EXPECT_EQ(Data("explain?what=default%2Fdb%2Fmain")[0]["settled"], true);
  EXPECT_EQ(Data("status")["policy"], "static");
  EXPECT_EQ(Data("history").back()["event"], "placed");
  EXPECT_EQ(Data("busy").size(), 8U);
  // The first answer takes two samples.
  ASSERT_TRUE(Eventually([&] { return Ask("GET /page/data/top").starts_with("HTTP/1.1 200"); }));
  EXPECT_TRUE(Data("nodes").is_array());
  EXPECT_EQ(Data("pools")[0]["name"].is_string(), true);
}

TEST_F(ServedPageTest, RefusesAllButReading) {
  StartWithPage();
  for (const char* const path : {"/", "/page"})
    EXPECT_THAT(Ask(std::string("GET ") + path), HasSubstr("\r\nLocation: /page/\r\n")) << path;
  EXPECT_THAT(Ask("GET /page/"), HasSubstr("\r\nContent-Security-Policy: default-src 'none'; "));
  EXPECT_THAT(Ask("HEAD /page/"), testing::EndsWith("\r\n\r\n"));
  for (const char* const path : {"/page/none", "/pages", "/page/data/config",
                                 "/page/data/uninstall", "/page/%2e%2e/metrics/none"})
    EXPECT_THAT(Ask(std::string("GET ") + path), StartsWith("HTTP/1.1 404")) << path;
  for (const char* const method : {"POST", "PUT", "DELETE", "PATCH"}) {
    const std::string line = std::string(method) + " /page/data/status";
    EXPECT_THAT(Ask(line, "Content-Length: 2\r\n\r\n{}"), StartsWith("HTTP/1.1 405")) << method;
  }
  EXPECT_THAT(Ask("GET /page/data/status", "Sec-Fetch-Site: cross-site\r\n"),
              StartsWith("HTTP/1.1 403"));
  EXPECT_THAT(Exchange(port_, "GET /page/ HTTP/1.1\r\nHost: evil.example\r\n\r\n"),
              StartsWith("HTTP/1.1 421"));
}

TEST_F(ServedPageTest, SilentClientsStopNeitherScrapesNorCalls) {
  constexpr size_t kSilent = 200;
  StartWithPage();
  std::vector<UniqueFd> silent;
  silent.reserve(kSilent);
  for (size_t i = 0; i < kSilent; ++i)
    silent.push_back(Connect(i % 2 == 0 ? "" : "GET /page/ HTTP/1.1\r\nHost: local"));
  CriClient client = Relayed();
  const auto start = Clock::now();
  EXPECT_THAT(Run(client, MakeGuaranteedPod("db"), MakeGuaranteedContainer("main", 2)).container,
              testing::Not(testing::IsEmpty()));
  EXPECT_LT(Since(start), kAtOnceAlone);
  EXPECT_THAT(Ask("GET /metrics"), StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(Ask("GET /page/"), StartsWith("HTTP/1.1 200"));
  EXPECT_LT(Since(start), 2 * kAtOnceAlone);
}

// Only the thread of the loop stands still, as after a bug or on an overloaded machine.
TEST_F(ServedPageTest, ALoopThatStandsStillStopsNeitherThePageNorScrapes) {
  StartWithPage();
  ASSERT_EQ(Data("containers").size(), 0U);
  ASSERT_EQ(::ptrace(PTRACE_SEIZE, pid(), nullptr, nullptr), 0);
  ASSERT_EQ(::ptrace(PTRACE_INTERRUPT, pid(), nullptr, nullptr), 0);
  int state = 0;
  ASSERT_EQ(::waitpid(pid(), &state, __WALL), pid());
  const auto start = Clock::now();
  std::vector<std::thread> readers;
  readers.reserve(20);
  for (int i = 0; i < 20; ++i) {
    readers.emplace_back([this, i] {
      const std::string number = std::to_string(i);
      EXPECT_THAT(Ask("GET /page/data/explain?what=pod" + number), StartsWith("HTTP/1.1 503"));
    });
  }
  EXPECT_THAT(Ask("GET /metrics"), StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(Ask("GET /page/"), StartsWith("HTTP/1.1 200"));
  for (std::thread& reader : readers)
    reader.join();
  EXPECT_LT(Since(start), kPatience);
  ASSERT_EQ(::ptrace(PTRACE_DETACH, pid(), nullptr, nullptr), 0);
  EXPECT_TRUE(Relayed().Call(kVersion, {""}).status.ok());
  EXPECT_TRUE(
      Eventually([&] { return Ask("GET /page/data/containers").starts_with("HTTP/1.1 200"); }));
}

// 512 CPUs and 500 containers.
class LargeNodeTest : public ServedPageTest {
 protected:
  void StartLarge() {
    StartWithPage({"-topology", "synthetic:package:2 numa:4 l3:2 core:16 pu:2"});
    CriClient client = Relayed();
    // Those with CPUs of their own first: each takes them from all others that run.
    for (size_t i = 0; i < kContainers; ++i) {
      const std::string name = "pod" + std::to_string(i);
      i < kContainers / 5 ? Run(client, MakeGuaranteedPod(name), MakeGuaranteedContainer("main", 2))
                          : Run(client, MakeBestEffortPod(name), MakeBestEffortContainer("main"));
    }
    ASSERT_EQ(Data("containers").size(), kContainers);
    ASSERT_EQ(Data("topology")["cpus"].size(), 512U);
  }

  static constexpr size_t kContainers = 500;
};

// The answers are larger than their connections' buffers, but they do not hold a thread.
TEST_F(LargeNodeTest, ClientsThatReadNothingStopNeitherScrapesNorCalls) {
  constexpr size_t kReaders = 24;
  StartLarge();
  std::vector<UniqueFd> readers;
  readers.reserve(kReaders);
  for (size_t i = 0; i < kReaders; ++i)
    readers.push_back(Connect("GET /page/data/containers HTTP/1.1\r\nHost: localhost\r\n\r\n"));
  const auto start = Clock::now();
  EXPECT_TRUE(Relayed().Call(kVersion, {""}).status.ok());
  EXPECT_LT(Since(start), kAtOnceAlone);
  EXPECT_THAT(Ask("GET /metrics"), StartsWith("HTTP/1.1 200"));
  EXPECT_LT(Since(start), 2 * kAtOnceAlone);
  std::printf("a scrape beside %zu clients that read nothing: %d ms\n", kReaders,
              static_cast<int>(Since(start).count()));
}

// One that reads a little now and then could go on for as long as it likes.
TEST_F(LargeNodeTest, AnAnswerThatIsReadSlowlyIsGivenUp) {
  StartLarge();
  const UniqueFd reader = Connect("GET /page/data/containers HTTP/1.1\r\nHost: localhost\r\n\r\n");
  const auto start = Clock::now();
  std::array<char, 2048> buffer{};
  size_t all = 0;
  ssize_t got = 0;
  // Reads a little at first, then the rest that the kernel still holds.
  while ((got = ::read(reader.get(), buffer.data(), buffer.size())) > 0) {
    all += static_cast<size_t>(got);
    if (Since(start) < seconds(10)) std::this_thread::sleep_for(milliseconds(200));
  }
  EXPECT_GT(all, buffer.size());
  EXPECT_LT(all, Ask("GET /page/data/containers").size()) << "it has had all";
  std::printf("read before it was given up: %zu bytes, in %d ms\n", all,
              static_cast<int>(Since(start).count()));
}

TEST_F(LargeNodeTest, ReadersDoNotDelayCalls) {
  StartLarge();
  CriClient client = Relayed();
  std::atomic<bool> stop = false;
  std::atomic<int> answers = 0;
  std::vector<std::thread> readers;
  for (const char* const name :
       {"status", "containers", "pools", "history", "topology", "top", "nodes", "busy"}) {
    readers.emplace_back([this, name, &stop, &answers] {
      while (!stop) {
        const std::string answer = Ask(std::string("GET /page/data/") + name);
        answers += answer.starts_with("HTTP/1.1 200") ? 1 : 0;
      }
    });
  }
  std::vector<milliseconds> times;
  for (int i = 0; i < (SanitizedPrograms() ? 11 : 51); ++i) {
    const auto start = Clock::now();
    EXPECT_TRUE(client.Call(kVersion, {""}).status.ok());
    times.push_back(Since(start));
    std::this_thread::sleep_for(milliseconds(20));
  }
  stop = true;
  for (std::thread& reader : readers)
    reader.join();
  std::ranges::sort(times);
  EXPECT_GE(answers, 5);
  if (!SanitizedPrograms()) {
    EXPECT_LT(times[times.size() / 2], milliseconds(50));
  }
  std::printf("%d answers of the page; a call meanwhile: median %d ms, worst %d ms\n",
              answers.load(), static_cast<int>(times[times.size() / 2].count()),
              static_cast<int>(times.back().count()));
}

TEST_F(ServedPageTest, EndsAtOnceWithReadersThatWait) {
  StartWithPage();
  const UniqueFd silent = Connect();
  daemon_->process().Signal(SIGTERM);
  const auto code = daemon_->process().Wait(2 * kAtOnceAlone);
  ASSERT_THAT(code, IsOk());
  EXPECT_EQ(*code, 0);
}

}  // namespace
}  // namespace resmgr::test
