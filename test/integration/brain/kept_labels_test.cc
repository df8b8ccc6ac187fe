// SPDX-License-Identifier: Apache-2.0
// A runtime that is away when the daemon starts cannot tell the labels and annotations of its pods,
// by which policies choose: they come from the saved state.
#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "pkg/config/yaml_reader.h"
#include "pkg/resmgr/testing/test_node.h"
#include "pkg/state/testing/failing_file_systems.h"
#include "policies/balloons/balloons_policy.h"
#include "test/support/machines/machines.h"
#include "test/support/status_matchers.h"

namespace resmgr::test {
namespace {

using enum QosClass;

std::unique_ptr<Policy> ByLabels(const Machine& machine) {
  const ConfigNode section = Must(ParseYaml(R"(
balloonTypes:
- name: pods
  matchExpressions: [{key: pod/labels/app, operator: In, values: [llm]}]
- name: containers
  matchExpressions: [{key: labels/role, operator: In, values: [db]}]
)",
                                            "test.yaml"));
  return Must(BalloonsPolicyFactory().create(
      {.machine = machine, .available = machine.allowed(), .reserved = {0}, .section = &section}));
}

class KeptLabelsTest : public testing::Test {
 protected:
  KeptLabelsTest() { node_.KeepState(files_); }

  static ResourceManager::Options Options() {
    ResourceManager::Options options = TestNode::FastOptions();
    options.runtimes.runtimes["vm"].socket = "/run/vm.sock";
    options.runtimes.classes["kata"].runtime = "vm";
    return options;
  }

  ContainerId Run(const std::string& name, const std::string& handler, const StringMap& pod_labels,
                  const StringMap& labels) {
    const PodSandboxId pod = node_.AddPod(name, kBurstable);
    Pod& held = node_.runtime.held.pods.back();
    held.runtime_handler = handler;
    held.labels = pod_labels;
    node_.manager().PodCreated(held);
    CreateRequest request = TestNode::Request(pod, name, 4000);
    request.labels = labels;
    ContainerId id = Must(node_.Create(request));
    node_.runtime.AnswerAll();
    node_.Start(id);
    return id;
  }
  // Restarts the daemon while the runtime of the handler "kata" is away.
  void RestartWithout() {
    node_.FlushState();
    RuntimeInventory& held = node_.runtime.held;
    for (const Pod& pod : held.pods) {
      if (pod.runtime_handler != "kata") continue;
      std::erase_if(held.containers,
                    [&](const RuntimeContainer& one) { return one.pod_id == pod.id; });
    }
    std::erase_if(held.pods, [](const Pod& pod) { return pod.runtime_handler == "kata"; });
    held.unclear.why = Unavailable("no runtime vm");
    held.unclear.runtimes = {"vm"};
    node_.Restart();
  }
  const Placement& PlacementOf(const ContainerId& id) { return node_.Known(id)->placement; }

  CrashingFileSystem files_{1};
  TestNode node_{N4C16(), ByLabels, Options()};
};

TEST_F(KeptLabelsTest, ContainersOfAnAbsentRuntimeStayInTheBalloonsOfTheirLabels) {
  const ContainerId by_pod = Run("llm", "kata", {{"app", "llm"}}, {});
  const ContainerId by_container = Run("db", "kata", {}, {{"role", "db"}});
  const Placement pods = PlacementOf(by_pod);
  const Placement containers = PlacementOf(by_container);
  ASSERT_EQ(pods.pool, "pods[0]");
  ASSERT_EQ(containers.pool, "containers[0]");
  RestartWithout();
  EXPECT_EQ(PlacementOf(by_pod).pool, "pods[0]");
  EXPECT_EQ(PlacementOf(by_pod).cpus, pods.cpus);
  EXPECT_EQ(PlacementOf(by_container).pool, "containers[0]");
  EXPECT_EQ(PlacementOf(by_container).cpus, containers.cpus);
  // No other container gets their CPUs.
  const ContainerId next = Run("other", "", {}, {});
  EXPECT_FALSE(PlacementOf(next).cpus->Intersects(*pods.cpus | *containers.cpus));
}

}  // namespace
}  // namespace resmgr::test
