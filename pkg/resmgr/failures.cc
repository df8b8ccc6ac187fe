// SPDX-License-Identifier: Apache-2.0
// The brain's part in updates of its own that the runtime does not carry out.
#include <chrono>
#include <utility>

#include "pkg/resmgr/resource_manager_impl.h"

namespace resmgr {
namespace {

// A pause of this length before the next try means that the update failed many times, which is more
// than a race with the end of the container.
constexpr std::chrono::milliseconds kNoRace{1'000};
// Where a list shows nothing that was not told: runtimes refuse updates of a container as soon as
// its processes are gone, and tell of its end a little later.
constexpr std::chrono::milliseconds kEndIsLearned{500};
constexpr size_t kLongestAnswer = 1024;

}  // namespace

// Most runtimes refuse to update a container that has exited, and its exit may not be known
// yet. So a list has to show that the container still exists before its failure has consequences:
// a warning, or the end of a change of the policy. No answer is a warning at once, and so is what
// failed many times. Further failures wait for the same list.
void ResourceManager::Impl::OnFailed(ContainerKey key, const Status& status) {
  ContainerRecord* const record = store_.Find(key);
  if (record == nullptr) return OnMoot();
  NoteTold(*record);
  const bool no_answer =
      status.code() == StatusCode::kUnavailable || status.code() == StatusCode::kDeadlineExceeded;
  const bool repeated = record->push && record->push->delay >= kNoRace;
  bool first_report = false;
  if (no_answer || repeated) {
    observers_.OnFailed(ActAt(*record), status);
  } else {
    FailedUpdates& failed = failed_updates_[key];
    first_report = ++failed.count == 1;
    failed.last = status;
  }
  // It is where the change moved it, where only numbers were refused.
  ExaminePolicyChange();
  const bool moves = change_ && change_->pending.contains(key);
  const bool first_move = moves && change_->failures.insert_or_assign(key, status).second;
  if (first_report || first_move) {
    synchronizer_.ListNow([this, key, first_report, first_move](const Status&) {
      if (first_report) ReportFailure(key);
      if (first_move) EndFailedMove(key);
    });
  } else if (repeated && !no_answer) {
    synchronizer_.ResyncSoon();
  }
}

// The client gets the runtime's answer as it is.
void ResourceManager::Impl::RefusedByRuntime(ContainerKey key, std::string_view answer) {
  const ContainerRecord* const record = store_.Find(key);
  if (record == nullptr || causes_ == nullptr || !RefusalCauses::MayBeFound(answer)) return;
  const Placement& placement = record->container.placement;
  const auto log = [this, name = LogName(*record),
                    answer = Printable(answer, kLongestAnswer)](const std::string& cause) {
    if (cause.empty()) return;
    const auto suppressed = refusal_log_.Pass(name, cause, timers_.Steady());
    if (!suppressed) return;
    log_.Warn("the runtime refused container {}: {}; likely cause: {}{}", name, answer, cause,
              *suppressed == 0 ? "" : fmt::format(" ({} more were not logged)", *suppressed));
  };
  causes_->Find({.cgroup_parent = record->pod->pod.cgroup_parent,
                 .id = record->container.id,
                 .cpus = placement.EnforcedCpus(),
                 .mems = placement.mems},
                lifetime_.Guard(log));
}

void ResourceManager::Impl::RefusedByRuntime(const ContainerId& id, std::string_view answer) {
  if (const ContainerRecord* const record = store_.Resolve(id); record != nullptr)
    RefusedByRuntime(record->container.key, answer);
}

void ResourceManager::Impl::OnRecovered(const ContainerRecord& record) {
  observers_.OnRecovered(ActAt(record));
}

void ResourceManager::Impl::OnWritten(const ContainerRecord& record, const Status& why) {
  observers_.OnWritten(ActAt(record), why);
}

// The list that was asked for after a failed update is there, or failed.
void ResourceManager::Impl::ReportFailure(ContainerKey key) {
  const auto waiting = failed_updates_.find(key);
  if (waiting == failed_updates_.end()) return;
  const ContainerRecord* const record = store_.Find(key);
  const bool ended = record == nullptr || record->container.state == ContainerState::kExited;
  if (!ended && !runtime_.ListsTellNews() && !std::exchange(waiting->second.shown, true)) {
    waiting->second.again = timers_.After(kEndIsLearned, [this, key] { ReportFailure(key); });
    return;
  }
  const auto pending = failed_updates_.extract(waiting);
  const FailedUpdates& failed = pending.mapped();
  if (ended) {
    log_.Debug("an update of container {} failed because it ended: {}",
               record == nullptr ? "that was removed" : LogName(*record), Describe(failed.last));
    observers_.OnMoot(failed.count);
    return;
  }
  for (size_t i = 0; i < failed.count; ++i)
    observers_.OnFailed(ActAt(*record), failed.last);
  // The next try was quicker than the list.
  if (pusher_.LastError(key).ok()) OnRecovered(*record);
}

// A move of a change of the policy failed. Rolling the change back costs the administrator the
// whole configuration, so the change goes on where the list shows that the container has ended.
// Where the list failed, too, the failure counts. A lost connection ends the change otherwise.
void ResourceManager::Impl::EndFailedMove(ContainerKey key) {
  if (!change_ || !pusher_.connected()) return;
  const auto failure = change_->failures.find(key);
  // The failure is of a former change, or the next try worked.
  if (failure == change_->failures.end() || !change_->pending.contains(key)) return;
  const Status why = failure->second;
  RollBackPolicy(key, why);
}

}  // namespace resmgr
