// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/topology/cpu_set.h"
#include "pkg/topology/machine.h"
#include "test/e2e/node.h"

namespace resmgr::test {

// Runs pods on a node, prints after each step the CPUs of every container, as read inside of it,
// and fails if they are wrong.
class DemoScene {
 public:
  explicit DemoScene(Node& node) : node_(node) {}

  // Shared containers and exclusive ones that come and go: two of those at once where `at_once`,
  // else one after the other.
  Status Play(bool at_once);

  // On several NUMA nodes, with topology-aware: exclusive containers with their memory beside them.
  Status PlayOnNodes(const Machine& machine);

 private:
  Status ShowNodes(const Machine& machine, std::string_view what_happens);
  Status Start(const Workload& workload, std::string_view what_happens);
  Status Remove(const std::string& name, std::string_view what_happens);
  Status Show(std::string_view what_happens);
  // Prints what cri-resmgr-ctl tells of the pod.
  Status Explain(const std::string& name);
  Status PrintRow(const RunningPod& pod, const CpuSet& shared);
  StatusOr<CpuSet> ExclusiveCpus();

  Node& node_;
  int step_ = 0;
  CpuSet all_;
  std::vector<RunningPod> pods_;
};

// Keeps a node running until Ctrl-C, and creates and removes the pods that lines written to a named
// pipe ask for, from a second terminal. Thread-compatible.
class DemoStay {
 public:
  // `directory` is the node's own, with its admin socket.
  DemoStay(Node& node, std::filesystem::path directory)
      : node_(node), directory_(std::move(directory)) {}

  // Creates a shared pod and one with a CPU of its own, prints the commands for the second
  // terminal, and returns after SIGINT or SIGTERM.
  Status Run();

 private:
  std::filesystem::path Pipe() const { return directory_ / "pods"; }
  void PrintCommands() const;
  Status Serve(int pipe);
  // "create NAME [CPUS]" or "remove NAME"; prints the result.
  void Do(std::string_view line);
  Status Create(const std::string& name, int cpus);
  Status Remove(const std::string& name);

  Node& node_;
  const std::filesystem::path directory_;
  std::vector<RunningPod> pods_;
};

}  // namespace resmgr::test
