// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "pkg/base/units.h"
#include "pkg/model/container.h"
#include "pkg/model/pod.h"
#include "pkg/resmgr/runtime_client.h"
#include "pkg/topology/machine.h"

namespace resmgr {

// The machine's memory, which kubelets take as the node's capacity.
Bytes MemoryCapacity(const Machine& machine);

// What a container needs that the runtime reports, by an annotation or by what is in force. CPU as
// in force where it is reported: after a resize that is newer than the annotation.
Requirements ReportedNeeds(const Pod& pod, const RuntimeContainer& reported, Bytes memory_capacity);

// What a container needs once `changes` came to what it requested, which gives `merged`. Only what
// the update touches is estimated anew: the rest may come from an annotation that knows better.
Requirements NeedsAfter(const Container& container, const LinuxResources& changes,
                        const LinuxResources& merged, QosClass qos, Bytes memory_capacity);

}  // namespace resmgr
