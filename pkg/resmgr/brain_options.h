// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

#include "pkg/base/failure_policy.h"
#include "pkg/base/refused_updates.h"
#include "pkg/config/runtimes_config.h"
#include "pkg/metrics/metrics.h"
#include "pkg/resmgr/cpuset_writer.h"
#include "pkg/resmgr/observer.h"
#include "pkg/resmgr/refusal_causes.h"
#include "pkg/resmgr/values_of_others.h"
#include "pkg/sys/clock.h"

namespace resmgr {

class NodeMetrics;

// ResourceManager::Options.
struct BrainOptions {
  // How long a start waits for others to leave its CPUs.
  std::chrono::milliseconds start_timeout{10'000};
  // Whether the start is refused then, or goes on with a warning.
  FailurePolicy start_failure = FailurePolicy::kFail;
  // Whether the cpuset of a container is written past the runtime where that refuses its update;
  // only with a `cpuset_writer`.
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
  // How long an event of the runtime waits for the answer of the call that it may come from.
  std::chrono::milliseconds event_pause{100};
  // The time after a client's call until the values in force are listed, where something is
  // remembered over restarts: the runtime's own plugins may have changed the values.
  std::chrono::milliseconds report_pause{5'000};
  Metrics* metrics = nullptr;             // counts decisions, updates and held starts; may be null
  NodeMetrics* decision_times = nullptr;  // gets the time of each decision; may be null
  // Is told of every act, beside the log and the metrics; outlives the manager. May be null.
  Observer* observer = nullptr;
  Clock* clock = nullptr;   // for Policy::LookAgain; nullptr: the machine's
  Clock* timers = nullptr;  // for all other waits and pauses; likewise
  // Whether this daemon has warned of updates that ask for other CPUs (cpuset_overrides.h);
  // outlives the manager. nullptr: it warns once in its own life.
  bool* overrides_warned = nullptr;
  // Asked before each update of the manager's own; outlives it. nullptr: the runtime is sent only
  // the decided values.
  ValuesOfOthers* others = nullptr;
  CpusetWriter* cpuset_writer = nullptr;  // outlives the manager
  RefusalCauses* causes = nullptr;        // likewise; nullptr: no causes are looked for
  RuntimesConfig runtimes{};              // the overhead of pods for which kubelets state none
};

}  // namespace resmgr
