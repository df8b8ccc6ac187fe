// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <absl/container/flat_hash_map.h>

#include "pkg/base/status.h"
#include "pkg/base/text_hash.h"
#include "pkg/config/runtimes_config.h"
#include "pkg/model/overhead.h"
#include "pkg/policy/policy.h"
#include "pkg/resmgr/observer.h"
#include "pkg/resmgr/resource_manager.h"
#include "pkg/simulator/memory_file_system.h"
#include "pkg/simulator/memory_runtime.h"
#include "pkg/state/state_store.h"
#include "pkg/sys/event_loop.h"
#include "pkg/sys/manual_clock.h"
#include "pkg/topology/machine.h"

namespace resmgr {

// Where a container runs, as far as the runtime was told.
struct RunningContainer {
  ContainerId id{};
  std::string pod{};  // "namespace/name"
  std::string name{};
  std::string cpus{};       // "" when not set
  std::string mems{};       // likewise
  std::string exclusive{};  // the part of `cpus` that is its own
  int64_t shares = 0;       // 0 when not set
  int64_t quota = -1;       // microseconds per period; -1 without a limit
  std::string pool{};       // of the policy; "" when it decided nothing
  std::string reason{};     // why it is there, by the policy
};

// The daemon's brain with a runtime in memory, for code that makes the calls that a relay would
// see. Each call returns when everything that it causes has happened. One thread.
class SimulatedNode : private Observer {
 public:
  // The machine must outlive it. `runtimes` tells the overhead of pods that state none.
  SimulatedNode(const Machine& machine, std::unique_ptr<Policy> policy,
                RuntimesConfig runtimes = {});
  ~SimulatedNode() override;
  SimulatedNode(const SimulatedNode&) = delete;
  SimulatedNode& operator=(const SimulatedNode&) = delete;

  void RunPod(Pod pod);
  // The sandbox has these values now, in place of those that it had before.
  void UpdatePod(const PodSandboxId& id, const LinuxResources& overhead,
                 const LinuxResources& resources);
  void StopPod(const PodSandboxId& id);
  void RemovePod(const PodSandboxId& id);

  // The policy's refusal, and nothing changed.
  Status Create(const CreateRequest& request, const ContainerId& id);
  Status Start(const ContainerId& id);
  Status Update(const ContainerId& id, const LinuxResources& resources);
  // It ended, by itself or because it was stopped.
  void Stop(const ContainerId& id);
  void Remove(const ContainerId& id);

  // Time passes, for what waits for it (Placement::look_again_after); otherwise none does.
  void Wait(std::chrono::milliseconds time);

  // The daemon ends, and starts again with this policy on the same runtime.
  void Restart(std::unique_ptr<Policy> policy, RuntimesConfig runtimes = {});
  // The refusal of the policy, and everything is as before.
  Status SetPolicy(std::unique_ptr<Policy> policy);

  using Moves = std::vector<ResourceManager::Move>;
  // What the policy would improve on demand; with `apply`, it is done.
  StatusOr<Moves> Rebalance(bool apply);
  // How the container's place came about, beyond its reason (Policy::Explain).
  std::vector<std::string> Explain(const ContainerId& id) const;

  // Those that did not end, in the order of their creation; of all pods, or of one.
  std::vector<RunningContainer> Running() const;
  std::vector<RunningContainer> Running(const PodSandboxId& pod) const;
  // nullopt: it has ended, or there is none.
  std::optional<RunningContainer> FindRunning(const ContainerId& id) const;
  // Containers of which something may have changed since the last call of this: what they have, or
  // that they are there. In the order of their creation.
  std::vector<ContainerId> TakeTouched() { return runtime_.TakeTouched(); }
  // What the pods with such containers have for themselves beside them.
  std::vector<Overhead> Overheads() const;
  bool Exists(const ContainerId& id) const;
  const Policy& policy() const { return manager_->policy(); }
  const Machine& machine() const { return machine_; }

 private:
  // An exclusive set can change and the CPUs stay the same, of which the runtime is not told.
  void OnPlaced(const Act& act) override { NoteMoves(act); }
  void OnUpdated(const Act& act) override { NoteMoves(act); }
  void OnReleased(const Act& act) override { NoteMoves(act); }
  void OnMoved(const Act& act, const Shift& shift) override;
  void NoteMoves(const Act& act);
  void Note(const Snapshot& snapshot, const Shift& shift);

  RunningContainer AsRunning(const RuntimeContainer& held) const;
  void StartManager(std::unique_ptr<Policy> policy);
  // Runs the loop until the condition holds and nothing is under way, or for a time in which that
  // is long the case, unless there is a bug.
  void Settle(const std::function<bool()>& condition = [] { return true; });

  const Machine& machine_;
  RuntimesConfig runtimes_;
  EventLoop loop_;
  MemoryRuntime runtime_;
  MemoryFileSystem files_;
  ManualClock clock_;
  absl::flat_hash_map<ContainerId, ContainerKey, TextHash> keys_;  // of the present manager
  std::unique_ptr<StateStore> state_;
  std::unique_ptr<ResourceManager> manager_;
};

}  // namespace resmgr
