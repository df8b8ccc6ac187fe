// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/config/config.h"
#include "pkg/dump/dumper.h"
#include "pkg/metrics/metrics.h"
#include "pkg/node/front_door.h"
#include "pkg/node/node_options.h"
#include "pkg/policy/policy.h"
#include "pkg/state/state_store.h"
#include "pkg/topology/machine.h"

namespace resmgr {

// The steps of a daemon before it runs, and actions instead of running. All may block on the disk.

// The options' configuration and objects, checked against the machine.
struct Setup {
  std::shared_ptr<const Machine> machine;
  Config config;              // at the start
  bool delivered = false;     // the configuration was delivered to an earlier run
  bool disk_answers = true;   // the disk with an earlier run's configuration
  std::string config_source;  // a file, "agent", "the command line"
  // A configuration of an earlier run that was refused: its source, and why; or empty.
  std::pair<std::string, std::string> refused;
  // ConfigWarnings, and machine_problems unless the null policy is active.
  std::vector<std::string> warnings;
  // CgroupDifferences, for a live machine.
  std::vector<std::string> machine_problems;
  bool live = false;               // the machine is this one
  std::unique_ptr<Policy> policy;  // null under the null policy: calls pass unread
};

// The configuration that was last delivered to a running daemon.
struct KeptConfig {
  std::string source;
  // Includes the command line's overrides. An error: it is not valid here; kDeadlineExceeded: it
  // cannot be read, since its disk does not answer.
  StatusOr<Config> config;
};
// nullopt if there is none, or if the options force another one.
std::optional<KeptConfig> LoadKeptConfig(const NodeOptions& options);

// Uses a configuration that was delivered to an earlier run and kept, unless the options force
// another one; one that does not fit any more is reported and ignored. kInvalidArgument: the
// configuration does not fit the machine; others: the machine cannot be read.
StatusOr<Setup> Prepare(const NodeOptions& options);

// The same for the options' own configuration alone, with a warning for a dump file that cannot be
// written: the output of -check-config.
StatusOr<Setup> CheckOnly(const NodeOptions& options);

// The kept data of earlier runs to be removed.
struct Forget {
  bool placements = false;
  bool delivered_config = false;
};
// kFailedPrecondition while an instance runs.
Status Reset(const NodeOptions& options, Forget what);

// Opens the front door with its sockets; if requested, they are taken over from the daemon that
// serves now and that has ended afterwards. On failure that one goes on unchanged.
StatusOr<std::unique_ptr<FrontDoor>> OpenDoor(const NodeOptions& options,
                                              const DoorContext& context);

// Opens the store of the daemon's state, in the directory of the options. If another daemon holds
// that, or the disk does not answer, the store works without a directory: nothing is kept for
// restarts, and a warning is logged.
StateStore OpenState(const NodeOptions& options, const Setup& setup);

// Whether MakeDumper will accept the configuration, its only possible failure: asked before
// anything is taken over. kInvalidArgument for malformed rules or impossible files.
Status CheckDump(const NodeOptions& node, const Setup& setup);

// Creates the configured dump. A file that a delivered configuration may not name is left out, with
// a warning. `metrics`, which counts losses, may be nullptr and must otherwise outlive the dumper.
StatusOr<std::unique_ptr<dump::Dumper>> MakeDumper(const NodeOptions& node, const Setup& setup,
                                                   Metrics* metrics);

}  // namespace resmgr
