// SPDX-License-Identifier: Apache-2.0
#include "pkg/docker/docker_front.h"

#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <prometheus/collectable.h>
#include <prometheus/metric_family.h>

#include "pkg/docker/call_watch.h"
#include "pkg/docker/interception.h"
#include "pkg/docker/proxy.h"
#include "pkg/docker/testing/client_end.h"
#include "pkg/docker/testing/fake_engine.h"
#include "pkg/pipeline/testing/function_stage.h"
#include "pkg/sys/clock.h"
#include "pkg/sys/temp_dir.h"
#include "test/support/wait.h"

namespace resmgr::docker {
namespace {

using resmgr::test::Eventually;
using resmgr::test::FunctionStage;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr const char* kId = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
constexpr const char* kContainer =
    R"({"Labels":{"io.kubernetes.sandbox.id":"s1","io.kubernetes.container.name":"main"},)"
    R"("HostConfig":{"CpuShares":512}})";

// A proxy with the front on a loop of its own, a fake dockerd behind it, and a stage that decides.
class DockerFrontTest : public testing::Test {
 protected:
  ~DockerFrontTest() override {
    loop_.Stop();
    thread_.join();
    proxy_.reset();
    front_.reset();
    // The dumper's thread writes into dumped_.
    (void)dumper_->Close(std::chrono::seconds(10));
  }

  void Start(FakeEngine::Answer answer, Others others = Others::kPass) {
    engine_.emplace(dir_.File("engine.sock"), std::move(answer));
    front_.emplace(loop_, pipeline_, dir_.File("engine.sock"), others);
    proxy_.emplace(loop_, *ListeningSocket::Create(dir_.File("proxy.sock")),
                   Proxy::Options{.engine_socket = dir_.File("engine.sock"),
                                  .body_timeout = body_timeout_,
                                  .orphan_timeout = std::chrono::milliseconds(200)},
                   &*front_, &watch_);
    pipeline_.Add(stage_);
    stage_.after = [this](FunctionStage::TestCall&, const Outcome& outcome) {
      const std::lock_guard lock(mutex_);
      outcomes_.push_back(!outcome.known
                              ? "unknown"
                              : std::to_string(outcome.code) + " " + std::string(outcome.id));
    };
    thread_ = std::thread([this] { loop_.Run(); });
  }
  std::vector<std::string> outcomes() {
    const std::lock_guard lock(mutex_);
    return outcomes_;
  }

  End Client() const { return End(*ConnectUnix(dir_.File("proxy.sock"))); }
  // A client that has sent the request.
  End Asking(const std::string& request) const {
    End client = Client();
    client.Send(request);
    return client;
  }
  // The received part of the reply.
  std::string Ask(const std::string& request) const {
    return Asking(request).Receive(std::string::npos, /*pause=*/300);
  }
  // Lets a request pass that was held. A whole turn of the loop begins before, and sees a client's
  // end.
  void PassAfterATurn(std::optional<LateAnswer>& answer) {
    const auto on_loop = [this](const std::function<void()>& task) {
      std::promise<void> done;
      loop_.Post([&] {
        task();
        done.set_value();
      });
      done.get_future().wait();
    };
    for (int i = 0; i < 2; ++i)
      on_loop([] {});
    on_loop([&answer] {
      answer->Pass();
      answer.reset();
    });
  }
  static std::string Post(const std::string& target, const std::string& body) {
    return "POST " + target +
           " HTTP/1.1\r\nHost: d\r\nX-Keep: me\r\nContent-Length: " + std::to_string(body.size()) +
           "\r\n\r\n" + body;
  }
  // Ends the proxy and the dumper, and returns the output.
  std::string Dumped() {
    loop_.Stop();
    thread_.join();
    proxy_.reset();
    thread_ = std::thread([] {});
    EXPECT_TRUE(dumper_->Close(std::chrono::seconds(10)));
    const std::lock_guard lock(log_mutex_);
    return dumped_;
  }
  // The value of calls_total for this method and code.
  double Counted(const std::string& method, const std::string& code) {
    double count = 0;
    for (const auto& family : metrics_.collectable()->Collect()) {
      if (family.name != "cri_resmgr_calls_total") continue;
      for (const auto& metric : family.metric) {
        bool same = true;
        for (const auto& label : metric.label) {
          same = same && (label.name != "method" || label.value == method) &&
                 (label.name != "code" || label.value == code);
        }
        if (same) count += metric.counter.value;
      }
    }
    return count;
  }
  void Decide(FunctionStage::BeforeFunction before) { stage_.before = std::move(before); }
  void DecideCpu1() {
    Decide([](FunctionStage::TestCall& call, Request&, const Adjustment&) {
      call.Adjust(ResourceValues{.cpus = *CpuSet::Parse("1")});
    });
  }

  TempDir dir_;
  EventLoop loop_;
  LoopClock clock_{loop_};
  Pipeline pipeline_{clock_};
  Metrics metrics_{"1.0", KnownCallPaths()};
  std::mutex log_mutex_;
  std::string dumped_;
  std::unique_ptr<dump::Dumper> dumper_ =
      *dump::Dumper::Create({.specs = {"reset,full:.*"}}, [this](bool, std::string_view line) {
        const std::lock_guard lock(log_mutex_);
        dumped_.append(line).append("\n");
      });
  CallWatch watch_{&metrics_, dumper_.get()};
  std::chrono::milliseconds body_timeout_{60'000};
  FunctionStage stage_{{.name = "test", .operations = OperationSet::All()}};
  std::mutex mutex_;
  std::vector<std::string> outcomes_;
  std::optional<FakeEngine> engine_;
  std::optional<DockerFront> front_;
  std::optional<Proxy> proxy_;
  std::thread thread_;
};

// The inspection of a container with these labels, which are members of a JSON object.
std::string Inspected(std::string_view labels, std::string_view id = kId) {
  return JsonReply(200, fmt::format(R"({{"Id":"{}","Config":{{"Labels":{{{}}}}}}})", id, labels));
}

FakeEngine::Answer Created() {
  return [](const FakeEngine::Request&) {
    return JsonReply(201, std::string(R"({"Id":")") + kId + R"(","Warnings":[]})");
  };
}

TEST_F(DockerFrontTest, ACreationGetsWhatIsDecided) {
  Decide([](FunctionStage::TestCall& call, Request& request, const Adjustment&) {
    EXPECT_EQ(request.operation(), Operation::kCreateContainer);
    EXPECT_EQ(request.pod_id, PodSandboxId("s1"));
    EXPECT_EQ(request.create()->name, "main");
    EXPECT_EQ(request.create()->attempt, 2U);
    EXPECT_EQ(request.create()->resources.cpu_shares, 512);
    EXPECT_EQ(request.ReadPod()->name, "web");
    call.Adjust(ResourceValues{.cpus = *CpuSet::Parse("1")});
  });
  Start(Created());
  const std::string reply =
      Ask(Post("/v1.41/containers/create?name=k8s_main_web_shop_u_2", kContainer));
  EXPECT_THAT(reply, StartsWith("HTTP/1.1 201 X\r\n"));
  EXPECT_THAT(reply, HasSubstr(kId));
  const auto requests = engine_->requests();
  ASSERT_EQ(requests.size(), 1U);
  EXPECT_THAT(requests[0].head, HasSubstr("X-Keep: me\r\n"));
  EXPECT_THAT(requests[0].body, HasSubstr(R"({"CpuShares":512,"CpusetCpus":"1"})"));
  EXPECT_THAT(outcomes(), ElementsAre(std::string("0 ") + kId));
}

TEST_F(DockerFrontTest, ChunksAndLeaveToSendThem) {
  DecideCpu1();
  Start(Created());
  const std::string body = kContainer;
  const std::string reply = Ask(
      fmt::format("POST /containers/create HTTP/1.1\r\nHost: d\r\nTransfer-Encoding: chunked\r\n"
                  "Expect: 100-continue\r\n\r\n{:x};x=y\r\n{}\r\n{:x}\r\n{}\r\n0\r\n\r\n",
                  10, body.substr(0, 10), body.size() - 10, body.substr(10)));
  EXPECT_THAT(reply, HasSubstr("HTTP/1.1 201 X\r\n"));
  const auto requests = engine_->requests();
  ASSERT_EQ(requests.size(), 1U);
  EXPECT_THAT(requests[0].head, Not(HasSubstr("Transfer-Encoding")));
  EXPECT_THAT(requests[0].head, Not(HasSubstr("Expect")));
  EXPECT_THAT(requests[0].body, HasSubstr(R"("CpusetCpus":"1")"));
}

TEST_F(DockerFrontTest, ARefusalIsAnErrorAsDockerdsAre) {
  Decide([](FunctionStage::TestCall& call, Request&, const Adjustment&) {
    call.Refuse(ResourceExhausted("no room"));
  });
  Start(Created());
  const std::string reply = Ask(Post("/containers/create", kContainer));
  EXPECT_THAT(reply, StartsWith("HTTP/1.1 409 Conflict\r\n"));
  EXPECT_THAT(reply, HasSubstr(R"({"message":"no room"})"));
  EXPECT_TRUE(engine_->requests().empty());
}

TEST_F(DockerFrontTest, WhatCannotBeReadIsRefused) {
  Start(Created());
  EXPECT_THAT(Ask(Post("/containers/create", "{\"HostConfig\":")), StartsWith("HTTP/1.1 400 "));
  EXPECT_THAT(Ask(Post("/containers/create", std::string(1000, '['))), StartsWith("HTTP/1.1 400 "));
  EXPECT_TRUE(engine_->requests().empty());
}

TEST_F(DockerFrontTest, OtherContainersPassAsTheyCame) {
  Decide([](FunctionStage::TestCall&, Request&, const Adjustment&) { ADD_FAILURE(); });
  Start(Created());
  const std::string body = R"( {"Image" : "x", "X":1.50,"HostConfig":{"NanoCpus":15}} )";
  EXPECT_THAT(Ask(Post("/containers/create?name=my.own-name", body)), StartsWith("HTTP/1.1 201 "));
  EXPECT_EQ(engine_->requests().at(0).body, body);
}

TEST_F(DockerFrontTest, OtherContainersShareWhereTheyShould) {
  Decide([](FunctionStage::TestCall& call, Request& request, const Adjustment&) {
    EXPECT_EQ(request.create()->pod_id, OthersPod().id);
    EXPECT_THAT(request.create()->name, StartsWith("unnamed-"));
    call.Adjust(ResourceValues{.cpus = *CpuSet::Parse("0")});
  });
  Start(Created(), Others::kShare);
  EXPECT_THAT(Ask(Post("/containers/create", R"({"HostConfig":{}})")), StartsWith("HTTP/1.1 201 "));
  EXPECT_EQ(engine_->requests().at(0).body, R"({"HostConfig":{"CpusetCpus":"0"}})");
}

TEST_F(DockerFrontTest, DockerdSaysWhatANameMeans) {
  std::promise<std::string> started;
  Decide([&started](FunctionStage::TestCall& call, Request& request, const Adjustment&) {
    EXPECT_EQ(request.operation(), Operation::kStartContainer);
    started.set_value(std::string(request.container_id.value()));
    call.Pass();
  });
  Start([](const FakeEngine::Request& request) -> std::optional<std::string> {
    if (request.line.starts_with("POST")) return "HTTP/1.1 204 No Content\r\n\r\n";
    EXPECT_EQ(request.line, "GET /containers/my%20name/json HTTP/1.0") << request.line;
    return Inspected(R"("io.kubernetes.sandbox.id":"s1")");
  });
  EXPECT_THAT(Ask(Post("/v1.41/containers/my%20name/start", "")), StartsWith("HTTP/1.1 204 "));
  EXPECT_EQ(started.get_future().get(), kId);
}

TEST_F(DockerFrontTest, WhatDockerdDoesNotHaveItRefusesItself) {
  Start([](const FakeEngine::Request&) { return JsonReply(404, R"({"message":"none"})"); });
  EXPECT_THAT(Ask(Post("/containers/x/stop", "")), HasSubstr(R"({"message":"none"})"));
  EXPECT_EQ(engine_->requests().size(), 2U);
}

TEST_F(DockerFrontTest, AFailureIsToldAsItIs) {
  Start([](const FakeEngine::Request&) { return JsonReply(500, R"({"message":"bad"})"); });
  EXPECT_THAT(Ask(Post("/containers/create", kContainer)), HasSubstr(R"({"message":"bad"})"));
  EXPECT_THAT(outcomes(), ElementsAre("2 "));
}

TEST_F(DockerFrontTest, ADockerdThatEndsOrTalksNonsenseLeavesTheOutcomeOpen) {
  Start([](const FakeEngine::Request&) { return std::nullopt; });
  EXPECT_THAT(Ask(Post("/containers/create", kContainer)), StartsWith("HTTP/1.1 502 "));
  EXPECT_TRUE(Eventually([this] { return !outcomes().empty(); }));
  EXPECT_THAT(outcomes(), ElementsAre("unknown"));
}

TEST_F(DockerFrontTest, NonsenseIsNoReply) {
  Start([](const FakeEngine::Request&) { return "SSH-2.0-x\r\n\r\n"; });
  EXPECT_THAT(Ask(Post("/containers/create", kContainer)), StartsWith("HTTP/1.1 502 "));
}

TEST_F(DockerFrontTest, AReplyThatNeverEndsIsNotKept) {
  Start([](const FakeEngine::Request&) {
    return "HTTP/1.1 201 X\r\nContent-Length: 100000000\r\n\r\n" + std::string(400'000, 'x');
  });
  EXPECT_THAT(Ask(Post("/containers/create", kContainer)), StartsWith("HTTP/1.1 502 "));
}

TEST_F(DockerFrontTest, ARequestIsBounded) {
  Start(Created());
  const std::string large(HeldExchange::kMaxRequest, ' ');
  const End client = Client();
  client.SendUntilAnswered(Post("/containers/create", large));
  client.Expect("HTTP/1.1 413 ");
  EXPECT_TRUE(engine_->requests().empty());
}

// Clients that send most of a body and then stop cannot hold more than the limit together.
TEST_F(DockerFrontTest, AllHeldRequestsTogetherAreBounded) {
  Start(Created());
  const std::string request =
      Post("/containers/create", std::string(HeldExchange::kMaxRequest - 4096, ' '));
  const std::string_view most = std::string_view(request).substr(0, request.size() - 1);
  std::vector<End> clients;
  const size_t fit = Proxy::kMaxHeld / most.size();
  for (size_t i = 0; i < fit; ++i) {
    clients.push_back(Client());
    ASSERT_EQ(clients.back().SendUntilAnswered(most), most.size());
    // Bytes that are not read yet do not count yet: otherwise another client than the last one
    // could exceed the limit.
    ASSERT_TRUE(clients.back().WaitUntilRead());
  }
  const End one_more = Client();
  EXPECT_LE(one_more.SendUntilAnswered(most), most.size());
  one_more.Expect("HTTP/1.1 503 ");
  // The room of a client that went is available for another one.
  EXPECT_THAT(Ask(Post("/containers/create", kContainer)), StartsWith("HTTP/1.1 201 "));
  clients.pop_back();
  const End whole = Client();
  EXPECT_EQ(whole.SendUntilAnswered(request), request.size());
  EXPECT_EQ(whole.Receive(13), "HTTP/1.1 400 ") << "it is not JSON";
}

TEST_F(DockerFrontTest, ABodyThatDoesNotArriveInTimeIsRefused) {
  body_timeout_ = std::chrono::milliseconds(300);
  Start(Created());
  const std::string request = Post("/containers/create", kContainer);
  EXPECT_THAT(Ask(request.substr(0, request.size() - 1)), StartsWith("HTTP/1.1 408 "));
  EXPECT_TRUE(engine_->requests().empty());
}

TEST_F(DockerFrontTest, TheNextRequestFollowsTheReplyThatWasHeld) {
  Start(Created());
  const std::string reply =
      Ask(Post("/containers/create", kContainer) + Post("/containers/create", kContainer));
  EXPECT_EQ(engine_->requests().size(), 2U);
  EXPECT_NE(reply.find("HTTP/1.1 201", 20), std::string::npos) << reply;
}

TEST_F(DockerFrontTest, AClientThatGoesAwayBeforeTheDecisionAsksNothing) {
  std::promise<void> asked;
  std::optional<LateAnswer> answer;
  Decide([&](FunctionStage::TestCall& call, Request&, const Adjustment&) {
    answer.emplace(call.AnswerLater());
    asked.set_value();
  });
  Start(Created());
  {
    const End client = Asking(Post("/containers/create", kContainer));
    asked.get_future().wait();
  }
  PassAfterATurn(answer);
  EXPECT_TRUE(engine_->requests().empty());
}

// A hanging dockerd keeps nothing reserved for a client that is gone, and delays no other client.
TEST_F(DockerFrontTest, ADockerdThatHangsIsNotAwaitedForEver) {
  Start([](const FakeEngine::Request& request) -> std::optional<std::string> {
    return request.line.starts_with("GET") ? JsonReply(200, "{}") : "";
  });
  {
    const End client = Asking(Post("/containers/create", kContainer));
    EXPECT_TRUE(Eventually([this] { return !engine_->requests().empty(); }));
    EXPECT_THAT(Ask("GET /version HTTP/1.1\r\nHost: d\r\n\r\n"), StartsWith("HTTP/1.1 200"));
    EXPECT_TRUE(outcomes().empty()) << "the client waits";
  }
  EXPECT_TRUE(Eventually([this] { return !outcomes().empty(); }));
  EXPECT_THAT(outcomes(), ElementsAre("unknown"));
}

// As socat and ncat do: the client sends nothing more and waits. dockerd answers such clients.
TEST_F(DockerFrontTest, AClientThatClosesItsSideGetsTheReply) {
  std::promise<LateAnswer> asked;
  Decide([&](FunctionStage::TestCall& call, Request&, const Adjustment&) {
    asked.set_value(call.AnswerLater());
  });
  std::promise<void> open;
  Start([&, opened = open.get_future().share()](const FakeEngine::Request& request) {
    opened.wait();
    return *Created()(request);
  });
  const End client = Asking(Post("/containers/create", kContainer));
  client.HalfClose();
  std::optional<LateAnswer> answer = asked.get_future().get();
  PassAfterATurn(answer);
  // Longer than the reply is awaited for a client that is gone.
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  open.set_value();
  client.Expect("HTTP/1.1 201 ");
}

// The lock of a container may be held in dockerd for as long as its processes take to end.
TEST_F(DockerFrontTest, LookUpsThatHangDelayNoOther) {
  Start([](const FakeEngine::Request& request) -> std::optional<std::string> {
    if (request.line.starts_with("POST")) return "HTTP/1.1 204 No Content\r\n\r\n";
    if (request.line.find("/hangs/") != std::string::npos) return "";
    return Inspected("");
  });
  constexpr size_t kHanging = 2 * EngineClient::kParallel;
  std::vector<End> clients;
  for (size_t i = 0; i < kHanging; ++i)
    clients.push_back(Asking(Post("/containers/hangs/stop", "")));
  EXPECT_TRUE(Eventually([this] { return engine_->requests().size() >= kHanging; }));
  EXPECT_THAT(Ask(Post("/containers/present/stop", "")), StartsWith("HTTP/1.1 204 "));
}

// Look-ups of requests whose clients have given up do not delay others once dockerd answers again.
TEST_F(DockerFrontTest, AClientThatGoesAwayLeavesNoLookUpBehind) {
  constexpr size_t kClients = 3 * EngineClient::kParallel;
  std::promise<void> open;
  Start([opened = open.get_future().share()](const FakeEngine::Request& request) {
    opened.wait();
    return request.line.starts_with("POST") ? "HTTP/1.1 204 No Content\r\n\r\n" : Inspected("");
  });
  std::vector<End> clients;
  for (size_t i = 0; i < kClients; ++i) {
    clients.push_back(Asking(Post("/containers/gone/stop", "")));
    ASSERT_TRUE(clients.back().WaitUntilRead());
  }
  EXPECT_TRUE(Eventually([this] { return engine_->requests().size() >= kClients; }));
  clients.clear();
  for (size_t still = 1; still > 0;) {
    std::promise<size_t> count;
    loop_.Post([&] { count.set_value(proxy_->connections()); });
    still = count.get_future().get();
  }
  open.set_value();
  EXPECT_THAT(Ask(Post("/containers/present/stop", "")), StartsWith("HTTP/1.1 204 "));
  EXPECT_EQ(engine_->requests().size(), kClients + 2);
}

// As many look-ups as there are clients may be under way.
TEST(EngineClientTest, AllRepliesTogetherHaveALimit) {
  const TempDir dir;
  const std::string socket = dir.File("docker.sock");
  const FakeEngine engine(socket, [](const FakeEngine::Request& request) {
    const bool large = request.line.find("/large") != std::string::npos;
    return JsonReply(200, std::string(large ? 150'000 : 50'000, ' '));
  });
  EventLoop loop;
  EngineClient client(loop, socket, EngineClient::kParallel, 100'000);
  std::vector<StatusCode> codes;
  const auto call = [&](const char* target) {
    client.Call("GET", target, "", EngineClient::kCallTimeout,
                [&](const StatusOr<EngineClient::Reply>& reply) {
                  codes.push_back(reply.status().code());
                });
    EXPECT_TRUE(test::RunUntil(loop, [&, before = codes.size()] { return codes.size() > before; }));
  };
  for (const char* const target : {"/small", "/large", "/small"})
    call(target);
  EXPECT_THAT(codes, ElementsAre(StatusCode::kOk, StatusCode::kResourceExhausted, StatusCode::kOk));
}

TEST(EngineClientTest, CallsOfCallersThatAreGoneMakeRoom) {
  const TempDir dir;
  const std::string socket = dir.File("docker.sock");
  const FakeEngine engine(socket, [](const FakeEngine::Request& request) {
    return request.line.find("/hangs") != std::string::npos ? "" : JsonReply(200, "OK");
  });
  EventLoop loop;
  EngineClient client(loop, socket);
  const auto ignored = [](const StatusOr<EngineClient::Reply>&) { FAIL() << "its caller is gone"; };
  std::vector<std::shared_ptr<int>> callers;
  for (size_t i = 0; i < EngineClient::kParallel; ++i) {
    callers.push_back(std::make_shared<int>());
    client.Call("GET", "/hangs", "", EngineClient::kCallTimeout, ignored, callers.back());
  }
  bool answered = false;
  const auto answer = [&](const StatusOr<EngineClient::Reply>& reply) { answered = reply.ok(); };
  callers.pop_back();
  client.Call("GET", "/_ping", "", EngineClient::kCallTimeout, answer);
  EXPECT_TRUE(test::RunUntil(loop, [&] { return answered; }));
}

TEST(EngineClientTest, GivenUpCallsDoNotPileUpBehindOneThatWaits) {
  const TempDir dir;
  const std::string socket = dir.File("docker.sock");
  const FakeEngine hangs(socket, [](const FakeEngine::Request&) { return ""; });
  EventLoop loop;
  EngineClient client(loop, socket);
  const auto call = [&](EngineClient::Done done, std::optional<std::weak_ptr<void>> caller) {
    client.Call("GET", "/_ping", "", EngineClient::kCallTimeout, std::move(done),
                std::move(caller));
  };
  for (size_t i = 0; i <= EngineClient::kParallel; ++i)
    call([](const StatusOr<EngineClient::Reply>&) {}, std::nullopt);
  const auto kept = std::make_shared<int>();
  for (int i = 0; i < 100; ++i) {
    const auto caller = std::make_shared<int>();
    call([kept](const StatusOr<EngineClient::Reply>&) {}, caller);
  }
  EXPECT_LE(kept.use_count(), 2);
}

// Clients of an API before 1.24 may send one.
TEST_F(DockerFrontTest, AStartBringsNoOtherHostConfig) {
  Decide([](FunctionStage::TestCall& call, Request&, const Adjustment&) { call.Pass(); });
  Start([](const FakeEngine::Request& request) -> std::optional<std::string> {
    if (request.line.starts_with("POST")) return "HTTP/1.1 204 No Content\r\n\r\n";
    const bool pod = request.line.find("/main/") != std::string::npos;
    return pod ? Inspected(R"("io.kubernetes.sandbox.id":"s1")") : Inspected("", "other");
  });
  const std::string body = R"({"CpusetCpus":"0"})";
  EXPECT_THAT(Ask(Post("/v1.23/containers/main/start", body)), StartsWith("HTTP/1.1 400 "));
  EXPECT_THAT(Ask(Post("/v1.23/containers/main/start", "{}")), StartsWith("HTTP/1.1 204 "));
  EXPECT_THAT(Ask(Post("/v1.23/containers/other/start", body)), StartsWith("HTTP/1.1 204 "));
}

TEST_F(DockerFrontTest, CallsAreCountedAndShownWithoutSecrets) {
  DecideCpu1();
  Start([](const FakeEngine::Request& request) -> std::optional<std::string> {
    if (request.line.starts_with("GET")) return JsonReply(404, R"({"message":"none"})");
    return JsonReply(201, std::string(R"({"Id":")") + kId + R"("})");
  });
  const std::string body =
      R"({"Env":["TOKEN=hidden1"],"Labels":{"io.kubernetes.sandbox.id":"s1"},)"
      R"("HostConfig":{"LogConfig":{"Type":"splunk","Config":{"splunk-token":"hidden4"}}}})";
  EXPECT_THAT(
      Ask("POST /v1.41/containers/create HTTP/1.1\r\nHost: d\r\nX-Registry-Auth: hidden2\r\n"
          "Content-Length: " +
          std::to_string(body.size()) + "\r\n\r\n" + body),
      StartsWith("HTTP/1.1 201"));
  EXPECT_THAT(Ask("GET /v1.41/images/a/json?arg=hidden3 HTTP/1.1\r\nHost: d\r\n\r\n"),
              StartsWith("HTTP/1.1 404"));
  const std::string dumped = Dumped();
  EXPECT_THAT(dumped, HasSubstr("(intercepted) REQUEST ContainerCreate"));
  EXPECT_THAT(dumped, HasSubstr("TOKEN=<redacted>"));
  EXPECT_THAT(dumped, HasSubstr("CHANGED ContainerCreate: HostConfig.CpusetCpus \"\" -> \"1\""));
  EXPECT_THAT(dumped, HasSubstr(std::string("REPLY ContainerCreate <= Id: ") + kId));
  EXPECT_THAT(dumped, HasSubstr("(passthrough) REQUEST GetImages"));
  EXPECT_THAT(dumped, HasSubstr("path: /v1.41/images/a/json"));
  EXPECT_THAT(dumped, HasSubstr("code = NotFound"));
  EXPECT_THAT(dumped, testing::Not(HasSubstr("hidden")));
  EXPECT_EQ(Counted("ContainerCreate", "OK"), 1);
  EXPECT_EQ(Counted("GetImages", "NOT_FOUND"), 1);
}

// dockerd has the container in the path, and its body says nothing or what changes.
TEST_F(DockerFrontTest, ADumpSaysWhichContainerARequestIsAbout) {
  Start([](const FakeEngine::Request& request) -> std::optional<std::string> {
    if (request.line.starts_with("POST")) return JsonReply(200, "{}");
    return Inspected("");
  });
  EXPECT_THAT(Ask(Post("/v1.41/containers/web/stop?t=1", "")), StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(Ask(Post("/containers/db/update", R"({"CpuShares":7})")), StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(Ask(Post("/containers/bad/update", R"({"Auth":"hidden)")), StartsWith("HTTP/1.1"));
  const std::string dumped = Dumped();
  EXPECT_THAT(dumped, HasSubstr("ContainerStop => path: /v1.41/containers/web/stop\n"));
  EXPECT_THAT(dumped, HasSubstr("ContainerUpdate => path: /containers/db/update\n"));
  EXPECT_THAT(dumped, HasSubstr("CpuShares: 7"));
  EXPECT_THAT(dumped, Not(HasSubstr("hidden")));
}

}  // namespace
}  // namespace resmgr::docker
