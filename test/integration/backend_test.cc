// SPDX-License-Identifier: Apache-2.0
// Runtimes that are absent, come, go, and come back; images at another socket.
#include <algorithm>
#include <chrono>
#include <string>

#include "test/integration/daemon_fixture.h"

namespace resmgr::test {
namespace {

using Clock = std::chrono::steady_clock;
using grpc::StatusCode::OK;
using grpc::StatusCode::UNAVAILABLE;
using grpc::StatusCode::UNIMPLEMENTED;

class BackendTest : public DaemonTest {
 protected:
  static bool Served(CriClient& client) {
    return Eventually([&] { return client.Call(kVersion, {""}).status.ok(); }, kAtOnce);
  }
  bool ImageIsThere(CriClient& client, const std::string& name) {
    cri::ListImagesRequest request;
    request.mutable_filter()->mutable_image()->set_image(name);
    cri::ListImagesResponse images;
    EXPECT_TRUE(client.Unary("ListImages", request, &images).ok());
    return images.images_size() == 1;
  }
};

TEST_F(BackendTest, AbsentAtStartIsUnavailableAtOnceAndServedWhenItComes) {
  StartDaemon(StaticFlags());
  CriClient client = Relayed();
  const auto before = Clock::now();
  for (const char* method : {"Version", "ListContainers", "CreateContainer", "RunPodSandbox"}) {
    const CallResult result = client.Call(client.PathOf(method), {""});
    EXPECT_EQ(result.status.error_code(), UNAVAILABLE) << method;
    EXPECT_THAT(result.status.error_message(), testing::HasSubstr(RuntimeSocket()))
        << "names what is not there";
  }
  EXPECT_LT(Clock::now() - before, kAtOnce);

  StartRuntime();
  EXPECT_TRUE(Served(client));
  const Running running = Run(client, MakeGuaranteedPod("g"), MakeGuaranteedContainer("main", 2));
  EXPECT_EQ(CpusAtRuntime(running.container).size(), 2);
}

TEST_F(BackendTest, KilledMidCallIsUnavailableAtOnce) {
  CriClient client = Started();
  for (const char* method : {"ListContainers", "CreateContainer"}) {
    runtime_.Script(method, {.hold = true});
    const auto call = client.Start(client.PathOf(method), "");
    ASSERT_TRUE(runtime_.WaitForHeld(method, 1));
    runtime_.Stop(FakeRuntime::SocketFile::kLeave);
    const auto result = call->Wait(kAtOnce);
    ASSERT_TRUE(result.has_value()) << method;
    EXPECT_EQ(result->status.error_code(), UNAVAILABLE) << method;
    runtime_.ClearScripts();
    StartRuntime();
    EXPECT_TRUE(Served(client)) << method;
  }
}

TEST_F(BackendTest, KilledMidStreamIsUnavailableAtOnce) {
  CriClient client = Started();
  runtime_.Script("/test.Echo/Stream", {.stall = true});
  const auto call = client.Start("/test.Echo/Stream", "x", {.metadata = {{"x-count", "3"}}});
  ASSERT_TRUE(call->WaitForMessages(3, kPatience));
  runtime_.Stop(FakeRuntime::SocketFile::kLeave);
  const auto result = call->Wait(kAtOnce);
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(result->status.error_code(), UNAVAILABLE);
}

TEST_F(BackendTest, CutConnectionIsOpenedAgain) {
  CriClient client = Started();
  ASSERT_TRUE(client.Call(kVersion, {""}).status.ok());
  runtime_.Script("ListContainers", {.times = 1, .cut = true});
  EXPECT_EQ(client.Call(client.PathOf("ListContainers"), {""}).status.error_code(), UNAVAILABLE);
  EXPECT_TRUE(Served(client));
}

// A pause before the next connection would delay each return, a busy machine delays some.
TEST_F(BackendTest, ServesAgainWithinASecondOfTheRuntimesReturn) {
  CriClient client = Started();
  for (const auto file : {FakeRuntime::SocketFile::kLeave, FakeRuntime::SocketFile::kRemove}) {
    auto quickest = Clock::duration::max();
    for (int i = 0; i < 5 && quickest >= kAtOnceAlone; ++i) {
      ASSERT_TRUE(client.Call(kVersion, {""}).status.ok());
      runtime_.Stop(file);
      EXPECT_EQ(client.Call(kVersion, {""}).status.error_code(), UNAVAILABLE);
      StartRuntime();
      const auto back = Clock::now();
      ASSERT_TRUE(Served(client));
      quickest = std::min(quickest, Clock::now() - back);
    }
    EXPECT_LT(quickest, kAtOnceAlone);
  }
}

TEST_F(BackendTest, PlacementsSurviveTheRuntimesRestart) {
  CriClient client = Started();
  const Running first = Run(client, MakeGuaranteedPod("a"), MakeGuaranteedContainer("main", 2));
  const CpuSet cpus = CpusAtRuntime(first.container);
  runtime_.Stop(FakeRuntime::SocketFile::kLeave);
  StartRuntime();
  ASSERT_TRUE(Served(client));
  const Running second = Run(client, MakeGuaranteedPod("b"), MakeGuaranteedContainer("main", 2));
  EXPECT_EQ(CpusAtRuntime(first.container), cpus);
  EXPECT_FALSE(CpusAtRuntime(second.container).Intersects(cpus));
}

TEST_F(BackendTest, ContainersThatWentWithTheRuntimeFreeTheirCpus) {
  CriClient client = Started();
  // The pods take all CPUs but the reserved one.
  Run(client, MakeGuaranteedPod("a"), MakeGuaranteedContainer("main", kCpus - 1));
  runtime_.Stop(FakeRuntime::SocketFile::kLeave);
  runtime_.WithStore([](CriStore& store) { store.Clear(); });
  StartRuntime();
  ASSERT_TRUE(Served(client));
  const Running next =
      Run(client, MakeGuaranteedPod("b"), MakeGuaranteedContainer("main", kCpus - 1));
  EXPECT_EQ(CpusAtRuntime(next.container).size(), kCpus - 1);
}

TEST_F(BackendTest, ImageCallsGoToTheImageSocket) {
  FakeRuntime images;
  ASSERT_THAT(images.Start(Path("images.sock")), IsOk());
  StartRuntime();
  StartDaemon(StaticFlags({"-image-socket", "unix://" + Path("images.sock")}));
  CriClient direct(Path("images.sock"));
  cri::PullImageRequest request;
  request.mutable_image()->set_image("docker.io/local/only-here:1");
  cri::PullImageResponse response;
  ASSERT_TRUE(direct.Unary("PullImage", request, &response).ok());
  for (const ApiVersion version : {ApiVersion::kV1, ApiVersion::kV1Alpha2}) {
    CriClient client = Relayed(version);
    EXPECT_TRUE(ImageIsThere(client, "docker.io/local/only-here:1"));
    EXPECT_TRUE(client.Call(client.PathOf("Version"), {""}).status.ok());
  }
  EXPECT_THAT(runtime_.Calls("ListImages"), testing::IsEmpty());
  EXPECT_THAT(images.Calls("Version"), testing::IsEmpty());

  // Each of the two sockets may vanish alone.
  CriClient client = Relayed();
  images.Stop();
  EXPECT_EQ(client.Call(client.PathOf("ListImages"), {""}).status.error_code(), UNAVAILABLE);
  EXPECT_EQ(client.Call(kVersion, {""}).status.error_code(), OK);
}

TEST_F(BackendTest, WithoutImageSocketImagesAreUnimplemented) {
  StartRuntime();
  StartDaemon(StaticFlags({"-image-socket", "-"}));
  for (const ApiVersion version : {ApiVersion::kV1, ApiVersion::kV1Alpha2}) {
    CriClient client = Relayed(version);
    EXPECT_EQ(client.Call(client.PathOf("ListImages"), {""}).status.error_code(), UNIMPLEMENTED);
    EXPECT_EQ(client.Call(client.PathOf("Version"), {""}).status.error_code(), OK);
  }
  EXPECT_THAT(runtime_.Calls("ListImages"), testing::IsEmpty());
}

}  // namespace
}  // namespace resmgr::test
