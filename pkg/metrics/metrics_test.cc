// SPDX-License-Identifier: Apache-2.0
#include "pkg/metrics/metrics.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <prometheus/collectable.h>
#include <prometheus/text_serializer.h>
#include <sys/socket.h>

#include "pkg/metrics/metrics_server.h"
#include "pkg/sys/unique_fd.h"
#include "test/support/scrape/scrape.h"
#include "test/support/status_matchers.h"

namespace resmgr {
namespace {

using test::Must;
using testing::HasSubstr;
using testing::Not;

constexpr std::string_view kVersion = "/runtime.v1.RuntimeService/Version";
constexpr std::string_view kCreate = "/runtime.v1.RuntimeService/CreateContainer";

size_t Threads() {
  return static_cast<size_t>(std::distance(std::filesystem::directory_iterator("/proc/self/task"),
                                           std::filesystem::directory_iterator()));
}

class MetricsTest : public testing::Test {
 protected:
  // The text of a scrape.
  std::string Text() const {
    return prometheus::TextSerializer().Serialize(metrics_.collectable()->Collect());
  }

  Metrics metrics_{"1.2.3", {std::string(kVersion), std::string(kCreate)}};
};

TEST_F(MetricsTest, CountsCallsByMethodKindAndCode) {
  metrics_.Calls(kVersion, Metrics::CallKind::kPassthrough).Count(0);
  metrics_.Calls(kVersion, Metrics::CallKind::kPassthrough).Count(0);
  metrics_.Calls(kCreate, Metrics::CallKind::kIntercepted).Count(8);
  const std::string answer = Text();
  EXPECT_THAT(answer, HasSubstr("cri_resmgr_calls_total{code=\"OK\",kind=\"passthrough\","
                                "method=\"Version\",service=\"runtime.v1.RuntimeService\"} 2"));
  EXPECT_THAT(answer, HasSubstr("{code=\"RESOURCE_EXHAUSTED\",kind=\"intercepted\","
                                "method=\"CreateContainer\""));
}

TEST_F(MetricsTest, TimesOfBothKindsAreInOneHistogram) {
  using std::chrono::milliseconds;
  metrics_.Calls(kVersion, Metrics::CallKind::kPassthrough).Took(milliseconds(2), milliseconds(70));
  metrics_.Calls(kVersion, Metrics::CallKind::kIntercepted).Took(milliseconds(2), milliseconds(0));
  metrics_.CountInFlight(1);
  const std::string answer = Text();
  EXPECT_THAT(answer, HasSubstr("cri_resmgr_call_seconds_count{method=\"Version\",part=\"ours\","
                                "service=\"runtime.v1.RuntimeService\"} 2"));
  EXPECT_THAT(answer,
              HasSubstr("part=\"runtime\",service=\"runtime.v1.RuntimeService\",le=\"0.025\"} 1"));
  EXPECT_THAT(answer, HasSubstr("cri_resmgr_calls_in_flight 1"));
}

TEST_F(MetricsTest, UnknownMethodsAreCountedAsOne) {
  for (int i = 0; i < 1000; ++i) {
    metrics_.Calls("/evil.Service/Method" + std::to_string(i), Metrics::CallKind::kPassthrough)
        .Count(12);
  }
  const std::string answer = Text();
  EXPECT_THAT(answer, HasSubstr("{code=\"UNIMPLEMENTED\",kind=\"passthrough\",method=\"other\","
                                "service=\"other\"} 1000"));
  EXPECT_THAT(answer, Not(HasSubstr("evil")));
}

TEST_F(MetricsTest, CodesThatGrpcDoesNotHaveAreUnknown) {
  CallCounter& calls = metrics_.Calls(kVersion, Metrics::CallKind::kPassthrough);
  calls.Count(-1);
  calls.Count(17);
  EXPECT_THAT(Text(), HasSubstr("{code=\"UNKNOWN\",kind=\"passthrough\",method=\"Version\","
                                "service=\"runtime.v1.RuntimeService\"} 2"));
}

TEST_F(MetricsTest, CounterOfAMethodStaysTheSame) {
  EXPECT_EQ(&metrics_.Calls(kVersion, Metrics::CallKind::kPassthrough),
            &metrics_.Calls(kVersion, Metrics::CallKind::kPassthrough));
  EXPECT_NE(&metrics_.Calls(kVersion, Metrics::CallKind::kPassthrough),
            &metrics_.Calls(kVersion, Metrics::CallKind::kIntercepted));
}

TEST_F(MetricsTest, CountsWhatStagesAndPluginsDo) {
  metrics_.CountDroppedPlacement("nri");
  metrics_.CountIgnoredFailure("hook");
  metrics_.CountIgnoredFailure("hook");
  PluginCounter& plugin = metrics_.Plugin("nri", "10-logger");
  EXPECT_EQ(&metrics_.Plugin("nri", "10-logger"), &plugin);
  EXPECT_NE(&metrics_.Plugin("hook", "10-logger"), &plugin);
  plugin.Answered(std::chrono::milliseconds(3));
  plugin.Failed();
  metrics_.SetReadyPlugins("nri", 2);
  const std::string answer = Text();
  for (const char* const line : {
           "cri_resmgr_dropped_placements_total{stage=\"nri\"} 1",
           "cri_resmgr_ignored_failures_total{stage=\"hook\"} 2",
           "cri_resmgr_plugin_call_seconds_count{kind=\"nri\",plugin=\"10-logger\"} 1",
           "cri_resmgr_plugin_call_seconds_sum{kind=\"nri\",plugin=\"10-logger\"} 0.003",
           "cri_resmgr_plugin_failures_total{kind=\"nri\",plugin=\"10-logger\"} 1",
           "cri_resmgr_plugins_ready{kind=\"nri\"} 2",
       }) {
    EXPECT_THAT(answer, HasSubstr(line));
  }
}

TEST_F(MetricsTest, TooManyPluginsAreCountedAsOne) {
  for (int i = 0; i < 1000; ++i)
    metrics_.Plugin("nri", "10-x" + std::to_string(i)).Failed();
  PluginCounter& other = metrics_.Plugin("nri", "10-x999");
  EXPECT_EQ(&metrics_.Plugin("nri", "10-yet-another"), &other);
  EXPECT_NE(&metrics_.Plugin("nri", "10-x0"), &other) << "those that were known stay";
  const std::string answer = Text();
  EXPECT_THAT(answer, HasSubstr("{kind=\"nri\",plugin=\"other\"} 744"));
  EXPECT_THAT(answer, Not(HasSubstr("10-x999")));
}

TEST_F(MetricsTest, EveryEventHasItsOwnCounter) {
  using Event = Metrics::Event;
  uint64_t times = 1;
  for (const Event event :
       {Event::kDecisionOk, Event::kDecisionRefused, Event::kUpdatePushed, Event::kUpdateFailed,
        Event::kStartWaited, Event::kStartRefused, Event::kDumpDropped, Event::kStartLetThrough,
        Event::kCpusetOverridden}) {
    metrics_.Count(event, times++);
  }
  const std::string answer = Text();
  for (const char* line :
       {"policy_decisions_total{result=\"ok\"} 1", "policy_decisions_total{result=\"refused\"} 2",
        "container_updates_total{result=\"pushed\"} 3",
        "container_updates_total{result=\"failed\"} 4", "held_starts_total{result=\"waited\"} 5",
        "held_starts_total{result=\"refused\"} 6", "dump_dropped_total 7",
        "held_starts_total{result=\"let_through\"} 8", "overridden_cpusets_total 9"}) {
    EXPECT_THAT(answer, HasSubstr(std::string("\ncri_resmgr_") + line));
  }
}

TEST_F(MetricsTest, ConnectionsGoUpAndDown) {
  metrics_.SetConnections(Metrics::Peer::kClient, 3);
  metrics_.SetConnections(Metrics::Peer::kRuntime, 1);
  metrics_.SetConnections(Metrics::Peer::kClient, 2);
  const std::string answer = Text();
  EXPECT_THAT(answer, HasSubstr("cri_resmgr_connections{peer=\"client\"} 2"));
  EXPECT_THAT(answer, HasSubstr("cri_resmgr_connections{peer=\"runtime\"} 1"));
  EXPECT_THAT(answer, HasSubstr("cri_resmgr_connections{peer=\"image\"} 0"));
}

TEST_F(MetricsTest, BytesAreSumsOfEachPeer) {
  metrics_.Bytes(Metrics::Peer::kClient).Received(100);
  metrics_.Bytes(Metrics::Peer::kClient).Received(23);
  metrics_.Bytes(Metrics::Peer::kRuntime).Sent(7);
  const std::string answer = Text();
  const std::string name = "cri_resmgr_connection_bytes_total";
  EXPECT_THAT(answer, HasSubstr(name + "{direction=\"received\",peer=\"client\"} 123"));
  EXPECT_THAT(answer, HasSubstr(name + "{direction=\"sent\",peer=\"client\"} 0"));
  EXPECT_THAT(answer, HasSubstr(name + "{direction=\"sent\",peer=\"runtime\"} 7"));
  EXPECT_THAT(answer, HasSubstr(name + "{direction=\"sent\",peer=\"image\"} 0"));
}

TEST_F(MetricsTest, CountsCallsWhileScraped) {
  constexpr int kCalls = 20'000;
  std::atomic<bool> done = false;
  std::thread counting([this, &done] {
    CallCounter& calls = metrics_.Calls(kVersion, Metrics::CallKind::kPassthrough);
    for (int i = 0; i < kCalls; ++i) {
      metrics_.CountInFlight(1);
      calls.Count(i % 2);
      calls.Took(std::chrono::microseconds(i), std::chrono::microseconds(1));
      metrics_.CountInFlight(-1);
    }
    done = true;
  });
  while (!done)
    EXPECT_THAT(Text(), HasSubstr("build_info"));
  counting.join();
  const std::string answer = Text();
  EXPECT_THAT(answer, HasSubstr("{code=\"OK\",kind=\"passthrough\",method=\"Version\","
                                "service=\"runtime.v1.RuntimeService\"} 10000"));
  EXPECT_THAT(answer, HasSubstr("part=\"ours\",service=\"runtime.v1.RuntimeService\"} 20000"));
  EXPECT_THAT(answer, HasSubstr("cri_resmgr_calls_in_flight 0"));
}

TEST_F(MetricsTest, EveryTimeIsInItsBucket) {
  using std::chrono::microseconds;
  CallCounter& calls = metrics_.Calls(kVersion, Metrics::CallKind::kPassthrough);
  for (const auto time :
       {microseconds(10), microseconds(11), microseconds(120'000'000), microseconds(120'000'001)}) {
    calls.Took(time, microseconds(0));
  }
  const std::string answer = Text();
  const std::string ours =
      "cri_resmgr_call_seconds_bucket{method=\"Version\",part=\"ours\","
      "service=\"runtime.v1.RuntimeService\",le=";
  EXPECT_THAT(answer, HasSubstr(ours + "\"1e-05\"} 1\n")) << "a bound belongs to its bucket";
  EXPECT_THAT(answer, HasSubstr(ours + "\"2.5e-05\"} 2\n"));
  EXPECT_THAT(answer, HasSubstr(ours + "\"20\"} 2\n"));
  EXPECT_THAT(answer, HasSubstr(ours + "\"120\"} 3\n"));
  EXPECT_THAT(answer, HasSubstr(ours + "\"+Inf\"} 4\n"));
  EXPECT_THAT(answer, HasSubstr("part=\"ours\",service=\"runtime.v1.RuntimeService\"} 240.000022"));
}

TEST_F(MetricsTest, ServesOverHttpAndHasThreadsOnlyMeanwhile) {
  // ThreadSanitizer adds a thread of its own to the first one that a process starts.
  std::thread([] {}).join();
  const size_t before = Threads();
  {
    const auto server = Must(MetricsServer::Create("127.0.0.1:0", metrics_));
    EXPECT_GT(Threads(), before);
    const std::string answer = test::Scrape(server->port());
    EXPECT_THAT(answer, testing::StartsWith("HTTP/1.1 200"));
    EXPECT_THAT(answer, HasSubstr("cri_resmgr_build_info{version=\"1.2.3\"} 1"));
  }
  EXPECT_EQ(Threads(), before);
}

TEST_F(MetricsTest, EndsAtOnce) {
  for (const std::string_view address : {"127.0.0.1:0", ":0", "localhost:0"}) {
    // A wait would delay each end, a busy machine delays some.
    auto quickest = std::chrono::steady_clock::duration::max();
    for (int i = 0; i < 5; ++i) {
      auto server = Must(MetricsServer::Create(address, metrics_));
      // After this answer the server's thread waits again.
      EXPECT_THAT(test::Scrape(server->port()), testing::StartsWith("HTTP/1.1 200"));
      const auto start = std::chrono::steady_clock::now();
      server.reset();
      quickest = std::min(quickest, std::chrono::steady_clock::now() - start);
    }
    EXPECT_LT(quickest, std::chrono::milliseconds(500)) << address;
  }
}

// Half of the clients have sent a part of a request.
TEST_F(MetricsTest, SilentClientsDelayNoScrape) {
  const auto server = Must(MetricsServer::Create("127.0.0.1:0", metrics_));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(server->port()));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  std::vector<UniqueFd> silent;
  for (int i = 0; i < 200; ++i) {
    silent.emplace_back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(::connect(silent.back().get(), reinterpret_cast<const sockaddr*>(&address),
                        sizeof(address)),
              0);
    if (i % 2 == 0) continue;
    ASSERT_GT(::send(silent.back().get(), "GET /metrics HTTP", 17, MSG_NOSIGNAL), 0);
  }
  auto quickest = std::chrono::steady_clock::duration::max();
  for (int i = 0; i < 5; ++i) {
    const auto start = std::chrono::steady_clock::now();
    EXPECT_THAT(test::Scrape(server->port()), testing::StartsWith("HTTP/1.1 200"));
    quickest = std::min(quickest, std::chrono::steady_clock::now() - start);
  }
  EXPECT_LT(quickest, std::chrono::seconds(1));
}

TEST_F(MetricsTest, AddressInUseIsUnavailable) {
  const auto first = Must(MetricsServer::Create("127.0.0.1:0", metrics_));
  const std::string address = "127.0.0.1:" + std::to_string(first->port());
  const auto second = MetricsServer::Create(address, metrics_);
  EXPECT_EQ(second.status().code(), StatusCode::kUnavailable);
  EXPECT_THAT(std::string(Message(second.status())), HasSubstr(address));
}

TEST_F(MetricsTest, OnlyNamesNeedALookUp) {
  for (const char* const address : {":1", "127.0.0.1:1", "[::1]:1", "::1:1", "nonsense"})
    EXPECT_FALSE(NeedsLookUp(address)) << address;
  for (const char* const address : {"localhost:1", "node7.example:1", "1.2.3:1"})
    EXPECT_TRUE(NeedsLookUp(address)) << address;
}

TEST_F(MetricsTest, WhatIsNoAddressIsRefused) {
  for (const std::string_view address : {"", "8080", "127.0.0.1", "127.0.0.1:", "127.0.0.1:70000",
                                         "127.0.0.1:80s", "127.0.0.1:1,127.0.0.1:2", "+80:80"}) {
    EXPECT_EQ(MetricsServer::Create(address, metrics_).status().code(),
              StatusCode::kInvalidArgument)
        << address;
  }
}

}  // namespace
}  // namespace resmgr
