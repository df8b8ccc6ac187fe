// SPDX-License-Identifier: Apache-2.0
// Messages of any size pass, and the daemon's memory does not grow with them.
#include <string>
#include <vector>

#include "test/integration/daemon_fixture.h"
#include "test/support/programs/programs.h"

namespace resmgr::test {
namespace {

constexpr size_t kMiB = size_t{1} << 20;
constexpr size_t kHuge = 64 * kMiB;
constexpr int64_t kPeakLimitKib = 20 * 1024;

class BigMessagesTest : public DaemonTest {
 protected:
  void SetUp() override { StartBoth(); }
  void TearDown() override {
    if (SanitizedPrograms() || !daemon_) return;
    EXPECT_LT(ProcStatus("VmHWM:"), kPeakLimitKib) << "KiB at the most";
  }
};

TEST_F(BigMessagesTest, HugeReplyPasses) {
  const CallResult result = Relayed().Call("/test.Echo/Sized", {std::to_string(kHuge)});
  ASSERT_TRUE(result.status.ok()) << result.status.error_message();
  ASSERT_EQ(result.messages.size(), 1u);
  EXPECT_EQ(result.messages[0].size(), kHuge);
}

TEST_F(BigMessagesTest, HugeRequestPasses) {
  std::string message(kHuge, 'x');
  for (size_t i = 0; i < message.size(); i += 4096)
    message[i] = static_cast<char>('a' + i / 4096 % 26);
  const CallResult result = Relayed().Call("/test.Echo/Unary", {message});
  ASSERT_TRUE(result.status.ok()) << result.status.error_message();
  EXPECT_TRUE(result.messages.at(0) == message);
}

TEST_F(BigMessagesTest, ManyBigRepliesAtOncePass) {
  CriClient client = Relayed();
  std::vector<std::unique_ptr<PendingCall>> calls;
  for (int i = 0; i < 32; ++i)
    calls.push_back(client.Start("/test.Echo/Sized", std::to_string(4 * kMiB)));
  for (const auto& call : calls) {
    const auto result = call->Wait(SanitizedPrograms() ? 4 * kPatience : kPatience);
    ASSERT_TRUE(result.has_value());
    ASSERT_TRUE(result->status.ok()) << result->status.error_message();
    EXPECT_EQ(result->messages.at(0).size(), 4 * kMiB);
  }
}

TEST_F(BigMessagesTest, SlowReaderSlowsTheRuntimeDown) {
  CriClient client = Relayed();
  const auto call = client.Start("/test.Echo/Sized", std::to_string(kMiB),
                                 {.metadata = {{"x-count", "100"}}, .pause_after = 1});
  ASSERT_TRUE(call->WaitForMessages(1, kPatience));
  // Other calls are not delayed by it, on the same connection or another one.
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(client.Call("/runtime.v1.RuntimeService/Version", {""}).status.ok());
  }
  ASSERT_TRUE(Relayed().Call("/test.Echo/Sized", {std::to_string(8 * kMiB)}).status.ok());
  call->ResumeReading();
  const auto result = call->Wait(kPatience);
  ASSERT_TRUE(result.has_value());
  EXPECT_TRUE(result->status.ok());
  EXPECT_EQ(result->messages.size(), 100u);
}

TEST_F(BigMessagesTest, LongListPasses) {
  runtime_.WithStore([](CriStore& store) {
    cri::RunPodSandboxRequest pod;
    *pod.mutable_config() = MakeBestEffortPod("many");
    cri::RunPodSandboxResponse pod_response;
    store.RunPodSandbox(pod, &pod_response);
    for (uint32_t i = 0; i < 1000; ++i) {
      cri::CreateContainerRequest request;
      request.set_pod_sandbox_id(pod_response.pod_sandbox_id());
      *request.mutable_config() = MakeContainer({.name = "c", .attempt = i});
      // 17 MiB together: more than gRPC's 4 and kubelet's 16 MiB.
      (*request.mutable_config()->mutable_annotations())["filler"] = std::string(17'800, 'x');
      cri::CreateContainerResponse response;
      store.CreateContainer(request, &response);
    }
  });
  cri::ListContainersResponse list;
  ASSERT_TRUE(Relayed().Unary("ListContainers", cri::ListContainersRequest(), &list).ok());
  EXPECT_EQ(list.containers_size(), 1000);
  EXPECT_GT(list.ByteSizeLong(), 17 * kMiB);
}

// A request that is read has to be held whole, and is still passed on.
class BigCreateTest : public DaemonTest {};

TEST_F(BigCreateTest, BigCreateRequestIsPlaced) {
  CriClient client = Started();
  const std::string pod = Ok(client.RunPod(MakeGuaranteedPod("big")));
  auto config = MakeGuaranteedContainer("main", 2);
  (*config.mutable_annotations())["filler"] = std::string(12 * kMiB, 'x');
  const std::string id = Ok(client.CreateContainer(pod, MakeGuaranteedPod("big"), config));
  EXPECT_EQ(CpusAtRuntime(id).size(), 2);
  EXPECT_EQ(runtime_.FindContainer(id)->config.annotations().at("filler").size(), 12 * kMiB);
}

}  // namespace
}  // namespace resmgr::test
