// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "pkg/policy/policy.h"
#include "pkg/resmgr/resource_manager.h"
#include "pkg/resmgr/testing/fake_runtime_client.h"
#include "pkg/state/saved_container.h"
#include "pkg/sys/event_loop.h"
#include "pkg/topology/machine.h"
#include "test/support/machines/machines.h"

namespace resmgr::test {

// The smallest policy with all features that the brain must handle: Guaranteed containers with
// whole CPUs get the lowest free ones exclusively, except CPU 0, and all others share the rest.
class FirstFitPolicy : public Policy {
 public:
  explicit FirstFitPolicy(const Machine& machine) : machine_(machine) {}

  // Spoils each plan before it is returned.
  std::function<void(Plan&)> spoil;
  // Names of containers that it leaves on the CPUs that they have.
  std::set<std::string, std::less<>> left_alone;
  // Number of Reconcile calls.
  int reconciled = 0;

  std::string_view name() const override { return "first-fit"; }
  std::unique_ptr<Policy> Clone() const override { return std::make_unique<FirstFitPolicy>(*this); }
  StatusOr<Plan> Reconcile(const Snapshot& snapshot) override;
  StatusOr<Plan> Allocate(const Snapshot& snapshot, const Pod& pod, const Container& container,
                          const Container* predecessor) override;
  StatusOr<Plan> Update(const Snapshot& snapshot, const Pod& pod,
                        const Container& container) override;
  StatusOr<Plan> Release(const Snapshot& snapshot, ContainerKey key) override;
  std::vector<Zone> Zones(const Snapshot&) const override { return {}; }

  const std::map<ContainerKey, CpuSet>& grants() const { return grants_; }

 private:
  CpuSet Free() const;
  // The lowest CPUs, those of `first` before others.
  StatusOr<CpuSet> Choose(const CpuSet& first, int count, std::string_view name) const;
  // Grants CPUs anew in place of `former`, the grant of the container `from`.
  StatusOr<Plan> Regrant(const Snapshot& snapshot, const Pod& pod, const Container& container,
                         ContainerKey from, const CpuSet& former);
  Plan Changes(const Snapshot& snapshot);

  const Machine& machine_;
  std::map<ContainerKey, CpuSet> grants_;
};

inline std::unique_ptr<Policy> FirstFit(const Machine& machine) {
  return std::make_unique<FirstFitPolicy>(machine);
}

// A brain on a machine with a fake runtime. Acts as kubelet and relay: makes their calls in order
// and stores the results in the runtime.
class TestNode {
 public:
  using MakePolicy = std::function<std::unique_ptr<Policy>(const Machine& machine)>;

  // Connected and synchronized with an empty runtime.
  TestNode(Machine machine, const MakePolicy& make_policy,
           ResourceManager::Options options = FastOptions());

  // Short waits, so that tests with a loop are quick.
  static ResourceManager::Options FastOptions();
  // The same with an observer, which must outlive the node.
  static ResourceManager::Options Observed(Observer& observer);

  // A new sandbox "pod-NAME" in namespace "ns".
  PodSandboxId AddPod(std::string_view name, QosClass qos);
  static CreateRequest Request(const PodSandboxId& pod, std::string_view name, int64_t milli_cpu,
                               uint32_t attempt = 0);
  // CPU requests as kubelets write them.
  static LinuxResources Resources(int64_t milli_cpu);

  // The runtime creates the container without a call through the brain.
  ContainerId Hold(const CreateRequest& request, const Admission& admission);
  // The runtime's side of an admitted creation.
  ContainerId Created(const CreateRequest& request, const Admission& admission);
  // Makes a whole creation; returns the admission's refusal otherwise.
  StatusOr<ContainerId> Create(const CreateRequest& request);
  // A pod with one container, whose name is the pod's.
  StatusOr<ContainerId> Create(std::string_view name, QosClass qos, int64_t milli_cpu);
  // A start that must be admitted at once.
  void Start(const ContainerId& id);
  void Started(const ContainerId& id);
  // Makes a whole creation and start.
  ContainerId Run(std::string_view name, QosClass qos, int64_t milli_cpu);
  void Stop(const ContainerId& id);
  void Remove(const ContainerId& id);
  // The container ends without any event or reply.
  void Crash(const ContainerId& id);

  // Waits until all other containers have left the claim's CPUs.
  StatusOr<ClaimGrant> Reserve(const Claim& claim);

  // The connection is lost and comes back; the runtime keeps its containers.
  void Reconnect();
  // Restarts the daemon on the same runtime. `ended` runs between its end and its start.
  void Restart(const std::function<void()>& ended = nullptr);
  // The same with other CPUs online.
  void RestartOn(const Machine& machine) {
    Restart([this, &machine] { machine_ = machine; });
  }
  // Without these CPUs from now on, but with all others of the machine.
  Status SetOffline(const CpuSet& offline);
  // Keeps the state over restarts from now on, in a directory of these files, which must outlive
  // the node.
  void KeepState(FileSystem& files);
  // Waits until the whole state is written.
  void FlushState();

  // The state that the next daemon would find; empty if none is saved.
  std::optional<SavedContainer> Saved(const ContainerId& id) const;

  // The container as the brain knows it; nullptr when it does not.
  const Container* Known(const ContainerId& id) const;
  std::string Placed(const ContainerId& id) const;     // its CPUs as decided
  std::string Exclusive(const ContainerId& id) const;  // its exclusive CPUs
  size_t KnownContainers() const;

  // Runs the loop until the condition holds; false after a deadline of some seconds.
  bool RunUntil(const std::function<bool()>& condition);
  // Waits until a list is asked for, as after each connect.
  bool AwaitList() {
    return RunUntil([this] { return !runtime.lists.empty(); });
  }
  // The same for a list that the brain is made to ask for.
  bool ListAgain() {
    manager_->synchronizer().ResyncSoon();
    return AnswerNextList();
  }
  bool AnswerNextList() {
    if (!AwaitList()) return false;
    runtime.AnswerList();
    return true;
  }

  ResourceManager& manager() { return *manager_; }
  Policy& policy() { return *policy_; }
  const Machine& machine() const { return machine_; }
  EventLoop& loop() { return loop_; }
  FakeRuntimeClient runtime;

 private:
  void MakeManager();

  Machine machine_;
  std::vector<std::unique_ptr<Machine>> machines_;  // with CPUs offline, for the policies
  const MakePolicy make_policy_;
  const ResourceManager::Options options_;
  EventLoop loop_;
  Policy* policy_ = nullptr;  // the manager's
  std::unique_ptr<StateStore> state_;
  std::unique_ptr<ResourceManager> manager_;
  uint64_t last_id_ = 0;
  FileSystem* files_ = nullptr;
};

// A start that was asked for, and its answer.
class AskedStart {
 public:
  AskedStart(ResourceManager& manager, const ContainerId& id)
      : wait_(manager.AdmitStart(id, [this](const Status& status) { answer_ = status; })) {}
  AskedStart(const AskedStart&) = delete;
  AskedStart& operator=(const AskedStart&) = delete;

  bool answered() const { return answer_.has_value(); }
  bool admitted() const { return answered() && answer_->ok(); }
  Status answer() const { return answer_.value_or(Internal("no answer")); }
  void Withdraw() { wait_.reset(); }

 private:
  std::optional<Status> answer_;
  std::unique_ptr<StartWait> wait_;
};

// A node with the tests' own policy.
class ManagerFixture : public testing::Test {
 protected:
  FirstFitPolicy& policy() { return static_cast<FirstFitPolicy&>(node_.policy()); }
  FakeRuntimeClient& runtime() { return node_.runtime; }
  ResourceManager& manager() { return node_.manager(); }

  // CPUs 0-7.
  TestNode node_{S1Ht(), FirstFit};
};

}  // namespace resmgr::test
