// SPDX-License-Identifier: Apache-2.0
// Rows about servers that hang, die or are not there, and about calls that fail.
#include <chrono>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/integration/hooks/hook_rows_fixture.h"
#include "test/support/programs/programs.h"

namespace resmgr::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using Clock = std::chrono::steady_clock;

// Beside a server's time, on a busy machine; less than the time of a server that is waited for.
constexpr seconds kMargin{15};

TEST_F(HookRowsTest, K07AServerThatHangsIsPassedOverWithinItsTime) {
  const auto server = Serve("a", {"-hang", "PreCreateContainer"});
  PutFile("10.json", FileText(Path("a.sock"), kCreatePoint));
  CriClient client = StartNodeWith(1);
  const std::string pod = Ok(client.RunPod(MakeGuaranteedPod("g")));
  const auto begin = Clock::now();
  EXPECT_THAT(
      client.CreateContainer(pod, MakeGuaranteedPod("g"), MakeGuaranteedContainer("main", 1)),
      IsOk());
  EXPECT_GE(Clock::now() - begin, seconds(2));
  EXPECT_LT(Clock::now() - begin, seconds(2) + kMargin);
}

TEST_F(HookRowsTest, AServerThatHangsDelaysOnlyItsHooks) {
  const auto server = Serve("a", {"-hang", "PreCreateContainer"});
  PutFile("10.json", FileText(Path("a.sock"), kCreatePoint, R"(, "timeout": "20s")"));
  CriClient client = StartNodeWith(1);
  const std::string pod = Ok(client.RunPod(MakeGuaranteedPod("g")));
  const auto held =
      client.Start("CreateContainer",
                   CreateRequest(pod, MakeGuaranteedPod("g"), MakeGuaranteedContainer("main", 1)));
  ASSERT_TRUE(AskedWithin("a", "PreCreateContainer", 1));
  const auto begin = Clock::now();
  EXPECT_THAT(client.RunPod(MakeGuaranteedPod("other")), IsOk());
  EXPECT_THAT(client.StopPod(pod), IsOk());
  cri::ListContainersResponse list;
  EXPECT_TRUE(client.Unary("ListContainers", cri::ListContainersRequest(), &list).ok());
  EXPECT_LT(Clock::now() - begin, kMargin);
  EXPECT_FALSE(held->Wait(milliseconds(0)));
}

TEST_F(HookRowsTest, K08AServerThatHangsAndMayNotFailRefusesAndTheRuntimeIsNotAsked) {
  const auto server = Serve("a");
  PutFile("10.json", FileText(Path("a.sock"), kCreatePoint,
                              R"(, "failure-policy": "Fail", "timeout": "300ms")"));
  CriClient client = StartNodeWith(1);
  const std::string pod = Ok(client.RunPod(MakeGuaranteedPod("g")));
  // The stopped server does not even end its connection.
  Stop(*server);
  EXPECT_THAT(
      client.CreateContainer(pod, MakeGuaranteedPod("g"), MakeGuaranteedContainer("main", 1)),
      Fails(StatusCode::kDeadlineExceeded,
            AllOf(HasSubstr("PreCreateContainer"), HasSubstr("10.json"))));
  EXPECT_THAT(runtime_.Calls("CreateContainer"), SizeIs(0));
}

TEST_F(HookRowsTest, K09WithoutTheServerPodsAreRefusedUnlessTheyAreToBeSkipped) {
  PutFile("10.json", FileText(Path("nowhere.sock"), kRunPodPoint, R"(, "failure-policy": "Fail")"));
  StartNode();
  CriClient client = Relayed();
  EXPECT_THAT(client.RunPod(MakeGuaranteedPod("g")),
              Fails(StatusCode::kUnavailable, HasSubstr("PreRunPodSandbox of 10.json")));
  cri::PodSandboxConfig skipped = MakeGuaranteedPod("s");
  (*skipped.mutable_labels())["runtimeproxy.koordinator.sh/skip-hookserver"] = "true";
  EXPECT_THAT(client.RunPod(skipped), IsOk());
}

TEST_F(HookRowsTest, K10AServerThatWasKilledIsAskedASecondAfterItIsBack) {
  auto server = Serve("a");
  PutFile("10.json", FileText(Path("a.sock"), kRunPodPoint, R"(, "failure-policy": "Fail")"));
  CriClient client = StartNodeWith(1);
  ASSERT_THAT(client.RunPod(MakeGuaranteedPod("one")), IsOk());
  server.reset();
  EXPECT_THAT(client.RunPod(MakeGuaranteedPod("two")),
              Fails(StatusCode::kUnavailable, HasSubstr("PreRunPodSandbox")));
  // Long enough for pauses that grow without a bound.
  std::this_thread::sleep_for(seconds(4));
  server = Serve("a");
  std::this_thread::sleep_for(seconds(1));
  EXPECT_THAT(client.RunPod(MakeGuaranteedPod("three")), IsOk());
}

TEST_F(HookRowsTest, K17OddCreationsEndAsWithoutHooks) {
  const auto server = Serve("a");
  PutFile("10.json", FileText(Path("a.sock"), kCreatePoint, R"(, "failure-policy": "Fail")"));
  CriClient client = StartNodeWith(1);
  CriClient direct = Direct();
  const std::string pod = Ok(client.RunPod(MakeGuaranteedPod("g")));

  cri::CreateContainerRequest no_linux =
      CreateRequest(pod, MakeGuaranteedPod("g"), MakeGuaranteedContainer("main", 1));
  no_linux.mutable_config()->clear_linux();
  cri::CreateContainerRequest no_sandbox = no_linux;
  no_sandbox.mutable_config()->mutable_metadata()->set_name("second");
  no_sandbox.clear_sandbox_config();
  cri::CreateContainerRequest no_pod = no_linux;
  no_pod.set_pod_sandbox_id("unknown");
  cri::CreateContainerRequest nothing;
  for (const auto* request : {&no_linux, &no_sandbox, &no_pod, &nothing}) {
    SCOPED_TRACE(request->ShortDebugString());
    cri::CreateContainerResponse relayed_reply;
    const grpc::Status relayed = client.Unary("CreateContainer", *request, &relayed_reply);
    if (relayed.ok()) {
      EXPECT_THAT(direct.RemoveContainer(relayed_reply.container_id()), IsOk());
    }
    cri::CreateContainerResponse direct_reply;
    const grpc::Status own = direct.Unary("CreateContainer", *request, &direct_reply);
    if (own.ok()) {
      EXPECT_THAT(direct.RemoveContainer(direct_reply.container_id()), IsOk());
    }
    EXPECT_EQ(relayed.error_code(), own.error_code());
    EXPECT_EQ(relayed.error_message(), own.error_message());
  }
  // Fields that the client left out are still left out.
  EXPECT_FALSE(Created().has_linux());
  EXPECT_TRUE(daemon_->process().Running());
}

TEST_F(HookRowsTest, K18AStopThatFailsIsToldWhenItSucceedsAndOnce) {
  const auto server = Serve("a");
  PutFile("10.json", FileText(Path("a.sock"), "\"PostStopContainer\""));
  CriClient client = StartNodeWith(1);
  const Running pod = Run(client, MakeGuaranteedPod("g"), MakeGuaranteedContainer("main", 1));
  runtime_.Script("StopContainer", {.times = 1, .error = grpc::Status(grpc::INTERNAL, "no")});
  EXPECT_FALSE(client.StopContainer(pod.container).ok());
  EXPECT_THAT(client.StopContainer(pod.container), IsOk());
  EXPECT_THAT(client.StopContainer(pod.container), IsOk());
  ASSERT_TRUE(AskedWithin("a", "PostStopContainer", 1));
  std::this_thread::sleep_for(milliseconds(300));
  const auto told = Asked<hook_api::ContainerResourceHookRequest>("a", "PostStopContainer");
  ASSERT_THAT(told, SizeIs(1));
  EXPECT_EQ(told[0].container_meta().id(), pod.container);
  EXPECT_EQ(told[0].pod_meta().name(), "g");
}

TEST_F(HookRowsTest, K19ContainersThatAreRemovedAreForgotten) {
  const int containers = SanitizedPrograms() ? 1'000 : 4'000;
  constexpr int64_t kMostGrowth = int64_t{4} << 10;  // KiB; kept, they would take some 16 MiB
  PutFile("10.json", FileText(Path("nowhere.sock"), "\"PostStopContainer\""));
  StartNode();
  CriClient client = Relayed();
  const std::string pod = Ok(client.RunPod(MakeGuaranteedPod("g")));
  cri::ContainerConfig config = MakeGuaranteedContainer("main", 1);
  (*config.mutable_annotations())["large"] = std::string(2048, 'x');
  int64_t early = 0;
  for (int i = 0; i < containers; ++i) {
    config.mutable_metadata()->set_attempt(static_cast<uint32_t>(i));
    const std::string id = Ok(client.CreateContainer(pod, MakeGuaranteedPod("g"), config));
    if (i % 500 == 0) {
      runtime_.ForgetCalls();
      EXPECT_EQ(KnownContainers(), 1u) << i;
    }
    ASSERT_THAT(client.RemoveContainer(id), IsOk());
    if (i == containers / 10) early = ProcStatus("VmRSS:");
  }
  EXPECT_EQ(KnownContainers(), 0u);
  // A sanitizer keeps what was freed.
  if (!SanitizedPrograms()) {
    EXPECT_LT(ProcStatus("VmRSS:") - early, kMostGrowth);
  }
}

}  // namespace
}  // namespace resmgr::test
