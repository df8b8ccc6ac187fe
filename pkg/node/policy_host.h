// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "pkg/base/failure_policy.h"
#include "pkg/base/status.h"
#include "pkg/policy/policy.h"
#include "pkg/resmgr/history.h"
#include "pkg/resmgr/resource_manager.h"

namespace resmgr {

// The owner of the active policy. Under the null policy there is no brain, and calls pass unread.
// Loop's thread only.
class PolicyHost {
 public:
  virtual ~PolicyHost() = default;

  // See PolicyChanges::Set. nullptr is the null policy: placed containers get the values of
  // their own requests, and from then on requests pass unread.
  virtual void SetPolicy(std::unique_ptr<Policy> policy, std::function<void(Status)> done) = 0;
  // See PolicyChanges::SetOffline; nullptr is the null policy. Applies to later brains, too.
  virtual Status SetOffline(std::unique_ptr<Policy> policy, const OfflineChange& offline) = 0;
  // See PolicyChanges::Preview; nullptr is the null policy.
  virtual StatusOr<std::vector<ResourceManager::Move>> PreviewPolicy(
      const Policy* policy) const = 0;
  // See ResourceManager::SetStartFailurePolicy; applies to later brains, too.
  virtual void SetStartFailurePolicy(FailurePolicy policy) = 0;
  // See ResourceManager::SetRefusedUpdates; applies to later brains, too, and to brains that are
  // releasing their containers.
  virtual void SetRefusedUpdates(RefusedUpdates choice) = 0;
  // The recent acts of this host's resource managers, former ones included.
  virtual const History& history() const = 0;
  // nullptr under the null policy.
  virtual ResourceManager* manager() = 0;
  // The resource manager that sends updates to the runtime: manager() or, under the null policy, a
  // former one as long as containers are bound to a former policy's choice. Else nullptr.
  virtual const ResourceManager* updating_manager() const = 0;
  // Under the null policy: whether no container is bound to a former policy's choice any more, as
  // far as the daemon knows.
  virtual bool AllLetGo() const = 0;
};

}  // namespace resmgr
