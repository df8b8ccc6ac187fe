// SPDX-License-Identifier: Apache-2.0
#include "pkg/resmgr/failures.h"

#include <chrono>
#include <string>
#include <utility>

#include "pkg/base/parse.h"
#include "pkg/log/not_logged.h"

namespace resmgr {
namespace {

// If the pause before the next try is as long as this, the update has failed many times: more often
// than by a race with the end of the container.
constexpr std::chrono::milliseconds kNoRace{1'000};
// After a refused update, how long to wait for the runtime to report the container's end, where a
// list does not help since it contains only what the runtime has reported (NRI): runtimes refuse
// updates as soon as the container's processes are gone, and report the end a little later.
constexpr std::chrono::milliseconds kEndIsLearned{500};
constexpr size_t kLongestAnswer = 1024;

}  // namespace

// Most runtimes refuse to update a container that has exited, and its exit may not be known yet. So
// a failure has consequences (a warning, or the end of a change of the policy) only after a list
// has shown that the container still exists. If the runtime did not answer, or if the update failed
// many times, the warning is logged at once. Further failures wait for the list that was asked for
// already.
void Failures::OnFailed(ContainerKey key, const Status& status) {
  ContainerRecord* const record = brain_.store.Find(key);
  if (record == nullptr) return brain_.observers.OnMoot(1);
  brain_.NoteTold(*record);
  const bool no_answer =
      status.code() == StatusCode::kUnavailable || status.code() == StatusCode::kDeadlineExceeded;
  const bool repeated = record->push && record->push->delay >= kNoRace;
  bool first_report = false;
  if (no_answer || repeated) {
    brain_.observers.OnFailed(brain_.ActAt(*record), status);
  } else {
    Waiting& failed = waiting_[key];
    first_report = ++failed.count == 1;
    failed.last = status;
  }
  const bool first_move = policy_changes_.OnFailed(key, status);
  if (first_report || first_move) {
    brain_.synchronizer.ListNow([this, key, first_report, first_move](const Status&) {
      if (first_report) Report(key);
      if (first_move) policy_changes_.EndFailedMove(key);
    });
  } else if (repeated && !no_answer) {
    brain_.synchronizer.ResyncSoon();
  }
}

// The runtime's answer itself goes to the client unchanged; the cause is only logged.
void Failures::RefusedByRuntime(const ContainerRecord* record, std::string_view answer) {
  RefusalCauses* const causes = brain_.options.causes;
  if (record == nullptr || causes == nullptr || !RefusalCauses::MayBeFound(answer)) return;
  const Placement& placement = record->container.placement;
  const auto log = [this, name = LogName(*record),
                    answer = Printable(answer, kLongestAnswer)](const std::string& cause) {
    if (cause.empty()) return;
    const auto suppressed = refusal_log_.Pass(name, cause, brain_.timers.Steady());
    if (!suppressed) return;
    brain_.log.Warn("the runtime refused container {}: {}; likely cause: {}{}", name, answer, cause,
                    NotLogged(*suppressed));
  };
  causes->Find({.cgroup_parent = record->pod->pod.cgroup_parent,
                .id = record->container.id,
                .cpus = placement.EnforcedCpus(),
                .mems = placement.mems},
               lifetime_.Guard(log));
}

// Called when the list after a failed update has arrived or failed.
void Failures::Report(ContainerKey key) {
  const auto waiting = waiting_.find(key);
  if (waiting == waiting_.end()) return;
  const ContainerRecord* const record = brain_.store.Find(key);
  const bool ended = record == nullptr || record->container.state == ContainerState::kExited;
  if (!ended && !brain_.runtime.ListsTellNews() && !std::exchange(waiting->second.shown, true)) {
    waiting->second.again = brain_.timers.After(kEndIsLearned, [this, key] { Report(key); });
    return;
  }
  const auto pending = waiting_.extract(waiting);
  const Waiting& failed = pending.mapped();
  if (ended) {
    brain_.log.Debug("an update of container {} failed because it ended: {}",
                     record == nullptr ? "that was removed" : LogName(*record),
                     Describe(failed.last));
    brain_.observers.OnMoot(failed.count);
    return;
  }
  for (size_t i = 0; i < failed.count; ++i)
    brain_.observers.OnFailed(brain_.ActAt(*record), failed.last);
  // The next try has succeeded before the list arrived.
  if (brain_.pusher.LastError(key).ok()) brain_.observers.OnRecovered(brain_.ActAt(*record));
}

}  // namespace resmgr
