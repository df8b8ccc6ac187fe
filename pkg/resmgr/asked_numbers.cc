// SPDX-License-Identifier: Apache-2.0
#include "pkg/resmgr/asked_numbers.h"

#include <optional>

#include "pkg/kube/cpu_arithmetic.h"
#include "pkg/resmgr/applied_resources.h"
#include "pkg/resmgr/needs.h"

namespace resmgr {
namespace {

using Number = std::optional<int64_t>;

// One decision: the client's request, and the values that the runtime was sent for it.
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

// The last one whose outcome is not open.
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

bool IsSame(const Number& sent, const Number& reported) {
  return sent.value_or(0) == reported.value_or(0);
}

// Without a limit, runtimes may leave the period out, or report their own if none was sent.
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
  const Number& asked = decision.asked.shares;
  const Number& sent = decision.sent.shares;
  if (reported.shares_in_file && reported.shares.value_or(0) == 0 && asked.value_or(0) != 0) {
    reported.shares_in_file = false;
  } else {
    const bool is_sent = IsSame(sent, reported.shares) ||
                         (sent && reported.shares && IsSameByWeight(*sent, reported.shares));
    if (!decision.OtherShares() || !is_sent) return false;
  }
  reported.shares = asked;
  return true;
}

}  // namespace

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
  // The runtime may have carried an open update out.
  const Decision last = Last(record);
  if (!limit) ShowLimit(last, reported);
  if (!shares) ShowShares(last, reported);
}

}  // namespace resmgr
