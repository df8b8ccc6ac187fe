// SPDX-License-Identifier: Apache-2.0
// The relay and its connections: routes of calls, limits of clients, and the end.
#include "pkg/cri/relay.h"

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include <sys/socket.h>

#include "pkg/cri/backend_router.h"
#include "pkg/cri/relay_fixture.h"
#include "test/support/cri_client/cri_client.h"
#include "test/support/fake_runtime/fake_runtime.h"
#include "test/support/raw_http2/raw_http2.h"
#include "test/support/status_matchers.h"

namespace resmgr {
namespace {

using grpc::StatusCode::RESOURCE_EXHAUSTED;
using grpc::StatusCode::UNAVAILABLE;
using grpc::StatusCode::UNIMPLEMENTED;
using std::chrono::milliseconds;
using test::CriClient;
using test::FakeRuntime;
using test::IsOk;
using test::Must;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
namespace cri = ::runtime::v1;

class RelaySocketsTest : public RelayTest {
 protected:
  RelaySocketsTest() { EXPECT_THAT(runtime_.Start(Path("runtime.sock")), IsOk()); }

  Relay::Options Options() const {
    return {.runtime_socket = Path("runtime.sock"), .image_socket = Path("runtime.sock")};
  }
  grpc::Status Ask(CriClient& client, const std::string& method) {
    return client.Call(client.PathOf(method), {""}).status;
  }
  // Calls Drain; the result tells whether it is over.
  std::shared_ptr<bool> Drain() {
    auto done = std::make_shared<bool>(false);
    thread_.Do([&] { relay_->Drain([done] { *done = true; }); });
    return done;
  }
  bool Drained(const std::shared_ptr<bool>& done) {
    return Eventually([&](Relay&) { return *done; });
  }

  FakeRuntime runtime_;
};

TEST_F(RelaySocketsTest, ImageCallsGoToTheImageSocket) {
  FakeRuntime images;
  ASSERT_THAT(images.Start(Path("images.sock")), IsOk());
  Relay::Options options = Options();
  options.image_socket = Path("images.sock");
  StartRelay(options);
  CriClient client(RelaySocket());
  EXPECT_TRUE(Ask(client, "ListImages").ok());
  EXPECT_TRUE(Ask(client, "Version").ok());
  EXPECT_TRUE(client.Call("/test.Echo/Unary", {"x"}).status.ok());
  EXPECT_THAT(images.Calls("ListImages"), SizeIs(1));
  EXPECT_THAT(images.Calls("Version"), IsEmpty());
  EXPECT_THAT(runtime_.Calls("ListImages"), IsEmpty());
}

TEST_F(RelaySocketsTest, ImageCallsWithoutAnImageSocketAreUnimplemented) {
  Relay::Options options = Options();
  options.image_socket.reset();
  StartRelay(options);
  CriClient client(RelaySocket());
  EXPECT_EQ(Ask(client, "ListImages").error_code(), UNIMPLEMENTED);
  EXPECT_TRUE(Ask(client, "Version").ok());
}

TEST_F(RelaySocketsTest, EachClientHasOneConnectionOfItsOwnToTheRuntime) {
  StartRelay(Options());
  CriClient first(RelaySocket());
  for (const char* method : {"Version", "ListContainers", "ListImages"})
    EXPECT_TRUE(Ask(first, method).ok());
  EXPECT_EQ(runtime_.connections_accepted(), 1);
  CriClient second(RelaySocket());
  EXPECT_TRUE(Ask(second, "Version").ok());
  EXPECT_EQ(runtime_.connections_accepted(), 2);
}

TEST_F(RelaySocketsTest, RuntimeThatIsAwayIsNamed) {
  StartRelay(Options());
  runtime_.Stop();
  CriClient client(RelaySocket());
  const grpc::Status status = Ask(client, "Version");
  EXPECT_EQ(status.error_code(), UNAVAILABLE);
  EXPECT_THAT(status.error_message(), HasSubstr(Path("runtime.sock")));
  ASSERT_THAT(runtime_.Start(Path("runtime.sock")), IsOk());
  EXPECT_TRUE(Ask(client, "Version").ok());
}

TEST_F(RelaySocketsTest, CallsOfAClientThatGoesAreGivenUp) {
  StartRelay(Options());
  runtime_.Script("Version", {.hold = true});
  {
    CriClient client(RelaySocket());
    const auto call = client.Start(client.PathOf("Version"), "");
    ASSERT_TRUE(runtime_.WaitForHeld("Version", 1));
  }
  EXPECT_TRUE(runtime_.WaitForCancelled("Version", 1));
  EXPECT_TRUE(Eventually([](Relay& relay) { return relay.connections() == 0; }));
}

TEST_F(RelaySocketsTest, OneClientTooManyEndsTheLongestIdle) {
  Relay::Options options = Options();
  options.max_clients = 2;
  StartRelay(options);
  CriClient busy(RelaySocket());
  runtime_.Script("/test.Echo/Unary", {.hold = true});
  const auto held = busy.Start("/test.Echo/Unary", "x");
  ASSERT_TRUE(runtime_.WaitForHeld("/test.Echo/Unary", 1));
  CriClient idle(RelaySocket());
  EXPECT_TRUE(Ask(idle, "Version").ok());
  EXPECT_TRUE(Eventually([](Relay& relay) { return relay.connections() == 2; }));
  CriClient third(RelaySocket());
  EXPECT_TRUE(Ask(third, "Version").ok());
  EXPECT_TRUE(Eventually([](Relay& relay) { return relay.connections() == 2; }));
  runtime_.Release("/test.Echo/Unary");
  const auto result = EndOf(*held);
  EXPECT_TRUE(result.status.ok()) << "the one with a call under way stayed";
}

TEST_F(RelaySocketsTest, FilesLimitClients) {
  EXPECT_EQ(Relay::ClientsWith(100), 16U);
  EXPECT_EQ(Relay::ClientsWith(256 + 300), 100U);
  EXPECT_EQ(Relay::ClientsWith(256 + 300, 4), 50U);
  EXPECT_EQ(Relay::ClientsWith(1'000'000), Relay::kMostClients);
}

TEST_F(RelaySocketsTest, DrainWithoutClientsIsOverAtOnce) {
  StartRelay(Options());
  EXPECT_TRUE(*Drain());
}

TEST_F(RelaySocketsTest, DrainWaitsForCallsAndEndsStreamsOfEvents) {
  StartRelay(Options());
  CriClient client(RelaySocket());
  const auto events = client.Start("GetContainerEvents", cri::GetEventsRequest());
  ASSERT_TRUE(runtime_.WaitForCalls("GetContainerEvents", 1));
  runtime_.Script("Version", {.hold = true});
  const auto call = client.Start(client.PathOf("Version"), "");
  ASSERT_TRUE(runtime_.WaitForHeld("Version", 1));
  const auto done = Drain();
  const auto ended = EndOf(*events);
  EXPECT_EQ(ended.status.error_code(), UNAVAILABLE);
  EXPECT_FALSE(thread_.Do([&] { return *done; }));
  runtime_.Release("Version");
  const auto result = EndOf(*call);
  EXPECT_TRUE(result.status.ok());
  EXPECT_TRUE(Drained(done));
}

TEST_F(RelaySocketsTest, DrainEndsAfterItsTimeout) {
  Relay::Options options = Options();
  options.drain_timeout = milliseconds(20);
  StartRelay(options);
  CriClient client(RelaySocket());
  runtime_.Script("Version", {.hold = true});
  const auto call = client.Start(client.PathOf("Version"), "");
  ASSERT_TRUE(runtime_.WaitForHeld("Version", 1));
  EXPECT_TRUE(Drained(Drain()));
}

// A client may send calls before it has read the GOAWAY (RFC 9113 section 6.8).
TEST_F(RelaySocketsTest, DrainServesCallsThatCrossIt) {
  constexpr uint8_t kPing = 6;
  StartRelay(Options());
  const auto client = Must(ConnectUnix(RelaySocket()));
  const auto say = [&](const std::string& frames) {
    ASSERT_EQ(::send(client.get(), frames.data(), frames.size(), 0),
              static_cast<ssize_t>(frames.size()));
  };
  say(test::kHttp2Preface + test::Settings(4, 65535));
  EXPECT_TRUE(Eventually([](Relay& relay) { return relay.connections() == 1; }));
  const auto done = Drain();
  const std::string service = "/runtime.v1.RuntimeService/";
  say(test::Request(1, service + "GetContainerEvents", "") +
      test::Request(3, service + "Version", ""));
  EXPECT_TRUE(runtime_.WaitForCalls("Version", 1));
  EXPECT_THAT(runtime_.Calls("GetContainerEvents"), IsEmpty()) << "it would never end";
  EXPECT_FALSE(thread_.Do([&] { return *done; }));
  say(test::Frame(kPing, 1, 0, "draining"));
  EXPECT_TRUE(Drained(done));
}

TEST_F(RelaySocketsTest, DrainThatIsTakenBackServesOn) {
  StartRelay(Options());
  CriClient client(RelaySocket());
  runtime_.Script("/test.Echo/Unary", {.hold = true});
  const auto held = client.Start("/test.Echo/Unary", "x");
  ASSERT_TRUE(runtime_.WaitForHeld("/test.Echo/Unary", 1));
  const auto done = Drain();
  thread_.Do([&] {
    auto listener = ListeningSocket::Create(RelaySocket());
    ASSERT_THAT(listener, IsOk());
    relay_->Resume(*std::move(listener));
  });
  CriClient another(RelaySocket());
  EXPECT_TRUE(Ask(another, "Version").ok());
  runtime_.Release("/test.Echo/Unary");
  const auto result = EndOf(*held);
  EXPECT_TRUE(result.status.ok());
  EXPECT_TRUE(Eventually([](Relay& relay) { return relay.connections() == 1; }))
      << "the first left";
  EXPECT_FALSE(thread_.Do([&] { return *done; }));
}

// An ending runtime has not processed calls above the last one in its GOAWAY. The client is told by
// REFUSED_STREAM (RFC 9113 section 8.7) and may send the call again.
TEST_F(RelaySocketsTest, ACallThatTheRuntimeHasNotLookedAtIsRefusedSo) {
  constexpr uint8_t kGoAway = 7;
  constexpr uint8_t kReset = 3;
  constexpr uint32_t kRefused = 7;
  std::atomic<int> requests = 0;
  const auto runtime = test::RawRuntime::Start(
      Path("leaving.sock"), {.answer =
                                 [&requests](uint32_t stream, const std::string&) {
                                   const std::string last = test::Number(0) + test::Number(0);
                                   return requests++ == 0 ? test::Frame(kGoAway, 0, 0, last)
                                                          : test::Answer(stream, "");
                                 },
                             .greeting = test::Settings(4, 65535)});
  ASSERT_THAT(runtime, IsOk());
  Relay::Options options = Options();
  options.runtime_socket = Path("leaving.sock");
  StartRelay(options);
  const auto client = Must(ConnectUnix(RelaySocket()));
  const std::string call = test::kHttp2Preface + test::Settings(4, 65535) +
                           test::Request(1, "/runtime.v1.RuntimeService/Version", "");
  ASSERT_EQ(::send(client.get(), call.data(), call.size(), 0), static_cast<ssize_t>(call.size()));
  const std::string refusal = test::Frame(kReset, 0, 1, test::Number(kRefused));
  std::string received;
  EXPECT_TRUE(Eventually([&](Relay&) {
    char bytes[4096];
    const ssize_t size = ::recv(client.get(), bytes, sizeof(bytes), MSG_DONTWAIT);
    if (size > 0) received.append(bytes, static_cast<size_t>(size));
    return received.find(refusal) != std::string::npos;
  })) << received.size();
  CriClient next(RelaySocket());
  EXPECT_TRUE(Ask(next, "Version").ok()) << "the relay connects again";
  EXPECT_EQ(requests, 2);
}

TEST_F(RelaySocketsTest, TellsOfClientsThatListenAndOfTheirEvents) {
  StartRelay(Options());
  std::vector<bool> listens;
  std::vector<std::string> ids;
  thread_.Do([&] {
    relay_->OnClientsListen([&](bool listen) { listens.push_back(listen); });
    relay_->OnEvent([&](const ContainerEvent& event) { ids.push_back(event.id); });
  });
  cri::ContainerEventResponse event;
  event.set_container_id("c1");
  event.set_container_event_type(cri::CONTAINER_STARTED_EVENT);
  runtime_.Script("GetContainerEvents", {.reply = {{event.SerializeAsString()}}, .stall = true});
  CriClient client(RelaySocket());
  const auto first = client.Start("GetContainerEvents", cri::GetEventsRequest());
  ASSERT_TRUE(first->WaitForMessages(1, kPatience));
  const auto second = client.Start("GetContainerEvents", cri::GetEventsRequest());
  ASSERT_TRUE(second->WaitForMessages(1, kPatience));
  EXPECT_TRUE(thread_.Do([&] { return relay_->clients_listen(); }));
  first->Cancel();
  second->Cancel();
  EXPECT_TRUE(Eventually([](Relay& relay) { return !relay.clients_listen(); }));
  thread_.Do([&] {
    EXPECT_THAT(listens, ElementsAre(true, false)) << "once, however many listen";
    EXPECT_THAT(ids, ElementsAre("c1", "c1"));
  });
}

// While such a client listens, the daemon itself gets no events.
TEST_F(RelaySocketsTest, AListenerThatIsBehindIsEnded) {
  StartRelay(Options());
  std::vector<std::string> ids;
  thread_.Do(
      [&] { relay_->OnEvent([&](const ContainerEvent& event) { ids.push_back(event.id); }); });
  cri::ContainerEventResponse event;
  event.set_container_id("c1");
  event.mutable_pod_sandbox_status()->mutable_annotations()->insert(
      {"large", std::string(100'000, 'x')});
  const std::vector<std::string> events(100, event.SerializeAsString());
  runtime_.Script("GetContainerEvents", {.reply = events, .stall = true});
  CriClient client(RelaySocket());
  const auto listener = client.Start(client.PathOf("GetContainerEvents"), "", {.pause_after = 1});
  ASSERT_TRUE(listener->WaitForMessages(1, kPatience));
  EXPECT_TRUE(Eventually([](Relay& relay) { return !relay.clients_listen(); }));
  listener->ResumeReading();
  const auto result = EndOf(*listener);
  EXPECT_EQ(result.status.error_code(), RESOURCE_EXHAUSTED);
  StopRelay();
  EXPECT_LT(ids.size(), events.size());
  EXPECT_EQ(ids.front(), "c1");
  EXPECT_EQ(ids.back(), "") << "a reason to look, for those that were dropped";
}

// Input R09: the effect of these calls is unknown here.
TEST_F(RelaySocketsTest, TellsOfMethodsThatItDoesNotKnow) {
  StartRelay(Options());
  int told = 0;
  thread_.Do([&] { relay_->OnUnknownMethod([&] { ++told; }); });
  CriClient client(RelaySocket());
  const std::string path = client.PathOf("NextYearsMethod");
  EXPECT_EQ(client.Call(path, {""}).status.error_code(), UNIMPLEMENTED);
  runtime_.Script("NextYearsMethod",
                  {.error = grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, "no such pod")});
  EXPECT_FALSE(client.Call(path, {""}).status.ok());
  EXPECT_TRUE(Ask(client, "ListContainers").ok());
  runtime_.Script("/runtime.v1.ImageService/NextYearsMethod", {.reply = {{""}}});
  EXPECT_TRUE(client.Call("/runtime.v1.ImageService/NextYearsMethod", {""}).status.ok());
  EXPECT_EQ(thread_.Do([&] { return told; }), 0);

  runtime_.Script("NextYearsMethod", {.reply = {{"done"}}});
  EXPECT_TRUE(client.Call(path, {""}).status.ok());
  EXPECT_TRUE(Eventually([&](Relay&) { return told == 1; }));
  // The call may take effect nevertheless.
  runtime_.Script("NextYearsMethod", {.hold = true});
  const auto given_up = client.Start(path, "");
  ASSERT_TRUE(runtime_.WaitForHeld("NextYearsMethod", 1));
  given_up->Cancel();
  EXPECT_TRUE(Eventually([&](Relay&) { return told == 2; }));
  runtime_.Script("NextYearsMethod", {.cut = true});
  EXPECT_EQ(client.Call(path, {""}).status.error_code(), UNAVAILABLE);
  EXPECT_TRUE(Eventually([&](Relay&) { return told == 3; }));
  StopRelay();
  EXPECT_EQ(told, 3);
}

// Requests are kept if their runtime has to be found.
TEST_F(RelaySocketsTest, ConnectionThatHoldsTooMuchLosesACall) {
  StartRelay(Options());
  std::unique_ptr<Backends> backends;
  std::unique_ptr<BackendRouter> router;
  thread_.Do([&] {
    backends = std::make_unique<Backends>(
        std::vector<Backends::Backend>{{.name = "default", .socket = Path("runtime.sock")},
                                       {.name = "other", .socket = Path("other.sock")}});
    router = std::make_unique<BackendRouter>(thread_.loop(), thread_.flushes(), *backends);
    relay_->SetRouter(router.get());
  });
  CriClient client(RelaySocket());
  std::vector<std::unique_ptr<test::PendingCall>> calls;
  // 39 MB, none of which may leave before their end has arrived.
  for (int i = 0; i < 3; ++i) {
    calls.push_back(client.Open(client.PathOf("StopContainer")));
    calls.back()->Send(std::string(size_t{13} << 20, 'x'));
  }
  const auto last = calls.back()->Wait(kPatience);
  ASSERT_TRUE(last.has_value());
  EXPECT_EQ(last->status.error_code(), RESOURCE_EXHAUSTED);
  EXPECT_FALSE(calls.front()->Wait(milliseconds(0)).has_value()) << "the others go on";
  EXPECT_TRUE(Ask(client, "Version").ok());
  calls.clear();
  StopRelay();
  thread_.Do([&] {
    router.reset();
    backends.reset();
  });
}

}  // namespace
}  // namespace resmgr
