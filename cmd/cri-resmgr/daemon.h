// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "cmd/cri-resmgr/flags.h"
#include "pkg/base/status.h"
#include "pkg/policy/policy.h"
#include "pkg/policy/registry.h"
#include "pkg/topology/machine.h"

namespace resmgr {

// The machine and the policy that the flags ask for, checked against each other.
struct Setup {
  std::unique_ptr<const Machine> machine;
  std::unique_ptr<Policy> policy;  // null under the null policy: calls are not even looked at
};

// InvalidArgument: the configuration does not fit the machine; others: the machine cannot be read.
StatusOr<Setup> Prepare(const Flags& flags, const PolicyRegistry& policies);

// Runs the daemon until SIGTERM or SIGINT has ended it in good order. AlreadyExists: another
// instance serves the socket.
Status RunDaemon(const Flags& flags, Setup setup);

}  // namespace resmgr
