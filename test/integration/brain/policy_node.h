// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include <gtest/gtest.h>

#include "pkg/config/yaml_reader.h"
#include "pkg/policy/registry.h"
#include "pkg/policy/testing/checked_policy.h"
#include "test/support/machines/machines.h"

namespace resmgr::test {

// A policy that can be made anew.
class PolicyNode : public CheckedPolicy {
 public:
  PolicyNode(const PolicyFactory& factory, Machine machine, std::string_view reserved,
             std::string_view section, RuntimesConfig runtimes = {})
      : CheckedPolicy(std::move(machine)),
        factory_(factory),
        reserved_(Cpus(reserved)),
        section_(section),
        runtimes_(std::move(runtimes)) {
    RestartPolicy();
  }

  // Makes a new policy without knowledge.
  void RestartPolicy() {
    const StatusOr<ConfigNode> config = ParseYaml(section_, "test.yaml");
    EXPECT_TRUE(config.ok()) << config.status();
    SetPolicy(factory_.create({.machine = machine(),
                               .available = machine().online() - offline_,
                               .reserved = reserved_ - offline_,
                               .section = &*config,
                               .runtimes = &runtimes_,
                               .offline = offline_}));
  }

  // The same while these CPUs, and no others, have gone offline.
  Plan SetOffline(const CpuSet& cpus) {
    offline_ = cpus;
    RestartPolicy();
    return Reconcile();
  }

  // The same with another section of the configuration.
  void ChangeSection(std::string_view section) {
    section_ = section;
    RestartPolicy();
  }

  // The key, or the refusal.
  StatusOr<ContainerKey> Create(std::string_view name, QosClass qos, int64_t milli_cpu,
                                const Container* predecessor = nullptr) {
    return Place(snapshot().Add(name, qos, milli_cpu).key, predecessor);
  }
  // Creates another container of an existing pod.
  StatusOr<ContainerKey> CreateIn(ContainerKey sibling, std::string_view name, int64_t milli_cpu) {
    const Pod pod = snapshot().PodOf(sibling);
    return CreateIn(pod, name, milli_cpu);
  }
  StatusOr<ContainerKey> CreateIn(const Pod& pod, std::string_view name, int64_t milli_cpu) {
    Container& container = snapshot().Add(name, pod.qos, milli_cpu);
    container.pod_id = pod.id;
    snapshot().PodOf(container.key) = pod;
    return Place(container.key);
  }
  StatusOr<ContainerKey> Place(ContainerKey key, const Container* predecessor = nullptr) {
    RESMGR_RETURN_IF_ERROR(CheckedPolicy::Place(key, predecessor));
    snapshot().At(key).state = ContainerState::kRunning;
    return key;
  }
  Status Resize(ContainerKey key, int64_t milli_cpu) {
    MilliCpu& request = snapshot().At(key).requirements.cpu_request;
    const MilliCpu before = std::exchange(request, MilliCpu{milli_cpu});
    Status status = Update(key);
    if (!status.ok()) request = before;
    return status;
  }
  // Reports this use of CPUs, measured until `time`.
  Plan FollowUse(const std::map<ContainerKey, double>& cpus, std::chrono::seconds until) {
    policy::MeasuredUse use;
    use.until = std::chrono::system_clock::time_point(std::chrono::hours(1)) + until;
    use.over = std::chrono::minutes(1);
    for (const auto& [key, used] : cpus)
      use.containers[key].cpus = used;
    return CarryOut(policy().FollowUse(snapshot(), use));
  }
  // Forgets all but the runtime's knowledge, as a restart without stored state does.
  void ForgetDecisions() {
    snapshot().ForEachContainer([this](const Pod&, const Container& container) {
      Placement known;
      known.cpus = container.placement.cpus;
      known.mems = container.placement.mems;
      snapshot().At(container.key).placement = known;
    });
    RestartPolicy();
  }

  std::string ExclusiveOf(ContainerKey key) { return PlacementOf(key).exclusive.ToString(); }

 private:
  const PolicyFactory factory_;
  const CpuSet reserved_;
  CpuSet offline_{};
  std::string section_;
  const RuntimesConfig runtimes_;
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
               .section = &*config,
               .offline = OfflineCpus(machine)})
      .status();
}

}  // namespace resmgr::test
