// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/config/config.h"
#include "pkg/node/node_options.h"
#include "pkg/policy/policy.h"
#include "pkg/topology/machine.h"

namespace resmgr {

// What a daemon does before it runs, and in place of that. All of it may block on the disk.

// What the options ask for, checked against the machine.
struct Setup {
  std::shared_ptr<const Machine> machine;
  Config config;                      // in force at the start
  bool delivered = false;             // to an earlier run
  bool disk_answers = true;           // that of what an earlier run kept
  std::string config_source;          // where it comes from: a file, "agent", "the command line"
  std::vector<std::string> warnings;  // ConfigWarnings; where a policy places, machine_problems
  // CgroupDifferences, of a live machine.
  std::vector<std::string> machine_problems;
  bool live = false;               // the machine is the one that we run on
  std::unique_ptr<Policy> policy;  // null under the null policy: calls are not even looked at
};

// The configuration that was last delivered to a running daemon.
struct KeptConfig {
  std::string source;
  // With the command line's overrides. An error: it is not valid here; DeadlineExceeded: it cannot
  // be read, since its disk does not answer.
  StatusOr<Config> config;
};
// Nothing where there is none, or where the options force another one.
std::optional<KeptConfig> LoadKeptConfig(const NodeOptions& options);

// With a configuration that was delivered to an earlier run and kept, unless the options force
// another one; one that does not fit any more is reported and left aside. InvalidArgument: the
// configuration does not fit the machine; others: the machine cannot be read.
StatusOr<Setup> Prepare(const NodeOptions& options);

// The same for the options' own configuration alone, with a warning for a dump file that cannot be
// written: what -check-config tells.
StatusOr<Setup> CheckOnly(const NodeOptions& options);

// What an earlier run kept and is to be forgotten.
struct Forget {
  bool placements = false;
  bool delivered_config = false;
};
// FailedPrecondition while an instance runs.
Status Reset(const NodeOptions& options, Forget what);

}  // namespace resmgr
