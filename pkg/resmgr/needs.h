// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "pkg/base/units.h"
#include "pkg/model/container.h"
#include "pkg/model/pod.h"
#include "pkg/resmgr/runtime_client.h"
#include "pkg/state/saved_container.h"
#include "pkg/topology/machine.h"

namespace resmgr {

// The machine's memory, which kubelets take as the node's capacity.
Bytes MemoryCapacity(const Machine& machine);

// Needs of a container that the runtime reports, by an annotation or the values in force. Reported
// CPU values in force count, since after a resize they are newer than the annotation. In a
// Guaranteed pod the quota also shows the request, and counts where the shares are a policy's, for
// the part of a container beside CPUs of its own.
Requirements ReportedNeeds(const Pod& pod, const RuntimeContainer& reported, Bytes memory_capacity);
// The request of a container with these needs, of which the runtime reports the values in force.
LinuxResources ReportedRequest(const RuntimeContainer& reported, const Requirements& needs);
// Sets needs and request of the container to the CPU in force, after an update that reached the
// runtime but not the disk. `in_force` are the needs by `reported`.
void TakeCpuInForce(const RuntimeContainer& reported, const Requirements& in_force,
                    Container& container);

// Whether `reported` may stand for these shares: runtimes may convert shares to weights of cgroup
// v2 and back.
bool IsSameByWeight(int64_t shares, const std::optional<int64_t>& reported);
// Whether the shares in force, where they are reported, are those that the container had when it
// was saved, with what later stages had made of them. Runtimes may report them by way of cgroup
// v2's coarser weights, and from 256 CPUs on all are the same; then the quota has to be the same,
// too.
bool TellsCpuInForce(const SavedContainer& saved, const LinuxResources& in_force);

// The needs of a container that has needed `needs` when its request changes from `before` to
// `after`. Only what really changes is estimated anew: the rest may come from an annotation, which
// is more exact, as may a request of 256 CPUs or more without a quota. Values that come from its
// pod are kept.
Requirements NeedsAfter(Requirements needs, const LinuxResources& before,
                        const LinuxResources& after, QosClass qos, Bytes memory_capacity);

}  // namespace resmgr
