// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cmd/cri-resmgr/flags.h"
#include "pkg/base/status.h"
#include "pkg/config/config.h"
#include "pkg/policy/policy.h"
#include "pkg/policy/registry.h"
#include "pkg/topology/machine.h"

namespace resmgr {

// What the flags ask for, checked against each other.
struct Setup {
  std::shared_ptr<const Machine> machine;
  Config config;                      // in force at the start
  bool delivered = false;             // to an earlier run
  bool disk_answers = true;           // that of what an earlier run kept
  std::string config_source;          // where it comes from: a file, "agent", "the command line"
  std::vector<std::string> warnings;  // ConfigWarnings
  std::unique_ptr<Policy> policy;     // null under the null policy: calls are not even looked at
};

// The configuration that was last delivered to a running daemon.
struct KeptConfig {
  std::string source;
  // With the flags' overrides. An error: it is not valid here; DeadlineExceeded: it cannot be read,
  // since its disk does not answer.
  StatusOr<Config> config;
};
// Nothing where there is none, or where the flags force another one.
std::optional<KeptConfig> LoadKeptConfig(const Flags& flags, const PolicyRegistry& policies);

// With a configuration that was delivered to an earlier run and kept, unless the flags force
// another one; one that does not fit any more is reported and left aside. InvalidArgument: the
// configuration does not fit the machine; others: the machine cannot be read.
StatusOr<Setup> Prepare(const Flags& flags, const PolicyRegistry& policies);

// Runs the daemon until SIGTERM or SIGINT has ended it in good order. AlreadyExists: another
// instance serves one of the sockets.
Status RunDaemon(const Flags& flags, const PolicyRegistry& policies, Setup setup);

// -reset-policy and -reset-config, as far as the flags ask for them. FailedPrecondition while an
// instance runs.
Status Reset(const Flags& flags);

}  // namespace resmgr
