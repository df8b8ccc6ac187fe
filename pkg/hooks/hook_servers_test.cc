// SPDX-License-Identifier: Apache-2.0
#include "pkg/hooks/hook_servers.h"

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include "pkg/sys/temp_dir.h"
#include "pkg/sys/unix_socket.h"
#include "test/support/captured_log.h"
#include "test/support/fake_hook_server/fake_hook_server.h"
#include "test/support/status_matchers.h"
#include "test/support/wait.h"

namespace resmgr::hooks {
namespace {

using resmgr::test::RunFor;
using resmgr::test::RunUntil;
using std::chrono::milliseconds;
using std::chrono::seconds;
using test::Fails;
using test::FakeHookServer;
using test::HasCode;
using test::IsOk;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Not;

constexpr HookPoint kUpdate = HookPoint::kPreUpdateContainerResources;

std::string Text(const std::string& endpoint, const std::string& more = "") {
  return R"({"remote-endpoint": ")" + endpoint +
         R"(", "runtime-hooks": ["PreUpdateContainerResources"])" + more + "}";
}

class HookServersTest : public testing::Test {
 protected:
  std::vector<std::string> Asked(HookPoint point) const {
    std::vector<std::string> files;
    for (const auto& server : servers_.ServersOf(point))
      files.push_back(server->settings().file);
    return files;
  }

  EventLoop loop_;
  h2::FlushQueue flushes_{loop_};
  HookServers servers_{loop_, flushes_, seconds(2)};
};

TEST_F(HookServersTest, AreAskedInTheOrderOfTheirFiles) {
  servers_.Update({{"b.json", Text("/run/b")}, {"a.json", Text("/run/a")}});
  EXPECT_THAT(Asked(kUpdate), ElementsAre("a.json", "b.json"));
  EXPECT_THAT(Asked(HookPoint::kPreRunPodSandbox), IsEmpty());
}

// Input K03, and the partial file while koordlet writes it in place.
TEST_F(HookServersTest, ABadVersionLeavesTheOneBeforeInForce) {
  servers_.Update({{"a.json", Text("/run/a")}, {"new.json", ""}});
  EXPECT_THAT(Asked(kUpdate), ElementsAre("a.json"));
  const auto before = servers_.All().front();
  for (const std::string bad : {"", "{", R"({"remote-endpoint": "x"})"}) {
    servers_.Update({{"a.json", bad}});
    ASSERT_THAT(Asked(kUpdate), ElementsAre("a.json")) << bad;
    EXPECT_EQ(servers_.All().front(), before);
  }
  servers_.Update({{"a.json", Unavailable("the disk does not answer")}});
  EXPECT_THAT(Asked(kUpdate), ElementsAre("a.json"));
  ASSERT_EQ(servers_.Outdated().size(), 1U);
  EXPECT_EQ(Message(servers_.Outdated().at("a.json")), "the disk does not answer");
  servers_.Update({{"a.json", Text("/run/a", R"(, "failure-policy": "Fail")")}});
  EXPECT_EQ(servers_.All().front()->settings().failure, FailurePolicy::kFail);
  EXPECT_THAT(servers_.Outdated(), IsEmpty());
}

TEST_F(HookServersTest, ABadVersionThatComesBackIsToldOnce) {
  const test::CapturedLog log;
  // koordlet writes its file in place at each start.
  for (size_t i = 0; i < 20; ++i) {
    servers_.Update({{"a.json", Text("/run/a", R"(, "unknown": 1)")}});
    servers_.Update({{"a.json", Text("/run/a").substr(0, 20 + i)}});
    servers_.Update({{"a.json", ""}});
    servers_.Update({{"b.json", ""}});
    servers_.Update({});
  }
  EXPECT_EQ(
      log.Times("hook file a.json is ignored; the former version stays in force: it is empty"), 1)
      << log.Text();
  EXPECT_EQ(log.Times("hook file a.json: "), 1 + 20) << "and each new server: " << log.Text();
  EXPECT_LE(log.Times("hook file a.json is ignored"), 8) << log.Text();
  EXPECT_EQ(log.Times("hook file b.json is ignored"), 1) << log.Text();
  servers_.Update({{"c.json", "{"}});
  EXPECT_EQ(log.Times("hook file c.json is ignored"), 1) << "another file";
}

TEST_F(HookServersTest, AnotherTimeoutCountsForFilesWithoutOne) {
  const std::vector<HookFileText> files = {{"a.json", Text("/run/a")},
                                           {"b.json", Text("/run/b", R"(, "timeout": "1s")")}};
  servers_.Update(files);
  const auto before = servers_.All();
  servers_.SetTimeout(seconds(7));
  servers_.Update(files);
  EXPECT_EQ(servers_.All()[0]->settings().timeout, seconds(7));
  EXPECT_EQ(servers_.All()[1]->settings().timeout, seconds(1));
  EXPECT_EQ(&servers_.All()[0]->connection(), &before[0]->connection());
}

TEST_F(HookServersTest, AFileThatIsGoneHasNoServer) {
  servers_.Update({{"a.json", Text("/run/a")}});
  const auto held = servers_.ServersOf(kUpdate);
  servers_.Update({});
  EXPECT_THAT(Asked(kUpdate), IsEmpty());
  // A call that has begun may still ask the former server.
  EXPECT_EQ(held.front()->settings().endpoint, "/run/a");
}

TEST_F(HookServersTest, AFileBeyondTheLimitRefusesWhereItSaysFail) {
  const std::string fails = Text("/run/z", R"(, "failure-policy": "Fail")");
  servers_.Update({{"a.json", Text("/run/a")}, {"z.json", fails}});
  ASSERT_THAT(Asked(kUpdate), ElementsAre("a.json", "z.json"));
  EXPECT_THAT(servers_.Unusable(), IsEmpty());
  // Another file precedes it now.
  servers_.Update({{"a.json", Text("/run/a")},
                   {"y.json", Text("/run/y"), /*beyond_limit=*/true},
                   {"z.json", fails, /*beyond_limit=*/true}});
  EXPECT_THAT(Asked(kUpdate), ElementsAre("a.json", "z.json"));
  EXPECT_EQ(servers_.All().size(), 1U);
  ASSERT_EQ(servers_.Unusable().size(), 2U);
  EXPECT_EQ(servers_.Unusable()[0]->settings().failure, FailurePolicy::kIgnore);
  EXPECT_EQ(servers_.Unusable()[1]->settings().failure, FailurePolicy::kFail);
  StatusOr<std::string> answer = std::string();
  const auto last = servers_.ServersOf(kUpdate).back();
  last->Ask(kUpdate, "", [&](StatusOr<std::string> failure) {
    answer = std::move(failure);
    loop_.Stop();
  });
  EXPECT_TRUE(answer.ok()) << "answers never come from within";
  loop_.Run();
  EXPECT_EQ(answer.status().code(), StatusCode::kUnavailable);
  EXPECT_THAT(std::string(Message(answer.status())), testing::HasSubstr("more than 64 hook files"));
  // The limit includes it again.
  servers_.Update({{"z.json", fails}});
  EXPECT_THAT(servers_.Unusable(), IsEmpty());
  EXPECT_EQ(servers_.All().size(), 1U);
}

TEST_F(HookServersTest, AFileThatCannotBeUsedRefusesWhereItSaysFail) {
  const std::string hooks = R"("runtime-hooks": ["PreUpdateContainerResources", "unknown", 1])";
  servers_.Update(
      {{"no-endpoint.json", R"({"failure-policy": "Fail", )" + hooks + "}"},
       {"bad-endpoint.json", R"({"remote-endpoint": 1, "failure-policy": "fail", )" + hooks + "}"},
       {"ignores.json", "{" + hooks + "}"},
       {"half.json", R"({"failure-policy": "Fail", "runtime-ho)"},
       {"unread.json", InvalidArgument("it is not a regular file")}});
  EXPECT_THAT(Asked(kUpdate), ElementsAre("bad-endpoint.json", "no-endpoint.json"));
  EXPECT_EQ(servers_.Unusable().size(), 5U);
  for (const auto& unusable : servers_.Unusable()) {
    const std::string& file = unusable->settings().file;
    EXPECT_EQ(unusable->settings().failure == FailurePolicy::kFail, file.ends_with("endpoint.json"))
        << file;
  }
  servers_.Update({{"half.json", Text("/run/a")}});
  EXPECT_THAT(servers_.Unusable(), IsEmpty());
}

TEST_F(HookServersTest, ConnectionsBelongToEndpoints) {
  servers_.Update({{"a.json", Text("/run/a")}, {"b.json", Text("/run//a")}});
  const auto first = servers_.All();
  EXPECT_EQ(&first[0]->connection(), &first[1]->connection());
  servers_.Update({{"a.json", Text("/run/a", R"(, "timeout": "1s")")}});
  EXPECT_EQ(servers_.All().front()->settings().timeout, seconds(1));
  EXPECT_EQ(&servers_.All().front()->connection(), &first[0]->connection());
  // The last file with this endpoint is renamed.
  servers_.Update({{"z.json", Text("/run/a")}});
  EXPECT_EQ(&servers_.All().front()->connection(), &first[0]->connection());
  servers_.Update({{"z.json", Text("/run/other")}});
  EXPECT_EQ(servers_.All().front()->connection().endpoint(), "/run/other");
}

class HookServerTest : public testing::Test {
 protected:
  using Answer = std::optional<StatusOr<std::string>>;

  std::unique_ptr<HookServer> NewServer(milliseconds timeout = seconds(10)) {
    HookServerSettings settings{.file = "x.json", .endpoint = socket_, .timeout = timeout};
    return std::make_unique<HookServer>(settings,
                                        std::make_shared<HookConnection>(loop_, flushes_, socket_));
  }

  std::shared_ptr<Answer> Ask(HookServer& server, HookPoint point, std::string request) {
    auto answer = std::make_shared<Answer>();
    server.Ask(point, std::move(request), [answer](StatusOr<std::string> got) {
      EXPECT_FALSE(answer->has_value());
      *answer = std::move(got);
    });
    EXPECT_FALSE(answer->has_value());
    return answer;
  }

  StatusOr<std::string> AskAndWait(HookServer& server, HookPoint point, std::string request) {
    const auto answer = Ask(server, point, std::move(request));
    EXPECT_TRUE(RunUntil(loop_, [&] { return answer->has_value(); }));
    return answer->value_or(Internal("no answer"));
  }

  const TempDir directory_;
  const std::string socket_ = directory_.File("h.sock");
  EventLoop loop_;
  h2::FlushQueue flushes_{loop_};
};

constexpr HookPoint kCreate = HookPoint::kPreCreateContainer;
constexpr HookPoint kStop = HookPoint::kPostStopContainer;

TEST_F(HookServerTest, AsksAndCounts) {
  FakeHookServer fake(socket_);
  fake.Answer(kCreate, [](const std::string& request) { return request + "!"; });
  const auto server = NewServer();
  EXPECT_THAT(AskAndWait(*server, kCreate, "one"), StatusOr<std::string>("one!"));
  EXPECT_THAT(fake.Calls(kCreate), ElementsAre("one"));
  const PluginStats& stats = server->connection().stats();
  EXPECT_EQ(stats.calls(), 1u);
  EXPECT_EQ(stats.failures(), 0u);
  EXPECT_GT(stats.MedianMicros(), 0u);
}

TEST_F(HookServerTest, ARefusalIsTheServersOwn) {
  FakeHookServer fake(socket_);
  fake.Answer(kCreate, [](const std::string&) { return InvalidArgument("no such pod"); });
  const auto server = NewServer();
  EXPECT_THAT(AskAndWait(*server, kCreate, ""), Fails(StatusCode::kInvalidArgument, "no such pod"));
  EXPECT_EQ(server->connection().stats().failures(), 1u);
  EXPECT_THAT(server->connection().stats().last_error(), testing::HasSubstr("no such pod"));
}

TEST_F(HookServerTest, AHangDelaysNoOtherCall) {
  FakeHookServer fake(socket_);
  fake.Hang(kCreate);
  const auto server = NewServer(milliseconds(2'000));
  const auto hanging = Ask(*server, kCreate, "");
  EXPECT_THAT(AskAndWait(*server, kStop, ""), IsOk());
  EXPECT_FALSE(hanging->has_value());
  ASSERT_TRUE(RunUntil(loop_, [&] { return hanging->has_value(); }));
  EXPECT_THAT(**hanging, HasCode(StatusCode::kDeadlineExceeded));
  EXPECT_EQ(server->connection().stats().failures(), 1u);
}

TEST_F(HookServerTest, ACallHasItsWholeTimeout) {
  FakeHookServer fake(socket_);
  fake.Hang(kCreate);
  const milliseconds timeout(3);
  const auto server = NewServer(timeout);
  ASSERT_TRUE(RunUntil(loop_, [&] { return server->connection().connected(); }));
  for (int round = 0; round < 5; ++round) {
    const auto begin = EventLoop::Clock::now();
    server->Ask(kCreate, "", [&](const StatusOr<std::string>& answer) {
      EXPECT_GE(EventLoop::Clock::now() - begin, timeout);
      EXPECT_THAT(answer, HasCode(StatusCode::kDeadlineExceeded));
      loop_.Stop();
    });
    loop_.Run();
  }
}

TEST_F(HookServerTest, WithoutAServerCallsFailBeforeTheirDeadline) {
  const auto server = NewServer(seconds(60));
  EXPECT_THAT(AskAndWait(*server, kCreate, ""), HasCode(StatusCode::kUnavailable));
}

// Input K10. No call is made meanwhile, so that only the connection itself can come back.
TEST_F(HookServerTest, ARestartedServerIsConnectedSoon) {
  auto fake = std::make_unique<FakeHookServer>(socket_);
  const auto server = NewServer();
  ASSERT_THAT(AskAndWait(*server, kCreate, ""), IsOk());
  fake.reset();
  ASSERT_TRUE(RunUntil(loop_, [&] { return !server->connection().connected(); }));
  // Long enough for the longest pause.
  RunFor(loop_, seconds(3));
  fake = std::make_unique<FakeHookServer>(socket_);
  EXPECT_TRUE(RunUntil(
      loop_, [&] { return server->connection().connected(); },
      HookConnection::kLongestPause + seconds(9)));
}

TEST_F(HookServerTest, ACallDoesNotWaitForTheNextTry) {
  auto fake = std::make_unique<FakeHookServer>(socket_);
  const auto server = NewServer();
  ASSERT_THAT(AskAndWait(*server, kCreate, ""), IsOk());
  fake.reset();
  RunFor(loop_, milliseconds(500));
  fake = std::make_unique<FakeHookServer>(socket_);
  EXPECT_THAT(AskAndWait(*server, kCreate, ""), IsOk());
}

TEST_F(HookServerTest, AnAnswerThatIsTooLongFailsOnlyItsCall) {
  FakeHookServer fake(socket_);
  fake.Answer(kCreate,
              [](const std::string&) { return std::string(HookConnection::kMaxAnswer + 1, 'x'); });
  const auto server = NewServer();
  const auto other = Ask(*server, kStop, "");
  EXPECT_THAT(AskAndWait(*server, kCreate, ""), HasCode(StatusCode::kResourceExhausted));
  ASSERT_TRUE(RunUntil(loop_, [&] { return other->has_value(); }));
  EXPECT_THAT(**other, IsOk());
  fake.Answer(kCreate,
              [](const std::string&) { return std::string(HookConnection::kMaxAnswer, 'x'); });
  EXPECT_THAT(AskAndWait(*server, kCreate, ""), IsOk());
}

TEST_F(HookServerTest, AnswersOfServersThatAreGoneAreDropped) {
  FakeHookServer fake(socket_);
  auto server = NewServer();
  const auto connection = std::make_shared<HookConnection>(loop_, flushes_, socket_);
  server = std::make_unique<HookServer>(server->settings(), connection);
  const auto answer = Ask(*server, kCreate, "");
  server.reset();
  ASSERT_TRUE(RunUntil(loop_, [&] { return connection->stats().calls() == 1; }));
  EXPECT_FALSE(answer->has_value());
}

// A listener on the test's own loop, which sends each client the same bytes.
class HookServerPeerTest : public HookServerTest {
 protected:
  void Listen(const std::string& bytes) {
    auto listener = ListeningSocket::Create(socket_);
    ASSERT_THAT(listener, IsOk());
    listener_.emplace(*std::move(listener));
    watch_ = loop_.Watch(listener_->fd(), EventLoop::kReadable, [this, bytes](int) {
      auto client = listener_->Accept();
      if (!client.ok() || !client->has_value()) return;
      ASSERT_EQ(::send((*client)->get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
                static_cast<ssize_t>(bytes.size()));
      clients_.push_back(**std::move(client));
    });
  }

  std::optional<ListeningSocket> listener_;
  EventLoop::HandlePtr watch_;
  std::vector<UniqueFd> clients_;
};

TEST_F(HookServerPeerTest, GarbageFailsTheCallsOfItsConnection) {
  Listen("HTTP/1.1 400 Bad Request\r\n\r\n");
  const auto server = NewServer(milliseconds(500));
  EXPECT_THAT(AskAndWait(*server, kCreate, ""), Not(IsOk()));
  // Every connection ends like this; the next try comes after a pause.
  const size_t before = clients_.size();
  RunFor(loop_, milliseconds(500));
  EXPECT_LE(clients_.size(), before + 6);
}

TEST_F(HookServerPeerTest, WaitingCallsAreBounded) {
  Listen("");
  const auto server = NewServer(seconds(60));
  std::vector<std::shared_ptr<Answer>> waiting;
  for (size_t i = 0; i < HookConnection::kMostCalls; ++i)
    waiting.push_back(Ask(*server, kCreate, ""));
  EXPECT_THAT(AskAndWait(*server, kCreate, ""),
              Fails(StatusCode::kUnavailable, testing::HasSubstr("wait already")));
  for (const auto& answer : waiting)
    EXPECT_FALSE(answer->has_value());
}

}  // namespace
}  // namespace resmgr::hooks
