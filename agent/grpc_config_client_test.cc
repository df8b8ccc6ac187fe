// SPDX-License-Identifier: Apache-2.0
#include "agent/grpc_config_client.h"

#include <chrono>
#include <string>

#include <gtest/gtest.h>

#include "pkg/sys/temp_dir.h"
#include "test/support/raw_http2/raw_http2.h"
#include "test/support/status_matchers.h"

namespace resmgr::agent {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr uint8_t kSettings = 4;
constexpr uint8_t kGoAway = 7;
constexpr char kSetConfig[] = "/v1.Config/SetConfig";
constexpr char kHealthCheck[] = "/grpc.health.v1.Health/Check";

// A daemon that ends while its answer is on its way: the agent reads the answer and the end of the
// connection in one piece, as a slow agent does. The next daemon may know nothing of the
// configuration.
TEST(GrpcConfigClientTest, TellsOfADaemonThatEndsWithItsAnswer) {
  TempDir directory;
  const std::string socket = directory.File("config.sock");
  const auto daemon = test::RawRuntime::Start(
      socket, {.answer =
                   [](uint32_t stream, const std::string& /*path*/) {
                     constexpr uint32_t kNoError = 0;
                     return test::Answer(stream, "") +
                            test::Frame(kGoAway, 0, 0,
                                        test::Number(stream) + test::Number(kNoError));
                   },
               .greeting = test::Frame(kSettings, 0, 0, "")});
  ASSERT_THAT(daemon, test::IsOk());

  EventLoop loop;
  h2::FlushQueue flushes(loop);
  GrpcConfigClient client(loop, flushes, {.socket = socket, .node = "n1"});
  StatusOr<std::string> verdict = Unavailable("no answer");
  bool lost = false;
  client.SetCallbacks({.lost =
                           [&] {
                             lost = true;
                             loop.Stop();
                           },
                       .silent = [](milliseconds) {},
                       .answers = [] {}});
  client.SetConfig({{"policy", "x"}}, [&](const StatusOr<std::string>& said) { verdict = said; });
  const auto limit = loop.After(seconds(10), [&loop] { loop.Stop(); });
  loop.Run();
  EXPECT_THAT(verdict, test::IsOk());
  EXPECT_TRUE(lost);
}

// A daemon that takes a configuration and answers nothing afterwards.
TEST(GrpcConfigClientTest, ASilentDaemonGetsOneProbeAndNoDelivery) {
  TempDir directory;
  const std::string socket = directory.File("config.sock");
  auto daemon = test::RawRuntime::Start(
      socket, {.answer =
                   [](uint32_t stream, const std::string& path) {
                     return path == kSetConfig ? test::Answer(stream, "") : std::string();
                   },
               .greeting = test::Frame(kSettings, 0, 0, "")});
  ASSERT_THAT(daemon, test::IsOk());

  EventLoop loop;
  h2::FlushQueue flushes(loop);
  GrpcConfigClient client(loop, flushes,
                          {.socket = socket,
                           .node = "n1",
                           .probe_interval = milliseconds(1),
                           .silence = milliseconds(5)});
  client.SetCallbacks(
      {.lost = [] {}, .silent = [&loop](milliseconds) { loop.Stop(); }, .answers = [] {}});
  client.SetConfig({{"policy", "x"}}, [](const StatusOr<std::string>&) {});
  loop.Run();
  StatusOr<std::string> verdict = "none";
  client.SetConfig({{"policy", "y"}}, [&](const StatusOr<std::string>& said) { verdict = said; });
  const auto later = loop.After(milliseconds(50), [&loop] { loop.Stop(); });
  loop.Run();
  EXPECT_EQ((*daemon)->Requests(kHealthCheck), 1);
  EXPECT_EQ((*daemon)->Requests(kSetConfig), 1);
  // A delivery that waits can be taken back, once.
  EXPECT_TRUE(client.TakeBack());
  EXPECT_FALSE(client.TakeBack());
  client.SetConfig({{"policy", "z"}}, [&](const StatusOr<std::string>& said) {
    verdict = said;
    loop.Stop();
  });
  // The daemon's end lets the delivery go on, although no other daemon listens.
  daemon->reset();
  loop.Run();
  EXPECT_EQ(verdict.status().code(), StatusCode::kUnavailable);
  EXPECT_FALSE(client.TakeBack()) << "it was sent";
}

}  // namespace
}  // namespace resmgr::agent
