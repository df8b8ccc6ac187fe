// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "pkg/base/parse.h"
#include "pkg/log/log.h"
#include "pkg/model/pod_division.h"
#include "pkg/resmgr/adoption.h"
#include "pkg/resmgr/annotation_warnings.h"
#include "pkg/resmgr/container_store.h"
#include "pkg/resmgr/cpuset_overrides.h"
#include "pkg/resmgr/decider.h"
#include "pkg/resmgr/event_filter.h"
#include "pkg/resmgr/limit_warnings.h"
#include "pkg/resmgr/log_observer.h"
#include "pkg/resmgr/look_again_timers.h"
#include "pkg/resmgr/observers.h"
#include "pkg/resmgr/pusher.h"
#include "pkg/resmgr/refusal_log.h"
#include "pkg/resmgr/resource_manager.h"
#include "pkg/resmgr/starts.h"
#include "pkg/resmgr/state_writer.h"
#include "pkg/resmgr/synchronizer.h"
#include "pkg/sys/clock.h"
#include "pkg/sys/lifetime.h"

namespace resmgr {

// The order of things: the store is changed, the decider asks the policy and writes the placements
// into the store, and then the pusher is told which containers changed and the gate which starts
// may go.
class ResourceManager::Impl : public Pusher::Listener,
                              public Synchronizer::Owner,
                              public Starts::Owner {
 public:
  Impl(EventLoop& loop, const Machine& machine, std::unique_ptr<Policy> policy,
       RuntimeClient& runtime, StateStore* state, const Options& options);

  void Connected();
  void Joined();
  void Disconnected();
  void Resync() { synchronizer_.ResyncSoon(); }
  bool ready() const { return synchronizer_.ready(); }
  void WhenReady(std::function<void(Status)> ready) { synchronizer_.WhenReady(std::move(ready)); }

  void OnContainerEvent(const ContainerEvent& event) { events_.Add(event); }
  void Refresh(std::function<void(Status)> done) { synchronizer_.Refresh(std::move(done)); }
  bool RefreshTellsNews() const { return synchronizer_.RefreshTellsNews(); }
  bool Knows(const ContainerId& id) const { return store_.Resolve(id) != nullptr; }
  void AskRuntime(std::function<void(StatusOr<RuntimeInventory>)> done,
                  std::function<bool(const ContainerId&)> wanted) {
    Known known;
    if (wanted) {
      known.pod = [](const Pod&) { return true; };
      known.container = [wanted = std::move(wanted)](const RuntimeContainer& listed) {
        return !wanted(listed.id);
      };
    }
    runtime_.ListAll(std::move(known), std::move(done));
  }
  void SendAgain(ContainerKey key) { pusher_.Restore(key); }
  void SendAgain(const ContainerId& id) {
    if (const ContainerRecord* const record = store_.Resolve(id)) SendAgain(record->container.key);
  }

  StatusOr<Admission> AdmitCreate(CreateRequest&& request, Refusal refusal);
  void CreateSucceeded(ContainerKey key, ContainerId id, const Adjustment& sent);
  void CreateFailed(ContainerKey key, const Status& refusal);
  void RefusedByRuntime(ContainerKey key, std::string_view answer);
  void RefusedByRuntime(const ContainerId& id, std::string_view answer);
  void CreateUnclear(ContainerKey key);
  Starts& starts() { return starts_; }
  void AddPod(Pod pod, const Adjustment& sent = Adjustment());
  void ChangePod(const PodSandboxId& id, const LinuxResources& overhead,
                 const LinuxResources& resources);

  // endings.cc
  void StopPod(const PodSandboxId& id);
  void RemovePod(const PodSandboxId& id);
  void Stop(const ContainerId& id);
  void End(const ContainerId& id);
  void Remove(const ContainerId& id);

  // updates.cc
  StatusOr<Admission> AdmitUpdate(const ContainerId& id, const LinuxResources& requested,
                                  Refusal refusal);
  // `sent`: what all stages changed of it; nullptr where it failed.
  void EndUpdate(const Admission& admission, const ResourceValues* sent);

  // set_later.cc
  void CreationSent(ContainerKey key, const Adjustment& sent);
  bool SentOtherNumbers(const ContainerId& id, bool shares_in_file) const;
  void ShowAsked(const ContainerId& id, CpuNumbers& reported) const;
  void SetByStage(const ContainerId& id, const ResourceValues& values, bool accepted);

  // policy_changes.cc
  StatusOr<std::vector<Move>> PreviewPolicy(const Policy& policy) const;
  void SetPolicy(std::unique_ptr<Policy> policy, std::function<void(Status)> done);
  StatusOr<std::vector<Move>> PreviewRebalance() const;
  StatusOr<std::vector<Move>> Rebalance();

  // offline.cc
  Status SetOffline(const Offline& offline, std::unique_ptr<Policy> policy);

  const Snapshot& snapshot() const { return store_.all(); }
  const Policy& policy() const { return *policy_; }
  bool Settled(ContainerKey key) const { return pusher_.Settled(key); }
  bool WrittenPastRuntime(ContainerKey key) const { return pusher_.WrittenPastRuntime(key); }
  void SetRefusedUpdates(RefusedUpdates choice) { pusher_.SetRefusedUpdates(choice); }
  bool AllReleased() const;
  Status LastUpdateError(ContainerKey key) const { return pusher_.LastError(key); }

 private:
  // Synchronizer::Owner
  void OnListing() override { listed_at_ = store_.clock(); }
  Status OnInventory(const RuntimeInventory& inventory, const Synchronizer::Removed& gone,
                     bool first) override;
  void OnListFailed(const Status& status) override;
  bool Knows(const Pod& listed) const override;
  bool Knows(const RuntimeContainer& listed) const override;

  // Pusher::Listener
  void OnApplied(ContainerKey key) override;
  void OnFailed(ContainerKey key, const Status& status) override;
  void OnRecovered(const ContainerRecord& record) override;
  void OnWritten(const ContainerRecord& record, const Status& why) override;
  void OnGone(ContainerKey key) override;
  void OnMoot() override { observers_.OnMoot(1); }
  void OnInForce(const ContainerRecord& record, const AppliedResources& applied) override;

  // endings.cc
  const Placement* Retire(ContainerRecord& record, LifeEvent event);
  void Exit(ContainerRecord& record, LifeEvent event, std::string_view why, ContainerKeys& changed);
  void RemoveRecord(ContainerRecord& record, std::string_view why);
  void EndListed(const Adoption& adoption);
  void EndSuperseded(ContainerRecord& record);

  // revivals.cc (Starts::Owner)
  Status Revive(ContainerRecord& record, Refusal refusal) override;
  void EndRevived(ContainerRecord& record) override;
  // The policy is null: no container is to be bound any more.
  bool LetsGo() const { return policy_->name() == "null"; }
  bool StaysBound(const ContainerRecord& record) const;
  bool IsExitedBound(const ContainerRecord& record) const;
  bool AnyExitedBound() const;
  void AddExitedMoves(std::vector<Move>& moves) const;
  void FreeExited();
  void FreeExitedSoon(std::chrono::milliseconds pause);
  void OnFreed(ContainerKey key, const Status& status);

  // failures.cc
  // Failed updates of our own that wait for a list, which shows whether the container still exists.
  struct FailedUpdates {
    Status last;
    size_t count = 0;
    // Where lists tell no news: its end may be told a little later, which is waited for once.
    EventLoop::HandlePtr again{};
    bool shown = false;
  };
  void ReportFailure(ContainerKey key);
  void EndFailedMove(ContainerKey key);

  // lists.cc
  Status TakeOver(const RuntimeInventory& inventory, const Synchronizer::Removed& gone, bool first);
  void ConfirmInForce(const Adoption& adoption, bool first);
  void ReportFound(const Adoption& adoption);
  void LogHeldCounts(bool first);
  void LogUnclear(const RuntimeInventory::Unclear& unclear);

  // set_later.cc
  void NoteTold(ContainerRecord& record);
  void NoteCalled(ContainerRecord& record);
  void TakeSentCreation(ContainerRecord& record, const Adjustment& sent);
  void TakeSentUpdate(ContainerRecord& record, PendingUpdate& update, const ResourceValues& sent);
  void NoteFirstReport(ContainerRecord& record);
  bool LacksReport(const ContainerRecord& record) const;

  // Starts::Owner
  void OnStartProgress(ContainerKey key) override { Push({key}); }
  Observer::Act ActAt(const ContainerRecord& record) const override {
    return {*policy_, store_.all(), record.pod->pod, record.container};
  }
  Status AsRefusal(const ContainerRecord& record, const Status& why) const override;

  static bool IsTentative(const Status& decided, Refusal refusal) {
    return refusal == Refusal::kTentative && decided.code() == StatusCode::kResourceExhausted;
  }
  void Rename(ContainerRecord& record, const std::string& name);
  void EndCreation(ContainerRecord& record, const Status& refusal);
  ContainerRecord* FindPredecessor(const ContainerRecord& record);
  StatusOr<ContainerKeys> Place(ContainerRecord& record, ContainerRecord* predecessor);
  void Discard(ContainerRecord& record);
  void Append(ContainerKeys& changed, StatusOr<ContainerKeys> more);
  void Push(ContainerKeys changed);
  void LookAgain(ContainerKey key);

  // pod_limits.cc
  bool DeriveQos(ContainerRecord& record);
  static void RestoreQos(ContainerRecord& record);
  StatusOr<ContainerKeys> PlaceInPod(ContainerRecord& record, bool falls);
  StatusOr<ContainerKeys> PlaceAndReduceSiblings(ContainerRecord& record,
                                                 std::span<const PodMember> members);
  StatusOr<ContainerKeys> ReduceSiblings(ContainerRecord& record,
                                         std::span<const PodMember> members,
                                         std::vector<Shift>& shifts);
  ContainerKeys ApplyPodLimits(PodRecord& pod);
  StatusOr<ContainerKeys> ChangeNeeds(ContainerRecord& record, const Requirements& needs);
  ContainerKeys RestoreSiblings(PodRecord& pod, std::span<const ReducedSibling> bounded);
  void ApplyPodLimitsToAdopted(const Adoption& adoption, bool first);
  void ForgetUnrestricted();
  std::map<ContainerKey, Placement> Placements() const;

  // acts.cc
  // For observers: what the last decision did. `from` is where the container was before.
  Observer::Act ActOn(const ContainerRecord& record, std::string_view why = {},
                      const Placement& from = {}) const;
  // Each move of the last decision by itself, for one that was about no container in particular.
  void ReportMoves(std::string_view why) { ReportMoves(decider_.shifts(), why); }
  void ReportMoves(std::span<const Shift> shifts, std::string_view why);
  // Tells it, and returns what the kubelet is told.
  Status Refuse(const ContainerRecord& record, std::string_view what, const Status& why);

  // offline.cc
  ContainerKeys GiveBackCpus(const std::string& why);
  // "; CPU 9 is offline", or "".
  std::string OfflineNote() const;

  // updates.cc
  StatusOr<ContainerKeys> Redecide(ContainerRecord& record, const LinuxResources& requested,
                                   const Requirements& needs);
  void SetRequested(Container& container, LinuxResources requested) const;
  ContainerKeys RollBackUpdate(ContainerRecord& record);
  bool StillFree(const ContainerRecord& record, const Placement& placement);

  // policy_changes.cc
  // A change of the policy that is being brought to the runtime.
  struct PolicyChange {
    std::unique_ptr<Policy> former;
    std::map<ContainerKey, Placement> placements;  // under the former policy
    std::set<ContainerKey> pending;                // not yet where they should be
    std::map<ContainerKey, Status> failures;       // a list is to confirm that these still exist
    std::function<void(Status)> done;
  };
  std::vector<Move> MovesOf(const Plan& plan) const;
  void ExaminePolicyChange();
  void EndPolicyChange();
  void RollBackPolicy(ContainerKey key, const Status& why);

  Logger& log_;
  RuntimeClient& runtime_;
  RefusalCauses* const causes_;  // may be null
  LogObserver log_observer_;
  MetricsObserver metrics_observer_;
  LimitWarnings limit_warnings_;
  AnnotationWarnings annotation_warnings_;
  Observers observers_;
  CpusetOverrides overrides_;
  LoopClock loop_clock_;
  Clock& clock_;
  Clock& timers_;
  const Machine& machine_;
  const Bytes memory_capacity_;
  CpuSet offline_;  // CPUs of the machine that went offline since it was read
  ContainerStore store_;
  std::unique_ptr<Policy> policy_;
  std::optional<PolicyChange> change_;
  StateWriter state_writer_;
  Decider decider_;
  Pusher pusher_;
  LookAgainTimers look_again_timers_;
  Synchronizer synchronizer_;
  Starts starts_;
  EventFilter events_;
  std::map<ContainerKey, FailedUpdates> failed_updates_;
  RefusalLog refusal_log_;
  std::pair<size_t, size_t> logged_counts_;  // pods and containers
  EventLoop::HandlePtr report_timer_;        // set_later.cc: what is in force will be listed
  const std::chrono::milliseconds report_pause_;
  std::set<ContainerKey> being_freed_;  // revivals.cc: have exited, and are told so
  EventLoop::HandlePtr free_timer_;     // revivals.cc
  const std::chrono::milliseconds free_pause_;
  Lifetime lifetime_;
  bool unclear_logged_ = false;
  bool unlisted_records_ = false;  // may be there, of containers that are not
  uint64_t listed_at_ = 0;         // the store's clock when the last list was asked for
  uint64_t last_ticket_ = 0;
};

}  // namespace resmgr
