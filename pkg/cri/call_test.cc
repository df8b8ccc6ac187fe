// SPDX-License-Identifier: Apache-2.0
// Calls between gRPC's own client and server, or raw frames, through the relay.
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <prometheus/collectable.h>
#include <prometheus/text_serializer.h>

#include "pkg/cri/relay_fixture.h"
#include "pkg/h2/hpack.h"
#include "pkg/metrics/metrics.h"
#include "test/support/cri_client/cri_client.h"
#include "test/support/fake_runtime/fake_runtime.h"
#include "test/support/raw_http2/raw_http2.h"
#include "test/support/status_matchers.h"

namespace resmgr {
namespace {

using std::chrono::milliseconds;
using test::CriClient;
using test::FakeRuntime;
using test::IsOk;
using test::RawRuntime;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

// A path of the runtime; no test depends on it.
constexpr char kMethod[] = "/test.Service/Method";
constexpr char kPath[] = "/test.Echo/Unary";

class CallTest : public RelayTest {
 protected:
  CallTest() { Serve({}); }

  void Serve(Relay::Observers observers) {
    StopRelay();
    StartRelay({.runtime_socket = Path("runtime.sock"), .image_socket = std::nullopt}, observers);
    client_ = std::make_unique<CriClient>(RelaySocket());
  }

  void StartRuntime() { ASSERT_THAT(runtime_.Start(Path("runtime.sock")), IsOk()); }
  // A runtime that answers with these frames.
  void Answer(std::function<std::string(uint32_t stream)> frames, bool opens_windows = true) {
    auto raw = RawRuntime::Start(
        Path("runtime.sock"),
        {.answer = [frames = std::move(frames)](uint32_t stream,
                                                const std::string&) { return frames(stream); },
         .greeting = test::Frame(4, 0, 0, ""),
         .opens_windows = opens_windows});
    ASSERT_THAT(raw, IsOk());
    raw_ = *std::move(raw);
  }
  size_t Held() {
    return thread_.Do([] { return h2::Memory::held(); });
  }

  FakeRuntime runtime_;
  std::unique_ptr<RawRuntime> raw_;
  std::unique_ptr<CriClient> client_;
};

TEST_F(CallTest, HeadersMessagesAndTrailersPassBothWays) {
  StartRuntime();
  runtime_.Script(kPath, {.error = grpc::Status(grpc::StatusCode::ABORTED, "try 50% later"),
                          .headers = {{"x-begin", "1"}},
                          .trailers = {{"x-end", "2"}}});
  const auto result = client_->Call(kPath, {"text"}, {.metadata = {{"x-client", "3"}}});
  EXPECT_EQ(result.status.error_code(), grpc::StatusCode::ABORTED);
  EXPECT_EQ(result.status.error_message(), "try 50% later");
  EXPECT_THAT(result.trailers, Contains(Pair("x-end", "2")));
  const auto calls = runtime_.Calls(kPath);
  ASSERT_EQ(calls.size(), 1U);
  EXPECT_THAT(calls[0].messages, ElementsAre("text"));
  EXPECT_THAT(calls[0].metadata, Contains(Pair("x-client", "3")));
}

TEST_F(CallTest, EndOfTheClientsStreamLeavesTheReplyOpen) {
  StartRuntime();
  const auto call = client_->Open("/test.Echo/Bidi");
  ASSERT_TRUE(call->Send("one"));
  EXPECT_TRUE(call->WaitForMessages(1, kPatience));
  ASSERT_TRUE(call->Send("two"));
  call->HalfClose();
  const auto result = EndOf(*call);
  EXPECT_TRUE(result.status.ok());
  EXPECT_THAT(result.messages, ElementsAre("one", "two"));
}

TEST_F(CallTest, RuntimeIsStoppedWhileTheClientDoesNotRead) {
  StartRuntime();
  const auto call = client_->Start("/test.Echo/Sized", "100000",
                                   {.metadata = {{"x-count", "300"}}, .pause_after = 1});
  ASSERT_TRUE(call->WaitForMessages(1, kPatience));
  EXPECT_LT(Held(), size_t{4} << 20) << "of 30 MB";
  call->ResumeReading();
  const auto result = EndOf(*call);
  EXPECT_TRUE(result.status.ok());
  EXPECT_EQ(result.messages.size(), 300U);
}

TEST_F(CallTest, ClientIsStoppedWhileTheRuntimeDoesNotRead) {
  Answer([](uint32_t) { return ""; }, false);
  const auto call = client_->Open(kMethod);
  std::thread sender([&call] { call->Send(std::string(size_t{30} << 20, 'x')); });
  EXPECT_TRUE(Eventually([](Relay&) { return h2::Memory::held() > size_t{32} << 10; }))
      << "the windows fill";
  EXPECT_LT(Held(), size_t{4} << 20);
  call->Cancel();
  sender.join();
}

TEST_F(CallTest, CancellationReachesTheRuntime) {
  StartRuntime();
  runtime_.Script(kPath, {.hold = true});
  const auto call = client_->Start(kPath, "x");
  ASSERT_TRUE(runtime_.WaitForHeld(kPath, 1));
  call->Cancel();
  EXPECT_TRUE(runtime_.WaitForCancelled(kPath, 1));
  EXPECT_TRUE(client_->Call(kPath, {"y"}, {.timeout = milliseconds(50)}).status.error_code() ==
              grpc::StatusCode::DEADLINE_EXCEEDED);
}

// gRPC over HTTP/2, section "Errors", defines the status that clients derive from a reset.
TEST_F(CallTest, ResetOfTheRuntimeReachesTheClientWithItsCode) {
  uint32_t code = 0;
  Answer([&code](uint32_t stream) { return test::Frame(3, 0, stream, test::Number(code)); });
  const std::vector<std::pair<uint32_t, grpc::StatusCode>> kCodes = {
      {2, grpc::StatusCode::INTERNAL},
      {8, grpc::StatusCode::CANCELLED},
      {11, grpc::StatusCode::RESOURCE_EXHAUSTED}};
  for (const auto& [reset, status] : kCodes) {
    code = reset;
    EXPECT_EQ(client_->Call(kMethod, {""}).status.error_code(), status) << reset;
  }
}

TEST_F(CallTest, BodyWithoutHeadersIsInternal) {
  Answer([](uint32_t stream) { return test::Body(stream, "x"); });
  EXPECT_EQ(client_->Call(kMethod, {""}).status.error_code(), grpc::StatusCode::INTERNAL);
}

TEST_F(CallTest, EndWithoutStatusIsInternal) {
  Answer([](uint32_t stream) {
    return test::Frame(1, 4, stream,
                       test::Fields({{":status", "200"}, {"content-type", "application/grpc"}})) +
           test::Body(stream, "x");
  });
  const auto result = client_->Call(kMethod, {""});
  EXPECT_EQ(result.status.error_code(), grpc::StatusCode::INTERNAL);
  EXPECT_THAT(result.status.error_message(), HasSubstr("without a status"));
}

// As with the output of a failed hook in the runtime's message.
TEST_F(CallTest, AnErrorThatIsTooLongEndsNoOtherCall) {
  auto raw =
      RawRuntime::Start(Path("runtime.sock"),
                        {.answer = [](uint32_t stream, const std::string& path) -> std::string {
                           if (path == kMethod) return "";
                           h2::HeaderBlock trailers;
                           trailers.Add(":status", "200");
                           trailers.Add("grpc-status", "2");
                           trailers.Add("grpc-message", std::string(100'000, 'x'));
                           h2::HpackEncoder encoder;
                           return test::Frame(1, 5, stream, std::string(encoder.Encode(trailers)));
                         },
                         .greeting = test::Frame(4, 0, 0, "")});
  ASSERT_THAT(raw, IsOk());
  raw_ = *std::move(raw);
  const auto other = client_->Start(kMethod, "x");
  ASSERT_TRUE(Eventually([this](Relay&) { return raw_->Requests(kMethod) == 1; }));
  for (int i = 0; i < 2; ++i)
    EXPECT_EQ(client_->Call(kPath, {""}).status.error_code(), grpc::StatusCode::INTERNAL);
  EXPECT_FALSE(other->Wait(milliseconds(0)).has_value());
  other->Cancel();
}

TEST_F(CallTest, LostConnectionToTheRuntimeIsUnavailable) {
  StartRuntime();
  runtime_.Script(kPath, {.times = 1, .cut = true});
  const auto result = client_->Call(kPath, {"x"});
  EXPECT_EQ(result.status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_TRUE(client_->Call(kPath, {"x"}).status.ok()) << "the next call connects";
}

TEST_F(CallTest, NothingIsKeptOfCallsThatAreOver) {
  StartRuntime();
  for (int i = 0; i < 20; ++i)
    EXPECT_TRUE(client_->Call(kPath, {std::string(100'000, 'x')}).status.ok());
  client_.reset();
  ASSERT_TRUE(Eventually([](Relay& relay) { return relay.connections() == 0; }));
  EXPECT_TRUE(Eventually([](Relay&) { return h2::Memory::held() == 0; }));
}

// The metrics of calls' durations, and of calls under way.
class CallTimesTest : public CallTest {
 protected:
  CallTimesTest() { Serve({.metrics = &metrics_}); }
  ~CallTimesTest() override { StopRelay(); }

  std::string Text() const {
    return prometheus::TextSerializer().Serialize(metrics_.collectable()->Collect());
  }
  static std::string Bucket(const std::string& part, const std::string& most, int count) {
    return "cri_resmgr_call_seconds_bucket{method=\"Unary\",part=\"" + part +
           "\",service=\"test.Echo\",le=\"" + most + "\"} " + std::to_string(count);
  }

  Metrics metrics_{"1.2.3", {kPath}};
};

TEST_F(CallTimesTest, TheRuntimesTimeIsToldFromOurs) {
  StartRuntime();
  runtime_.Script(kPath, {.delay = milliseconds(600)});
  EXPECT_TRUE(client_->Call(kPath, {"text"}).status.ok());
  EXPECT_THAT(Text(), HasSubstr(Bucket("runtime", "0.5", 0)));
  EXPECT_THAT(Text(), HasSubstr(Bucket("runtime", "20", 1)));
  EXPECT_THAT(Text(), HasSubstr(Bucket("ours", "0.5", 1)));
}

TEST_F(CallTimesTest, WithoutARuntimeAllTimeIsOurs) {
  EXPECT_FALSE(client_->Call(kPath, {"text"}).status.ok());
  EXPECT_THAT(Text(), HasSubstr(Bucket("runtime", "1e-05", 1)));
  EXPECT_THAT(Text(), HasSubstr("calls_in_flight 0\n"));
}

TEST_F(CallTimesTest, CallsAreInFlightUntilTheyHaveEndedInAnyWay) {
  StartRuntime();
  runtime_.Script(kPath, {.hold = true});
  const auto first = client_->Start(kPath, "one");
  const auto second = client_->Start(kPath, "two");
  ASSERT_TRUE(runtime_.WaitForHeld(kPath, 2));
  EXPECT_THAT(Text(), HasSubstr("calls_in_flight 2\n"));
  second->Cancel();
  EXPECT_TRUE(runtime_.WaitForCancelled(kPath, 1));
  runtime_.Release(kPath);
  EXPECT_TRUE(first->Wait(kPatience).has_value());
  EXPECT_TRUE(Eventually(
      [this](Relay&) { return Text().find("calls_in_flight 0\n") != std::string::npos; }));
  EXPECT_THAT(Text(), HasSubstr("code=\"CANCELLED\""));
}

}  // namespace
}  // namespace resmgr
