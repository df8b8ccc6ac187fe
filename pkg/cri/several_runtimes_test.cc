// SPDX-License-Identifier: Apache-2.0
// Routes of calls to one of two runtimes, and lists and streams of both.
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/cri/testing/several_runtimes_fixture.h"
#include "test/support/raw_http2/raw_http2.h"

namespace resmgr {
namespace {

using grpc::StatusCode::UNAVAILABLE;
using test::CriClient;
using test::FakeRuntime;
using test::HasCode;
using test::IsOk;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing::UnorderedElementsAre;
namespace cri = ::runtime::v1;

TEST_F(SeveralRuntimesTest, CompressedRequestFindsItsRuntime) {
  cri::PodSandboxStatusRequest request;
  request.set_pod_sandbox_id(RunPod("there", "kata"));
  cri::PodSandboxStatusResponse reply;
  EXPECT_TRUE(client_->Unary("PodSandboxStatus", request, &reply, {.gzip = true}).ok());
}

TEST_F(SeveralRuntimesTest, HandlerChoosesRuntimeOfPodAndItsContainers) {
  const std::string here = RunPod("here", "");
  const std::string there = RunPod("there", "kata");
  EXPECT_EQ(Pods(first_), 1U);
  EXPECT_EQ(Pods(second_), 1U);
  const std::string container = CreateContainer(there);
  EXPECT_TRUE(second_.FindContainer(container).has_value());
  EXPECT_FALSE(first_.FindContainer(container).has_value());
  EXPECT_THAT(client_->StartContainer(container), IsOk());
  EXPECT_THAT(client_->ContainerStatus(container), IsOk());
  EXPECT_THAT(client_->StopContainer(container.substr(0, 16)), IsOk()) << "by a beginning of it";
  EXPECT_THAT(client_->RemoveContainer(container), IsOk());
  EXPECT_THAT(client_->StopPod(there), IsOk());
  EXPECT_THAT(client_->RemovePod(there), IsOk());
  EXPECT_EQ(Pods(second_), 0U);
  EXPECT_EQ(Pods(first_), 1U);
  EXPECT_EQ(thread_.Do([&] { return backends_->owners().size(IdOwners::Kind::kPodSandbox); }), 1U)
      << "a removed one is forgotten";
  EXPECT_THAT(first_.Calls("StopPodSandbox"), IsEmpty());
}

TEST_F(SeveralRuntimesTest, HandlerOfNoOtherRuntimeIsTheDefaultOnes) {
  RunPod("nvidia", "nvidia");
  EXPECT_EQ(Pods(first_), 1U);
}

TEST_F(SeveralRuntimesTest, ListsAreThoseOfAllRuntimes) {
  const std::string here = RunPod("here", "");
  const std::string there = RunPod("there", "kata");
  EXPECT_THAT(PodIds(), UnorderedElementsAre(here, there));
  const std::string in_there = CreateContainer(there);
  const std::string in_here = CreateContainer(here);
  cri::ListContainersResponse containers;
  ASSERT_TRUE(client_->Unary("ListContainers", cri::ListContainersRequest(), &containers).ok());
  EXPECT_THAT(containers.containers(), SizeIs(2));
  cri::ListContainerStatsResponse stats;
  ASSERT_TRUE(client_->Unary("ListContainerStats", cri::ListContainerStatsRequest(), &stats).ok());
  EXPECT_THAT(stats.stats(), SizeIs(2));
}

TEST_F(SeveralRuntimesTest, FilterByIdAsksItsOwnerOnly) {
  RunPod("here", "");
  const std::string there = RunPod("there", "kata");
  cri::PodSandboxFilter filter;
  filter.set_id(there);
  EXPECT_THAT(PodIds(filter), UnorderedElementsAre(there));
  EXPECT_THAT(first_.Calls("ListPodSandbox"), IsEmpty());
  // The filter for the pod of containers has the same effect.
  cri::ListContainersRequest request;
  request.mutable_filter()->set_pod_sandbox_id(there);
  cri::ListContainersResponse containers;
  ASSERT_TRUE(client_->Unary("ListContainers", request, &containers).ok());
  EXPECT_THAT(first_.Calls("ListContainers"), IsEmpty());
  EXPECT_THAT(second_.Calls("ListContainers"), SizeIs(1));
}

TEST_F(SeveralRuntimesTest, UnknownIdIsLookedForAtAllRuntimes) {
  const std::string there = RunPod("there", "kata");
  const std::string container = CreateContainer(there);
  ForgetIds();
  EXPECT_THAT(client_->StartContainer(container), IsOk());
  EXPECT_THAT(client_->StopPod(there), IsOk());
  EXPECT_THAT(first_.Calls("StartContainer"), IsEmpty());
  // The default runtime answers for an id that no runtime has.
  EXPECT_THAT(client_->ContainerStatus("none"), HasCode(StatusCode::kNotFound));
  EXPECT_THAT(first_.Calls("ContainerStatus"), SizeIs(1));
}

TEST_F(SeveralRuntimesTest, SearchIsNotAnsweredByListsThatAreOlder) {
  const std::string there = RunPod("there", "kata");
  ForgetIds();
  // The second runtime has sent its list, the first one delays it.
  first_.Script("ListContainers", {.hold = true});
  const auto older = client_->Start("ContainerStatus", [] {
    cri::ContainerStatusRequest request;
    request.set_container_id("none");
    return request;
  }());
  ASSERT_TRUE(first_.WaitForHeld("ListContainers", 1));
  ASSERT_TRUE(second_.WaitForCalls("ListContainers", 1));
  CriClient direct(Path("second.sock"));
  const auto container = direct.CreateContainer(there, test::MakeBestEffortPod("there"),
                                                test::MakeBestEffortContainer("main"));
  ASSERT_THAT(container, IsOk());

  cri::StartContainerRequest start;
  start.set_container_id(*container);
  const auto newer = client_->Start("StartContainer", start);
  // After this answer the relay has read the earlier bytes of the connection, too.
  EXPECT_TRUE(Ask("Version").ok());
  first_.Release("ListContainers");
  const auto started = EndOf(*newer);
  EXPECT_TRUE(started.status.ok()) << started.status.error_message();
  EXPECT_THAT(first_.Calls("StartContainer"), IsEmpty());
  EXPECT_THAT(second_.Calls("ListContainers"), SizeIs(2));
  const auto missing = EndOf(*older);
  EXPECT_EQ(missing.status.error_code(), grpc::StatusCode::NOT_FOUND);
}

TEST_F(SeveralRuntimesTest, RuntimeThatIsDownMakesListsUnavailableAndNothingElse) {
  const std::string here = RunPod("here", "");
  const std::string there = RunPod("there", "kata");
  const std::string container = CreateContainer(here);
  second_.Stop();
  for (const char* method :
       {"ListPodSandbox", "ListContainers", "ListContainerStats", "ListPodSandboxStats",
        "ListMetricDescriptors", "ListPodSandboxMetrics", "ListImages"}) {
    const grpc::Status status = Ask(method);
    EXPECT_EQ(status.error_code(), UNAVAILABLE) << method;
    EXPECT_THAT(status.error_message(), HasSubstr("runtime kata")) << method;
  }
  // The other runtime's objects are not affected.
  EXPECT_THAT(client_->StartContainer(container), IsOk());
  EXPECT_THAT(client_->ContainerStatus(container), IsOk());
  EXPECT_FALSE(RunPod("more", "").empty());
  for (const char* method : {"Version", "Status", "ImageStatus", "ImageFsInfo"})
    EXPECT_TRUE(Ask(method).ok()) << method;
  EXPECT_THAT(client_->StopPod(there), HasCode(StatusCode::kUnavailable));
  // An unknown id may belong to the missing runtime, so the error is not "not found".
  EXPECT_THAT(client_->StopContainer("unknown"),
              test::Fails(StatusCode::kUnavailable, HasSubstr("runtime kata")));

  ASSERT_THAT(second_.Start(Path("second.sock")), IsOk());
  EXPECT_THAT(PodIds(), SizeIs(3));
  EXPECT_THAT(client_->StopPod(there), IsOk());
}

TEST_F(SeveralRuntimesTest, RuntimeThatBreaksDuringListMakesItUnavailable) {
  RunPod("here", "");
  second_.Script("ListPodSandbox", {.hold = true});
  const auto list = client_->Start("ListPodSandbox", cri::ListPodSandboxRequest());
  ASSERT_TRUE(second_.WaitForHeld("ListPodSandbox", 1));
  second_.CutConnections();
  const auto result = EndOf(*list);
  EXPECT_EQ(result.status.error_code(), UNAVAILABLE);
  EXPECT_THAT(result.messages, IsEmpty());
}

TEST_F(SeveralRuntimesTest, ErrorOfOneRuntimeIsThatOfTheList) {
  second_.Script("ListContainers",
                 {.error = grpc::Status(grpc::StatusCode::INTERNAL, "the disk is gone")});
  const grpc::Status status = Ask("ListContainers");
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INTERNAL);
  EXPECT_EQ(status.error_message(), "runtime kata: the disk is gone");
}

TEST_F(SeveralRuntimesTest, ListThatClientGivesUpIsGivenUpEverywhere) {
  for (FakeRuntime* runtime : {&first_, &second_})
    runtime->Script("ListContainers", {.hold = true});
  const auto list = client_->Start("ListContainers", cri::ListContainersRequest());
  for (FakeRuntime* runtime : {&first_, &second_})
    ASSERT_TRUE(runtime->WaitForHeld("ListContainers", 1));
  list->Cancel();
  for (FakeRuntime* runtime : {&first_, &second_})
    EXPECT_TRUE(runtime->WaitForCancelled("ListContainers", 1));
}

TEST_F(SeveralRuntimesTest, LargeListsAreConcatenated) {
  cri::ListPodSandboxResponse many;
  for (int i = 0; i < 20'000; ++i)
    many.add_items()->set_id(std::string(64, 'a') + std::to_string(i));
  first_.Script("ListPodSandbox", {.reply = {{many.SerializeAsString()}}});
  for (auto& pod : *many.mutable_items())
    pod.mutable_id()->front() = 'b';
  second_.Script("ListPodSandbox", {.reply = {{many.SerializeAsString()}}});
  EXPECT_THAT(PodIds(), SizeIs(40'000));
}

TEST_F(SeveralRuntimesTest, EventsOfAllRuntimesAreOneStream) {
  const std::string here = RunPod("here", "");
  const std::string there = RunPod("there", "kata");
  const auto events = client_->Start("GetContainerEvents", cri::GetEventsRequest());
  ASSERT_TRUE(first_.WaitForCalls("GetContainerEvents", 1));
  ASSERT_TRUE(second_.WaitForCalls("GetContainerEvents", 1));
  const std::string in_here = CreateContainer(here);
  const std::string in_there = CreateContainer(there);
  ASSERT_TRUE(events->WaitForMessages(2, kPatience));
  second_.CutConnections();
  const auto result = EndOf(*events);
  EXPECT_EQ(result.status.error_code(), UNAVAILABLE) << "it would not be complete any more";
  EXPECT_THAT(result.status.error_message(), HasSubstr("runtime kata"));
  std::vector<std::string> ids;
  for (const std::string& message : result.messages) {
    cri::ContainerEventResponse event;
    ASSERT_TRUE(event.ParseFromString(message));
    ids.push_back(event.container_id());
  }
  EXPECT_THAT(ids, UnorderedElementsAre(in_here, in_there));
}

TEST_F(SeveralRuntimesTest, AListenerThatIsBehindIsEnded) {
  const std::vector<std::string> many(100, std::string(100'000, 'x'));
  second_.Script("GetContainerEvents", {.reply = many, .stall = true});
  const auto events = client_->Start(client_->PathOf("GetContainerEvents"), "", {.pause_after = 1});
  ASSERT_TRUE(events->WaitForMessages(1, kPatience));
  EXPECT_TRUE(Eventually([](Relay& relay) { return !relay.clients_listen(); }));
  EXPECT_TRUE(first_.WaitForCancelled("GetContainerEvents", 1));
  events->ResumeReading();
  const auto result = EndOf(*events);
  EXPECT_EQ(result.status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
}

// As CRI-O does without pod events, and when it is stopped.
TEST_F(SeveralRuntimesTest, EventsEndWithTheFirstRuntimeThatEndsItsOwn) {
  second_.Script("GetContainerEvents", {.reply = std::vector<std::string>()});
  const auto events = client_->Start("GetContainerEvents", cri::GetEventsRequest());
  const auto result = EndOf(*events);
  EXPECT_EQ(result.status.error_code(), UNAVAILABLE);
  EXPECT_THAT(result.status.error_message(), HasSubstr("runtime kata: ended its stream"));
}

TEST_F(SeveralRuntimesTest, StreamsWaitForClientThatDoesNotRead) {
  const std::vector<std::string> many(80, std::string(100'000, 'x'));
  for (FakeRuntime* runtime : {&first_, &second_})
    runtime->Script("StreamContainers", {.reply = many});
  const auto stream = client_->Start(client_->PathOf("StreamContainers"), "", {.pause_after = 1});
  ASSERT_TRUE(stream->WaitForMessages(1, kPatience));
  // All of it would be 16 MB.
  EXPECT_LT(thread_.Do([] { return h2::Memory::held(); }), size_t{4} << 20);
  stream->ResumeReading();
  const auto result = EndOf(*stream);
  EXPECT_TRUE(result.status.ok()) << result.status.error_message();
  EXPECT_THAT(result.messages, SizeIs(160));
}

TEST_F(SeveralRuntimesTest, RequestThatIsNoProtobufIsRefused) {
  EXPECT_EQ(client_->Call(client_->PathOf("StopContainer"), {"\x0a\x7f"}).status.error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(first_.Calls("StopContainer"), IsEmpty());
}

class CallCountsTest : public SeveralRuntimesTest {
 protected:
  // Waits until this many calls have failed at the second runtime: none fails at the first one.
  void ExpectFailed(uint64_t at_second) {
    EXPECT_TRUE(Eventually([&](Relay&) { return backends_->calls(1).failed == at_second; }))
        << thread_.Do([this] { return backends_->calls(1).failed; });
    EXPECT_EQ(thread_.Do([this] { return backends_->calls(0).failed; }), 0U);
  }
};

TEST_F(CallCountsTest, ACallThatItsClientGivesUpIsItsRuntimes) {
  cri::StartContainerRequest request;
  request.set_container_id(CreateContainer(RunPod("there", "kata")));
  second_.Script("StartContainer", {.hold = true});
  const auto start = client_->Start("StartContainer", request);
  ASSERT_TRUE(second_.WaitForHeld("StartContainer", 1));
  start->Cancel();
  ExpectFailed(1);
  // A call to all of them.
  second_.Script("ListContainers", {.hold = true});
  const auto list = client_->Start("ListContainers", cri::ListContainersRequest());
  ASSERT_TRUE(second_.WaitForHeld("ListContainers", 1));
  ASSERT_TRUE(first_.WaitForCalls("ListContainers", 1));
  ASSERT_TRUE(Eventually([this](Relay&) { return backends_->calls(0).ended == 1; }));
  list->Cancel();
  ExpectFailed(2);
}

TEST_F(CallCountsTest, ACallThatItsRuntimeResetsIsItsRuntimes) {
  constexpr uint8_t kReset = 3;
  constexpr uint32_t kInternalError = 2;
  cri::StartContainerRequest request;
  request.set_container_id(CreateContainer(RunPod("there", "kata")));
  second_.Stop();
  const auto runtime = test::RawRuntime::Start(
      Path("second.sock"), {.answer =
                                [](uint32_t stream, const std::string&) {
                                  return test::Frame(kReset, 0, stream,
                                                     test::Number(kInternalError));
                                },
                            .greeting = test::Settings(4, 65535)});
  ASSERT_THAT(runtime, IsOk());
  client_ = std::make_unique<CriClient>(RelaySocket());
  cri::StartContainerResponse reply;
  EXPECT_EQ(client_->Unary("StartContainer", request, &reply).error_code(),
            grpc::StatusCode::INTERNAL);
  ExpectFailed(1);
}

// Two runtimes that have the same id: the first one keeps it.
class SameIdsTest : public SeveralRuntimesTest {
 protected:
  // Makes the second runtime list these pods in addition to its own.
  void SecondLists(const std::vector<std::string>& pods) {
    cri::ListPodSandboxResponse list;
    for (const std::string& pod : pods)
      list.add_items()->set_id(pod);
    second_.Script("ListPodSandbox", {.reply = {{list.SerializeAsString()}}});
  }
  void SecondListsContainers(const std::vector<std::pair<std::string, std::string>>& in_pods) {
    cri::ListContainersResponse list;
    for (const auto& [id, pod] : in_pods) {
      cri::Container& container = *list.add_containers();
      container.set_id(id);
      container.set_pod_sandbox_id(pod);
    }
    second_.Script("ListContainers", {.reply = {{list.SerializeAsString()}}});
  }
  std::vector<std::string> ContainerIds() {
    cri::ListContainersResponse list;
    EXPECT_TRUE(client_->Unary("ListContainers", cri::ListContainersRequest(), &list).ok());
    std::vector<std::string> ids;
    for (const cri::Container& container : list.containers())
      ids.push_back(container.id());
    return ids;
  }
  uint64_t RefusedClaims() {
    return thread_.Do([this] { return backends_->calls(1).refused_claims; });
  }
};

TEST_F(SameIdsTest, B5NewPodWithTheIdOfAnotherIsAnError) {
  const std::string here = RunPod("here", "");
  cri::RunPodSandboxResponse same;
  same.set_pod_sandbox_id(here);
  second_.Script("RunPodSandbox", {.times = 1, .reply = {{same.SerializeAsString()}}});
  EXPECT_THAT(client_->RunPod(test::MakeBestEffortPod("there"), "kata"),
              HasCode(StatusCode::kAlreadyExists));
  EXPECT_EQ(RefusedClaims(), 1U);
  // New containers of the pod go to its first runtime.
  const std::string container = CreateContainer(here);
  EXPECT_TRUE(first_.FindContainer(container).has_value());
  EXPECT_THAT(client_->StartContainer(container), IsOk());
  EXPECT_THAT(client_->StopContainer(container), IsOk());
  EXPECT_THAT(client_->StopPod(here), IsOk());
  for (const char* const method :
       {"CreateContainer", "StartContainer", "StopContainer", "StopPodSandbox"})
    EXPECT_THAT(second_.Calls(method), IsEmpty()) << method;
}

TEST_F(SameIdsTest, B5NewContainerWithTheIdOfAnotherIsAnError) {
  const std::string here = RunPod("here", "");
  const std::string there = RunPod("there", "kata");
  const std::string container = CreateContainer(here);
  cri::CreateContainerResponse same;
  same.set_container_id(container);
  second_.Script("CreateContainer", {.times = 1, .reply = {{same.SerializeAsString()}}});
  EXPECT_THAT(client_->CreateContainer(there, test::MakeBestEffortPod("there"),
                                       test::MakeBestEffortContainer("main")),
              HasCode(StatusCode::kAlreadyExists));
  EXPECT_THAT(client_->StopContainer(container), IsOk());
  EXPECT_THAT(first_.Calls("StopContainer"), SizeIs(1));
  EXPECT_THAT(second_.Calls("StopContainer"), IsEmpty());
}

TEST_F(SameIdsTest, B5ListsHaveEachIdOnceAndTheFirstClaimCounts) {
  const std::string here = RunPod("here", "");
  const std::string container = CreateContainer(here);
  SecondLists({here, "own"});
  SecondListsContainers({{container, here}, {"another", here}, {"mine", "own"}});
  for (int round = 0; round < 2; ++round) {
    EXPECT_THAT(PodIds(), UnorderedElementsAre(here, "own"));
    EXPECT_THAT(ContainerIds(), UnorderedElementsAre(container, "mine"))
        << "what is in a pod of the first runtime is not the second one's";
  }
  EXPECT_EQ(RefusedClaims(), 1U) << "of the pod; its containers are not looked at";
  // Both runtimes apply this filter.
  cri::PodSandboxFilter filter;
  filter.mutable_state()->set_state(cri::SANDBOX_READY);
  EXPECT_THAT(PodIds(filter), UnorderedElementsAre(here, "own"));
  EXPECT_THAT(client_->StopPod(here), IsOk());
  EXPECT_THAT(client_->RemovePod(here), IsOk());
  EXPECT_THAT(second_.Calls("StopPodSandbox"), IsEmpty());
  // The owner has given the id up.
  EXPECT_THAT(PodIds(), UnorderedElementsAre(here, "own"));
  EXPECT_EQ(thread_.Do([&] {
    return backends_->owners().Find(IdOwners::Kind::kPodSandbox, here).value().value_or(9);
  }),
            1U);
}

TEST_F(SameIdsTest, B5EventsOfTheOtherOneDoNotReachTheClient) {
  const std::string here = RunPod("here", "");
  const std::string container = CreateContainer(here);
  cri::ContainerEventResponse stopped;
  stopped.set_container_id(container);
  stopped.set_container_event_type(cri::CONTAINER_STOPPED_EVENT);
  cri::ContainerEventResponse own = stopped;
  own.set_container_id("own");
  second_.Script(
      "GetContainerEvents",
      {.reply = {{stopped.SerializeAsString(), own.SerializeAsString()}}, .stall = true});
  const auto events = client_->Start(client_->PathOf("GetContainerEvents"), "");
  ASSERT_TRUE(events->WaitForMessages(1, kPatience));
  events->Cancel();
  const auto result = EndOf(*events);
  ASSERT_THAT(result.messages, SizeIs(1));
  cri::ContainerEventResponse event;
  ASSERT_TRUE(event.ParseFromString(result.messages.front()));
  EXPECT_EQ(event.container_id(), "own");
}

TEST_F(SameIdsTest, B5OwnerThatIsAwayKeepsItsIds) {
  const std::string here = RunPod("here", "");
  SecondLists({here});
  SecondListsContainers({{"another", here}});
  first_.Stop();
  EXPECT_THAT(client_->StopPod("unknown"), HasCode(StatusCode::kUnavailable));
  EXPECT_THAT(client_->StopPod(here), HasCode(StatusCode::kUnavailable));
  EXPECT_THAT(second_.Calls("StopPodSandbox"), IsEmpty());
  EXPECT_THAT(client_->StartContainer("another"), HasCode(StatusCode::kUnavailable))
      << "in a pod of the first one, which may know it";
}

}  // namespace
}  // namespace resmgr
