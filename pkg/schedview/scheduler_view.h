// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "pkg/api/node_reports.pb.h"
#include "pkg/model/snapshot.h"
#include "pkg/policy/policy.h"
#include "pkg/topology/machine.h"

namespace resmgr {

// The room that schedulers may count on: an immutable picture of the node, from which all published
// data is made (ADR 17). Zones are the NUMA nodes that have CPUs, in their order. Amounts are whole
// CPUs, or bytes; available are the CPUs that the policy would grant to one container. Pods are the
// Guaranteed ones that have containers in the picture, ascending.
using SchedulerView = cri_resmgr::v1::ShowTopologyRequest;

// Adds the policy's pools that have CPUs, in its order, as `pools` of cri-resmgr-ctl shows them.
void AddViewPools(const Policy& policy, const Snapshot& snapshot, SchedulerView& view);

// Makes the picture. `policy` is the active one, of which copies are asked; `snapshot` has all
// containers, also exited ones. `alignment_refuses`: whether nrt.Alignment is refuse; only then may
// the view say that the policy refuses containers that do not fit into a single zone. Pure; takes
// up to some milliseconds on the loop's thread, so no call should wait for it.
SchedulerView MakeSchedulerView(const Machine& machine, const Policy& policy,
                                const Snapshot& snapshot, bool alignment_refuses);

}  // namespace resmgr
