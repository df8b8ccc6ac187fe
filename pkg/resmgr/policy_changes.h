// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/policy/use_balance.h"
#include "pkg/resmgr/admission.h"
#include "pkg/resmgr/brain.h"
#include "pkg/resmgr/endings.h"

namespace resmgr {

// Changes of the policy, better places on demand, and CPUs that go offline and come back: all of
// them move existing containers. Loop's thread only.
class PolicyChanges {
 public:
  // Both must outlive it.
  PolicyChanges(Brain& brain, ExitedContainers& exited) : brain_(brain), exited_(exited) {}

  // Returns the moves that Set with this policy would make. Changes nothing, the policy included.
  StatusOr<std::vector<PlannedMove>> Preview(const Policy& policy) const;
  // Makes another policy the active one, or the same one with other options. It takes over all
  // containers; they stay where its rules allow that. Runs `done` with OK once every container is
  // where it should be, or waits for one that this change does not move and the runtime cannot
  // update; at once without a connection to the runtime. If the policy refuses, or the runtime
  // refuses to move a container that still exists, everything is as before, and `done` gets the
  // reason. FailedPrecondition: another change is under way.
  void Set(std::unique_ptr<Policy> policy, std::function<void(Status)> done);

  // PreviewRebalance returns the moves that Rebalance of the active policy would make.
  StatusOr<std::vector<PlannedMove>> PreviewRebalance() const;
  StatusOr<std::vector<PlannedMove>> Rebalance();
  // Passes the measured use of containers to the policy. Does nothing if the policy does not follow
  // use (Policy::FollowsUse), or is being changed.
  void FollowUse(const policy::MeasuredUse& use);

  // Plans moves between the active policy's shared pools by the containers' use; `stays` returns
  // true for containers that must not move. This function and the next two change nothing.
  policy::UsePlan PlanByUse(const policy::MeasuredUse& use, const policy::UseLimits& limits,
                            const std::function<bool(const ContainerId&)>& stays) const;
  // For each shared pool its CPUs, and how many its containers want and lack by this use.
  policy::PoolLoads Loads(const policy::MeasuredUse& use) const;
  // All containers that MoveShared would move.
  StatusOr<std::vector<PlannedMove>> PreviewMoveShared(
      std::span<const policy::PoolMove> moves) const;
  // Makes the moves, all or none: FailedPrecondition if one cannot be made, or while the policy is
  // being changed. `why` is the reason that observers get.
  Status MoveShared(std::span<const policy::PoolMove> moves, std::string_view why);

  // Makes `policy` the active one: the present policy, made for the CPUs that are online now. It
  // takes over all containers without the offline CPUs: a container that lost CPUs of its own gets
  // free ones if there are any, and else keeps the rest. Containers that lack CPUs get some of
  // those that came back. The decision stays even if the runtime refuses updates.
  // FailedPrecondition: a change of the policy is under way; other errors are the policy's. An
  // error changes nothing.
  Status SetOffline(const OfflineChange& offline, std::unique_ptr<Policy> policy);
  // Whether the runtime has undone all bindings by earlier decisions that the present ones no
  // longer have. False without a synchronized connection, and while a container is being created,
  // since it is then not known.
  bool AllReleased() const;
  // Whether a change of the policy is being sent to the runtime.
  bool UnderWay() const { return change_.has_value(); }

  // Ends the change under way if all containers are where they should be, or the runtime is gone. A
  // container that waits for one that the change does not move, and that the runtime cannot update,
  // is not waited for: it follows when that one has moved or ended.
  void Examine();
  // Called when the connection is lost: the rest of the change follows after the next connect.
  void OnDisconnected();
  // The runtime refused to move a container. Returns whether a list has to confirm that it still
  // exists; EndFailedMove follows the list.
  bool OnFailed(ContainerKey key, const Status& status);
  // Rolls back the whole change of the configuration because the container could not be moved, also
  // if the list failed. Does nothing if the list shows that the container has ended.
  void EndFailedMove(ContainerKey key);

 private:
  // A change of the policy that is being sent to the runtime.
  struct Change {
    std::unique_ptr<Policy> former;
    std::vector<Transaction::Before> before;  // the records under the former policy
    std::set<ContainerKey> pending;           // not yet where they should be
    std::map<ContainerKey, Status> failures;  // refused moves, which wait for a list
    std::function<void(Status)> done;
  };

  std::vector<PlannedMove> MovesOf(const Plan& plan) const;
  void ForgetUnrestricted();
  void SkipBlocked();
  void End();
  void RollBack(ContainerKey key, const Status& why);
  ContainerKeys GiveBackCpus(const std::string& why);

  Brain& brain_;
  ExitedContainers& exited_;
  std::optional<Change> change_;
};

}  // namespace resmgr
