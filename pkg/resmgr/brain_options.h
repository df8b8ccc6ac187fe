// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

#include "pkg/base/failure_policy.h"
#include "pkg/config/runtimes_config.h"
#include "pkg/metrics/metrics.h"
#include "pkg/resmgr/cgroup_access.h"
#include "pkg/resmgr/observer.h"
#include "pkg/sys/clock.h"

namespace resmgr {

class NodeMetrics;

// ResourceManager::Options, for all parts of the brain.
struct BrainOptions {
  // How long a start waits for others to leave its CPUs.
  std::chrono::milliseconds start_timeout{10'000};
  // Whether a start is refused after this time, or goes on with a warning.
  FailurePolicy start_failure = FailurePolicy::kFail;
  // Whether the cpuset of a container is written past the runtime if the runtime refuses its
  // update; only with a `cpuset_writer`.
  RefusedUpdates refused_updates = RefusedUpdates::kWait;
  // Waits between tries of an update that failed: doubles from the first to the last.
  std::chrono::milliseconds first_retry{50};
  std::chrono::milliseconds last_retry{5'000};
  // How long an unanswered StartContainer may still take effect: as long as kubelets let a call
  // take.
  std::chrono::milliseconds start_limit{120'000};
  // The least time between two lists before refusals.
  std::chrono::milliseconds refresh_pause{1'000};
  // The time between two lists of the runtime when no event causes one.
  std::chrono::milliseconds list_period{60'000};
  // How long an event of the runtime waits for the answer of a call that may have caused it.
  std::chrono::milliseconds event_pause{100};
  // The time from a client's call to a list of the values in force, which the runtime's own plugins
  // may have changed. Only if some state is kept over restarts.
  std::chrono::milliseconds report_pause{5'000};
  Metrics* metrics = nullptr;             // counts decisions, updates and held starts; may be null
  NodeMetrics* decision_times = nullptr;  // gets the time of each decision; may be null
  // Is notified of every act, in addition to the log and the metrics; outlives the manager. May be
  // null.
  Observer* observer = nullptr;
  Clock* clock = nullptr;   // for Policy::LookAgain; nullptr: the machine's
  Clock* timers = nullptr;  // for all other waits and pauses; nullptr: the machine's
  // Whether this daemon, also with an earlier manager, has warned of updates that ask for other
  // CPUs (updates.h); outlives the manager. nullptr: each manager warns once.
  bool* overrides_warned = nullptr;
  // Asked before each update of the manager's own for values to preserve; outlives the manager.
  // nullptr: the updates have only the decided values.
  ValuesOfOthers* others = nullptr;
  CpusetWriter* cpuset_writer = nullptr;  // outlives the manager
  RefusalCauses* causes = nullptr;        // outlives the manager; nullptr: causes are not searched
  RuntimesConfig runtimes{};              // the overhead of pods without one in their spec
};

}  // namespace resmgr
