// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "pkg/base/status.h"

namespace resmgr {

// The fate of a request when a stage on its way fails.
enum class FailurePolicy {
  kFail,    // the request is refused, with the reason
  kIgnore,  // the request goes on without the stage, and the failure is logged and counted
};

// "fail" or "ignore", in any case. InvalidArgument for everything else, so that a misspelt word
// does not silently mean one of the two.
StatusOr<FailurePolicy> ParseFailurePolicy(std::string_view text);
std::string_view ToString(FailurePolicy policy);

// The treatment of a container that must leave CPUs while the runtime refuses to update it.
enum class RefusedUpdates {
  kWait,   // the container keeps its CPUs until the runtime accepts an update
  kWrite,  // the daemon writes the cpuset into the container's cgroup itself
};

// "wait" or "write".
std::string_view ToString(RefusedUpdates choice);

}  // namespace resmgr
