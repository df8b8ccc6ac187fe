// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <utility>

#include "pkg/model/container.h"
#include "pkg/model/cpu_numbers.h"
#include "pkg/model/resource_values.h"

namespace resmgr {

// The values that a runtime enforces for one container, as far as placements go: those of a request
// carried to it or that it reported.
struct AppliedResources : ResourceValues {
  CpuSet exclusive;  // the part of `cpus` that was granted to this container alone

  friend bool operator==(const AppliedResources&, const AppliedResources&) = default;
};

// Values to be in force: the placement, and the container's own request for the numbers that the
// placement leaves alone, so that a value which the policy no longer overrides is restored. A
// number that was set later stays.
AppliedResources DesiredResources(const Container& container);

// Does not change once it is made. Never null.
using SharedResources = std::shared_ptr<const AppliedResources>;

inline SharedResources Shared(AppliedResources resources) {
  return std::make_shared<const AppliedResources>(std::move(resources));
}

// The numbers in force, for any placement and request.
CpuNumbers NumbersInForce(const NumbersSetLater& later, const Placement& placement,
                          const LinuxResources& requested);

// The values that the runtime reports to be in force.
AppliedResources ReportedResources(const LinuxResources& resources);

// The report, completed by the numbers that it may leave out: those that the policy does not
// override are as requested.
AppliedResources Completed(AppliedResources reported, const Container& container);

// The same as `resources == DesiredResources(container)`, without a copy.
bool IsDesired(const AppliedResources& resources, const Container& container);

}  // namespace resmgr
