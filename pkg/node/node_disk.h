// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "pkg/base/status.h"
#include "pkg/dump/dumper.h"
#include "pkg/metrics/metrics.h"
#include "pkg/node/node_options.h"
#include "pkg/node/startup.h"
#include "pkg/state/state_store.h"

// What a node's daemon has on its disk: the state and the dump.
namespace resmgr {

// The store of the daemon's state, in the directory that the options name. Where another daemon
// holds that, or the disk does not answer, the store works without one: nothing is kept over
// restarts, which it logs.
StateStore OpenState(const NodeOptions& options, const Setup& setup);

// Whether MakeDumper will take the configuration: asked before anything is taken over, since it
// fails for nothing else. kInvalidArgument for rules or files that cannot be.
Status CheckDump(const NodeOptions& node, const Setup& setup);

// The dump of the configuration. A file that a delivered configuration may not name is left out,
// with a warning, and the rest holds. `metrics`, which counts what is lost, may be nullptr and must
// outlive it otherwise.
StatusOr<std::unique_ptr<dump::Dumper>> MakeDumper(const NodeOptions& node, const Setup& setup,
                                                   Metrics* metrics);

}  // namespace resmgr
