// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <memory>

#include "pkg/model/container.h"
#include "pkg/model/resource_values.h"
#include "pkg/resmgr/applied_resources.h"

namespace resmgr {

// Does not change once it is made: containers that have the same hold the same object. Never null.
using SharedResources = std::shared_ptr<const AppliedResources>;

// Remembers the latest resources, so that the hundreds of containers that one decision moves alike
// share them: a copy of its own for each would be most of what it takes to send them.
// Thread-compatible.
class RecentResources {
 public:
  RecentResources();

  // Nothing is set: what is known of a container that has not been reported yet.
  const SharedResources& none() const { return none_; }
  // DesiredResources(container).
  SharedResources Desired(const Container& container);
  SharedResources Share(const AppliedResources& resources);
  // Difference(*wanted, *present). The same object as the last time where it is equal to that.
  const std::shared_ptr<const ResourceValues>& Missing(const SharedResources& wanted,
                                                       const SharedResources& present);

 private:
  SharedResources Remember(AppliedResources resources);

  const SharedResources none_;
  // Those of containers whose CPU shares differ come in turn.
  std::array<SharedResources, 8> recent_;
  size_t oldest_ = 0;
  size_t latest_ = 0;  // looked for last
  // What was compared last, and the difference.
  SharedResources wanted_;
  SharedResources present_;
  std::shared_ptr<const ResourceValues> missing_;
};

}  // namespace resmgr
