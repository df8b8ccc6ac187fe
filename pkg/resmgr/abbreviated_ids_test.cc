// SPDX-License-Identifier: Apache-2.0
// Runtimes take any beginning of an id that only one container or pod sandbox has.
#include <optional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/resmgr/testing/manager_fixture.h"

namespace resmgr {
namespace {

using test::CpuList;
using test::TestNode;

using enum QosClass;

class AbbreviatedIdsTest : public test::ManagerFixture {
 protected:
  // The test begins after the list that follows each connect.
  AbbreviatedIdsTest() {
    EXPECT_TRUE(node_.AnswerNextList());
    EXPECT_TRUE(node_.RunUntil([] { return true; }));
  }
  // The beginning that only this id has.
  template <typename Id>
  static Id Short(const Id& id) {
    return Id(std::string(id.value()).substr(0, id.value().size() - 1));
  }
};

TEST_F(AbbreviatedIdsTest, AnUpdateIsPinned) {
  node_.Run("app", kGuaranteed, 2000);
  const ContainerId shared = node_.Run("shared", kBurstable, 100);
  EXPECT_TRUE(manager().Knows(Short(shared)));
  LinuxResources all;
  all.cpuset_cpus = "0-7";
  const StatusOr<Admission> admission = manager().AdmitUpdate(Short(shared), all);
  ASSERT_TRUE(admission.ok()) << admission.status();
  EXPECT_EQ(CpuList(admission->adjustment), "0,3-7");
  manager().UpdateSucceeded(*admission);
}

TEST_F(AbbreviatedIdsTest, AStartWaitsAtTheGate) {
  node_.Run("shared", kBurstable, 100);
  const ContainerId app = *node_.Create("app", kGuaranteed, 2000);
  std::optional<Status> decided;
  const auto wait =
      manager().AdmitStart(Short(app), [&](const Status& status) { decided = status; });
  EXPECT_FALSE(decided.has_value());
  runtime().AnswerAll();
  ASSERT_TRUE(decided && decided->ok());
  manager().StartSucceeded(Short(app));
  EXPECT_EQ(node_.Known(app)->state, ContainerState::kRunning);
}

TEST_F(AbbreviatedIdsTest, AStopAndARemovalRelease) {
  const ContainerId shared = node_.Run("shared", kBurstable, 100);
  const ContainerId app = node_.Run("app", kGuaranteed, 2000);
  runtime().Find(app)->state = ContainerState::kExited;
  manager().ContainerStopped(Short(app));
  runtime().AnswerAll();
  EXPECT_EQ(runtime().CpusOf(shared), "0-7");
  runtime().Remove(app);
  manager().ContainerRemoved(Short(app));
  EXPECT_EQ(node_.Known(app), nullptr);
  manager().ContainerRemoved(Short(shared));
  EXPECT_EQ(node_.KnownContainers(), 0u);
}

TEST_F(AbbreviatedIdsTest, AContainerIsMadeInThePodThatIsMeant) {
  const PodSandboxId pod = node_.AddPod("app", kGuaranteed);
  CreateRequest request = TestNode::Request(Short(pod), "app", 2000);
  Pod described;  // as clients describe it in each creation
  described.name = "app";
  request.pod = described;
  const Admission admission = *manager().AdmitCreate(CreateRequest(request));
  EXPECT_EQ(CpuList(admission.adjustment), "1-2");
  request.pod_id = pod;
  const ContainerId app = node_.Created(request, admission);
  EXPECT_EQ(node_.Known(app)->pod_id, pod);
  manager().PodStopped(Short(pod));
  EXPECT_EQ(node_.Placed(app), "");
  manager().PodRemoved(Short(pod));
  EXPECT_EQ(node_.KnownContainers(), 0u);
  EXPECT_EQ(manager().snapshot().FindPod(pod), nullptr);
}

TEST_F(AbbreviatedIdsTest, APodsValuesChange) {
  const PodSandboxId pod = node_.AddPod("app", kGuaranteed);
  LinuxResources resources;
  resources.cpu_shares = 512;
  manager().PodResourcesChanged(Short(pod), {}, resources);
  EXPECT_EQ(manager().snapshot().FindPod(pod)->resources.cpu_shares, 512);
}

TEST_F(AbbreviatedIdsTest, WhatSeveralBeginWithMeansNone) {
  const ContainerId one = node_.Run("app", kGuaranteed, 1000);
  const ContainerId other = node_.Run("apple", kGuaranteed, 1000);
  const ContainerId both("app");
  EXPECT_FALSE(manager().Knows(both));
  EXPECT_FALSE(manager().Knows(ContainerId("")));
  EXPECT_TRUE(manager().AdmitUpdate(both, TestNode::Resources(2000))->adjustment.empty());
  EXPECT_EQ(node_.Placed(one), "1");
  EXPECT_EQ(node_.Placed(other), "2");
}

TEST_F(AbbreviatedIdsTest, AWholeIdMeansItsContainerThoughOthersBeginWithIt) {
  const ContainerId app = node_.Run("app", kGuaranteed, 1000);
  RuntimeContainer longer = *runtime().Find(app);
  longer.id = ContainerId(fmt::format("{}0", app.value()));
  longer.attempt = 7;
  runtime().held.containers.push_back(longer);
  node_.Reconnect();
  ASSERT_NE(node_.Known(longer.id), nullptr);
  manager().ContainerRemoved(app);
  EXPECT_EQ(node_.Known(app), nullptr);
  EXPECT_NE(node_.Known(longer.id), nullptr);
}

TEST_F(AbbreviatedIdsTest, ASuccessForAnUnknownIdListsAgain) {
  manager().ContainerStopped(ContainerId("x"));
  EXPECT_TRUE(node_.AnswerNextList());
  manager().PodRemoved(PodSandboxId("x"));
  EXPECT_TRUE(node_.AnswerNextList());
  manager().StartSucceeded(ContainerId("x"));
  EXPECT_TRUE(node_.AwaitList());
}

}  // namespace
}  // namespace resmgr
