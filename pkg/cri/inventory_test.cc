// SPDX-License-Identifier: Apache-2.0
#include "pkg/cri/inventory.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/api/runtime_v1.pb.h"
#include "pkg/cri/runtime_facts.h"

namespace resmgr {
namespace {

namespace v1 = ::runtime::v1;
using testing::Pair;
using testing::UnorderedElementsAre;

Pod PodFrom(std::string_view info) {
  v1::PodSandboxStatusResponse response;
  (*response.mutable_info())["info"] = std::string(info);
  SandboxFacts facts;
  const Status status = AddFacts(response.SerializeAsString(), facts);
  EXPECT_TRUE(status.ok()) << status;
  return facts.pod;
}

TEST(InventoryTest, AListTellsWhichPodsAreNotReady) {
  v1::ListPodSandboxResponse response;
  response.add_items()->set_id("ready");
  v1::PodSandbox& stopped = *response.add_items();
  stopped.set_id("stopped");
  stopped.set_state(v1::SANDBOX_NOTREADY);
  const auto list = ReadPodList(response.SerializeAsString());
  ASSERT_TRUE(list.ok()) << list.status();
  ASSERT_EQ(list->size(), 2U);
  EXPECT_TRUE(list->at(0).ready);
  EXPECT_FALSE(list->at(1).ready);
}

TEST(InventoryTest, APodIsSaidToHaveAClassOnlyWhereItsStatusTellsOne) {
  v1::ListPodSandboxResponse response;
  response.add_items()->set_id("one");
  auto list = ReadPodList(response.SerializeAsString());
  ASSERT_TRUE(list.ok()) << list.status();
  SandboxFacts& facts = list->front();
  EXPECT_TRUE(facts.pod.qos_derived) << "a list does not tell it";
  ASSERT_TRUE(AddFacts(v1::PodSandboxStatusResponse().SerializeAsString(), facts).ok());
  EXPECT_TRUE(facts.pod.qos_derived) << "nor does a status without verbose information";
  EXPECT_FALSE(PodFrom(R"({"config":{"linux":{"cgroup_parent":"/kubepods/podu"}}})").qos_derived);
}

TEST(InventoryTest, ContainerdTellsWhatAPodHasAsAWhole) {
  const Pod pod = PodFrom(R"({"config":{"linux":{"cgroup_parent":"/kubepods/burstable/podu-1",
      "overhead":{"cpu_shares":256,"memory_limit_in_bytes":125829120},
      "resources":{"cpu_period":100000,"cpu_quota":250000,"cpu_shares":1536}}}})");
  EXPECT_EQ(pod.qos, QosClass::kBurstable);
  EXPECT_EQ(pod.uid.value(), "u-1") << "of which nothing else was told";
  EXPECT_EQ(pod.overhead.cpu_shares, 256);
  EXPECT_EQ(pod.overhead.memory_limit, 125829120);
  EXPECT_EQ(pod.overhead.cpu_quota, std::nullopt);
  EXPECT_EQ(pod.resources.cpu_quota, 250000);
}

TEST(InventoryTest, CrioTellsItInAnnotations) {
  const Pod pod = PodFrom(R"({"runtimeSpec":{"annotations":{
      "io.kubernetes.cri-o.CgroupParent":"kubepods-podu_1.slice",
      "io.kubernetes.cri-o.PodLinuxOverhead":"{\"cpu_shares\":128}",
      "io.kubernetes.cri-o.PodLinuxResources":"no JSON"}}})");
  EXPECT_EQ(pod.qos, QosClass::kGuaranteed);
  EXPECT_EQ(pod.overhead.cpu_shares, 128);
  EXPECT_EQ(pod.resources, LinuxResources());
}

TEST(InventoryTest, TheSpecificationTellsResourcesOfOlderRuntimes) {
  v1::ContainerStatusResponse response;
  (*response.mutable_info())["info"] = R"({"runtimeSpec":{"process":{"oomScoreAdj":-997},
      "linux":{"resources":{"cpu":{"shares":2048,"cpus":"0-1"},"memory":{"limit":4096},
      "hugepageLimits":[{"pageSize":"2MB","limit":2097152},{"pageSize":"1GB"},7]}}}})";
  ContainerFacts facts;
  const RuntimeContainer& container = facts.container;
  ASSERT_TRUE(AddFacts(response.SerializeAsString(), facts).ok());
  EXPECT_EQ(container.resources.cpu_shares, 2048);
  EXPECT_EQ(container.resources.memory_limit, 4096);
  EXPECT_EQ(container.resources.oom_score_adj, -997);
  EXPECT_THAT(container.resources.hugepage_limits, UnorderedElementsAre(Pair("2MB", 2097152)));
}

TEST(InventoryTest, TheStatusTellsWhenAContainerWasStarted) {
  v1::ContainerStatusResponse response;
  ContainerFacts facts;
  const RuntimeContainer& container = facts.container;
  ASSERT_TRUE(AddFacts(response.SerializeAsString(), facts).ok());
  EXPECT_EQ(container.started_at, std::nullopt);
  response.mutable_status()->set_started_at(1'700'000'000'500'000'000);
  ASSERT_TRUE(AddFacts(response.SerializeAsString(), facts).ok());
  using std::chrono::milliseconds;
  EXPECT_EQ(std::chrono::duration_cast<milliseconds>(container.started_at->time_since_epoch()),
            milliseconds(1'700'000'000'500));
}

TEST(InventoryTest, LabelsNameContainersWithoutMetadata) {
  v1::ListContainersResponse list;
  (*list.add_containers()->mutable_labels())["io.kubernetes.container.name"] = "web";
  const auto containers = ReadContainerList(list.SerializeAsString());
  ASSERT_TRUE(containers.ok());
  ASSERT_EQ(containers->size(), 1U);
  EXPECT_EQ(containers->front().container.name, "web");
}

}  // namespace
}  // namespace resmgr
