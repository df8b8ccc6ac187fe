// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pkg/base/failure_policy.h"
#include "pkg/base/status.h"
#include "pkg/model/adjustment.h"
#include "pkg/model/pod.h"
#include "pkg/model/request.h"
#include "pkg/model/resources.h"
#include "pkg/policy/policy.h"
#include "pkg/resmgr/admission.h"
#include "pkg/resmgr/brain.h"
#include "pkg/resmgr/claims.h"
#include "pkg/resmgr/container_store.h"
#include "pkg/resmgr/creations.h"
#include "pkg/resmgr/endings.h"
#include "pkg/resmgr/failures.h"
#include "pkg/resmgr/lists.h"
#include "pkg/resmgr/pod_limits.h"
#include "pkg/resmgr/policy_changes.h"
#include "pkg/resmgr/runtime_client.h"
#include "pkg/resmgr/set_later.h"
#include "pkg/resmgr/starts.h"
#include "pkg/resmgr/state_writer.h"
#include "pkg/resmgr/synchronizer.h"
#include "pkg/resmgr/updates.h"
#include "pkg/state/state_store.h"
#include "pkg/sys/event_loop.h"
#include "pkg/topology/machine.h"

namespace resmgr {

// Holds pods and containers, asks the policy, keeps the values sent to the runtime apart from the
// decided ones, and sends updates until both agree. All on the loop's thread.
//
// Life of a container: AdmitCreate (placed, others planned to shrink) -> CreateSucceeded (id known)
// -> AdmitStart (waits until no running container is on its exclusive CPUs) -> StartSucceeded ->
// ContainerStopped -> ContainerRemoved. A container that loses CPUs is updated at the runtime in
// parallel with the creation that took them.
class ResourceManager : private UpdateListener {
 public:
  using Options = BrainOptions;
  using Refusal = RefusalKind;
  using Move = PlannedMove;

  // `state` is the durable state; nullptr: nothing is remembered over restarts. All references must
  // outlive it.
  ResourceManager(EventLoop& loop, const Machine& machine, std::unique_ptr<Policy> policy,
                  RuntimeClient& runtime, StateStore* state, const Options& options);
  ResourceManager(const ResourceManager&) = delete;
  ResourceManager& operator=(const ResourceManager&) = delete;

  // The runtime is connected: lists what exists, adopts containers where they run, places only
  // those without a legal placement, and sends only real differences. Tried again with growing
  // pauses until it succeeds or the connection is lost.
  void RuntimeConnected();
  // Another runtime came, or came back, behind the same connection: lists everything again, without
  // delaying calls under way.
  void RuntimeJoined();
  void RuntimeDisconnected();
  // When the runtime is listed, and waits for lists.
  Synchronizer& synchronizer() { return brain_.synchronizer; }
  const Synchronizer& synchronizer() const { return brain_.synchronizer; }
  // Takes an event of the runtime. If no call that passed here explains the event, everything is
  // listed again, with a pause between two such lists.
  void OnContainerEvent(const ContainerEvent& event) { events_.Add(event); }
  // Whether the container is known by this id, or by this beginning of an id.
  bool Knows(const ContainerId& id) const { return brain_.store.Resolve(id) != nullptr; }

  // Called after the runtime's success. The pod is as the client asked for it; `sent`: what all
  // stages changed in the request.
  void PodCreated(Pod pod, const Adjustment& sent = Adjustment());
  // The sandbox now has these values in place of its former ones.
  void PodResourcesChanged(const PodSandboxId& id, const LinuxResources& overhead,
                           const LinuxResources& resources);
  void PodStopped(const PodSandboxId& id) { endings_.StopPod(id); }
  void PodRemoved(const PodSandboxId& id) { endings_.RemovePod(id); }

  // In the following calls an id may be abbreviated, as for runtimes: it then names the only
  // container or pod sandbox whose id begins so. If a call succeeded for an unknown id, everything
  // is listed again.

  // See creations.h, also for the outcomes of the creation.
  StatusOr<Admission> AdmitCreate(CreateRequest&& request, Refusal refusal = Refusal::kFinal,
                                  std::vector<std::string> claims = {}) {
    return creations_.Admit(std::move(request), refusal, std::move(claims));
  }
  void CreateSucceeded(ContainerKey key, ContainerId id, const Adjustment& sent = Adjustment()) {
    creations_.Succeeded(key, std::move(id), sent);
    starts_.ExamineWaits();
  }
  void CreateFailed(ContainerKey key, const Status& refusal = OkStatus()) {
    creations_.Failed(key, refusal);
  }
  // Called with the runtime's answer before CreateFailed, StartFailed and UpdateFailed. If the
  // answer is about cgroups, the cause is searched for and logged.
  void RefusedByRuntime(ContainerKey key, std::string_view answer) {
    failures_.RefusedByRuntime(brain_.store.Find(key), answer);
  }
  void RefusedByRuntime(const ContainerId& id, std::string_view answer) {
    failures_.RefusedByRuntime(brain_.store.Resolve(id), answer);
  }
  void CreateUnclear(ContainerKey key) { creations_.Unclear(key); }

  // See starts.h.
  std::unique_ptr<StartWait> AdmitStart(const ContainerId& id, std::function<void(Status)> go) {
    return starts_.Admit(id, std::move(go));
  }
  // Replaces Options::start_failure, also for starts that wait already.
  void SetStartFailurePolicy(FailurePolicy policy) { starts_.SetOnTimeout(policy); }
  // Replaces Options::refused_updates. A cpuset that was written into a cgroup stays.
  void SetRefusedUpdates(RefusedUpdates choice) { brain_.pusher.SetRefusedUpdates(choice); }
  void StartSucceeded(const ContainerId& id) { starts_.End(id, LifeEvent::kStartSucceeded); }
  void StartFailed(const ContainerId& id) { starts_.End(id, LifeEvent::kStartFailed); }
  // The start was not answered: it may have taken effect, or do so later. The runtime is listed
  // until the outcome is known.
  void StartUnclear(const ContainerId& id) { starts_.End(id, LifeEvent::kStartUnanswered); }

  // See updates.h.
  StatusOr<Admission> AdmitUpdate(const ContainerId& id, const LinuxResources& requested,
                                  Refusal refusal = Refusal::kFinal) {
    return updates_.Admit(id, requested, refusal);
  }
  void UpdateSucceeded(const Admission& admission, const ResourceValues& sent = {}) {
    updates_.End(admission, &sent);
  }
  void UpdateFailed(const Admission& admission) { updates_.End(admission, nullptr); }

  // CPU numbers that other stages or the runtime's own plugins set.
  SetLater& set_later() { return set_later_; }

  // A StopContainer has succeeded. If the container was only created, a list then shows its state.
  void ContainerStopped(const ContainerId& id) { endings_.Stop(id); }
  void ContainerExited(const ContainerId& id) { endings_.End(id); }
  void ContainerRemoved(const ContainerId& id) { endings_.Remove(id); }

  // Changes of the policy, moves to better places, and CPUs that go offline.
  PolicyChanges& policy_changes() { return policy_changes_; }
  const PolicyChanges& policy_changes() const { return policy_changes_; }

  // Asks the runtime for everything that it holds, and changes nothing here. If `wanted` is given,
  // the status is only asked for containers for which it returns true. See RuntimeClient::ListAll.
  void AskRuntime(std::function<void(StatusOr<RuntimeInventory>)> done,
                  std::function<bool(const ContainerId&)> wanted = {});
  // Sends the values that should be in force again, since the container was seen to have others.
  // Values that other programs have set are replaced. Does nothing for an unknown container.
  void SendAgain(ContainerKey key) { brain_.pusher.Restore(key); }
  void SendAgain(const ContainerId& id);

  ClaimHolder& claims() { return claims_; }
  // For introspection: the held claims, and the containers that carry claims.
  const HeldClaims& held_claims() const { return *brain_.decider.claims(); }
  const ClaimCarriers& carriers() const { return brain_.decider.carriers(); }

  // For introspection; valid until the next call of another function here.
  const Snapshot& snapshot() const { return brain_.store.all(); }
  // The number of pods in it, also those without containers.
  size_t pod_count() const { return brain_.store.pods().size(); }
  const Policy& policy() const { return brain_.policy(); }
  // Whether all decided values are in force, and the runtime knows them.
  bool Settled(ContainerKey key) const { return brain_.pusher.Settled(key); }
  // Whether its CPUs and memory nodes are in force because they were written into its cgroup, past
  // the runtime, which may report others.
  bool WrittenPastRuntime(ContainerKey key) const { return brain_.pusher.WrittenPastRuntime(key); }
  // The error of the container's last update; OK if it succeeded.
  Status LastUpdateError(ContainerKey key) const { return brain_.pusher.LastError(key); }

 private:
  // UpdateListener:
  void OnApplied(ContainerKey key) override;
  void OnFailed(ContainerKey key, const Status& status) override;
  void OnRecovered(const ContainerRecord& record) override;
  void OnWritten(const ContainerRecord& record, const Status& why) override;
  void OnGone(ContainerKey key) override;
  void OnMoot() override { brain_.observers.OnMoot(1); }
  void OnInForce(const ContainerRecord& record, const AppliedResources& applied) override;

  Brain brain_;
  SetLater set_later_;
  PodLimits pod_limits_;
  ExitedContainers exited_;
  Endings endings_;
  Creations creations_;
  Updates updates_;
  PolicyChanges policy_changes_;
  Claims claims_;
  Failures failures_;
  Starts starts_;
  Lists lists_;
  EventFilter events_;
};

}  // namespace resmgr
