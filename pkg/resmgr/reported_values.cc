// SPDX-License-Identifier: Apache-2.0
#include "pkg/resmgr/reported_values.h"

#include <algorithm>
#include <optional>

#include "pkg/kube/annotations.h"
#include "pkg/kube/cpu_arithmetic.h"
#include "pkg/model/cpu_numbers.h"
#include "pkg/model/requirements.h"
#include "pkg/model/resources_annotation.h"
#include "pkg/resmgr/applied_resources.h"

namespace resmgr {
namespace {

constexpr int64_t kMilliPerCpu = 1000;

// Converts shares to a weight of cgroup v2 as Kubernetes and runc do (KEP 2254), and back.
int64_t ByWayOfWeight(int64_t shares) {
  constexpr int64_t kWeights = 10'000 - 1;
  constexpr int64_t kAllShares = kMaxShares - kMinShares;
  const int64_t weight = 1 + (shares - kMinShares) * kWeights / kAllShares;
  return kMinShares + (weight - 1) * kAllShares / kWeights;
}

// The request, given the formerly `known` one and the present resources. Shares at their upper
// limit can stand for any larger request: then the known one stays, unless a quota determines it
// (in a Guaranteed container) or allows less.
MilliCpu RequestNow(MilliCpu known, const Requirements& now, const LinuxResources& resources,
                    QosClass qos) {
  const bool open = resources.cpu_shares.value_or(0) >= kMaxShares && !SharesTell(known);
  const MilliCpu limit = CpuLimitOf(resources);
  if (!open || (qos == QosClass::kGuaranteed && limit.value > 0)) return now.cpu_request;
  return limit.value > 0 ? std::min(known, std::max(limit, now.cpu_request)) : known;
}

// Takes a reported number that differs from the expected one. A number that is missing or 0 was not
// reported by the runtime.
void TakeReport(const CpuNumber& in_force, const CpuNumber& expected, bool same, CpuNumber& later) {
  if (in_force && *in_force != 0 && in_force != expected && !same) later = in_force;
}

CpuNumbers NumbersInForce(const SavedContainer& saved) {
  return NumbersInForce(saved.set_later, saved.placement, saved.requested);
}

bool IsExactlyAsSaved(const ReportOfSaved& report) {
  return TellsCpuInForce(report.saved, report.in_force) &&
         QuotaOrNone(NumbersInForce(report.saved).quota) == QuotaOrNone(report.in_force.cpu_quota);
}

// Whether the numbers in force, which differ from the saved ones, certainly do not come from the
// saved update that was under way: then another program set them, or a later update that is not on
// the disk. ADR 3 names the cases that cannot be distinguished.
bool CannotHaveArrived(const ReportOfSaved& report) {
  if (report.others_set) return false;
  const SavedContainer& saved = report.saved;
  const LinuxResources& asked = saved.asked->requested;
  const CpuNumber& before = saved.requested.cpu_shares;
  const bool decided = saved.set_later.cpu_shares || saved.placement.cpu_shares;
  if (!decided && asked.cpu_shares) {
    if (!IsSameByWeight(*asked.cpu_shares, report.in_force.cpu_shares)) return true;
    if (before && !IsSameByWeight(*before, asked.cpu_shares)) return false;
  }
  // A quota in force that is neither the saved nor the requested one comes from another update,
  // since policies only lift quotas or leave them alone.
  const int64_t now = QuotaOrNone(report.in_force.cpu_quota);
  return now != QuotaOrNone(std::nullopt) && now != QuotaOrNone(NumbersInForce(saved).quota) &&
         now != QuotaOrNone(asked.cpu_quota);
}

// Whether the quota in force is the client's although it is not in the known request: a container
// that was found without saved data while its policy lifted the quota has no quota in its request.
// The client's quota equals the known request or limit.
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

Bytes MemoryCapacity(const Machine& machine) {
  Bytes memory;
  for (const NumaNode& node : machine.nodes())
    memory = memory + node.memory;
  return memory;
}

Requirements ReportedNeeds(const Pod& pod, const RuntimeContainer& reported,
                           Bytes memory_capacity) {
  Requirements needs =
      ResolveRequirements(reported.resources, pod, memory_capacity, reported.name).requirements;
  if (!reported.resources.cpu_shares || needs.cpu_of_pod) return needs;
  const Requirements now = EstimateRequirements(reported.resources, pod.qos, memory_capacity);
  // The needs in the annotation are more exact than shares, and hold if the shares fit them.
  const bool as_told = SharesFromMilliCpu(needs.cpu_request) == *reported.resources.cpu_shares;
  const MilliCpu told = needs.cpu_request;
  if (!as_told || !SharesTell(told)) {
    needs.cpu_request = RequestNow(told, now, reported.resources, pod.qos);
  }
  const bool same = as_told && needs.cpu_request == told;
  if (!same || pod.qos != QosClass::kGuaranteed) needs.cpu_limit = now.cpu_limit;
  if (pod.qos != QosClass::kGuaranteed) return needs;
  const MilliCpu quota = CpuLimitOf(reported.resources);
  // Smaller differences come from the rounding of small requests.
  if (quota.value - needs.cpu_request.value >= kMilliPerCpu) {
    needs.cpu_request = needs.cpu_limit = quota;
  }
  return needs;
}

LinuxResources ReportedRequest(const RuntimeContainer& reported, const Requirements& needs) {
  LinuxResources requested = reported.resources;
  if (requested.cpu_shares && MilliCpuFromShares(*requested.cpu_shares) < needs.cpu_request) {
    requested.cpu_shares = SharesFromMilliCpu(needs.cpu_request);
  }
  return requested;
}

void TakeCpuInForce(const RuntimeContainer& reported, const Requirements& in_force,
                    Container& container) {
  Requirements& needs = container.requirements;
  // The share of a container without a request of its own stays until its pod is divided.
  if (!needs.cpu_of_pod) needs.cpu_request = in_force.cpu_request;
  needs.cpu_limit = needs.cpu_of_pod ? CpuLimitOf(reported.resources) : in_force.cpu_limit;
  needs.cpu_of_pod = needs.cpu_of_pod || in_force.cpu_of_pod;
  CopyCpuNumbers(ReportedRequest(reported, in_force), container.requested);
}

bool IsSameByWeight(int64_t shares, const std::optional<int64_t>& reported) {
  return reported == shares || reported == ByWayOfWeight(shares);
}

bool TellsCpuInForce(const SavedContainer& saved, const LinuxResources& in_force) {
  const int64_t now = in_force.cpu_shares.value_or(0);
  if (now == 0) return true;
  const CpuNumbers known = NumbersInForce(saved);
  if (!known.shares) return false;
  if (now == *known.shares && now < kMaxShares) return true;
  // Shares may differ by rounding, and at their upper limit they do not show the request: then the
  // quotas are compared, too.
  return IsSameByWeight(*known.shares, now) &&
         QuotaOrNone(known.quota) == QuotaOrNone(in_force.cpu_quota);
}

Requirements NeedsAfter(Requirements needs, const LinuxResources& before,
                        const LinuxResources& after, QosClass qos, Bytes memory_capacity) {
  const Requirements now = EstimateRequirements(after, qos, memory_capacity);
  if (!SameCpuNumbers(before, after)) {
    needs.cpu_limit = now.cpu_limit;
    if (needs.cpu_of_pod) {
      needs.cpu_limit = CpuLimitOf(after);
    } else {
      needs.cpu_request = RequestNow(needs.cpu_request, now, after, qos);
      if (qos == QosClass::kGuaranteed) {
        needs.cpu_limit = std::max(needs.cpu_limit, needs.cpu_request);
      }
    }
  }
  if (before.memory_limit != after.memory_limit || before.oom_score_adj != after.oom_score_adj) {
    needs.memory_limit = now.memory_limit;
    if (!needs.memory_of_pod) {
      needs.memory_request = now.memory_request;
      needs.memory_estimated = now.memory_estimated;
    }
  }
  return needs;
}

void TakeSent(const ResourceValues& sent, const ResourceValues& ours, NumbersSetLater& later) {
  const auto take = [](const CpuNumber& sent_one, const CpuNumber& our_one, CpuNumber& later_one) {
    if (sent_one && sent_one != our_one) {
      later_one = sent_one;
    } else if (sent_one || our_one) {
      later_one.reset();
    }
  };
  ForEachCpuNumber(take, sent, ours, later);
}

void TakeFirstReport(const LinuxResources& in_force, const ResourceValues& placed,
                     Container& container) {
  NumbersSetLater& later = container.set_later;
  const CpuNumbers sent = NumbersInForce(later, placed, container.requested);
  TakeReport(in_force.cpu_shares, sent.shares,
             sent.shares && IsSameByWeight(*sent.shares, in_force.cpu_shares), later.cpu_shares);
  TakeReport(in_force.cpu_quota, sent.quota,
             QuotaOrNone(sent.quota) == QuotaOrNone(in_force.cpu_quota), later.cpu_quota);
  TakeReport(in_force.cpu_period, sent.period, !sent.period, later.cpu_period);
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
  // A request above the limit cannot come from a client, so these numbers show no update.
  const MilliCpu limit = CpuLimitOf(report.in_force);
  if (limit.value > 0 && limit < now) return true;
  // The CPUs show an update only if the container has as many as it needs now, alone: other
  // differences may come from a move that had not ended.
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
  // There is no sign that stages or plugins set numbers, so an update has arrived that was not
  // saved.
  if (!report.others_set) return NumbersNews::kUpdated;
  // Kubelets never resize BestEffort pods.
  if (report.qos == QosClass::kBestEffort) return NumbersNews::kPlugins;
  const bool first_report = !saved.set_later.reported || report.called;
  return first_report && IsPlacedAsSaved(report) ? NumbersNews::kPlugins : NumbersNews::kUpdated;
}

LinuxResources WithoutSetLater(const SavedContainer& saved, LinuxResources in_force) {
  const auto put_back = [](CpuNumber& now, const CpuNumber& set, const CpuNumber& placed,
                           const CpuNumber& requested) {
    if (set && set == now) now = placed ? placed : requested;
  };
  ForEachCpuNumber(put_back, in_force, saved.set_later, saved.placement, saved.requested);
  return in_force;
}

AskedTexts TextsBefore(const Adjustment& sent, const StringMap& labels,
                       const StringMap& annotations) {
  const WideAdjustment* const wide = sent.wide();
  if (wide == nullptr) return {};
  const auto all = [](std::string_view) { return true; };
  return {.labels = TextsBefore(wide->labels, labels, all),
          .annotations = TextsBefore(wide->annotations, annotations, IsForDecisions)};
}

}  // namespace resmgr
