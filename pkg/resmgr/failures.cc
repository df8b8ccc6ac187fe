// SPDX-License-Identifier: Apache-2.0
// The brain's part in updates of its own that the runtime does not carry out.
#include <chrono>
#include <utility>

#include "pkg/resmgr/resource_manager_impl.h"

namespace resmgr {
namespace {

// So long a pause before the next try says that it failed again and again, which is no race.
constexpr std::chrono::milliseconds kNoRace{1'000};

}  // namespace

// Most runtimes refuse to update a container that has exited, and its exit may not be known
// yet. So the warning waits until a list has shown that the container is still there.
void ResourceManager::Impl::OnFailed(ContainerKey key, const Status& status) {
  const bool no_answer =
      status.code() == StatusCode::kUnavailable || status.code() == StatusCode::kDeadlineExceeded;
  ContainerRecord* const record = store_.Find(key);
  if (record != nullptr && no_answer) {
    observers_.OnFailed({*policy_, store_.all(), record->pod->pod, record->container}, status);
  } else if (record != nullptr && record->push && record->push->delay >= kNoRace) {
    observers_.OnFailed({*policy_, store_.all(), record->pod->pod, record->container}, status);
    synchronizer_.ResyncSoon();
  } else if (record != nullptr) {
    const bool looking = record->update_failure.has_value();
    record->update_failure = status;
    if (!looking) synchronizer_.ListNow([this, key](const Status&) { ReportFailure(key); });
  }
  if (change_ && change_->pending.contains(key)) RollBackPolicy(key, status);
}

// It was looked what became of the container since its update failed.
void ResourceManager::Impl::ReportFailure(ContainerKey key) {
  ContainerRecord* const record = store_.Find(key);
  if (record == nullptr) return;
  const std::optional<Status> failure = std::exchange(record->update_failure, std::nullopt);
  if (!failure) return;
  if (record->container.state == ContainerState::kExited) {
    log_.Debug("an update of container {} met its end: {}", LogName(*record), Describe(*failure));
    return;
  }
  observers_.OnFailed({*policy_, store_.all(), record->pod->pod, record->container}, *failure);
}

}  // namespace resmgr
