// SPDX-License-Identifier: Apache-2.0
// A client's requests and replies are the same through the relay as without it.
#include <string>
#include <vector>

#include <fmt/format.h>

#include "test/integration/daemon_fixture.h"

namespace resmgr::test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class TransparencyTest : public DaemonTest {
 protected:
  void SetUp() override { StartBoth(); }

  // The same call through the relay and directly.
  struct Pair {
    CallResult direct;
    CallResult relayed;
  };
  Pair CallBoth(const std::string& path, const std::vector<std::string>& messages,
                const CallOptions& options = {}) {
    return {Direct().Call(path, messages, options), Relayed().Call(path, messages, options)};
  }
  static void ExpectSame(const Pair& pair) {
    EXPECT_EQ(pair.relayed.status.error_code(), pair.direct.status.error_code());
    EXPECT_EQ(pair.relayed.status.error_message(), pair.direct.status.error_message());
    EXPECT_EQ(pair.relayed.status.error_details(), pair.direct.status.error_details());
    EXPECT_EQ(pair.relayed.messages, pair.direct.messages);
    EXPECT_EQ(pair.relayed.headers, pair.direct.headers);
    EXPECT_EQ(pair.relayed.trailers, pair.direct.trailers);
  }
};

const std::string kBinary("\x00\x01\xff\x80 binary", 11);

TEST_F(TransparencyTest, MetadataReachesTheRuntimeAsSent) {
  const Metadata sent = {{"traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"},
                         {"x-text", "one"},
                         {"x-text", "two"},
                         {"x-empty", ""},
                         {"x-data-bin", kBinary}};
  ExpectSame(CallBoth("/runtime.v1.RuntimeService/Version", {""}, {.metadata = sent}));
  std::vector<RecordedCall> calls = runtime_.Calls("Version");
  // The daemon itself may have asked, too; its calls carry nothing of ours.
  std::erase_if(calls, [](const RecordedCall& call) { return !call.metadata.contains("x-text"); });
  ASSERT_EQ(calls.size(), 2u);
  EXPECT_EQ(calls[0].metadata, calls[1].metadata);
  for (const auto& entry : sent)
    EXPECT_THAT(calls[1].metadata, testing::Contains(entry));
}

TEST_F(TransparencyTest, HeadersAndTrailersComeBack) {
  runtime_.Script("/test.Echo/Unary",
                  {.headers = {{"x-head", "h"}, {"x-head-bin", kBinary}},
                   .trailers = {{"x-tail", "t"}, {"x-tail", "u"}, {"x-tail-bin", kBinary}}});
  const Pair pair = CallBoth("/test.Echo/Unary", {"message"});
  ExpectSame(pair);
  EXPECT_EQ(pair.relayed.headers.count("x-head-bin"), 1u);
  EXPECT_EQ(pair.relayed.trailers.count("x-tail"), 2u);
}

TEST_F(TransparencyTest, StatusComesBackWithMessageAndDetails) {
  const std::string message = "out of ünits: 100% \n of it";
  for (const char* method : {"ListContainers", "CreateContainer", "StopPodSandbox"}) {
    runtime_.Script(method,
                    {.error = grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED, message, kBinary),
                     .trailers = {{"x-tail", "t"}}});
    const Pair pair = CallBoth("/runtime.v1.RuntimeService/" + std::string(method), {""});
    ExpectSame(pair);
    EXPECT_EQ(pair.relayed.status.error_message(), message) << method;
    EXPECT_EQ(pair.relayed.status.error_details(), kBinary) << method;
  }
}

TEST_F(TransparencyTest, UnknownServicesAndMethodsPass) {
  runtime_.Script("/runtime.v1.RuntimeService/FutureMethod", {.reply = {{"from the future"}}});
  const Pair future = CallBoth("/runtime.v1.RuntimeService/FutureMethod", {"hello"});
  ExpectSame(future);
  EXPECT_THAT(future.relayed.messages, ElementsAre("from the future"));

  ExpectSame(CallBoth("/runtime.v2.RuntimeService/CreateContainer", {"hello"}));
  ExpectSame(CallBoth("/runtime.v1.RuntimeService/NoSuchMethod", {"hello"}));
  const Pair unknown = CallBoth("/other.Service/Method", {"hello"});
  ExpectSame(unknown);
  EXPECT_EQ(unknown.relayed.status.error_code(), grpc::StatusCode::UNIMPLEMENTED);
}

TEST_F(TransparencyTest, ServerStreamsPass) {
  const Pair pair =
      CallBoth("/test.Echo/Stream", {"one of many"}, {.metadata = {{"x-count", "100"}}});
  ExpectSame(pair);
  EXPECT_EQ(pair.relayed.messages.size(), 100u);
  const Pair list = CallBoth("/runtime.v1.RuntimeService/StreamContainers", {""});
  ExpectSame(list);
  EXPECT_EQ(list.relayed.messages.size(), 1u);
}

TEST_F(TransparencyTest, ClientStreamsPass) {
  const Pair pair = CallBoth("/test.Echo/Collect", {"a", "", "bc", std::string(100'000, 'd')});
  ExpectSame(pair);
  EXPECT_EQ(pair.relayed.messages.at(0).size(), 100'003u);
}

TEST_F(TransparencyTest, ReplyWithoutMessagePasses) {
  runtime_.Script("FutureMethod", {.reply = std::vector<std::string>{}});
  ExpectSame(CallBoth("/runtime.v1.RuntimeService/FutureMethod", {"hello"}));
}

TEST_F(TransparencyTest, MessagesOfAStreamPassOneByOne) {
  CriClient client = Relayed();
  const auto call = client.Open("/test.Echo/Bidi");
  for (size_t i = 1; i <= 10; ++i) {
    ASSERT_TRUE(call->Send(fmt::format("message {}", i)));
    ASSERT_TRUE(call->WaitForMessages(i, kPatience)) << "message " << i << " was kept back";
  }
  call->HalfClose();
  const auto result = call->Wait(kPatience);
  ASSERT_TRUE(result.has_value());
  EXPECT_TRUE(result->status.ok());
  EXPECT_EQ(result->messages.back(), "message 10");
}

TEST_F(TransparencyTest, EventsArriveWhenTheyHappen) {
  CriClient client = Relayed();
  ASSERT_TRUE(runtime_.WaitForCalls("GetContainerEvents", 1)) << "the daemon's own";
  const auto events = client.Start("GetContainerEvents", cri::GetEventsRequest());
  ASSERT_TRUE(runtime_.WaitForCalls("GetContainerEvents", 2));
  const Running running = Run(client, MakeBestEffortPod("e"), MakeBestEffortContainer("main"));
  ASSERT_TRUE(events->WaitForMessages(2, kPatience));
  events->Cancel();
  const auto result = events->Wait(kPatience);
  ASSERT_TRUE(result.has_value());
  cri::ContainerEventResponse event;
  ASSERT_TRUE(event.ParseFromString(result->messages.at(1)));
  EXPECT_EQ(event.container_id(), running.container);
  EXPECT_EQ(event.container_event_type(), cri::CONTAINER_STARTED_EVENT);
  EXPECT_TRUE(runtime_.WaitForCancelled("GetContainerEvents", 2)) << "the daemon's and this one";
}

TEST_F(TransparencyTest, DeadlineReachesTheRuntime) {
  runtime_.Script("/test.Echo/Unary", {.hold = true});
  const auto before = std::chrono::system_clock::now();
  // Long enough for a busy machine to bring the call to the runtime.
  constexpr milliseconds kTimeout{3'000};
  const CallResult result = Relayed().Call("/test.Echo/Unary", {"x"}, {.timeout = kTimeout});
  EXPECT_EQ(result.status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_TRUE(runtime_.WaitForCancelled("/test.Echo/Unary", 1, kAtOnce));
  const auto deadline = runtime_.Calls("/test.Echo/Unary").at(0).deadline;
  EXPECT_GE(deadline, before + kTimeout - milliseconds(50));
  EXPECT_LE(deadline, before + kTimeout + kAtOnce);
}

TEST_F(TransparencyTest, CancellationReachesTheRuntime) {
  runtime_.Script("/test.Echo/Unary", {.hold = true});
  CriClient client = Relayed();
  const auto call = client.Start("/test.Echo/Unary", "x");
  ASSERT_TRUE(runtime_.WaitForHeld("/test.Echo/Unary", 1));
  call->Cancel();
  EXPECT_TRUE(runtime_.WaitForCancelled("/test.Echo/Unary", 1, kAtOnce));
  const auto result = call->Wait(kPatience);
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(result->status.error_code(), grpc::StatusCode::CANCELLED);
}

TEST_F(TransparencyTest, LostClientCancelsItsCalls) {
  runtime_.Script("/test.Echo/Unary", {.hold = true});
  {
    CriClient client = Relayed();
    const auto call = client.Start("/test.Echo/Unary", "x");
    ASSERT_TRUE(runtime_.WaitForHeld("/test.Echo/Unary", 1));
  }
  EXPECT_TRUE(runtime_.WaitForCancelled("/test.Echo/Unary", 1, kAtOnce));
}

TEST_F(TransparencyTest, CompressedMessagesPass) {
  runtime_.Script("/test.Echo/Unary", {.gzip = true});
  const std::string message(300'000, 'a');
  const Pair pair = CallBoth("/test.Echo/Unary", {message}, {.gzip = true});
  ExpectSame(pair);
  EXPECT_THAT(pair.relayed.messages, ElementsAre(message));
}

TEST_F(TransparencyTest, CallsSideBySideDoNotMix) {
  constexpr int kCalls = 64;
  CriClient client = Relayed();
  std::vector<std::unique_ptr<PendingCall>> calls;
  calls.reserve(kCalls);
  for (int i = 0; i < kCalls; ++i) {
    calls.push_back(client.Start("/test.Echo/Stream",
                                 std::string(static_cast<size_t>(i) * 1000, 'x'),
                                 {.metadata = {{"x-count", "3"}}}));
  }
  for (size_t i = 0; i < kCalls; ++i) {
    const auto result = calls[i]->Wait(kPatience);
    ASSERT_TRUE(result.has_value());
    ASSERT_TRUE(result->status.ok()) << result->status.error_message();
    EXPECT_EQ(result->messages, std::vector<std::string>(3, std::string(i * 1000, 'x')));
  }
}

TEST_F(TransparencyTest, EveryMethodAnswersAsTheRuntimeDoes) {
  CriClient client = Relayed();
  const Running running = Run(client, MakeBestEffortPod("p"), MakeBestEffortContainer("main"));
  // Requests whose answers hold no time of the moment.
  cri::ContainerStatusRequest container;
  container.set_container_id(running.container);
  container.set_verbose(true);
  cri::PodSandboxStatusRequest pod;
  pod.set_pod_sandbox_id(running.pod);
  pod.set_verbose(true);
  const std::vector<std::pair<std::string, std::string>> requests = {
      {"RuntimeService/Version", ""},
      {"RuntimeService/Status", ""},
      {"RuntimeService/RuntimeConfig", ""},
      {"RuntimeService/UpdateRuntimeConfig", ""},
      {"RuntimeService/ListContainers", ""},
      {"RuntimeService/ListPodSandbox", ""},
      {"RuntimeService/StreamPodSandboxes", ""},
      {"RuntimeService/ContainerStatus", container.SerializeAsString()},
      {"RuntimeService/PodSandboxStatus", pod.SerializeAsString()},
      {"RuntimeService/ContainerStatus", ""},
      {"RuntimeService/ExecSync", container.SerializeAsString()},
      {"RuntimeService/Attach", container.SerializeAsString()},
      {"RuntimeService/ListMetricDescriptors", ""},
      {"RuntimeService/ListPodSandboxMetrics", ""},
      {"RuntimeService/CheckpointContainer", ""},
      {"ImageService/ListImages", ""},
      {"ImageService/ImageStatus", ""},
      {"ImageService/StreamImages", ""},
      {"ImageService/PullImage", ""},
  };
  for (const char* version : {"/runtime.v1.", "/runtime.v1alpha2."}) {
    for (const auto& [method, request] : requests) {
      SCOPED_TRACE(version + method);
      ExpectSame(CallBoth(version + method, {request}));
    }
  }
}

TEST_F(TransparencyTest, SendsTheRuntimeNothingUnasked) {
  CriClient client = Relayed();
  ASSERT_TRUE(client.Call("/runtime.v1.RuntimeService/Version", {""}).status.ok());
  for (const char* method : {"UpdateContainerResources", "CreateContainer", "StopContainer",
                             "RemoveContainer", "StopPodSandbox", "RemovePodSandbox"}) {
    EXPECT_THAT(runtime_.Calls(method), IsEmpty()) << method;
  }
}

}  // namespace
}  // namespace resmgr::test
