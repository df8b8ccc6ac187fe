// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "pkg/base/status.h"

namespace resmgr {

// The fate of a request when a stage on its way fails.
enum class FailurePolicy {
  kFail,    // it is refused, with the reason
  kIgnore,  // the request goes on without the stage, and the failure is logged and counted
};

// "fail" or "ignore", in any case; InvalidArgument for everything else: an unknown word
// must not silently stand for one of them.
StatusOr<FailurePolicy> ParseFailurePolicy(std::string_view text);
std::string_view ToString(FailurePolicy policy);

// How a container is treated that has to leave CPUs while the runtime refuses to update it.
enum class RefusedUpdates {
  kWait,   // it stays until the runtime takes an update
  kWrite,  // the daemon writes the cpuset into the container's cgroup itself
};

// "wait" or "write".
std::string_view ToString(RefusedUpdates choice);

}  // namespace resmgr
