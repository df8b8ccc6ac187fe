// SPDX-License-Identifier: Apache-2.0
#include "pkg/model/container_facts.h"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace resmgr {
namespace {

using testing::IsEmpty;
using testing::Pair;
using testing::UnorderedElementsAre;

constexpr const char* kAnnotation =
    R"({"initContainers":{"proxy":{"requests":{"cpu":"100m"}}},
        "containers":{"db":{"limits":{"cpu":1,"hugepages-1Gi":"2Gi","example.com/nic":2}}}})";

// One pod with these containers.
class OnePod : public Snapshot {
 public:
  Overhead OverheadOf(const Pod&) const override { return {}; }
  HeldOverheads Overheads() const override { return {}; }
  Container& Add(std::string_view name, ContainerState state) {
    Container& container = containers.emplace_back();
    container.key = ContainerKey{containers.size()};
    container.pod_id = pod.id;
    container.name = name;
    container.state = state;
    return container;
  }
  const Pod* FindPod(const PodSandboxId&) const override { return &pod; }
  const Container* FindContainer(ContainerKey) const override { return nullptr; }
  void ForEachContainer(
      const std::function<void(const Pod&, const Container&)>& visit) const override {
    for (const Container& container : containers)
      visit(pod, container);
  }

  Pod pod;
  std::vector<Container> containers;
};

TEST(ContainerFactsTest, TheAnnotationWinsOverHugePageLimits) {
  Pod pod;
  Container container;
  container.name = "db";
  container.requested.hugepage_limits = {{"2MB", 4096}, {"1GB", 0}, {"odd", 1}};
  EXPECT_THAT(OtherResources(pod, container),
              UnorderedElementsAre(Pair("hugepages-2Mi", 4096), Pair("hugepages-odd", 1)));
  pod.annotations.Set("intel.com/resources", "no JSON");
  EXPECT_THAT(OtherResources(pod, container), testing::SizeIs(2));
  pod.annotations.Set("intel.com/resources", kAnnotation);
  EXPECT_THAT(
      OtherResources(pod, container),
      UnorderedElementsAre(Pair("hugepages-1Gi", int64_t{2} << 30), Pair("example.com/nic", 2)));
  container.name = "proxy";
  EXPECT_THAT(OtherResources(pod, container), IsEmpty()) << "named there with nothing of the kind";
}

TEST(ContainerFactsTest, RolesComeFromTheAnnotation) {
  OnePod node;
  node.containers.reserve(3);
  node.pod.annotations.Set("intel.com/resources", kAnnotation);
  const Container& proxy = node.Add("proxy", ContainerState::kRunning);
  EXPECT_EQ(RoleOf(node, node.pod, proxy), ContainerRole::kInit);
  const Container& db = node.Add("db", ContainerState::kCreating);
  EXPECT_EQ(RoleOf(node, node.pod, db), ContainerRole::kRegular);
  EXPECT_EQ(RoleOf(node, node.pod, proxy), ContainerRole::kSidecar);
  EXPECT_EQ(RoleOf(node, node.pod, node.Add("debugger", ContainerState::kRunning)),
            ContainerRole::kUnknown);
  node.containers[0].state = ContainerState::kExited;
  EXPECT_EQ(RoleOf(node, node.pod, proxy), ContainerRole::kInit);
  node.pod.annotations = {};
  EXPECT_EQ(RoleOf(node, node.pod, db), ContainerRole::kUnknown);
  EXPECT_EQ(ToString(ContainerRole::kSidecar), "sidecar");
}

}  // namespace
}  // namespace resmgr
