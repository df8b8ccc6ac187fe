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

// The steps of a daemon before it runs, and actions that replace running. All may block on the
// disk.

// The options' configuration and objects, checked against the machine.
struct Setup {
  std::shared_ptr<const Machine> machine;
  Config config;              // at the start
  bool delivered = false;     // the configuration was delivered to an earlier run
  bool disk_answers = true;   // whether the disk with an earlier run's configuration answers
  std::string config_source;  // a file, "agent", "the command line"
  // The source of an earlier run's configuration that was refused, and why; or empty.
  std::pair<std::string, std::string> refused;
  // ConfigWarnings, and machine_problems unless the null policy is active.
  std::vector<std::string> warnings;
  // CgroupDifferences of a live machine.
  std::vector<std::string> machine_problems;
  bool live = false;               // the machine is this one
  std::unique_ptr<Policy> policy;  // null under the null policy: calls pass unread
};

// The configuration that was last delivered to a running daemon.
struct KeptConfig {
  std::string source;
  // Includes the command line's overrides. An error if it is not valid here; kDeadlineExceeded if
  // its disk does not answer.
  StatusOr<Config> config;
};
// nullopt if there is none, or if the options force another one.
std::optional<KeptConfig> LoadKeptConfig(const NodeOptions& options);

// Uses the configuration that an earlier run kept, unless the options force another one. If it does
// not fit any more, that is reported and the options' own one is used. kInvalidArgument: the
// configuration does not fit the machine; other errors: the machine cannot be read.
StatusOr<Setup> Prepare(const NodeOptions& options);

// As Prepare, but only for the options' own configuration, with a warning for a dump file that
// cannot be written. For -check-config.
StatusOr<Setup> CheckOnly(const NodeOptions& options);

// The data of earlier runs that are to be removed.
struct Forget {
  bool placements = false;
  bool delivered_config = false;
};
// kFailedPrecondition while an instance runs.
Status Reset(const NodeOptions& options, Forget what);

// Opens the front door with its sockets. If requested, they are taken over from the daemon that
// serves now, which has ended when this returns. On failure that daemon goes on unchanged.
StatusOr<std::unique_ptr<FrontDoor>> OpenDoor(const NodeOptions& options,
                                              const DoorContext& context);

// Opens the store of the daemon's state in the directory of the options. If another daemon holds
// the directory, or the disk does not answer, the store works without it: nothing is kept for
// restarts, and a warning is logged.
std::unique_ptr<StateStore> OpenState(const NodeOptions& options, const Setup& setup);

// Checks the only thing that can make MakeDumper fail, before anything is taken over.
// kInvalidArgument for malformed rules or impossible files.
Status CheckDump(const NodeOptions& node, const Setup& setup);

// Creates the configured dump. If a delivered configuration names a file that it may not name, the
// file is left out, with a warning. `metrics`, which counts losses, may be nullptr and must
// otherwise outlive the dumper.
StatusOr<std::unique_ptr<dump::Dumper>> MakeDumper(const NodeOptions& node, const Setup& setup,
                                                   Metrics* metrics);

}  // namespace resmgr
