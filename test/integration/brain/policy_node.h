// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <gtest/gtest.h>

#include "pkg/config/yaml_reader.h"
#include "pkg/policy/plan_check.h"
#include "pkg/policy/registry.h"
#include "pkg/policy/testing/test_snapshot.h"
#include "test/support/machines/machines.h"

namespace resmgr::test {

// A policy with its snapshot, and the brain's part in the play: every plan is checked and carried
// out.
class PolicyNode {
 public:
  PolicyNode(const PolicyFactory& factory, Machine machine, std::string_view reserved,
             std::string_view section, RuntimesConfig runtimes = {})
      : factory_(factory),
        machine_(std::move(machine)),
        reserved_(Cpus(reserved)),
        section_(section),
        runtimes_(std::move(runtimes)) {
    RestartPolicy();
  }

  // Makes a new policy without knowledge.
  void RestartPolicy() {
    const StatusOr<ConfigNode> config = ParseYaml(section_, "test.yaml");
    EXPECT_TRUE(config.ok()) << config.status();
    StatusOr<std::unique_ptr<Policy>> policy = factory_.create({.machine = machine_,
                                                                .available = machine_.online(),
                                                                .reserved = reserved_,
                                                                .section = &*config,
                                                                .runtimes = &runtimes_});
    EXPECT_TRUE(policy.ok()) << policy.status();
    policy_ = *std::move(policy);
  }

  // The same with another section of the configuration.
  void ChangeSection(std::string_view section) {
    section_ = section;
    RestartPolicy();
  }

  // The key, or the refusal.
  StatusOr<ContainerKey> Create(std::string_view name, QosClass qos, int64_t milli_cpu,
                                const Container* predecessor = nullptr) {
    return Place(snapshot_.Add(name, qos, milli_cpu).key, predecessor);
  }
  // Creates another container of an existing pod.
  StatusOr<ContainerKey> CreateIn(ContainerKey sibling, std::string_view name, int64_t milli_cpu) {
    const Pod pod = snapshot_.PodOf(sibling);
    return CreateIn(pod, name, milli_cpu);
  }
  StatusOr<ContainerKey> CreateIn(const Pod& pod, std::string_view name, int64_t milli_cpu) {
    Container& container = snapshot_.Add(name, pod.qos, milli_cpu);
    container.pod_id = pod.id;
    snapshot_.PodOf(container.key) = pod;
    return Place(container.key);
  }
  StatusOr<ContainerKey> Place(ContainerKey key, const Container* predecessor = nullptr) {
    const StatusOr<Plan> plan =
        policy_->Allocate(snapshot_, snapshot_.PodOf(key), snapshot_.At(key), predecessor);
    if (!plan.ok()) {
      snapshot_.Remove(key);
      return plan.status();
    }
    Apply(*plan);
    snapshot_.At(key).state = ContainerState::kRunning;
    return key;
  }
  Status Resize(ContainerKey key, int64_t milli_cpu) {
    MilliCpu& request = snapshot_.At(key).requirements.cpu_request;
    const MilliCpu before = std::exchange(request, MilliCpu{milli_cpu});
    const StatusOr<Plan> plan = policy_->Update(snapshot_, snapshot_.PodOf(key), snapshot_.At(key));
    if (!plan.ok()) {
      request = before;
      return plan.status();
    }
    Apply(*plan);
    return OkStatus();
  }
  void Remove(ContainerKey key) {
    snapshot_.Remove(key);
    const StatusOr<Plan> plan = policy_->Release(snapshot_, key);
    ASSERT_TRUE(plan.ok()) << plan.status();
    Apply(*plan);
  }
  Plan Reconcile() {
    const StatusOr<Plan> plan = policy_->Reconcile(snapshot_);
    EXPECT_TRUE(plan.ok()) << plan.status();
    Apply(*plan);
    return *plan;
  }
  Plan Rebalance() {
    const StatusOr<Plan> plan = policy_->Rebalance(snapshot_);
    EXPECT_TRUE(plan.ok()) << plan.status();
    Apply(*plan);
    return *plan;
  }
  // Reports this use of CPUs, measured until `time`.
  Plan FollowUse(const std::map<ContainerKey, double>& cpus, std::chrono::seconds until) {
    policy::MeasuredUse use;
    use.until = std::chrono::system_clock::time_point(std::chrono::hours(1)) + until;
    use.over = std::chrono::minutes(1);
    for (const auto& [key, used] : cpus)
      use.containers[key].cpus = used;
    const StatusOr<Plan> plan = policy_->FollowUse(snapshot_, use);
    EXPECT_TRUE(plan.ok()) << plan.status();
    Apply(*plan);
    return *plan;
  }
  // Forgets all but the runtime's knowledge, as a restart without stored state does.
  void ForgetDecisions() {
    snapshot_.ForEachContainer([this](const Pod&, const Container& container) {
      Placement known;
      known.cpus = container.placement.cpus;
      snapshot_.At(container.key).placement = known;
    });
    RestartPolicy();
  }

  std::string CpusOf(ContainerKey key) {
    return snapshot_.At(key).placement.cpus.value_or(CpuSet()).ToString();
  }
  std::string ExclusiveOf(ContainerKey key) {
    return snapshot_.At(key).placement.exclusive.ToString();
  }
  const Placement& PlacementOf(ContainerKey key) { return snapshot_.At(key).placement; }
  TestSnapshot& snapshot() { return snapshot_; }
  Policy& policy() { return *policy_; }
  const Machine& machine() const { return machine_; }

 private:
  void Apply(const Plan& plan) {
    const Status status = CheckPlan(machine_, snapshot_, plan);
    EXPECT_TRUE(status.ok()) << status;
    snapshot_.Apply(plan);
  }

  const PolicyFactory factory_;
  const Machine machine_;
  const CpuSet reserved_;
  std::string section_;
  const RuntimesConfig runtimes_;
  std::unique_ptr<Policy> policy_;
  TestSnapshot snapshot_;
};

// The refusal of a configuration.
inline Status CreateError(const PolicyFactory& factory, const Machine& machine,
                          std::string_view reserved, std::string_view section) {
  const StatusOr<ConfigNode> config = ParseYaml(section, "test.yaml");
  EXPECT_TRUE(config.ok()) << config.status();
  return factory
      .create({.machine = machine,
               .available = machine.online(),
               .reserved = Cpus(reserved),
               .section = &*config})
      .status();
}

// The same machine with CPUs that the kernel isolates.
inline Machine WithIsolated(const Machine& machine, std::string_view isolated) {
  Machine::Parts parts{
      .cpus = machine.cpus(), .nodes = machine.nodes(), .allowed = machine.allowed()};
  for (Cpu& cpu : parts.cpus)
    cpu.isolated = Cpus(isolated).Contains(cpu.id);
  return MakeMachine(std::move(parts));
}

}  // namespace resmgr::test
