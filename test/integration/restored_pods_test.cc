// SPDX-License-Identifier: Apache-2.0
// Pods that a runtime makes by a method that this build does not know, as RestorePod of CRI 1.37.
#include <chrono>
#include <memory>
#include <string>
#include <string_view>

#include "test/integration/control_fixture.h"

namespace resmgr::test {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

constexpr char kRestorePod[] = "/runtime.v1.RuntimeService/RestorePod";
constexpr char kAnother[] = "/runtime.v1.RuntimeService/NextYearsMethod";
// Shorter than the minute between periodic lists.
constexpr seconds kSoon{30};

// Acts as such runtimes do: makes a pod sandbox with this handler and a running container in it.
MethodReply Restore(CriStore& store, const std::string& handler) {
  cri::RunPodSandboxRequest pod;
  *pod.mutable_config() = MakeBestEffortPod("restored");
  auto& overhead = *pod.mutable_config()->mutable_linux()->mutable_overhead();
  overhead.set_cpu_shares(256);
  overhead.set_cpu_period(100'000);
  overhead.set_cpu_quota(25'000);
  pod.set_runtime_handler(handler);
  cri::RunPodSandboxResponse made;
  if (const auto status = store.RunPodSandbox(pod, &made); !status.ok()) return {status, {}};
  cri::CreateContainerRequest container;
  container.set_pod_sandbox_id(made.pod_sandbox_id());
  *container.mutable_config() = MakeBestEffortContainer("restored");
  cri::CreateContainerResponse created;
  if (const auto status = store.CreateContainer(container, &created); !status.ok())
    return {status, {}};
  cri::StartContainerRequest start;
  start.set_container_id(created.container_id());
  cri::StartContainerResponse started;
  return {store.StartContainer(start, &started), {created.SerializeAsString()}};
}

class RestoredPodsTest : public ControlTest {
 protected:
  RestoredPodsTest() {
    for (FakeRuntime* const runtime : {&runtime_, &other_}) {
      // Suppresses events, so that none reports the restored pod.
      runtime->Script("GetContainerEvents",
                      {.error = grpc::Status(grpc::StatusCode::UNIMPLEMENTED, "unknown method")});
      runtime->AddMethod(kRestorePod, [this](CriStore& store, std::string_view) {
        return Restore(store, handler_);
      });
    }
  }
  void Start(const std::string& config) {
    StartRuntime();
    StartDaemon(Flags({"-config", WriteFile("node.yaml", config)}));
    client_ = std::make_unique<CriClient>(Relayed());
    ASSERT_TRUE(Eventually([this] {
      cri::ListContainersResponse list;
      return client_->Unary("ListContainers", cri::ListContainersRequest(), &list).ok();
    }));
  }
  // Waits for the list that follows each connect after some seconds.
  void WaitForSecondList() { ASSERT_TRUE(runtime_.WaitForCalls("ListPodSandbox", 2)); }
  // Field 3 of its request is the handler; returns the id of the container.
  std::string RestoreWith(const std::string& handler) {
    handler_ = handler;
    const std::string request =
        handler.empty() ? "" : "\x1a" + std::string(1, static_cast<char>(handler.size())) + handler;
    const CallResult result = client_->Call(kRestorePod, {request});
    EXPECT_TRUE(result.status.ok()) << result.status.error_message();
    cri::CreateContainerResponse created;
    EXPECT_TRUE(result.messages.size() == 1 && created.ParseFromString(result.messages[0]));
    return created.container_id();
  }
  Json Overhead() const {
    for (const Json& pool : Ctl({"pools", "-o", "json"}).json()) {
      if (pool.contains("overhead")) return pool["overhead"].value("cpu", Json());
    }
    return nullptr;
  }
  std::string KnownAs(const std::string& key) const {
    for (const Json& container : Ctl({"containers", "-o", "json"}).json()) {
      if (container.value("name", "") == "restored") return container.value(key, "");
    }
    return "unknown";
  }

  static constexpr const char* kPolicy =
      "policy: {Active: static, ReservedResources: {CPU: 1}}\n"
      "runtimeClasses: {vm: {Pinning: sandbox}}\n";
  std::string handler_;
  FakeRuntime other_{{.store = {.first_id = 1'000'000}}};
  std::unique_ptr<CriClient> client_;
};

TEST_F(RestoredPodsTest, R09AreAdmittedAsIfTheyHadBeenCreated) {
  Start(kPolicy);
  const Running own = Run(*client_, MakeGuaranteedPod("own"), MakeGuaranteedContainer("own", 2));
  EXPECT_EQ(CpusAtRuntime(own.container).ToString(), "1-2");
  WaitForSecondList();
  const std::string restored = RestoreWith("");
  EXPECT_TRUE(Eventually([&] { return CpusAtRuntime(restored).ToString() == "0,3-7"; }, kSoon))
      << CpusAtRuntime(restored).ToString();
  EXPECT_EQ(KnownAs("state"), "running");
  EXPECT_EQ(Overhead(), Json(250));
}

// The runtime reports the handler; the pod's containers are not bound.
TEST_F(RestoredPodsTest, R09HaveTheirHandler) {
  Start(kPolicy);
  const std::string restored = RestoreWith("vm");
  EXPECT_TRUE(Eventually([&] { return KnownAs("state") == "running"; }, kSoon));
  EXPECT_THAT(Ctl({"explain", restored}).out, testing::HasSubstr("handler vm has Pinning sandbox"));
  EXPECT_EQ(Overhead(), Json(250));
  EXPECT_THAT(runtime_.Calls("UpdateContainerResources"), IsEmpty());
}

TEST_F(RestoredPodsTest, ManyCallsDoNotMakeUsListOften) {
  runtime_.AddMethod(kAnother, [](CriStore&, std::string_view) {
    return MethodReply{grpc::Status::OK, {""}};
  });
  Start(kPolicy);
  const size_t lists = runtime_.Calls("ListContainers").size();
  const auto begun = std::chrono::steady_clock::now();
  for (int i = 0; i < 200; ++i)
    EXPECT_TRUE(client_->Call(kAnother, {""}).status.ok());
  ASSERT_TRUE(runtime_.WaitForCalls("ListContainers", lists + 1));
  const size_t after = runtime_.Calls("ListContainers").size();
  const auto took =
      std::chrono::duration_cast<seconds>(std::chrono::steady_clock::now() - begun).count();
  // One list a second, one after the connect, and some for what they tell.
  EXPECT_LE(after, lists + static_cast<size_t>(took) + 5);
}

// With several runtimes the handler selects the runtime; an unknown handler belongs to the default
// one.
TEST_F(RestoredPodsTest, R09AreMadeByTheRuntimeOfTheirHandler) {
  ASSERT_THAT(other_.Start(Path("other.sock")), IsOk());
  runtime_.AddMethod(kAnother, [](CriStore&, std::string_view) {
    return MethodReply{grpc::Status::OK, {"default"}};
  });
  Start("policy: {Active: static, ReservedResources: {CPU: 1}}\nruntimes: {other: {Socket: " +
        Path("other.sock") + "}}\nruntimeClasses: {there: {Runtime: other}}\n");
  const std::string there = RestoreWith("there");
  EXPECT_THAT(other_.Calls("RestorePod"), SizeIs(1));
  EXPECT_THAT(runtime_.Calls("RestorePod"), IsEmpty());
  EXPECT_TRUE(Eventually([&] { return KnownAs("state") == "running"; }, kSoon));
  // Calls about it go to the right runtime, too.
  EXPECT_THAT(client_->StopContainer(there), IsOk());
  EXPECT_THAT(other_.Calls("StopContainer"), SizeIs(1));
  const CallResult another = client_->Call(kAnother, {""});
  EXPECT_THAT(another.messages, testing::ElementsAre("default"));
}

}  // namespace
}  // namespace resmgr::test
