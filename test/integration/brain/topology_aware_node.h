// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/resmgr/testing/test_node.h"

namespace resmgr::test {

inline constexpr int64_t kGiB = int64_t{1} << 30;

// Four packages of one CPU and 2 GiB, and four PMEM nodes of 4 GiB: 4 beside node 2, 5 beside 3, 6
// beside 0, 7 beside 1 (c4pmem4).
Machine C4Pmem4();

// A container of a pod, as tests write it.
struct PodSpec {
  std::string name{};
  QosClass qos = QosClass::kGuaranteed;
  std::vector<int64_t> milli_cpu{};  // of its containers NAMEc0, NAMEc1, ...
  int64_t limit = 0;                 // of each in milli-CPUs; Guaranteed: the request
  int64_t memory = 0;                // limit of each in bytes
  std::string name_space = "default";
  StringMap annotations{};
  std::vector<LocalityHint> hints{};  // of each of its containers
};

// The brain with the topology-aware policy, in the part of a kubelet.
class TopologyAwareNode {
 public:
  struct Setup {
    std::string available{};  // all CPUs when empty
    std::string reserved = "0";
    std::string section{};   // policy.topology-aware, as YAML
    Clock* clock = nullptr;  // must outlive the node
  };
  TopologyAwareNode(Machine machine, const Setup& setup);

  // Runs all containers of the pod; the first refusal otherwise. Checks that earlier containers
  // keep their exclusive CPUs.
  Status Run(const PodSpec& pod);
  // A pod that must be admitted.
  void MustRun(const PodSpec& pod);
  Status Resize(const std::string& container, int64_t milli_cpu);
  // The container ends; its CPUs are free.
  void End(const std::string& container);
  // Ends the container and runs its next attempt.
  void RunAgain(const std::string& container);
  // Restarts the daemon.
  void Restart() { node_.Restart(); }

  CpuSet Cpus(const std::string& container) const;
  CpuSet Exclusive(const std::string& container) const;
  std::string CpuList(const std::string& container) const { return Cpus(container).ToString(); }
  std::string Mems(const std::string& container) const;
  // The memory nodes that the runtime enforces.
  std::string MemsInForce(const std::string& container);
  std::string IdOf(const std::string& container) const {
    return std::string(running_.at(container).id.value());
  }
  std::string Reason(const std::string& container) const;
  std::string Pool(const std::string& container) const;
  // How many nodes, cores, packages its CPUs are on.
  int Nodes(const std::string& container) const;
  int Cores(const std::string& container) const;
  int Packages(const std::string& container) const;
  // Whether no two of these containers share a CPU.
  bool Disjoint(const std::vector<std::string>& containers) const;
  bool NodesDisjoint(const std::vector<std::string>& containers) const;
  // The values that the runtime enforces for all containers, one line each.
  std::vector<std::string> InForce();

  TestNode& node() { return node_; }

 private:
  struct Running {
    CreateRequest request;
    ContainerId id;
  };
  const Placement& PlacementOf(const std::string& container) const;
  Status RunContainer(const CreateRequest& request);

  TestNode node_;
  std::map<std::string, Running> running_;
  int pods_ = 0;
};

}  // namespace resmgr::test
