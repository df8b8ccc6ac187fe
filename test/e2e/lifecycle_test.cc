// SPDX-License-Identifier: Apache-2.0
// A kubelet's calls about pods, containers and images on containerd: over both versions of the API,
// straight and through cri-resmgr.
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <string>
#include <tuple>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/e2e/node.h"
#include "test/support/status_matchers.h"

namespace resmgr::test {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::chrono::seconds kStopPatience{30};

class LifecycleTest : public ::testing::TestWithParam<std::tuple<ApiVersion, bool>> {
 protected:
  void SetUp() override {
    const auto [version, relayed] = GetParam();
    auto node = Node::OnContainerd({.version = version, .relayed = relayed});
    ASSERT_TRUE(node.ok()) << Describe(node.status());
    node_ = *std::move(node);
    if (!node_->HasVersion()) GTEST_SKIP() << "this containerd does not serve v1alpha2";
  }
  void TearDown() override {
    if (node_ != nullptr && HasFailure()) GTEST_LOG_(INFO) << node_->RelayLog();
  }

  CriClient& client() { return node_->client(); }

  RunningPod Run(const Workload& workload) {
    auto pod = node_->Run(workload);
    EXPECT_TRUE(pod.ok()) << Describe(pod.status());
    return pod.ok() ? *std::move(pod) : RunningPod{};
  }

  cri::ContainerState State(const std::string& id) {
    const auto status = client().ContainerStatus(id);
    EXPECT_TRUE(status.ok()) << Describe(status.status());
    return status.ok() ? status->state() : cri::CONTAINER_UNKNOWN;
  }

  std::vector<std::string> Listed() {
    cri::ListContainersResponse response;
    EXPECT_TRUE(client().Unary("ListContainers", cri::ListContainersRequest(), &response).ok());
    std::vector<std::string> ids;
    for (const cri::Container& container : response.containers())
      ids.push_back(container.id());
    return ids;
  }

  std::unique_ptr<Node> node_;
};

TEST_P(LifecycleTest, AContainerIsCreatedStartedStoppedAndRemoved) {
  const Workload workload = Burstable("web", MilliCpu{500});
  const cri::PodSandboxConfig config = node_->PodConfig(workload);
  const auto pod = Ok(client().RunPod(config));
  const auto id = Ok(client().CreateContainer(pod, config, Node::ContainerConfig(workload)));

  EXPECT_EQ(State(id), cri::CONTAINER_CREATED);
  EXPECT_THAT(Listed(), ElementsAre(id));
  ASSERT_TRUE(client().StartContainer(id).ok());
  EXPECT_EQ(State(id), cri::CONTAINER_RUNNING);
  ASSERT_TRUE(client().StopContainer(id).ok());
  EXPECT_EQ(State(id), cri::CONTAINER_EXITED);
  ASSERT_TRUE(client().RemoveContainer(id).ok());
  EXPECT_THAT(Listed(), IsEmpty());
  EXPECT_TRUE(client().StopPod(pod).ok());
  EXPECT_TRUE(client().RemovePod(pod).ok());
}

TEST_P(LifecycleTest, ACommandRunsInsideWithItsOutputAndExitStatus) {
  const RunningPod pod = Run(BestEffort("shell"));
  const auto reply =
      Must(client().Exec(pod.container_id, {"sh", "-c", "echo to out; echo to err >&2; exit 7"}));
  EXPECT_EQ(reply.stdout(), "to out\n");
  EXPECT_EQ(reply.stderr(), "to err\n");
  EXPECT_EQ(reply.exit_code(), 7);
}

TEST_P(LifecycleTest, WhatAContainerPrintsLandsInItsLog) {
  const Workload workload = BestEffort("talker");
  const cri::PodSandboxConfig config = node_->PodConfig(workload);
  const auto pod = Ok(client().RunPod(config));
  cri::ContainerConfig container = Node::ContainerConfig(workload);
  container.clear_command();
  container.clear_args();
  for (const char* word : {"sh", "-c", "echo hello; echo trouble >&2"})
    container.add_command(word);
  const auto id = Ok(client().CreateContainer(pod, config, container));
  ASSERT_TRUE(client().StartContainer(id).ok());

  EXPECT_TRUE(WaitUntil("the container ends", kStopPatience, [&] {
                return State(id) == cri::CONTAINER_EXITED;
              }).ok());
  // containerd writes the log in parallel to its report of the container's end.
  std::string log;
  const Status written = WaitUntil("both lines are in the log", kStopPatience, [&] {
    log = TextOf(node_->PodLogs() / container.log_path());
    return log.find("stdout F hello\n") != std::string::npos &&
           log.find("stderr F trouble\n") != std::string::npos;
  });
  EXPECT_TRUE(written.ok()) << log;
}

TEST_P(LifecycleTest, AnUpdateReachesTheRunningContainer) {
  const RunningPod pod = Run(Burstable("grower", MilliCpu{100}));
  cri::LinuxContainerResources resources;
  resources.set_memory_limit_in_bytes(64 << 20);
  resources.set_cpu_shares(512);
  const Status updated = client().UpdateContainer(pod.container_id, resources);
  ASSERT_TRUE(updated.ok()) << Describe(updated);

  const Containerd& containerd = node_->containerd();
  const std::string v1 = containerd.CgroupFile(pod.container_id, "memory.limit_in_bytes");
  EXPECT_EQ(v1.empty() ? containerd.CgroupFile(pod.container_id, "memory.max") : v1, "67108864");
}

TEST_P(LifecycleTest, StatsTellOfTheRunningContainer) {
  const RunningPod pod = Run(BestEffort("counted"));
  cri::ContainerStatsRequest request;
  request.set_container_id(pod.container_id);
  cri::ContainerStatsResponse response;
  ASSERT_TRUE(client().Unary("ContainerStats", request, &response).ok());
  EXPECT_EQ(response.stats().attributes().id(), pod.container_id);
  EXPECT_GT(response.stats().memory().working_set_bytes().value(), 0U);

  cri::ListContainerStatsResponse all;
  ASSERT_TRUE(client().Unary("ListContainerStats", cri::ListContainerStatsRequest(), &all).ok());
  ASSERT_EQ(all.stats_size(), 1);
  EXPECT_EQ(all.stats(0).attributes().id(), pod.container_id);
}

TEST_P(LifecycleTest, ImagesAreListedAndDescribed) {
  cri::ListImagesResponse images;
  ASSERT_TRUE(client().Unary("ListImages", cri::ListImagesRequest(), &images).ok());
  std::vector<std::string> tags;
  for (const cri::Image& image : images.images()) {
    tags.insert(tags.end(), image.repo_tags().begin(), image.repo_tags().end());
  }
  EXPECT_THAT(tags, AllOf(Contains(std::string(Containerd::kBusyboxImage)),
                          Contains(std::string(Containerd::kPauseImage))));

  cri::ImageStatusRequest request;
  request.mutable_image()->set_image(std::string(Containerd::kBusyboxImage));
  cri::ImageStatusResponse response;
  ASSERT_TRUE(client().Unary("ImageStatus", request, &response).ok());
  EXPECT_GT(response.image().size(), 0U);
  request.mutable_image()->set_image("docker.io/local/missing:1");
  ASSERT_TRUE(client().Unary("ImageStatus", request, &response).ok());
  EXPECT_FALSE(response.has_image());
}

std::string ParamName(const ::testing::TestParamInfo<LifecycleTest::ParamType>& info) {
  const auto [version, relayed] = info.param;
  return std::string(version == ApiVersion::kV1 ? "V1" : "V1Alpha2") +
         (relayed ? "Relayed" : "Direct");
}

INSTANTIATE_TEST_SUITE_P(Containerd, LifecycleTest,
                         ::testing::Combine(::testing::Values(ApiVersion::kV1,
                                                              ApiVersion::kV1Alpha2),
                                            ::testing::Values(true)),
                         ParamName);
INSTANTIATE_TEST_SUITE_P(Long, LifecycleTest,
                         ::testing::Combine(::testing::Values(ApiVersion::kV1,
                                                              ApiVersion::kV1Alpha2),
                                            ::testing::Values(false)),
                         ParamName);

}  // namespace
}  // namespace resmgr::test
