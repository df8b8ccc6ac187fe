// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "pkg/topology/cpu_set.h"
#include "pkg/topology/machine.h"
#include "test/e2e/node.h"
#include "test/support/status_matchers.h"

namespace resmgr::test {

// The wait for effects that follow calls later: containers grow, states are written.
inline constexpr std::chrono::seconds kPatience{60};

// A test with a node on containerd that reads its containers' places from cgroupfs. Its
// expectations follow from the machine that it runs on. At its end no shared container may ever
// have been on a CPU of an exclusive one.
class NodeTest : public ::testing::Test {
 protected:
  static const Machine& TheMachine();
  // Those that this process, and so containerd, may use.
  static const CpuSet& All() { return TheMachine().allowed(); }
  // The CPUs that are left where CPU 0 is reserved.
  static CpuSet Unreserved() { return All() - CpuSet{0}; }

  void Open(const Node::Options& options);
  void TearDown() override;

  RunningPod Run(const Workload& workload);
  void Resize(const Workload& workload, RunningPod* pod);
  void Remove(const RunningPod& pod);

  // In cgroupfs, as kernel lists.
  std::string CpusOf(const RunningPod& pod) const;
  std::string MemsOf(const RunningPod& pod) const;
  CpuSet CpuSetOf(const RunningPod& pod) const;
  // Compares the values in the container's cgroup, of either version; a quota of -1 is none.
  ::testing::AssertionResult HasShares(const RunningPod& pod, int64_t shares) const;
  ::testing::AssertionResult HasQuota(const RunningPod& pod, int64_t microseconds) const;
  // The CPUs that a container which is created but not started will have, as the runtime tells;
  // none when it is gone. It has no cgroup yet.
  CpuSet CpuSetToBe(const RunningPod& pod) const;
  // CPUs and memory nodes of these containers, by name.
  template <typename... Pods>
  std::map<std::string, std::string> PlacesOf(const Pods&... pods) const {
    std::map<std::string, std::string> places;
    (places.emplace(pods.workload.name, CpusOf(pods) + " mems " + MemsOf(pods)), ...);
    return places;
  }
  // Waits: containers may change place some time after the one that was the reason.
  void ExpectOn(const RunningPod& pod, const CpuSet& cpus) const;

  // The answer of cri-resmgr-ctl as JSON; null if it fails.
  nlohmann::json Ctl(const Node::Words& words) const;
  // Skips the test where containerd is of version 1.6, which does not have this.
  void NeedsNewerThan16(std::string_view what);

  Node& node() { return *node_; }
  const Containerd& containerd() const { return node_->containerd(); }

 private:
  std::unique_ptr<Node> node_;
};

}  // namespace resmgr::test
