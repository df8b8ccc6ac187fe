// SPDX-License-Identifier: Apache-2.0
// The metrics of calls' durations, and of calls under way.
#include <chrono>
#include <memory>
#include <string>

#include <prometheus/collectable.h>
#include <prometheus/text_serializer.h>

#include "pkg/cri/relay_fixture.h"
#include "pkg/metrics/metrics.h"
#include "test/support/cri_client/cri_client.h"
#include "test/support/fake_runtime/fake_runtime.h"
#include "test/support/status_matchers.h"

namespace resmgr {
namespace {

using std::chrono::milliseconds;
using test::CriClient;
using test::FakeRuntime;
using test::IsOk;
using testing::HasSubstr;
using testing::Not;

constexpr char kPath[] = "/test.Echo/Unary";

class CallTimesTest : public RelayTest {
 protected:
  CallTimesTest() {
    StartRelay({.runtime_socket = Path("runtime.sock"), .image_socket = std::nullopt},
               {.metrics = &metrics_});
    client_ = std::make_unique<CriClient>(RelaySocket());
  }
  ~CallTimesTest() override { StopRelay(); }

  std::string Text() const {
    return prometheus::TextSerializer().Serialize(metrics_.collectable()->Collect());
  }
  static std::string Bucket(const std::string& part, const std::string& most, int count) {
    return "cri_resmgr_call_seconds_bucket{method=\"Unary\",part=\"" + part +
           "\",service=\"test.Echo\",le=\"" + most + "\"} " + std::to_string(count);
  }

  Metrics metrics_{"1.2.3", {kPath}};
  FakeRuntime runtime_;
  std::unique_ptr<CriClient> client_;
};

TEST_F(CallTimesTest, TheRuntimesTimeIsToldFromOurs) {
  ASSERT_THAT(runtime_.Start(Path("runtime.sock")), IsOk());
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
  ASSERT_THAT(runtime_.Start(Path("runtime.sock")), IsOk());
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
