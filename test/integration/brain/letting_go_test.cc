// SPDX-License-Identifier: Apache-2.0
// A container that a policy bound to CPUs does not stay bound under a policy that does not pin: one
// that was being created at the change, one that the runtime could not update, and one that an
// earlier daemon bound.
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "pkg/config/yaml_reader.h"
#include "pkg/policy/registry.h"
#include "pkg/resmgr/testing/test_node.h"
#include "pkg/state/testing/failing_file_systems.h"
#include "policies/null/null_policy.h"
#include "policies/static/static_policy.h"
#include "policies/topology-aware/topology_aware_policy.h"
#include "test/integration/brain/default_policy.h"
#include "test/support/machines/machines.h"

namespace resmgr::test {
namespace {

using enum QosClass;

using PolicyMaker = std::unique_ptr<Policy> (*)(const Machine& machine);

std::unique_ptr<Policy> Pinning(const Machine& machine) {
  return MakeDefaultPolicy(StaticPolicyFactory(), machine);
}

std::unique_ptr<Policy> Null(const Machine& machine) {
  return MakeDefaultPolicy(NullPolicyFactory(), machine);
}

std::unique_ptr<Policy> PinsNoCpu(const Machine& machine) {
  const ConfigNode section = *ParseYaml("PinCPU: false", "test.yaml");
  return *TopologyAwarePolicyFactory().create(
      {.machine = machine, .available = machine.allowed(), .reserved = {0}, .section = &section});
}

std::unique_ptr<Policy> Preserves(const Machine& machine) {
  const ConfigNode section = *ParseYaml("PrivilegedNamespaces: ['*']", "test.yaml");
  return *TopologyAwarePolicyFactory().create(
      {.machine = machine, .available = machine.allowed(), .reserved = {0}, .section = &section});
}

struct NotPinning {
  std::string name;
  PolicyMaker make;
  StringMap annotations{};  // of the pod
};

// CPUs 0-7.
class LettingGoTest : public testing::TestWithParam<NotPinning> {
 protected:
  LettingGoTest() { node_.KeepState(files_); }

  CreateRequest Request(std::string_view name, int64_t milli_cpu) {
    Pod pod;
    pod.id = PodSandboxId(fmt::format("sandbox-of-{}", name));
    pod.name = name;
    pod.namespace_name = "ns";
    pod.qos = kGuaranteed;
    pod.annotations = GetParam().annotations;
    node_.runtime.held.pods.push_back(pod);
    CreateRequest request = TestNode::Request(pod.id, name, milli_cpu);
    node_.manager().PodCreated(std::move(pod));
    return request;
  }
  ContainerId Run(const CreateRequest& request) {
    ContainerId id = *node_.Create(request);
    node_.runtime.AnswerAll();
    node_.Start(id);
    return id;
  }
  void Change() {
    node_.manager().policy_changes().Set(GetParam().make(node_.machine()),
                                         [this](const Status& status) { changed_ = status; });
  }
  void RestartWith(PolicyMaker make) {
    node_.FlushState();
    make_ = make;
    node_.Restart();
  }
  bool RunsOn(const ContainerId& id, std::string_view cpus) {
    return node_.RunUntil([&] {
      node_.runtime.AnswerAll();
      return node_.runtime.CpusOf(id) == cpus;
    });
  }

  PolicyMaker make_ = Pinning;
  CrashingFileSystem files_{1};  // outlives the node, whose state is written on a thread
  TestNode node_{S1Ht(), [this](const Machine& machine) { return make_(machine); }};
  std::optional<Status> changed_;
};

TEST_P(LettingGoTest, AChangeBindsNoContainer) {
  const ContainerId id = Run(Request("dsp", 2000));
  ASSERT_EQ(node_.runtime.CpusOf(id), node_.Exclusive(id));
  Change();
  EXPECT_TRUE(RunsOn(id, "0-7"));
  EXPECT_EQ(changed_, OkStatus());
}

TEST_P(LettingGoTest, ContainerBeingCreatedDuringTheChangeIsReleased) {
  const CreateRequest request = Request("dsp", 2000);
  const Admission admission = *node_.manager().AdmitCreate(CreateRequest(request));
  Change();
  const ContainerId id = node_.Created(request, admission);
  EXPECT_TRUE(RunsOn(id, "0-7"));
  EXPECT_EQ(changed_, OkStatus());
  EXPECT_EQ(node_.runtime.Find(id)->resources.cpu_quota, request.resources.cpu_quota);
}

TEST_P(LettingGoTest, AChangeWithoutARuntimeIsMadeUpFor) {
  const ContainerId id = Run(Request("dsp", 2000));
  node_.manager().RuntimeDisconnected();
  node_.runtime.DropAll();
  Change();
  EXPECT_EQ(changed_, OkStatus());
  node_.Reconnect();
  EXPECT_TRUE(RunsOn(id, "0-7"));
}

TEST_P(LettingGoTest, ContainerCreatedAsTheConnectionWasLostIsReleased) {
  const CreateRequest request = Request("dsp", 2000);
  const Admission admission = *node_.manager().AdmitCreate(CreateRequest(request));
  node_.manager().RuntimeDisconnected();
  Change();
  const ContainerId id = node_.Created(request, admission);
  node_.Reconnect();
  EXPECT_TRUE(RunsOn(id, "0-7"));
}

TEST_P(LettingGoTest, ARestartBindsNoContainer) {
  const ContainerId alone = Run(Request("alone", 2000));
  const ContainerId shared = Run(Request("shared", 1500));
  ASSERT_NE(node_.runtime.CpusOf(shared), "0-7");
  RestartWith(GetParam().make);
  EXPECT_TRUE(RunsOn(alone, "0-7"));
  EXPECT_TRUE(RunsOn(shared, "0-7"));
  EXPECT_EQ(node_.Exclusive(alone), "");
}

TEST_P(LettingGoTest, ARestartAfterTheChangeGoesOnWithIt) {
  const ContainerId id = Run(Request("dsp", 2000));
  node_.manager().RuntimeDisconnected();
  Change();
  RestartWith(GetParam().make);
  EXPECT_TRUE(RunsOn(id, "0-7"));
}

TEST_P(LettingGoTest, WhatWasAskedForComesBack) {
  CreateRequest request = Request("dsp", 2000);
  request.resources.cpuset_cpus = "5-6";
  const ContainerId id = Run(request);
  ASSERT_NE(node_.runtime.CpusOf(id), "5-6");
  RestartWith(GetParam().make);
  EXPECT_TRUE(RunsOn(id, "5-6"));
}

// Something else bound it.
TEST_P(LettingGoTest, ContainerThatWasNeverPlacedStaysWhereItIs) {
  make_ = GetParam().make;
  node_.Restart();
  const ContainerId id = Run(Request("dsp", 2000));
  node_.runtime.Find(id)->resources.cpuset_cpus = "3";
  RestartWith(GetParam().make);
  node_.Reconnect();
  Change();
  EXPECT_EQ(changed_, OkStatus());
  node_.runtime.AnswerAll();
  EXPECT_EQ(node_.runtime.CpusOf(id), "3");
}

// The container is bound as before the policy: only by its user's own request.
TEST_P(LettingGoTest, ReleasedContainerCanBePlacedByOtherPolicies) {
  const ContainerId id = Run(Request("dsp", 2000));
  Change();
  ASSERT_TRUE(RunsOn(id, "0-7"));
  LinuxResources wanted;
  wanted.cpuset_cpus = "4";
  const Admission update = *node_.manager().AdmitUpdate(id, wanted);
  node_.runtime.Apply(id, {.cpus = CpuSet{4}});
  node_.runtime.Apply(id, update.adjustment);
  node_.manager().UpdateSucceeded(update);
  node_.runtime.AnswerAll();
  EXPECT_EQ(node_.runtime.CpusOf(id), "4");
}

INSTANTIATE_TEST_SUITE_P(
    All, LettingGoTest,
    testing::Values(
        NotPinning{"Null", Null}, NotPinning{"PinsNoCpu", PinsNoCpu},
        NotPinning{"Preserves", Preserves, {{"cpu.preserve.resource-policy.nri.io/pod", "true"}}}),
    [](const auto& one) { return one.param.name; });

// Without notes, as after all bindings of an earlier policy were lifted.
TEST(AfterNullTest, AContainerOnAllCpusIsPlacedAsANewOne) {
  TestNode node(S1Ht(), Null);
  const ContainerId first = node.Run("first", kGuaranteed, 2000);
  const ContainerId second = node.Run("second", kGuaranteed, 3000);
  const ContainerId pinned = node.Run("pinned", kGuaranteed, 1000);
  const ContainerId shared = node.Run("shared", kBurstable, 100);
  for (const ContainerId& id : {first, second, shared})
    node.runtime.Find(id)->resources.cpuset_cpus = "0-7";
  node.runtime.Find(pinned)->resources.cpuset_cpus = "5";
  node.Restart();
  std::optional<Status> changed;
  node.manager().policy_changes().Set(Pinning(node.machine()),
                                      [&](const Status& status) { changed = status; });
  ASSERT_TRUE(node.RunUntil([&] {
    node.runtime.AnswerAll();
    return changed.has_value();
  }));
  EXPECT_EQ(*changed, OkStatus());
  EXPECT_EQ(CpuSet::Parse(node.runtime.CpusOf(first))->size(), 2);
  EXPECT_EQ(CpuSet::Parse(node.runtime.CpusOf(second))->size(), 3);
  EXPECT_EQ(node.runtime.CpusOf(pinned), "5") << "it stays where it runs";
  EXPECT_EQ(CpuSet::Parse(node.runtime.CpusOf(shared))->size(), 2);
}

}  // namespace
}  // namespace resmgr::test
