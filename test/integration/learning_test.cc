// SPDX-License-Identifier: Apache-2.0
// Changes at the runtime that do not pass the relay, and calls with abbreviated ids.
#include <string>
#include <vector>

#include <google/protobuf/util/message_differencer.h>

#include "pkg/api/config.pb.h"
#include "test/integration/daemon_fixture.h"

namespace resmgr::test {
namespace {

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

}  // namespace
}  // namespace resmgr::test
