// SPDX-License-Identifier: Apache-2.0
// Changes at the runtime that do not pass the relay, and calls with abbreviated ids.
#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <google/protobuf/util/message_differencer.h>

#include "pkg/api/config.pb.h"
#include "test/integration/control_fixture.h"

namespace resmgr::test {
namespace {

using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

class LearningTest : public DaemonTest {
 protected:
  // A shared container and one with CPUs of its own, which are not the shared one's then.
  void StartWithBoth() {
    CriClient client = Started();
    shared_ = Run(client, MakeBestEffortPod("s"), MakeBestEffortContainer("main"));
    everything_ = CpusAtRuntime(shared_.container);
    exclusive_ = Run(client, MakeGuaranteedPod("g"), MakeGuaranteedContainer("main", 5));
    ASSERT_NE(CpusAtRuntime(shared_.container), everything_);
  }
  // Waits for the list that follows each connect after some seconds, which would report everything.
  void AwaitSecondList() { ASSERT_TRUE(runtime_.WaitForCalls("ListContainers", 2)); }
  // The runtime behaves like one without events.
  void StartWithoutEvents() {
    runtime_.Script("GetContainerEvents",
                    {.error = grpc::Status(grpc::StatusCode::UNIMPLEMENTED, "unknown method")});
    StartWithBoth();
  }
  bool SharedGrows() {
    return Eventually([this] { return CpusAtRuntime(shared_.container) == everything_; });
  }
  // Removes the container by another client, past the relay.
  void RemoveOutside(const Running& running) {
    CriClient direct = Direct();
    EXPECT_THAT(direct.StopPod(running.pod), IsOk());
    EXPECT_THAT(direct.RemovePod(running.pod), IsOk());
  }
  // The id as a person would type it.
  static std::string Short(const std::string& id) { return id.substr(0, 12); }

  Running shared_;
  Running exclusive_;
  CpuSet everything_;
};

TEST_F(LearningTest, AnExitIsLearnedFromTheRuntimesEvents) {
  StartWithBoth();
  runtime_.WithStore([&](CriStore& store) { store.Exit(exclusive_.container); });
  EXPECT_TRUE(SharedGrows());
  EXPECT_THAT(runtime_.Calls("GetContainerEvents"), SizeIs(1));
}

TEST_F(LearningTest, AContainerMadeOutsideIsPlaced) {
  StartWithBoth();
  AwaitSecondList();
  CriClient direct = Direct();
  const Running stranger = Run(direct, MakeBestEffortPod("x"), MakeBestEffortContainer("main"));
  EXPECT_TRUE(Eventually(
      [&] { return CpusAtRuntime(stranger.container) == CpusAtRuntime(shared_.container); }));
}

// Runtimes may give an event to one listener only.
TEST_F(LearningTest, AClientThatListensIsTheOnlyOneAndIsReadOnTheWay) {
  StartWithBoth();
  CriClient client = Relayed();
  auto events = client.Start("GetContainerEvents", cri::GetEventsRequest());
  ASSERT_TRUE(runtime_.WaitForCalls("GetContainerEvents", 2));
  ASSERT_TRUE(runtime_.WaitForCancelled("GetContainerEvents", 1)) << "ours";
  runtime_.WithStore([&](CriStore& store) { store.Exit(exclusive_.container); });
  EXPECT_TRUE(events->WaitForMessages(1, kPatience));
  EXPECT_TRUE(SharedGrows());
  EXPECT_THAT(runtime_.Calls("GetContainerEvents"), SizeIs(2));
  events.reset();
  EXPECT_TRUE(runtime_.WaitForCalls("GetContainerEvents", 3)) << "ours again";
}

// Under the null policy the daemon did not read the calls.
TEST_F(LearningTest, AClientThatListenedBeforeThePolicyIsReadOnTheWay) {
  StartRuntime();
  StartDaemon(Flags({}));
  CriClient client = Relayed();
  const auto events = client.Start("GetContainerEvents", cri::GetEventsRequest());
  ASSERT_TRUE(runtime_.WaitForCalls("GetContainerEvents", 1));
  v1::SetConfigRequest request;
  (*request.mutable_config())["policy"] = "Active: static\nReservedResources: {CPU: 1}\n";
  CriClient config(Path("config.sock"));
  ASSERT_THAT(config.Call("/v1.Config/SetConfig", {request.SerializeAsString()}).messages,
              testing::ElementsAre(""));
  shared_ = Run(client, MakeBestEffortPod("s"), MakeBestEffortContainer("main"));
  everything_ = CpusAtRuntime(shared_.container);
  exclusive_ = Run(client, MakeGuaranteedPod("g"), MakeGuaranteedContainer("main", 5));
  ASSERT_NE(CpusAtRuntime(shared_.container), everything_);
  AwaitSecondList();
  runtime_.WithStore([&](CriStore& store) { store.Exit(exclusive_.container); });
  EXPECT_TRUE(SharedGrows());
  EXPECT_THAT(runtime_.Calls("GetContainerEvents"), SizeIs(1)) << "the client's";
}

TEST_F(LearningTest, ARuntimeWithoutEventsIsAskedForThemOnce) {
  StartWithoutEvents();
  CriClient client = Relayed();
  const auto events = client.Start("GetContainerEvents", cri::GetEventsRequest());
  EXPECT_EQ(events->Wait(kPatience)->status.error_code(), grpc::StatusCode::UNIMPLEMENTED);
  ASSERT_THAT(client.StopPod(exclusive_.pod), IsOk());
  EXPECT_TRUE(SharedGrows());
  EXPECT_THAT(runtime_.Calls("GetContainerEvents"), SizeIs(2)) << "ours and the client's";
  EXPECT_THAT(daemon_->Log(), Not(testing::HasSubstr("events")));
}

TEST_F(LearningTest, APodThatOthersRemovedMakesRoomForTheNextOne) {
  StartWithoutEvents();
  RemoveOutside(exclusive_);
  CriClient client = Relayed();
  const Running next = Run(client, MakeGuaranteedPod("n"), MakeGuaranteedContainer("main", 6));
  EXPECT_EQ(CpusAtRuntime(next.container).size(), 6);
}

TEST_F(LearningTest, AnUpdateFindsTheRoomThatOthersLeft) {
  StartWithoutEvents();
  CriClient client = Relayed();
  const Running small = Run(client, MakeGuaranteedPod("n"), MakeGuaranteedContainer("main", 1));
  RemoveOutside(exclusive_);
  const auto larger = MakeGuaranteedContainer("main", 4).linux().resources();
  EXPECT_THAT(client.UpdateContainer(small.container, larger), IsOk());
  EXPECT_TRUE(Eventually([&] { return CpusAtRuntime(small.container).size() == 4; }));
}

TEST_F(LearningTest, ManyRefusalsShareFewLists) {
  StartWithoutEvents();
  CriClient client = Relayed();
  const auto config = MakeGuaranteedPod("big");
  const std::string pod = Ok(client.RunPod(config));
  const auto before = runtime_.Calls("ListContainers").size();
  const auto begun = std::chrono::steady_clock::now();
  std::vector<std::unique_ptr<PendingCall>> calls;
  for (int i = 0; i < 30; ++i) {
    auto container = MakeGuaranteedContainer("main", 6);
    container.mutable_metadata()->set_attempt(static_cast<uint32_t>(i));
    calls.push_back(client.Start("CreateContainer", CreateRequest(pod, config, container)));
  }
  for (const auto& call : calls) {
    EXPECT_EQ(call->Wait(kPatience)->status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  }
  const auto took =
      std::chrono::duration_cast<seconds>(std::chrono::steady_clock::now() - begun).count();
  // One list a second, one after the connect, and one for unknown containers.
  EXPECT_LE(runtime_.Calls("ListContainers").size() - before, static_cast<size_t>(took) + 4);
}

TEST_F(LearningTest, AStatusOfAContainerThatIsGoneTellsSo) {
  StartWithoutEvents();
  AwaitSecondList();
  RemoveOutside(exclusive_);
  CriClient client = Relayed();
  EXPECT_THAT(client.ContainerStatus(exclusive_.container), HasCode(StatusCode::kNotFound));
  EXPECT_TRUE(SharedGrows());
}

TEST_F(LearningTest, AnUpdateByTheBeginningOfAnIdIsPinned) {
  StartWithoutEvents();
  CriClient client = Relayed();
  const CpuSet own = CpusAtRuntime(exclusive_.container);
  cri::LinuxContainerResources all;
  all.set_cpuset_cpus("0-7");
  ASSERT_THAT(client.UpdateContainer(Short(shared_.container), all), IsOk());
  EXPECT_EQ(CpusAtRuntime(shared_.container), everything_ - own);
}

TEST_F(LearningTest, ALifeByBeginningsOfIdsLeavesNothingBehind) {
  StartWithoutEvents();
  AwaitSecondList();
  CriClient client = Relayed();
  ASSERT_THAT(client.StopContainer(Short(exclusive_.container)), IsOk());
  EXPECT_TRUE(SharedGrows());
  ASSERT_THAT(client.RemoveContainer(Short(exclusive_.container)), IsOk());
  const std::string again = Ok(client.CreateContainer(Short(exclusive_.pod), MakeGuaranteedPod("g"),
                                                      MakeGuaranteedContainer("again", 5)));
  ASSERT_THAT(client.StartContainer(Short(again)), IsOk());
  EXPECT_EQ(CpusAtRuntime(shared_.container), everything_ - CpusAtRuntime(again));
  ASSERT_THAT(client.StopPod(Short(exclusive_.pod)), IsOk());
  EXPECT_TRUE(SharedGrows());
  ASSERT_THAT(client.RemovePod(Short(exclusive_.pod)), IsOk());
}

// A container without resources: any that were added would bring more with them than CPUs.
TEST_F(LearningTest, ARequestWithoutResourcesIsNotChangedAndPinnedBeforeItRuns) {
  StartWithoutEvents();
  CriClient client = Relayed();
  auto container = MakeBestEffortContainer("plain");
  for (const bool linux_section : {false, true}) {
    container.mutable_metadata()->set_attempt(linux_section ? 1 : 0);
    container.clear_linux();
    if (linux_section) container.mutable_linux();
    const cri::PodSandboxConfig pod = MakeBestEffortPod(linux_section ? "p" : "q");
    runtime_.ForgetCalls();
    const std::string pod_id = Ok(client.RunPod(pod));
    const auto request = CreateRequest(pod_id, pod, container);
    cri::CreateContainerResponse created;
    ASSERT_TRUE(client.Unary("CreateContainer", request, &created).ok());
    ASSERT_THAT(client.StartContainer(created.container_id()), IsOk());
    ASSERT_THAT(runtime_.Calls("CreateContainer"), SizeIs(1));
    cri::CreateContainerRequest arrived;
    ASSERT_TRUE(arrived.ParseFromString(runtime_.Calls("CreateContainer")[0].messages.at(0)));
    EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(arrived, request))
        << arrived.DebugString();
    EXPECT_FALSE(arrived.config().linux().has_resources());
    EXPECT_EQ(CpusAtRuntime(created.container_id()), CpusAtRuntime(shared_.container));
    EXPECT_FALSE(
        CpusAtRuntime(created.container_id()).Intersects(CpusAtRuntime(exclusive_.container)));
  }
}

// Pods that a runtime makes by a method that this build does not know, as RestorePod of CRI 1.37.

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
