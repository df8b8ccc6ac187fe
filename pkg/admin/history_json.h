// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string_view>

#include "pkg/admin/node_json.h"
#include "pkg/base/status.h"
#include "pkg/resmgr/history.h"

namespace resmgr {

// A fixed outside contract of `cri-resmgr-ctl history -o json`: the newest `most` acts as
//   {"time","event","container","cpus","mems","exclusive","reason","error"}
// newest last. "time" is UTC as in RFC 3339, with milliseconds; "event" is "placed", "adopted",
// "refused", "moved", "released", "failed", "let through" (a start, although "error" was in its
// way) or "written" (into the cgroup, past the runtime, whose refusal is "error"); "container" is
// "namespace/pod/name" or, of several that share CPUs and move together, "namespace/pod/name and 5
// more"; sets are kernel lists.
OrderedJson HistoryJson(const History& history, size_t most);

// Adds refusals to ExplainJson's result for `what` and the choice, which may be NotFound. A listed
// container whose last entry is a refusal gets "refused"; for one that is not listed, and that
// `what` names, an object is added, with the state "refused", the reason and what the container
// asked for ("qos", "request", "limit", "memoryRequest", "memoryLimit"). A container whose pod
// `snapshot` no longer has is found by its name only.
StatusOr<OrderedJson> WithRefusals(StatusOr<OrderedJson> explained, const History& history,
                                   const Snapshot& snapshot, std::string_view what,
                                   const ContainerChoice& choice = {},
                                   NameMatch match = NameMatch::kWhole);

}  // namespace resmgr
