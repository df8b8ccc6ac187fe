// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "pkg/base/failure_policy.h"
#include "pkg/base/refused_updates.h"
#include "pkg/base/status.h"
#include "pkg/policy/policy.h"
#include "pkg/resmgr/history.h"
#include "pkg/resmgr/resource_manager.h"

namespace resmgr {

// Where the active policy lives. Under the null policy there is no brain, and calls are not even
// looked at. Loop's thread only.
class PolicyHost {
 public:
  virtual ~PolicyHost() = default;

  // As ResourceManager::SetPolicy. nullptr is the null policy: what was placed is given back to the
  // containers' own requests, and from then on requests pass unread.
  virtual void SetPolicy(std::unique_ptr<Policy> policy, std::function<void(Status)> done) = 0;
  // As ResourceManager::PreviewPolicy; nullptr is the null policy.
  virtual StatusOr<std::vector<ResourceManager::Move>> PreviewPolicy(
      const Policy* policy) const = 0;
  // As ResourceManager::SetStartFailurePolicy; holds for brains that come, too.
  virtual void SetStartFailurePolicy(FailurePolicy policy) = 0;
  // As ResourceManager::SetRefusedUpdates; applies to later brains, too, and to brains that are
  // releasing their containers.
  virtual void SetRefusedUpdates(RefusedUpdates choice) = 0;
  // What the resource managers of this host did last; the former ones' too.
  virtual const History& history() const = 0;
  // nullptr under the null policy.
  virtual ResourceManager* manager() = 0;
  // Under the null policy: whether no container is bound any more to what an earlier policy chose,
  // as far as that can be known.
  virtual bool AllLetGo() const = 0;
};

}  // namespace resmgr
