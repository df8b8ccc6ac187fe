// SPDX-License-Identifier: Apache-2.0
#include "pkg/resmgr/reported_numbers.h"

#include <optional>

#include "pkg/kube/annotations.h"
#include "pkg/kube/cpu_arithmetic.h"
#include "pkg/model/requirements.h"
#include "pkg/model/resources_annotation.h"
#include "pkg/resmgr/applied_resources.h"
#include "pkg/resmgr/needs.h"

namespace resmgr {
namespace {

using Number = std::optional<int64_t>;

void TakeSent(const Number& sent, const Number& ours, Number& later) {
  if (sent && sent != ours) {
    later = sent;
  } else if (sent || ours) {
    later.reset();
  }
}

// A value that is not reported is no difference; some runtimes report 0 for it.
void TakeReport(const Number& in_force, const Number& expected, bool same, Number& later) {
  if (in_force && *in_force != 0 && in_force != expected && !same) later = in_force;
}

NumbersSetLater SetLaterOf(const SavedContainer& saved) {
  return saved.set_later.value_or(NumbersSetLater{});
}

const Number& First(const Number& later, const Number& placed, const Number& requested) {
  return later ? later : placed ? placed : requested;
}

bool IsExactlyAsSaved(const ReportOfSaved& report) {
  const SavedContainer& saved = report.saved;
  const NumbersSetLater later = SetLaterOf(saved);
  const Number& quota =
      First(later.cpu_quota, saved.placement.cpu_quota, saved.requested.cpu_quota);
  return TellsCpuInForce(saved, report.in_force) &&
         QuotaOrNone(quota) == QuotaOrNone(report.in_force.cpu_quota);
}

// Whether numbers in force that are not as saved certainly do not come from the update that was
// under way: another program set them, or an update after it that is not on the disk. ADR 3 names
// the cases that cannot be distinguished.
bool CannotHaveArrived(const ReportOfSaved& report) {
  if (report.others_set) return false;
  const SavedContainer& saved = report.saved;
  const LinuxResources& asked = saved.asked->requested;
  const NumbersSetLater later = SetLaterOf(saved);
  const Number& before = saved.requested.cpu_shares;
  const bool decided = later.cpu_shares || saved.placement.cpu_shares;
  if (!decided && asked.cpu_shares) {
    if (!IsSameByWeight(*asked.cpu_shares, report.in_force.cpu_shares)) return true;
    if (before && !IsSameByWeight(*before, asked.cpu_shares)) return false;
  }
  // Policies lift a quota, or leave it as it is.
  const int64_t now = QuotaOrNone(report.in_force.cpu_quota);
  const Number& saved_quota =
      First(later.cpu_quota, saved.placement.cpu_quota, saved.requested.cpu_quota);
  return now != QuotaOrNone(std::nullopt) && now != QuotaOrNone(saved_quota) &&
         now != QuotaOrNone(asked.cpu_quota);
}

// A container that was found without notes while its policy lifted the quota has no quota in its
// request. A quota of what it is known to request, or of its limit, is the client's.
bool IsLimitNotNoted(const LinuxResources& in_force, const ResourceValues& placed,
                     const Container& container) {
  if (placed.cpu_quota != kNoQuota) return false;
  if (QuotaOrNone(container.requested.cpu_quota) != kNoQuota) return false;
  const MilliCpu limit = CpuLimitOf(in_force);
  const Requirements& needs = container.requirements;
  return limit.value > 0 && (limit == needs.cpu_request || limit == needs.cpu_limit);
}

AskedTexts::Texts TextsBefore(const KeyedEdits<std::string>& edits, const StringMap& named,
                              bool (*counts)(std::string_view key)) {
  AskedTexts::Texts texts;
  for (const auto& edit : edits) {
    if (!counts(edit.key)) continue;
    const auto found = named.find(edit.key);
    texts.emplace_back(
        edit.key, found == named.end() ? std::nullopt : std::optional<std::string>(found->second));
  }
  return texts;
}

}  // namespace

void TakeSent(const ResourceValues& sent, const ResourceValues& ours, NumbersSetLater& later) {
  TakeSent(sent.cpu_shares, ours.cpu_shares, later.cpu_shares);
  TakeSent(sent.cpu_quota, ours.cpu_quota, later.cpu_quota);
  TakeSent(sent.cpu_period, ours.cpu_period, later.cpu_period);
}

void TakeFirstReport(const LinuxResources& in_force, const ResourceValues& placed,
                     Container& container) {
  NumbersSetLater& later = container.set_later;
  const LinuxResources& requested = container.requested;
  const Number shares = First(later.cpu_shares, placed.cpu_shares, requested.cpu_shares);
  const Number quota = First(later.cpu_quota, placed.cpu_quota, requested.cpu_quota);
  const Number period = First(later.cpu_period, placed.cpu_period, requested.cpu_period);
  TakeReport(in_force.cpu_shares, shares, shares && IsSameByWeight(*shares, in_force.cpu_shares),
             later.cpu_shares);
  TakeReport(in_force.cpu_quota, quota, QuotaOrNone(quota) == QuotaOrNone(in_force.cpu_quota),
             later.cpu_quota);
  TakeReport(in_force.cpu_period, period, !period, later.cpu_period);
  later.reported = true;
}

LinuxResources WithoutUnnamed(LinuxResources in_force, const Container& container) {
  const CpuNumbers named =
      NumbersInForce(container.set_later, container.placement, container.requested);
  if (!named.shares) in_force.cpu_shares.reset();
  if (!named.quota) in_force.cpu_quota.reset();
  return in_force;
}

void TakeFirstReportOfSaved(const LinuxResources& in_force, const ResourceValues& placed,
                            Container& container) {
  const LinuxResources& requested = container.requested;
  LinuxResources others = in_force;
  if (requested.cpu_shares && IsSameByWeight(*requested.cpu_shares, in_force.cpu_shares)) {
    others.cpu_shares.reset();
  }
  const int64_t quota = QuotaOrNone(in_force.cpu_quota);
  if (IsLimitNotNoted(in_force, placed, container)) {
    container.requested.cpu_quota = in_force.cpu_quota;
    container.requested.cpu_period = in_force.cpu_period;
    container.requirements.cpu_limit = CpuLimitOf(in_force);
  }
  if (quota == QuotaOrNone(requested.cpu_quota) || quota == QuotaOrNone(std::nullopt)) {
    others.cpu_quota.reset();
  }
  if (in_force.cpu_period == requested.cpu_period) others.cpu_period.reset();
  TakeFirstReport(others, placed, container);
}

bool IsPlacedAsSaved(const ReportOfSaved& report) {
  const CpuSet cpus = ReadValues(report.in_force).cpus.value_or(CpuSet());
  const CpuSet& exclusive = report.saved.placement.exclusive;
  if (!exclusive.empty()) {
    const MilliCpu request = report.saved.requirements.cpu_request;
    const bool all_its_own = request.IsWhole() && exclusive.size() == request.Whole();
    if (all_its_own ? cpus == exclusive : exclusive.IsSubsetOf(cpus)) return true;
  }
  const MilliCpu now = report.needs_in_force.cpu_request;
  // No client asks for more than its limit.
  const MilliCpu limit = CpuLimitOf(report.in_force);
  if (limit.value > 0 && limit < now) return true;
  // A container on other CPUs than decided may also be one whose move had not ended.
  return !now.IsWhole() || now.value == 0 || cpus.size() != now.Whole() ||
         cpus.Intersects(report.crowded);
}

NumbersNews JudgeNumbers(const ReportOfSaved& report) {
  const SavedContainer& saved = report.saved;
  if (report.in_force.cpu_shares.value_or(0) == 0) return NumbersNews::kNone;
  if (saved.asked && !IsExactlyAsSaved(report) && !CannotHaveArrived(report)) {
    return NumbersNews::kAsked;
  }
  if (TellsCpuInForce(saved, report.in_force)) return NumbersNews::kNone;
  // Without a sign of stages or plugins that set numbers, the notes are older than an update.
  if (!saved.set_later || !report.others_set) return NumbersNews::kUpdated;
  // Kubelets resize no BestEffort pod.
  if (report.qos == QosClass::kBestEffort) return NumbersNews::kPlugins;
  const bool first_report = !saved.set_later->reported || report.called;
  return first_report && IsPlacedAsSaved(report) ? NumbersNews::kPlugins : NumbersNews::kUpdated;
}

LinuxResources WithoutSetLater(const SavedContainer& saved, LinuxResources in_force) {
  const NumbersSetLater later = SetLaterOf(saved);
  const auto put_back = [](const Number& set, const Number& placed, const Number& requested,
                           Number& now) {
    if (set && set == now) now = placed ? placed : requested;
  };
  put_back(later.cpu_shares, saved.placement.cpu_shares, saved.requested.cpu_shares,
           in_force.cpu_shares);
  put_back(later.cpu_quota, saved.placement.cpu_quota, saved.requested.cpu_quota,
           in_force.cpu_quota);
  put_back(later.cpu_period, saved.placement.cpu_period, saved.requested.cpu_period,
           in_force.cpu_period);
  return in_force;
}

AskedTexts TextsBefore(const Adjustment& sent, const StringMap& labels,
                       const StringMap& annotations) {
  const WideAdjustment* const wide = sent.wide();
  if (wide == nullptr) return {};
  const auto all = [](std::string_view) { return true; };
  const auto read = [](std::string_view key) {
    return IsForPolicies(key) || key == kResourcesAnnotation;
  };
  return {.labels = TextsBefore(wide->labels, labels, all),
          .annotations = TextsBefore(wide->annotations, annotations, read)};
}

}  // namespace resmgr
