// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <absl/container/flat_hash_map.h>

#include "pkg/base/ids.h"
#include "pkg/base/status.h"
#include "pkg/claims/claim.h"
#include "pkg/claims/held_claims.h"
#include "pkg/classes/class_preview.h"
#include "pkg/config/runtimes_config.h"
#include "pkg/model/snapshot.h"
#include "pkg/policy/policy.h"
#include "pkg/resmgr/observer.h"
#include "pkg/resmgr/resource_manager.h"
#include "pkg/simulator/memory_host.h"
#include "pkg/state/state_store.h"
#include "pkg/sys/clock.h"
#include "pkg/sys/event_loop.h"
#include "pkg/topology/machine.h"
#include "pkg/usage/use_rebalancer.h"

namespace resmgr {

// The resources of a container, as sent to the runtime, and the policy's reason.
struct SimulatedPlace {
  std::string cpus{};       // "" if unset
  std::string mems{};       // "" if unset
  std::string exclusive{};  // the exclusive part of `cpus`
  int64_t shares = 0;       // 0 if unset
  int64_t quota = 0;        // microseconds per period; -1 without a limit
  std::string qos{};        // of its pod
  MilliCpu cpu_limit{};     // 0: none, as the next one
  Bytes memory_limit{};
  std::string pool{};    // the policy's pool; "" if it decided nothing
  std::string reason{};  // for the place
};

struct RunningContainer : SimulatedPlace {
  ContainerId id{};
  std::string pod{};  // "namespace/name"
  std::string name{};
};

// The time that a sample of use covers if so much time has passed before: the interval, and after a
// day or so a part of the time, so that the number of samples grows with its logarithm only.
std::chrono::milliseconds SampleTime(std::chrono::milliseconds interval,
                                     std::chrono::milliseconds passed);

// The daemon's resource manager with a runtime in memory, for callers that stand for a relay. Each
// call returns when all its effects have happened. Used by one thread.
class SimulatedNode : private Observer {
 public:
  // The machine must outlive this object. `runtimes` has the overhead of pods that do not state
  // theirs.
  SimulatedNode(const Machine& machine, std::unique_ptr<Policy> policy,
                RuntimesConfig runtimes = {});
  ~SimulatedNode() override;
  SimulatedNode(const SimulatedNode&) = delete;
  SimulatedNode& operator=(const SimulatedNode&) = delete;

  void RunPod(Pod pod);
  // Replaces all former values of the sandbox.
  void UpdatePod(const PodSandboxId& id, const LinuxResources& overhead,
                 const LinuxResources& resources);
  void StopPod(const PodSandboxId& id);
  void RemovePod(const PodSandboxId& id);

  // Returns the refusal by the policy, or because of classes; nothing has changed then.
  // `claims`: the uids of claims that the container carries.
  Status Create(const CreateRequest& request, const ContainerId& id,
                std::vector<std::string> claims = {});
  Status Start(const ContainerId& id);
  Status Update(const ContainerId& id, const LinuxResources& resources);
  // Reports to the daemon that the container has ended, by itself or because it was stopped.
  void Stop(const ContainerId& id);
  void Remove(const ContainerId& id);

  // Holds CPUs for a claim, as the driver does when it prepares one. Errors as from ClaimHolder.
  Status Reserve(const Claim& claim);
  // Gives the CPUs of a claim back.
  Status GiveBack(const std::string& uid);
  // Valid until the next call of another member; nullptr: no CPUs are held for the claim.
  const HeldClaim* FindClaim(const std::string& uid) const;
  // CPUs of all claims.
  CpuSet Claimed() const;

  // Lets time pass, for policies that wait (Placement::look_again_after) and for samples of use.
  // Only this function lets time pass.
  void Wait(std::chrono::milliseconds time);
  // Sets how many CPUs the container wants from now on. How much CPU time it gets, and how long it
  // waits, follow from the CPUs of its pool and from what other containers there want. Has no
  // effect for a container that does not exist.
  void SetUse(const ContainerId& id, double wanted);
  void Configure(const UsageConfig& config);
  // The classes of containers from now on; nullptr: there are none.
  void SetClasses(std::shared_ptr<const ClassPreview> classes) { classes_ = std::move(classes); }
  // The classes of a container that has not ended.
  std::vector<PreviewedClass> ClassesOf(const ContainerId& id) const;

  // The daemon ends, and starts again with this policy. The runtime keeps its containers.
  void Restart(std::unique_ptr<Policy> policy, RuntimesConfig runtimes = {});
  // Returns the policy's refusal, with everything unchanged.
  Status SetPolicy(std::unique_ptr<Policy> policy);

  using Moves = std::vector<ResourceManager::Move>;
  // The moves by which the policy would improve placements; with `apply`, they are carried out.
  StatusOr<Moves> Rebalance(bool apply);
  // Rebalances by the containers' use.
  StatusOr<UseRound> RebalanceByUse(bool apply, std::optional<int> most_moves);
  // The rounds that moved containers, and their results.
  const std::deque<UseRound>& rounds() const { return by_use_->rounds(); }
  // Explains the container's place beyond its reason (Policy::Explain).
  std::vector<std::string> Explain(const ContainerId& id) const;

  // The containers that have not ended, in the order of their creation; of all pods, or of one.
  std::vector<RunningContainer> Running() const;
  std::vector<RunningContainer> Running(const PodSandboxId& pod) const;
  // nullopt: it has ended, or never existed.
  std::optional<RunningContainer> FindRunning(const ContainerId& id) const;
  // Containers that may have changed, or were created, since the last call, in the order of their
  // creation.
  std::vector<ContainerId> TakeTouched() { return runtime_.TakeTouched(); }
  // The overheads of the pods with containers that have not ended.
  std::vector<Overhead> Overheads() const;
  // The CPUs that the policy keeps for the system.
  CpuSet Reserved() const;
  const Policy& policy() const { return manager_->policy(); }
  const Machine& machine() const { return machine_; }

 private:
  // Moves are noted here and not at the runtime: an exclusive set can change while the CPUs stay
  // the same, and then the runtime gets no update.
  void OnPlaced(const Act& act) override { NoteMoves(act); }
  void OnUpdated(const Act& act) override { NoteMoves(act); }
  void OnReleased(const Act& act) override { NoteMoves(act); }
  void OnMoved(const Act& act, const Shift& shift) override;
  void NoteMoves(const Act& act);
  void Note(const Snapshot& snapshot, const Shift& shift);

  void Sample(std::chrono::milliseconds time);
  UsageFigures FiguresOf(std::chrono::milliseconds time) const;
  // An error if the daemon refuses a container because of its classes although the policy placed
  // it.
  Status CheckClasses(ContainerKey key) const;
  RunningContainer AsRunning(const RuntimeContainer& held) const;
  void StartManager(std::unique_ptr<Policy> policy);
  // Runs the loop until the condition holds and nothing is under way. The deadline is exceeded only
  // after a bug.
  void Settle(const std::function<bool()>& condition = [] { return true; });

  const Machine& machine_;
  RuntimesConfig runtimes_;
  EventLoop loop_;
  MemoryRuntime runtime_;
  MemoryFileSystem files_;
  ManualClock clock_;
  absl::flat_hash_map<ContainerId, ContainerKey, TextHash> keys_;  // keys in the present manager
  std::unique_ptr<StateStore> state_;
  std::unique_ptr<ResourceManager> manager_;
  std::shared_ptr<const ClassPreview> classes_;
  std::map<ContainerId, double> wanted_;  // wanted CPUs of existing containers
  UsageConfig usage_;
  std::chrono::milliseconds sampled_{0};  // the time of all samples so far
  std::optional<UseRebalancer> by_use_;   // of the present daemon
};

}  // namespace resmgr
