// SPDX-License-Identifier: Apache-2.0
// Numbers of containers that later stages, or the runtime's own plugins, set in place of what the
// policy and the client say. The request of a container is never read from these numbers, and the
// brain's own updates do not change them.
#include <memory>
#include <utility>

#include "pkg/resmgr/applied_resources.h"
#include "pkg/resmgr/asked_numbers.h"
#include "pkg/resmgr/reported_numbers.h"
#include "pkg/resmgr/resource_manager_impl.h"

namespace resmgr {

// The runtime's plugins may have changed something again. After a restart, a difference that was
// not there tells of another client's update.
void ResourceManager::Impl::NoteTold(ContainerRecord& record) {
  record.told_at = store_.Tick();
  if (!state_writer_.keeps()) return;
  if (std::exchange(record.container.set_later.reported, false)) state_writer_.MarkChanged(record);
}

// Notes a client's call. The runtime is listed soon after it, to learn the values in force before
// another client's update may follow. The brain's own updates may be about hundreds of containers,
// so for them the next list is soon enough.
void ResourceManager::Impl::NoteCalled(ContainerRecord& record) {
  NoteTold(record);
  if (!state_writer_.keeps() || report_timer_ != nullptr) return;
  report_timer_ = timers_.After(report_pause_, [this] {
    report_timer_.reset();
    synchronizer_.Refresh([](const Status&) {});
  });
}

void ResourceManager::Impl::CreationSent(ContainerKey key, const Adjustment& sent) {
  const ContainerRecord* const record = store_.Find(key);
  if (record == nullptr || !state_writer_.keeps()) return;
  Container container = record->container;
  if (record->push) TakeSent(sent.values, *record->push->applied, container.set_later);
  state_writer_.SaveCreation(record->pod->pod, container,
                             TextsBefore(sent, container.labels, container.annotations));
}

void ResourceManager::Impl::TakeSentCreation(ContainerRecord& record, const Adjustment& sent) {
  NoteCalled(record);
  if (record.push) TakeSent(sent.values, *record.push->applied, record.container.set_later);
  if (sent.wide() != nullptr) {
    AskedTexts texts = TextsBefore(sent, record.container.labels, record.container.annotations);
    if (!texts.empty()) record.texts = std::make_unique<AskedTexts>(std::move(texts));
  }
  pusher_.TakeSetLater(record);
}

void ResourceManager::Impl::TakeSentUpdate(ContainerRecord& record, PendingUpdate& update,
                                           const ResourceValues& sent) {
  ResourceValues ours = update.placement.values();
  const auto complete = [](auto& value, const auto& requested) {
    if (!value) value = requested;
  };
  complete(ours.cpu_shares, update.changes.cpu_shares);
  complete(ours.cpu_quota, update.changes.cpu_quota);
  complete(ours.cpu_period, update.changes.cpu_period);
  TakeSent(sent, ours, record.container.set_later);
  // The values as they were sent: a decision made meanwhile is still to be sent.
  const NumbersSetLater& later = record.container.set_later;
  const auto take = [](auto& value, const auto& set_later, const auto& own) {
    if (set_later || own) value = set_later ? set_later : own;
  };
  take(update.sent.cpu_shares, later.cpu_shares, ours.cpu_shares);
  take(update.sent.cpu_quota, later.cpu_quota, ours.cpu_quota);
  take(update.sent.cpu_period, later.cpu_period, ours.cpu_period);
}

void ResourceManager::Impl::SetByStage(const ContainerId& id, const ResourceValues& values,
                                       bool accepted) {
  ContainerRecord* const record = store_.Resolve(id);
  if (record == nullptr) return;
  NoteCalled(*record);
  if (!accepted) return;
  TakeSent(values, {}, record->container.set_later);
  pusher_.TakeSetLater(*record);
  state_writer_.MarkChanged(*record);
}

bool ResourceManager::Impl::SentOtherNumbers(const ContainerId& id, bool shares_in_file) const {
  const ContainerRecord* const record = store_.Resolve(id);
  return record != nullptr && (shares_in_file || resmgr::SentOtherNumbers(*record));
}

void ResourceManager::Impl::ShowAsked(const ContainerId& id, CpuNumbers& reported) const {
  const ContainerRecord* const record = store_.Resolve(id);
  if (record != nullptr) resmgr::ShowAsked(*record, reported);
}

void ResourceManager::Impl::NoteFirstReport(ContainerRecord& record) {
  pusher_.TakeSetLater(record);
  state_writer_.MarkChanged(record);
}

// While an update is under way a report would come too early.
bool ResourceManager::Impl::LacksReport(const ContainerRecord& record) const {
  if (record.container.set_later.reported || !state_writer_.keeps()) return false;
  return record.Placeable() && record.push && record.push->Quiet();
}

}  // namespace resmgr
