// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>

#include <nlohmann/json.hpp>

#include "test/e2e/front_doors.h"

namespace resmgr::test {

inline constexpr int64_t kMiB = int64_t{1} << 20;

// A node on the machine that this runs on, by a door and under a policy.
class MachineTest : public DoorTest,
                    public ::testing::WithParamInterface<std::tuple<Door, const char*>> {
 protected:
  bool IsPlugin() const override { return std::get<0>(GetParam()) == Door::kNriPlugin; }
  static std::string Policy() { return std::get<1>(GetParam()); }

  // The policy as an option, which configurations that come later do not change; balloons as a
  // configuration, with a balloon for each Guaranteed container.
  void OpenFixed();
  // The policy and more as a configuration: its text without the policy.
  void OpenConfigured(const std::string& more);

  // The output of cri-resmgr-ctl for these words.
  nlohmann::json Ctl(const Node::Words& words);
  // Puts this configuration into force, with more words of `config set`.
  Status Configure(const std::string& text, const Node::Words& more = {});
  // The explanation of the container.
  nlohmann::json Explained(const RunningPod& pod);
  // The problem of this kind that names the container; an empty object: none.
  nlohmann::json ProblemOf(const RunningPod& pod, const std::string& kind);
  // The CPUs for it alone, by the daemon's word.
  CpuSet ExclusiveOf(const RunningPod& pod);

  // One more container in the pod. On an emulated machine it costs a third of a pod with one.
  RunningPod Add(const RunningPod& pod, const Workload& workload);
  // The text of the refusal of one more container in the pod; "": it is not refused.
  std::string RefusalOf(const RunningPod& pod, const Workload& workload);
  // Ends this container of a pod that goes on.
  void End(const RunningPod& pod);

  // The kernel's word for where the container's process runs, which has to be the cgroup's.
  CpuSet KernelCpus(const RunningPod& pod);
  // Those of the container's memory nodes that have CPUs; nodes without join the nearest one.
  NodeSet NodesWithCpus(const RunningPod& pod) const;
  // The memory nodes that have memory beside these CPUs.
  static NodeSet NodesWithMemory(const CpuSet& cpus);
  // Waits: shared containers leave a CPU before a container that runs gets it.
  void ExpectSize(const RunningPod& pod, int size);
  // One NUMA node, if one has room for it.
  void ExpectCompact(const CpuSet& own);
  // Bytes of the container's memory on each node, as the kernel counts them.
  std::map<int, int64_t> MemoryByNode(const RunningPod& pod);

  // A container that keeps 96 MiB.
  static Workload Hungry(int cpus);
  // Waits until it does.
  void ExpectFull(const RunningPod& pod);
};

inline constexpr auto kDoors = {Door::kRelay, Door::kNriPlugin};
inline constexpr auto kPolicies = {"static", "static-plus", "topology-aware"};
// Policies with exclusive CPUs, and balloons of single containers.
inline constexpr auto kAllPolicies = {"static", "static-plus", "topology-aware", "balloons"};

std::string NameOfMachineCase(const ::testing::TestParamInfo<std::tuple<Door, const char*>>& info);

}  // namespace resmgr::test
