// SPDX-License-Identifier: Apache-2.0
#include "test/support/scheduler_model/pod_view.h"

#include <stdexcept>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace resmgr::test {
namespace {

using nlohmann::json;

json PlainContainer(const json& requests, const json& limits) {
  return {{"name", "c"}, {"resources", {{"requests", requests}, {"limits", limits}}}};
}

json PlainPod(std::vector<json> containers, std::vector<json> init = {}) {
  return {{"metadata", {{"name", "p"}}},
          {"spec", {{"containers", std::move(containers)}, {"initContainers", std::move(init)}}}};
}

ExactQuantity CpuOf(const PodView& pod) {
  return pod.effective.at("cpu");
}

TEST(PodViewTest, ComputesTheQosClassFromCpuAndMemory) {
  const json both = {{"cpu", "1"}, {"memory", "1Gi"}};
  EXPECT_EQ(PodViewOf(PlainPod({PlainContainer(both, both)})).qos, PodQos::kGuaranteed);
  EXPECT_EQ(
      PodViewOf(PlainPod({PlainContainer(both, {{"cpu", "1000m"}, {"memory", "1024Mi"}})})).qos,
      PodQos::kGuaranteed);
  EXPECT_EQ(PodViewOf(PlainPod({PlainContainer(both, {{"cpu", "2"}, {"memory", "1Gi"}})})).qos,
            PodQos::kBurstable);
  EXPECT_EQ(PodViewOf(PlainPod({PlainContainer({{"cpu", "1"}}, {{"cpu", "1"}})})).qos,
            PodQos::kBurstable);
  const json device = {{"example.com/nic", "1"}};
  EXPECT_EQ(PodViewOf(PlainPod({PlainContainer(device, device)})).qos, PodQos::kBestEffort);
}

TEST(PodViewTest, AnInitContainerWithoutLimitsMakesThePodBurstable) {
  const json both = {{"cpu", "1"}, {"memory", "1Gi"}};
  const json pod =
      PlainPod({PlainContainer(both, both)}, {PlainContainer(json::object(), json::object())});
  EXPECT_EQ(PodViewOf(pod).qos, PodQos::kBurstable);
}

TEST(PodViewTest, TheStatusTellsTheQosClassFirst) {
  json pod = PlainPod({PlainContainer({{"cpu", "1"}}, {{"cpu", "1"}})});
  pod["status"]["qosClass"] = "Guaranteed";
  EXPECT_EQ(PodViewOf(pod).qos, PodQos::kGuaranteed);
  pod["status"]["qosClass"] = "Best";
  EXPECT_THROW(PodViewOf(pod), std::invalid_argument);
}

TEST(PodViewTest, TheEffectiveRequestIsTheMostAtAnyTime) {
  const auto container = [](const char* cpu) { return PlainContainer({{"cpu", cpu}}, {}); };
  EXPECT_EQ(CpuOf(PodViewOf(PlainPod({container("1"), container("2")}, {container("5")}))),
            ExactQuantity(5));
  EXPECT_EQ(CpuOf(PodViewOf(PlainPod({container("3"), container("2")}, {container("4")}))),
            ExactQuantity(5));
  json sidecar = container("2");
  sidecar["restartPolicy"] = "Always";
  // The sidecar goes on beside the init container after it and beside the app container.
  EXPECT_EQ(CpuOf(PodViewOf(PlainPod({container("1")}, {sidecar, container("4")}))),
            ExactQuantity(6));
  EXPECT_EQ(CpuOf(PodViewOf(PlainPod({container("1")}, {container("2"), sidecar}))),
            ExactQuantity(3));
  json pod = PlainPod({container("1")});
  pod["spec"]["overhead"] = {{"cpu", "250m"}};
  EXPECT_EQ(CpuOf(PodViewOf(pod)), *ExactQuantity::Parse("1250m"));
}

TEST(PodViewTest, KnowsKindsOfResources) {
  EXPECT_TRUE(IsAlignedByKubelet("hugepages-2Mi"));
  EXPECT_FALSE(IsAlignedByKubelet("ephemeral-storage"));
  EXPECT_TRUE(IsExtended("example.com/nic"));
  EXPECT_FALSE(IsExtended("kubernetes.io/batch-cpu"));
  EXPECT_FALSE(IsExtended("ephemeral-storage"));
}

}  // namespace
}  // namespace resmgr::test
