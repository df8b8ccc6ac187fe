// SPDX-License-Identifier: Apache-2.0
#include "pkg/resmgr/set_later.h"

#include <memory>
#include <utility>

#include "pkg/kube/cpu_arithmetic.h"
#include "pkg/model/cpu_numbers.h"
#include "pkg/resmgr/applied_resources.h"
#include "pkg/resmgr/reported_values.h"

namespace resmgr {
namespace {

// One decision: the numbers in the client's request, and the numbers that the runtime was sent.
struct Decision {
  CpuNumbers asked;
  CpuNumbers sent;

  bool OtherShares() const { return asked.shares.value_or(0) != sent.shares.value_or(0); }
  bool OtherLimit() const {
    if (QuotaOrNone(asked.quota) != QuotaOrNone(sent.quota)) return true;
    return QuotaOrNone(asked.quota) != kNoQuota &&
           asked.period.value_or(0) != sent.period.value_or(0);
  }
};

Decision Made(const ContainerRecord& record, const Placement& placement,
              const LinuxResources& requested) {
  return {.asked = {.shares = requested.cpu_shares,
                    .quota = requested.cpu_quota,
                    .period = requested.cpu_period},
          .sent = NumbersInForce(record.container.set_later, placement, requested)};
}

// The last decision whose outcome is known.
Decision Confirmed(const ContainerRecord& record) {
  const Container& container = record.container;
  const bool open = record.confirmed != nullptr;
  const Placement& placement =
      open && record.confirmed->placement ? *record.confirmed->placement : container.placement;
  return Made(record, record.former != nullptr ? *record.former : placement,
              open ? record.confirmed->requested : container.requested);
}

Decision Last(const ContainerRecord& record) {
  return Made(record, record.container.placement, record.container.requested);
}

// Runtimes may leave the period out if there is no limit, and report a period of their own if none
// was sent.
bool IsLimitSent(const CpuNumbers& sent, const CpuNumbers& reported) {
  if (QuotaOrNone(sent.quota) != QuotaOrNone(reported.quota)) return false;
  return sent.period.value_or(0) == 0 || reported.period.value_or(0) == 0 ||
         sent.period == reported.period;
}

bool ShowLimit(const Decision& decision, CpuNumbers& reported) {
  if (!decision.OtherLimit() || !IsLimitSent(decision.sent, reported)) return false;
  reported.quota = decision.asked.quota;
  if (decision.asked.period.value_or(0) != 0) reported.period = decision.asked.period;
  return true;
}

bool ShowShares(const Decision& decision, CpuNumbers& reported) {
  const CpuNumber& asked = decision.asked.shares;
  const CpuNumber& sent = decision.sent.shares;
  if (reported.shares_in_file && reported.shares.value_or(0) == 0 && asked.value_or(0) != 0) {
    reported.shares_in_file = false;
  } else {
    const bool is_sent = sent.value_or(0) == reported.shares.value_or(0) ||
                         (sent && reported.shares && IsSameByWeight(*sent, reported.shares));
    if (!decision.OtherShares() || !is_sent) return false;
  }
  reported.shares = asked;
  return true;
}

}  // namespace

void SetLater::NoteCalled(ContainerRecord& record) {
  brain_.NoteTold(record);
  if (!brain_.state_writer.keeps() || report_timer_ != nullptr) return;
  report_timer_ = brain_.timers.After(brain_.options.report_pause, [this] {
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
  const auto complete = [](CpuNumber& value, const CpuNumber& requested) {
    if (!value) value = requested;
  };
  ForEachCpuNumber(complete, ours, update.changes);
  TakeSent(sent, ours, record.container.set_later);
  // Only values that were sent count: a decision made meanwhile, and a number that the policy does
  // not override any more and the client does not name, are yet to be sent.
  const auto take = [](CpuNumber& value, const CpuNumber& set_later, const CpuNumber& own) {
    value = set_later ? set_later : own;
  };
  ForEachCpuNumber(take, update.sent, record.container.set_later, ours);
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

// A report counts only if no update is under way: otherwise it would be too early.
bool SetLater::LacksReport(const ContainerRecord& record) const {
  if (record.container.set_later.reported || !brain_.state_writer.keeps()) return false;
  return record.Placeable() && record.push && record.push->Quiet();
}

bool SentOtherNumbers(const ContainerRecord& record) {
  const Decision confirmed = Confirmed(record);
  if (confirmed.OtherShares() || confirmed.OtherLimit()) return true;
  if (record.confirmed == nullptr) return false;
  const Decision last = Last(record);
  return last.OtherShares() || last.OtherLimit();
}

void ShowAsked(const ContainerRecord& record, CpuNumbers& reported) {
  const Decision confirmed = Confirmed(record);
  const bool limit = ShowLimit(confirmed, reported);
  const bool shares = ShowShares(confirmed, reported);
  if (record.confirmed == nullptr) return;
  // The runtime may already have carried out an update that was not answered.
  const Decision last = Last(record);
  if (!limit) ShowLimit(last, reported);
  if (!shares) ShowShares(last, reported);
}

}  // namespace resmgr
