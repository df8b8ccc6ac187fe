// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "pkg/base/status.h"
#include "pkg/dump/dumper.h"
#include "pkg/metrics/metrics.h"
#include "pkg/node/node_options.h"
#include "pkg/node/startup.h"
#include "pkg/state/state_store.h"

// The daemon's data on disk: the state and the dump.
namespace resmgr {

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
