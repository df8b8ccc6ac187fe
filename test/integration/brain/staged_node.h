// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pkg/model/adjustment.h"
#include "pkg/model/request.h"
#include "pkg/pipeline/hint_finder.h"
#include "pkg/pipeline/pipeline.h"
#include "pkg/pipeline/pipeline_call.h"
#include "pkg/pipeline/policy_stage.h"
#include "pkg/pipeline/testing/function_stage.h"
#include "pkg/resmgr/testing/test_node.h"
#include "pkg/state/testing/failing_file_systems.h"

namespace resmgr::test {

// The brain behind a pipeline with two more stages, in the place of hook servers and NRI plugins,
// in front of a runtime that may have plugins of its own. It remembers over restarts.
class StagedNode {
 public:
  // The point of a call at which the daemon is killed.
  enum class Cut { kNever, kBeforeTheRuntime, kAfterTheRuntime };
  using Change = std::function<void(const Request& request, Adjustment& adjustment)>;

  StagedNode(Machine machine, const TestNode::MakePolicy& make_policy);
  ~StagedNode();
  StagedNode(const StagedNode&) = delete;
  StagedNode& operator=(const StagedNode&) = delete;

  // The changes that the two stages make, and those that the runtime's plugins make to each
  // creation and update, including our own updates.
  Change first;
  Change second;
  std::function<void(RuntimeContainer& container)> own_plugins;
  // The point at which to kill the daemon in the next call about a container; that call then fails
  // with "killed".
  Cut cut = Cut::kNever;

  // `pod` is the client's request, without the id; the class follows from the cgroup parent.
  PodSandboxId RunPod(Pod pod);
  StatusOr<ContainerId> Create(const PodSandboxId& pod, const std::string& name,
                               const LinuxResources& resources, StringMap labels = {});
  Status Start(const ContainerId& id);
  Status Update(const ContainerId& id, const LinuxResources& resources);
  void Stop(const ContainerId& id);
  // A stage has the runtime change a container, beside all calls.
  void SetByStage(const ContainerId& id, const ResourceValues& values);

  // Answers all updates of the brain's.
  void Settle();
  // Lists the runtime, as happens some seconds after each call.
  void Report();
  // kill -9 after the last call; the disk has everything.
  void Kill();

  TestNode& node() { return node_; }
  FakeRuntimeClient& runtime() { return node_.runtime; }
  // The decision about the container is in force.
  bool InForce(const ContainerId& id);
  const Container& Known(const ContainerId& id) const;
  const Pod& PodOf(const ContainerId& id) const;

 private:
  class Call;

  Status Decide(Call& call);
  void Connect();
  void RunOwnPlugins(const ContainerId& id);
  Status KillInCall(Call& call);

  CrashingFileSystem disk_{1};
  StoppingFileSystem files_{disk_};
  TestNode node_;
  LoopClock clock_;
  Pipeline pipeline_;
  HintFinder hints_;
  FunctionStage hooks_;
  FunctionStage plugins_;
  std::unique_ptr<PolicyStage> policy_stage_;
  int ids_ = 0;
};

}  // namespace resmgr::test
