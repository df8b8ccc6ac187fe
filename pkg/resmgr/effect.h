// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "pkg/model/container.h"
#include "pkg/model/resource_values.h"

namespace resmgr {

// What a runtime enforces for one container, as far as placements go: the values that a request
// carried to it or that it reported.
struct Effect : ResourceValues {
  CpuSet exclusive;  // the part of `cpus` that was granted to this container alone

  friend bool operator==(const Effect&, const Effect&) = default;
};

// What should be in force: the placement, and the container's own request for the numbers that the
// placement leaves alone, so that a value which the policy no longer overrides is restored.
Effect DesiredEffect(const Container& container);

// What the runtime reports to be in force.
Effect ReportedEffect(const LinuxResources& resources);

// A report with what it may leave out: the numbers that the policy does not override, which are as
// requested.
Effect Completed(Effect reported, const Container& container);

// The same as `effect == DesiredEffect(container)`, without a copy.
bool IsDesired(const Effect& effect, const Container& container);

}  // namespace resmgr
