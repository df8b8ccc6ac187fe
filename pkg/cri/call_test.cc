// SPDX-License-Identifier: Apache-2.0
// Calls between gRPC's own client and server, or raw frames, through the relay.
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "pkg/cri/relay_fixture.h"
#include "test/support/cri_client/cri_client.h"
#include "test/support/fake_runtime/fake_runtime.h"
#include "test/support/raw_http2/frames.h"
#include "test/support/raw_http2/raw_runtime.h"
#include "test/support/status_matchers.h"

namespace resmgr {
namespace {

using test::CriClient;
using test::FakeRuntime;
using test::IsOk;
using test::RawRuntime;
using testing::Contains;
using testing::ElementsAre;
using testing::Pair;

// A path of the runtime; no test depends on it.
constexpr char kMethod[] = "/test.Service/Method";

class CallTest : public RelayTest {
 protected:
  CallTest() {
    StartRelay({.runtime_socket = Path("runtime.sock"), .image_socket = std::nullopt});
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
  runtime_.Script("/test.Echo/Unary",
                  {.error = grpc::Status(grpc::StatusCode::ABORTED, "try 50% later"),
                   .headers = {{"x-begin", "1"}},
                   .trailers = {{"x-end", "2"}}});
  const auto result =
      client_->Call("/test.Echo/Unary", {"text"}, {.metadata = {{"x-client", "3"}}});
  EXPECT_EQ(result.status.error_code(), grpc::StatusCode::ABORTED);
  EXPECT_EQ(result.status.error_message(), "try 50% later");
  EXPECT_THAT(result.trailers, Contains(Pair("x-end", "2")));
  const auto calls = runtime_.Calls("/test.Echo/Unary");
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
  const auto result = call->Wait(kPatience);
  ASSERT_TRUE(result.has_value());
  EXPECT_TRUE(result->status.ok());
  EXPECT_THAT(result->messages, ElementsAre("one", "two"));
}

TEST_F(CallTest, RuntimeIsStoppedWhileTheClientDoesNotRead) {
  StartRuntime();
  const auto call = client_->Start("/test.Echo/Sized", "100000",
                                   {.metadata = {{"x-count", "300"}}, .pause_after = 1});
  ASSERT_TRUE(call->WaitForMessages(1, kPatience));
  EXPECT_LT(Held(), size_t{4} << 20) << "of 30 MB";
  call->ResumeReading();
  const auto result = call->Wait(kPatience);
  ASSERT_TRUE(result.has_value());
  EXPECT_TRUE(result->status.ok());
  EXPECT_EQ(result->messages.size(), 300U);
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
  runtime_.Script("/test.Echo/Unary", {.hold = true});
  const auto call = client_->Start("/test.Echo/Unary", "x");
  ASSERT_TRUE(runtime_.WaitForHeld("/test.Echo/Unary", 1));
  call->Cancel();
  EXPECT_TRUE(runtime_.WaitForCancelled("/test.Echo/Unary", 1));
  EXPECT_TRUE(client_->Call("/test.Echo/Unary", {"y"}, {.timeout = std::chrono::milliseconds(50)})
                  .status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED);
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
  EXPECT_THAT(result.status.error_message(), testing::HasSubstr("without a status"));
}

TEST_F(CallTest, LostConnectionToTheRuntimeIsUnavailable) {
  StartRuntime();
  runtime_.Script("/test.Echo/Unary", {.times = 1, .cut = true});
  const auto result = client_->Call("/test.Echo/Unary", {"x"});
  EXPECT_EQ(result.status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_TRUE(client_->Call("/test.Echo/Unary", {"x"}).status.ok()) << "the next call connects";
}

TEST_F(CallTest, NothingIsKeptOfCallsThatAreOver) {
  StartRuntime();
  for (int i = 0; i < 20; ++i)
    EXPECT_TRUE(client_->Call("/test.Echo/Unary", {std::string(100'000, 'x')}).status.ok());
  client_.reset();
  ASSERT_TRUE(Eventually([](Relay& relay) { return relay.connections() == 0; }));
  EXPECT_TRUE(Eventually([](Relay&) { return h2::Memory::held() == 0; }));
}

}  // namespace
}  // namespace resmgr
