// SPDX-License-Identifier: Apache-2.0
#include "pkg/resmgr/set_later.h"

#include <memory>
#include <utility>

#include "pkg/resmgr/applied_resources.h"
#include "pkg/resmgr/asked_numbers.h"
#include "pkg/resmgr/reported_numbers.h"

namespace resmgr {

void SetLater::NoteCalled(ContainerRecord& record) {
  brain_.NoteTold(record);
  if (!brain_.state_writer.keeps() || report_timer_ != nullptr) return;
  report_timer_ = brain_.timers.After(report_pause_, [this] {
    report_timer_.reset();
    brain_.synchronizer.Refresh([](const Status&) {});
  });
}

void SetLater::CreationSent(ContainerKey key, const Adjustment& sent) {
  const ContainerRecord* const record = brain_.store.Find(key);
  if (record == nullptr || !brain_.state_writer.keeps()) return;
  Container container = record->container;
  if (record->push) TakeSent(sent.values, *record->push->applied, container.set_later);
  brain_.state_writer.SaveCreation(record->pod->pod, container,
                                   TextsBefore(sent, container.labels, container.annotations));
}

void SetLater::TakeCreation(ContainerRecord& record, const Adjustment& sent) {
  NoteCalled(record);
  if (record.push) TakeSent(sent.values, *record.push->applied, record.container.set_later);
  if (sent.wide() != nullptr) {
    AskedTexts texts = TextsBefore(sent, record.container.labels, record.container.annotations);
    if (!texts.empty()) record.texts = std::make_unique<AskedTexts>(std::move(texts));
  }
  brain_.pusher.TakeSetLater(record);
}

void SetLater::TakeUpdate(ContainerRecord& record, PendingUpdate& update,
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

void SetLater::SetByStage(const ContainerId& id, const ResourceValues& values, bool accepted) {
  ContainerRecord* const record = brain_.store.Resolve(id);
  if (record == nullptr) return;
  NoteCalled(*record);
  if (!accepted) return;
  TakeSent(values, {}, record->container.set_later);
  brain_.pusher.TakeSetLater(*record);
  brain_.state_writer.MarkChanged(*record);
}

bool SetLater::SentOtherNumbers(const ContainerId& id, bool shares_in_file) const {
  const ContainerRecord* const record = brain_.store.Resolve(id);
  return record != nullptr && (shares_in_file || resmgr::SentOtherNumbers(*record));
}

void SetLater::ShowAsked(const ContainerId& id, CpuNumbers& reported) const {
  const ContainerRecord* const record = brain_.store.Resolve(id);
  if (record != nullptr) resmgr::ShowAsked(*record, reported);
}

void SetLater::NoteFirstReport(ContainerRecord& record) {
  brain_.pusher.TakeSetLater(record);
  brain_.state_writer.MarkChanged(record);
}

// While an update is under way a report would come too early.
bool SetLater::LacksReport(const ContainerRecord& record) const {
  if (record.container.set_later.reported || !brain_.state_writer.keeps()) return false;
  return record.Placeable() && record.push && record.push->Quiet();
}

}  // namespace resmgr
