// SPDX-License-Identifier: Apache-2.0
// Two runtimes that have the same id: the first one keeps it.
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/cri/testing/several_runtimes_fixture.h"

namespace resmgr {
namespace {

using test::HasCode;
using test::IsOk;
using testing::IsEmpty;
using testing::SizeIs;
using testing::UnorderedElementsAre;
namespace cri = ::runtime::v1;

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
  const auto result = events->Wait(kPatience);
  ASSERT_TRUE(result.has_value());
  ASSERT_THAT(result->messages, SizeIs(1));
  cri::ContainerEventResponse event;
  ASSERT_TRUE(event.ParseFromString(result->messages.front()));
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
