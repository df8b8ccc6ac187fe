// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
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
class ResourceManager : private UpdateListener, private Synchronizer::Owner {
 public:
  using Options = BrainOptions;
  using Refusal = RefusalKind;
  using StartWait = resmgr::StartWait;
  using Move = PlannedMove;
  using Offline = OfflineChange;

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
  // The outcome or the effect of a call is unknown: soon lists what the runtime holds; other calls
  // need not wait for it.
  void Resync() { brain_.synchronizer.ResyncSoon(); }
  // Takes an event of the runtime. If no call that passed here explains the event, everything is
  // listed again, with a pause between two such lists.
  void OnContainerEvent(const ContainerEvent& event) { events_.Add(event); }
  // Lists what the runtime holds, at least Options::refresh_pause after the last list: all calls
  // meanwhile share one list. Runs `done`, never from within, when the list is taken over, or with
  // the error; at once without a connection.
  void Refresh(std::function<void(Status)> done) { brain_.synchronizer.Refresh(std::move(done)); }
  // Whether a list by Refresh may show something new.
  bool RefreshTellsNews() const { return brain_.synchronizer.RefreshTellsNews(); }
  // Whether the container is known by this id, or by this beginning of an id.
  bool Knows(const ContainerId& id) const { return brain_.store.Resolve(id) != nullptr; }
  // Runs `ready` once the first synchronization after a connect is done; at once if it is done
  // already. Unavailable if the runtime is not connected, if the connection is lost meanwhile, or
  // if the synchronization fails (another one follows by itself).
  void WhenReady(std::function<void(Status)> ready) {
    brain_.synchronizer.WhenReady(std::move(ready));
  }
  // Whether the first synchronization is done.
  bool ready() const { return brain_.synchronizer.ready(); }

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

  // Places the container of a known sandbox, or of the one that the request describes; the policy's
  // refusal names container, need and shortage, and changes nothing. With an empty adjustment:
  //   - a request without Linux resources, since adding some would change more than the cpuset
  //     (containerd and CRI-O then set oom_score_adj): the container gets its CPUs by an update
  //     after its creation, for which its start waits;
  //   - an unknown sandbox that the request does not describe either: the container is not kept; if
  //     the runtime creates it, everything is listed again and the container is adopted.
  // A former attempt of the container in the same sandbox is dead: its CPUs pass on, and come back
  // to it if this creation fails. A tentative refusal leaves the request as it was, except for its
  // pod. `claims`: uids of claims that it carries, on whose CPUs it is placed; NotFound where one
  // is not held, AlreadyExists where another container has one.
  StatusOr<Admission> AdmitCreate(CreateRequest&& request, Refusal refusal = Refusal::kFinal,
                                  std::vector<std::string> claims = {}) {
    return creations_.Admit(std::move(request), refusal, std::move(claims));
  }
  // `sent`: what all stages, the brain's among them, changed in the request. Values that other
  // stages set never count as the client's request.
  void CreateSucceeded(ContainerKey key, ContainerId id, const Adjustment& sent = Adjustment()) {
    creations_.Succeeded(key, std::move(id), sent);
    starts_.ExamineWaits();
  }
  // The creation is about to be sent, as later stages changed it: the client's original request is
  // saved for a later daemon that finds the container without knowing how the creation ended.
  void CreationSent(ContainerKey key, const Adjustment& sent) {
    set_later_.CreationSent(key, sent);
  }
  // `refusal`: set if another part of the daemon has refused the creation that was admitted here.
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
  // The creation was not answered, so the container may exist: the runtime is soon listed.
  void CreateUnclear(ContainerKey key) { creations_.Unclear(key); }

  // Runs `go` when the container may start: at once, with nullptr returned, when no other
  // container is on its CPUs. Else a refusal is FailedPrecondition naming the container in the way
  // after Options::start_timeout, unless such failures are ignored, or Unavailable when the
  // connection is lost. Destroying the returned token withdraws the wait (the client went away).
  // For a container that is not known the runtime is asked first: it may have been created by a
  // call that did not pass here.
  std::unique_ptr<StartWait> AdmitStart(const ContainerId& id, std::function<void(Status)> go) {
    return starts_.Admit(id, std::move(go));
  }
  // Replaces Options::start_failure, also for starts that wait already.
  void SetStartFailurePolicy(FailurePolicy policy) { starts_.SetOnTimeout(policy); }
  // Replaces Options::refused_updates. A cpuset that was written into a cgroup stays.
  void SetRefusedUpdates(RefusedUpdates choice) { brain_.pusher.SetRefusedUpdates(choice); }
  void StartSucceeded(const ContainerId& id) { starts_.End(id, LifeEvent::kStartSucceeded); }
  // The runtime refused the start.
  void StartFailed(const ContainerId& id) { starts_.End(id, LifeEvent::kStartFailed); }
  // The start was not answered: it may have taken effect, or do so later. The runtime is listed
  // until the outcome is known.
  void StartUnclear(const ContainerId& id) { starts_.End(id, LifeEvent::kStartUnanswered); }

  // Merges the update into what the container requests and lets the policy decide again. The
  // adjustment carries the cpuset of the policy, whatever the request says. Each request for other
  // CPUs is counted, and the first one is also a warning (CpusetOverrides). CPUs that another
  // container has to leave first follow in an update of the manager's own. A refusal changes
  // nothing. Returns an empty adjustment for a container that is not known here.
  StatusOr<Admission> AdmitUpdate(const ContainerId& id, const LinuxResources& requested,
                                  Refusal refusal = Refusal::kFinal) {
    return updates_.Admit(id, requested, refusal);
  }
  // `sent`: as for CreateSucceeded.
  void UpdateSucceeded(const Admission& admission, const ResourceValues& sent = {}) {
    updates_.End(admission, &sent);
  }
  void UpdateFailed(const Admission& admission) { updates_.End(admission, nullptr); }

  // Whether the numbers that the runtime reports of the container may differ from those that the
  // client asked for; and the replacement of such numbers in a report (set_later.h).
  // `shares_in_file`: a stage may have set a file of cgroup v2 in place of the shares.
  bool SentOtherNumbers(const ContainerId& id, bool shares_in_file) const {
    return set_later_.SentOtherNumbers(id, shares_in_file);
  }
  void ShowAsked(const ContainerId& id, CpuNumbers& reported) const {
    set_later_.ShowAsked(id, reported);
  }

  // A later stage is about to have these values set by the runtime; or, if `accepted`, the runtime
  // has set them.
  void SetByStage(const ContainerId& id, const ResourceValues& values, bool accepted) {
    set_later_.SetByStage(id, values, accepted);
  }

  // A StopContainer has succeeded. If the container was only created, a list then shows its state.
  void ContainerStopped(const ContainerId& id) { endings_.Stop(id); }
  // The runtime reports that the container has ended.
  void ContainerExited(const ContainerId& id) { endings_.End(id); }
  void ContainerRemoved(const ContainerId& id) { endings_.Remove(id); }

  // Returns the moves that SetPolicy with this policy would make. Changes nothing, the policy
  // included.
  StatusOr<std::vector<Move>> PreviewPolicy(const Policy& policy) const {
    return policy_changes_.Preview(policy);
  }
  // Makes another policy the active one, or the same one with other options. It takes over all
  // containers; they stay where its rules allow that. Runs `done` with OK once every container is
  // where it should be, or waits for one that this change does not move and the runtime cannot
  // update; at once without a connection to the runtime. If the policy refuses, or the runtime
  // refuses to move a container that still exists, everything is as before, and `done` gets the
  // reason. FailedPrecondition: another change is under way.
  void SetPolicy(std::unique_ptr<Policy> policy, std::function<void(Status)> done) {
    policy_changes_.Set(std::move(policy), std::move(done));
  }

  // Makes `policy` the active one: the present policy, made for the CPUs that are online now. It
  // takes over all containers without the offline CPUs: a container that lost CPUs of its own gets
  // free ones if there are any, and else keeps the rest. Containers that lack CPUs get some of
  // those that came back. The decision stays even if the runtime refuses updates.
  // FailedPrecondition: a change of the policy is under way; other errors are the policy's. An
  // error changes nothing.
  Status SetOffline(const Offline& offline, std::unique_ptr<Policy> policy) {
    return policy_changes_.SetOffline(offline, std::move(policy));
  }

  // Asks the runtime for everything that it holds, and changes nothing here. If `wanted` is given,
  // the status is only asked for containers for which it returns true. See RuntimeClient::ListAll.
  void AskRuntime(std::function<void(StatusOr<RuntimeInventory>)> done,
                  std::function<bool(const ContainerId&)> wanted = {});
  // Sends the values that should be in force again, since the container was seen to have others.
  // Values that other programs have set are replaced. Does nothing for an unknown container.
  void SendAgain(ContainerKey key) { brain_.pusher.Restore(key); }
  void SendAgain(const ContainerId& id);

  // PreviewRebalance returns the moves that Rebalance of the active policy would make.
  StatusOr<std::vector<Move>> PreviewRebalance() const {
    return policy_changes_.PreviewRebalance();
  }
  StatusOr<std::vector<Move>> Rebalance() { return policy_changes_.Rebalance(); }
  // Passes the measured use of containers to the policy. Does nothing if the policy does not follow
  // use (Policy::FollowsUse), or is being changed.
  void FollowUse(const policy::MeasuredUse& use) { policy_changes_.FollowUse(use); }

  // Plans moves between the active policy's shared pools by the containers' use; `stays` returns
  // true for containers that must not move. This function and the next two change nothing.
  policy::UsePlan PlanByUse(const policy::MeasuredUse& use, const policy::UseLimits& limits,
                            const std::function<bool(const ContainerId&)>& stays) const {
    return policy_changes_.PlanByUse(use, limits, stays);
  }
  // For each shared pool its CPUs, and how many its containers want and lack by this use.
  policy::PoolLoads Loads(const policy::MeasuredUse& use) const {
    return policy_changes_.Loads(use);
  }
  // All containers that MoveShared would move.
  StatusOr<std::vector<Move>> PreviewMoveShared(std::span<const policy::PoolMove> moves) const {
    return policy_changes_.PreviewMoveShared(moves);
  }
  // Makes the moves, all or none: FailedPrecondition if one cannot be made, or while the policy is
  // being changed. `why` is the reason that observers get.
  Status MoveShared(std::span<const policy::PoolMove> moves, std::string_view why) {
    return policy_changes_.MoveShared(moves, why);
  }

  // Holds CPUs for claims of Dynamic Resource Allocation.
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
  // Whether the runtime has undone all bindings by earlier decisions that the present ones no
  // longer have. False without a synchronized connection, and while a container is being created,
  // since it is then not known.
  bool AllReleased() const { return policy_changes_.AllReleased(); }
  // The error of the container's last update; OK if it succeeded.
  Status LastUpdateError(ContainerKey key) const { return brain_.pusher.LastError(key); }

 private:
  // Synchronizer::Owner:
  void OnListing() override { listed_at_ = brain_.store.clock(); }
  Status OnInventory(const RuntimeInventory& inventory, const Synchronizer::Removed& gone,
                     bool first) override;
  void OnListFailed(const Status& status) override;
  bool Knows(const Pod& listed) const override;
  bool Knows(const RuntimeContainer& listed) const override;

  // UpdateListener:
  void OnApplied(ContainerKey key) override;
  void OnFailed(ContainerKey key, const Status& status) override {
    failures_.OnFailed(key, status);
  }
  void OnRecovered(const ContainerRecord& record) override {
    brain_.observers.OnRecovered(brain_.ActAt(record));
  }
  void OnWritten(const ContainerRecord& record, const Status& why) override {
    brain_.observers.OnWritten(brain_.ActAt(record), why);
  }
  void OnGone(ContainerKey key) override;
  void OnMoot() override { brain_.observers.OnMoot(1); }
  void OnInForce(const ContainerRecord& record, const AppliedResources& applied) override;

  Status TakeOver(const RuntimeInventory& inventory, const Synchronizer::Removed& gone, bool first);
  void FollowConnection();
  void ConfirmInForce(const Adoption& adoption, bool first);
  void ReportFound(const Adoption& adoption);
  void LogHeldCounts(bool first);
  void LogUnclear(const RuntimeInventory::Unclear& unclear);

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
  EventFilter events_;
  std::pair<size_t, size_t> logged_counts_;  // pods and containers
  bool unclear_logged_ = false;
  bool unlisted_records_ = false;  // the disk may have records of containers that do not exist
  uint64_t listed_at_ = 0;         // the store's clock when the last list was asked for
};

}  // namespace resmgr
