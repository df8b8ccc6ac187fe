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

  // See ResourceManager.
  StatusOr<std::vector<PlannedMove>> Preview(const Policy& policy) const;
  void Set(std::unique_ptr<Policy> policy, std::function<void(Status)> done);
  StatusOr<std::vector<PlannedMove>> PreviewRebalance() const;
  StatusOr<std::vector<PlannedMove>> Rebalance();
  policy::UsePlan PlanByUse(const policy::MeasuredUse& use, const policy::UseLimits& limits,
                            const std::function<bool(const ContainerId&)>& stays) const;
  policy::PoolLoads Loads(const policy::MeasuredUse& use) const;
  StatusOr<std::vector<PlannedMove>> PreviewMoveShared(
      std::span<const policy::PoolMove> moves) const;
  Status MoveShared(std::span<const policy::PoolMove> moves, std::string_view why);
  void FollowUse(const policy::MeasuredUse& use);
  Status SetOffline(const OfflineChange& offline, std::unique_ptr<Policy> policy);
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
