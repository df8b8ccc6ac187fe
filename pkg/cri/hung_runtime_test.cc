// SPDX-License-Identifier: Apache-2.0
// A runtime that takes calls and does not answer: calls that concern it end in time with its name,
// and no others wait for it.
#include <chrono>
#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/cri/runtimes_watch.h"
#include "pkg/cri/testing/several_runtimes_fixture.h"

namespace resmgr {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;
using test::IsOk;
using testing::HasSubstr;
using testing::SizeIs;
namespace cri = ::runtime::v1;

class HungRuntimeTest : public SeveralRuntimesTest {
 protected:
  // Generous for a busy machine; failures take seconds.
  static constexpr milliseconds kAtOnce{1'000};

  void HangSecond() {
    for (const char* const method :
         {"ListPodSandbox", "ListContainers", "ListContainerStats", "ListPodSandboxStats",
          "ListPodSandboxMetrics", "ListMetricDescriptors", "Status", "ImageStatus", "ListImages",
          "StreamContainers", "GetContainerEvents", "Version"})
      second_.Script(method, {.hold = true});
  }
  struct Ended {
    grpc::Status status;
    steady_clock::duration after{};
  };
  Ended Ask(const std::string& method, milliseconds timeout) {
    const auto begin = steady_clock::now();
    const auto result =
        client_->Start(client_->PathOf(method), "", {.timeout = timeout})->Wait(seconds(60));
    EXPECT_TRUE(result.has_value()) << method;
    if (!result) return {};
    return {result->status, steady_clock::now() - begin};
  }
};

TEST_F(HungRuntimeTest, C12ListsFailBeforeTheClientsDeadline) {
  RunPod("here", "");
  HangSecond();
  for (const char* const method :
       {"ListPodSandbox", "ListContainers", "ListContainerStats", "ListPodSandboxStats",
        "ListPodSandboxMetrics", "ListImages", "StreamContainers"}) {
    const Ended ended = Ask(method, milliseconds(2'000));
    EXPECT_EQ(ended.status.error_code(), grpc::StatusCode::UNAVAILABLE) << method;
    EXPECT_THAT(ended.status.error_message(), HasSubstr("runtime kata: no answer within"))
        << method;
  }
  const Ended status = Ask("Status", milliseconds(2'000));
  EXPECT_TRUE(status.status.ok()) << status.status.error_message();
}

TEST_F(HungRuntimeTest, C12ListsFailAfterSomeSeconds) {
  HangSecond();
  const Ended ended = Ask("ListContainers", milliseconds(120'000));
  EXPECT_EQ(ended.status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(ended.status.error_message(), "runtime kata: no answer within 10000 ms");
  EXPECT_LT(ended.after, seconds(30));
  EXPECT_TRUE(second_.WaitForCancelled("ListContainers", 1));
}

// An unknown id, as after a start.
TEST_F(HungRuntimeTest, C12UnknownIdOfAnotherRuntimeDoesNotWaitForIt) {
  const std::string here = RunPod("here", "");
  const std::string container = CreateContainer(here);
  HangSecond();
  for (int round = 0; round < 3; ++round) {
    ForgetIds();
    const auto begin = steady_clock::now();
    EXPECT_THAT(client_->ContainerStatus(container), IsOk());
    EXPECT_LT(steady_clock::now() - begin, kAtOnce);
  }
  EXPECT_THAT(second_.Calls("ListContainers"), SizeIs(1)) << "it is asked once until it answers";
  // A container that no answering runtime has may belong to the hanging one.
  cri::ContainerStatusRequest request;
  request.set_container_id("none");
  const auto result =
      client_->Start("ContainerStatus", request, {.timeout = milliseconds(2'000)})->Wait(kPatience);
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(result->status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_THAT(result->status.error_message(), HasSubstr("runtime kata"));
}

TEST_F(HungRuntimeTest, C12WhatIsKnownToHangIsNotWaitedFor) {
  HangSecond();
  thread_.Do([this] { backends_->NoteAnswer(1, false); });
  const Ended image = Ask("ImageStatus", milliseconds(120'000));
  EXPECT_TRUE(image.status.ok()) << image.status.error_message();
  EXPECT_LT(image.after, kAtOnce);
  const auto begin = steady_clock::now();
  EXPECT_THAT(client_->ContainerStatus("none"),
              test::Fails(StatusCode::kUnavailable, HasSubstr("runtime kata")));
  EXPECT_LT(steady_clock::now() - begin, kAtOnce);
}

// The watch asks every five seconds, and at once if an answer is late.
TEST_F(HungRuntimeTest, C12ASilentRuntimeIsKnownToHangAfterASecond) {
  std::unique_ptr<RuntimesWatch> watch;
  thread_.Do([&] {
    watch = std::make_unique<RuntimesWatch>(thread_.loop(), thread_.flushes(), *backends_, nullptr);
  });
  ASSERT_TRUE(second_.WaitForCalls("Version", 1));
  HangSecond();
  const Ended image = Ask("ImageStatus", milliseconds(120'000));
  EXPECT_TRUE(image.status.ok()) << image.status.error_message();
  EXPECT_LT(image.after, milliseconds(3'500));
  const Ended next = Ask("ImageStatus", milliseconds(120'000));
  EXPECT_TRUE(next.status.ok()) << next.status.error_message();
  EXPECT_LT(next.after, kAtOnce);
  thread_.Do([&] { watch.reset(); });
  // The watch is gone, so no question follows.
  thread_.Do([this] { backends_->NoteSilence(1); });
}

TEST_F(HungRuntimeTest, C12EventsOfTheOthersGoOn) {
  const std::string here = RunPod("here", "");
  HangSecond();
  const auto events = client_->Start(client_->PathOf("GetContainerEvents"), "");
  ASSERT_TRUE(first_.WaitForCalls("GetContainerEvents", 1));
  CreateContainer(here);
  EXPECT_TRUE(events->WaitForMessages(1, kPatience));
  events->Cancel();
}

}  // namespace
}  // namespace resmgr
