// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <utility>

#include "pkg/model/container.h"
#include "pkg/model/resources.h"

namespace resmgr {

// The values that a runtime enforces for one container, as far as placements decide them: the
// values of a request that was sent to it, or those that it reported.
struct AppliedResources : ResourceValues {
  CpuSet exclusive;  // the part of `cpus` that was granted to this container alone

  friend bool operator==(const AppliedResources&, const AppliedResources&) = default;
};

// The values that should be in force: those of the placement, and the container's own request for
// numbers that the placement leaves alone, so that a value is restored when the policy no longer
// overrides it. A number that was set later (NumbersSetLater) stays.
AppliedResources DesiredResources(const Container& container);

// Immutable and never null.
using SharedResources = std::shared_ptr<const AppliedResources>;

inline SharedResources Shared(AppliedResources resources) {
  return std::make_shared<const AppliedResources>(std::move(resources));
}

// The numbers in force, for any placement and request.
CpuNumbers NumbersInForce(const NumbersSetLater& later, const ResourceValues& placed,
                          const LinuxResources& requested);

// The values that the runtime reports to be in force.
AppliedResources ReportedResources(const LinuxResources& resources);

// The report, completed by the numbers that it may lack: if the policy does not override them, they
// are as requested.
AppliedResources Completed(AppliedResources reported, const Container& container);

// The same as `resources == DesiredResources(container)`, without a copy.
bool IsDesired(const AppliedResources& resources, const Container& container);

}  // namespace resmgr
