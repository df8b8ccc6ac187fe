// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "pkg/base/failure_policy.h"
#include "pkg/base/status.h"
#include "pkg/resmgr/applied_resources.h"
#include "pkg/resmgr/brain_options.h"
#include "pkg/resmgr/cgroup_access.h"
#include "pkg/resmgr/container_store.h"
#include "pkg/resmgr/handover.h"
#include "pkg/resmgr/runtime_client.h"
#include "pkg/resmgr/state_writer.h"
#include "pkg/resmgr/update_listener.h"
#include "pkg/resmgr/update_sender.h"
#include "pkg/sys/clock.h"
#include "pkg/sys/event_loop.h"
#include "pkg/sys/lifetime.h"

namespace resmgr {

// Brings the values that the runtime enforces to those that containers should have (the records in
// the store). Per container at most one update is under way, and the next one carries the latest
// decision; a failed update is tried again after growing pauses. All on the loop's thread.
//
// Running containers change places without meeting: a container is sent new CPUs only when the
// container that loses these CPUs has left them (Handover). Circular waits are broken: one
// container of the circle moves aside, or is sent its CPUs although they are not free.
//
// A container that is being started is sent nothing: the runtime may have read the values for the
// start already, and would then change only its own notes, as containerd does. For the same reason,
// if an update of the kubelet's overlaps a start, an update of ours follows.
//
// A value that another program changed in a container's cgroup can make the runtime refuse an
// update although the update is not about that value. So a refused update is sent once more with
// only CPUs and memory nodes, and the numbers follow in updates of their own. If another program
// has set a memory limit, or a quota that the policy does not decide, these stay
// (BrainOptions::others). If the smaller update is refused, too, and BrainOptions::refused_updates
// says so, the cpuset of a container without exclusive CPUs is written into its cgroup. If all of
// this fails and the answer is about cgroups, the cause is searched for (BrainOptions::causes), and
// becomes part of the error.
class Pusher {
 public:
  // `everywhere` are the CPUs that a container without a cpuset may run on; `claimed_by_others`
  // returns the CPUs of claims that a container does not carry. All references must outlive the
  // pusher.
  Pusher(EventLoop& loop, Clock& clock, RuntimeClient& runtime, ContainerStore& store,
         StateWriter& state_writer, UpdateListener& listener, const CpuSet& everywhere,
         const BrainOptions& options, std::function<CpuSet(ContainerKey)> claimed_by_others);
  Pusher(const Pusher&) = delete;
  Pusher& operator=(const Pusher&) = delete;

  // Without a connection nothing is sent, and what was under way counts as unknown.
  void Connected();
  void Disconnected();
  bool connected() const { return connected_; }

  // A container that was just placed is being created. `carried`: the request has its values. If
  // not, an update follows the creation, and the container's start waits for it.
  void BeginCreation(ContainerRecord& record, bool carried);
  // The runtime made the container. Does nothing if BeginCreation was not called.
  void EndCreation(ContainerRecord& record);
  // Numbers of the container that were set later (NumbersSetLater) are in force.
  void TakeSetLater(ContainerRecord& record);
  // The runtime reported these values as in force. If the state writer has an open update of the
  // container, any values may be in force, and the decided ones are sent again.
  void Confirm(ContainerKey key, const AppliedResources& applied);
  // The values in force are not known any more, so the decided ones are sent again.
  void MarkUncertain(ContainerKey key);
  // As MarkUncertain, but also replaces values that other programs have set.
  void Restore(ContainerKey key);
  // The container is about to be started while updates of it may be under way. It is not known
  // which of them the start sees, so the decided values are sent again after it.
  void MarkOverlap(ContainerKey key);
  void Forget(ContainerKey key);
  // Called when the desired values of these containers, or a reason to hold them back, may have
  // changed.
  void Wake(std::span<const ContainerKey> keys);

  // An update of the kubelet is about to be forwarded: returns the values that it should carry.
  // EndForwarded follows with the same values, but only those numbers that the request had;
  // `applied` tells whether the runtime took them.
  AppliedResources BeginForwarded(ContainerKey key);
  void EndForwarded(ContainerKey key, const AppliedResources& sent, bool applied);

  // Sets the treatment of refusals from now on.
  void SetRefusedUpdates(RefusedUpdates choice) { refused_updates_ = choice; }

  // Whether all decided values are in force, the runtime knows them, and nothing is under way.
  bool Settled(ContainerKey key) const;
  // The CPUs that containers have yet to leave.
  const Handover& handover() const { return handover_; }
  // The error of the last try; OK when it succeeded or there was none.
  Status LastError(ContainerKey key) const;

  // Whether its CPUs and memory nodes are in force, but the runtime refuses the numbers, or the
  // whole update.
  bool OnlyNumbersRefused(ContainerKey key) const;
  // Whether the container is where it should be: numbers that the runtime refuses do not count.
  bool InPlace(ContainerKey key) const { return Settled(key) || OnlyNumbersRefused(key); }
  // Whether its CPUs and memory nodes are in force because they were written into its cgroup.
  bool WrittenPastRuntime(ContainerKey key) const;
  // A start waits for the container: from now on it counts as stuck, if it did not before.
  void NoteWaitedFor(ContainerKey key);
  // Since when a followed container has kept starts waiting, or was refused its CPUs; nullopt if it
  // does neither.
  std::optional<Clock::SteadyTime> StuckSince(ContainerKey key) const;
  // Notes that a start ends because of this container; returns whether it is the first one.
  bool TellStuck(ContainerKey key);

  // Whether the container was created, confirmed once or is being created, and not forgotten since.
  bool Follows(ContainerKey key) const { return store_.FindFollowed(key) != nullptr; }

 private:
  // The number of unanswered updates of a container that was forgotten.
  struct Stray {
    int own = 0;
    int forwarded = 0;
  };
  // Begins to follow the container if it is not followed yet.
  PushState& Follow(ContainerRecord& record);
  void Step(ContainerKey key);
  void Step(ContainerRecord& record);
  void StepAll(std::span<const ContainerKey> keys);
  void Send(ContainerRecord& record, SharedResources target);
  // These values are in force now, which the listener is told.
  void TakeInForce(ContainerRecord& record, SharedResources now);
  void SettleAs(ContainerRecord& record, const AppliedResources& target);
  void Settle(ContainerRecord& record);
  void OnAnswer(ContainerKey key, const Status& status);
  // An answered update: its intended result, and the values in its request.
  struct Ended {
    SharedResources sent;
    std::shared_ptr<const ResourceValues> carried;
  };
  // The container, if its update with this number has not been sent yet; else nullptr.
  ContainerRecord* ToSend(ContainerKey key, uint64_t update);
  // Ends the update that an answer is about (0: the latest one). Returns the container; nullptr if
  // the answer does not matter any more.
  ContainerRecord* EndUpdate(ContainerKey key, uint64_t update, Ended& ended);
  // The runtime refused the update. It stays open until another way was tried.
  static void KeepOpen(PushState& state, const Status& why, const Ended& ended);
  void OnSuccess(ContainerRecord& record, SharedResources sent);
  bool HasStray(ContainerKey key) const { return !strays_.empty() && strays_.contains(key); }
  bool TakeStray(ContainerKey key, int Stray::*kind);
  void EndStuck(ContainerRecord& record) const;
  void Recover(ContainerRecord& record);
  void EndOverlap(ContainerRecord& record);
  void OnFailure(ContainerRecord& record, const Status& status, const ResourceValues& carried);
  bool TrySetsAlone(ContainerRecord& record, const Status& status, const ResourceValues& carried);
  bool PrepareSetsAlone(PushState& state, const AppliedResources& target);
  bool TryWrite(ContainerRecord& record, const Status& why, const Ended& ended);
  // Takes the result of a write into the cgroup in place of an update that the runtime refused.
  void OnWriteEnded(ContainerKey key, uint64_t update, const Status& why, const Status& status);
  // Begins to search for the cause of a refusal for which no other way is left; OnFailure follows.
  bool LookForCause(ContainerRecord& record, const Status& why, const Ended& ended);
  void OnCause(ContainerKey key, uint64_t update, const Status& why, const std::string& cause);
  void OnWriteSuccess(ContainerRecord& record, const Status& why, SharedResources sent);
  void Retry(ContainerKey key, PushState& state);
  void RetryAfter(std::chrono::milliseconds delay, ContainerKey key, PushState& state);
  void OnRuntimeReport(ContainerRecord& record);
  void TrackCall(const ContainerRecord& record);
  void ResumeHeldBack();
  void ResumeAfterAnswers();
  bool NothingMoves() const;
  bool MoveSomeAside(const std::set<ContainerKey>& stuck);
  void SendAnyway(ContainerKey waiting);
  void WatchForCircles();
  void BreakCircle(const std::set<ContainerKey>& circle);
  bool MoveAside(ContainerKey key);

  EventLoop& loop_;
  Clock& clock_;
  ContainerStore& store_;
  StateWriter& state_writer_;
  UpdateListener& listener_;
  const CpuSet everywhere_;
  const BrainOptions& options_;
  Handover handover_;
  UpdateSender sender_;
  RefusedUpdates refused_updates_;
  bool connected_ = false;
  bool resume_posted_ = false;
  std::map<ContainerKey, Stray> strays_;
  size_t move_aside_ = 1;  // number of containers to move aside the next time
  // The empty values of a container that has not been reported yet.
  const SharedResources none_ = Shared({});
  EventLoop::HandlePtr circle_check_;
  std::set<ContainerKey> circle_;  // found by the last search
  int circle_seen_ = 0;            // number of searches in a row that have found it
  Lifetime lifetime_;              // answers may come after the pusher is gone
};

}  // namespace resmgr
