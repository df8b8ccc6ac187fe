// SPDX-License-Identifier: Apache-2.0
// A runtime that takes calls and does not answer: calls that concern it end in time with its name,
// and no others wait for it.
#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/cri/fan_out_call.h"
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
  // For the quickest of some calls: a wait would delay each, a busy machine delays some.
  static constexpr milliseconds kAtOnce{1'000};

  void HangSecond() {
    for (const char* const method :
         {"ListPodSandbox", "ListContainers", "ListContainerStats", "ListPodSandboxStats",
          "ListPodSandboxMetrics", "ListMetricDescriptors", "Status", "ImageStatus", "ListImages",
          "StreamContainers", "GetContainerEvents", "Version"})
      second_.Script(method, {.hold = true});
  }
  static steady_clock::duration Quickest(const std::function<void()>& call) {
    auto quickest = steady_clock::duration::max();
    for (int i = 0; i < 5; ++i) {
      const auto begin = steady_clock::now();
      call();
      quickest = std::min(quickest, steady_clock::now() - begin);
    }
    return quickest;
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
    const Ended ended = Ask(method, milliseconds(4'000));
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
  EXPECT_LT(Quickest([&] {
              ForgetIds();
              EXPECT_THAT(client_->ContainerStatus(container), IsOk());
            }),
            kAtOnce);
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
  EXPECT_LT(Quickest([this] {
              const Ended image = Ask("ImageStatus", milliseconds(120'000));
              EXPECT_TRUE(image.status.ok()) << image.status.error_message();
            }),
            kAtOnce);
  EXPECT_LT(Quickest([this] {
              EXPECT_THAT(client_->ContainerStatus("none"),
                          test::Fails(StatusCode::kUnavailable, HasSubstr("runtime kata")));
            }),
            kAtOnce);
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
  EXPECT_LT(image.after, FanOutCall::kPatience) << "as long as without the watch";
  EXPECT_LT(Quickest([this] {
              const Ended next = Ask("ImageStatus", milliseconds(120'000));
              EXPECT_TRUE(next.status.ok()) << next.status.error_message();
            }),
            kAtOnce);
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
