// SPDX-License-Identifier: Apache-2.0
#include "pkg/audit/comparison.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include <fmt/format.h>

namespace resmgr {
namespace {

using Drifts = std::vector<Drift>;

constexpr int64_t kLeastShares = 2;
constexpr int64_t kMostShares = 262'144;

// Adds a drift if the actual set is missing or differs from the decided one.
template <typename Set>
void CompareSet(Drift::Where where, std::string_view value, const std::optional<Set>& decided,
                const std::optional<Set>& actual, Drifts& drifts, std::string_view why = "") {
  if (!decided || decided == actual) return;
  drifts.push_back({.where = where,
                    .value = std::string(value),
                    .decided = decided->ToString(),
                    .actual = actual ? actual->ToString() : "",
                    .why = std::string(why)});
}

void CompareSets(const ResourceValues& decided, const CgroupValues& actual, Drifts& drifts) {
  const std::string& none = actual.why_no_cpuset;
  const auto where = none.empty() ? Drift::Where::kCgroup : Drift::Where::kHierarchy;
  CompareSet(where, "cpuset.cpus", decided.cpus, actual.set.cpus, drifts, none);
  CompareSet(where, "cpuset.mems", decided.mems, actual.set.mems, drifts, none);
  // Compares effective sets only if the written ones are as decided: otherwise they add nothing.
  const auto left = Drift::Where::kEffective;
  if (actual.effective_cpus && actual.set.cpus == decided.cpus) {
    CompareSet(left, "cpuset.cpus.effective", decided.cpus, actual.effective_cpus, drifts,
               actual.why_fewer_cpus);
  }
  if (actual.effective_mems && actual.set.mems == decided.mems) {
    CompareSet(left, "cpuset.mems.effective", decided.mems, actual.effective_mems, drifts,
               actual.why_fewer_mems);
  }
}

void CompareNumber(Drift::Where where, std::string_view value, std::optional<int64_t> decided,
                   std::optional<int64_t> actual, Drifts& drifts) {
  if (!decided || !actual || decided == actual) return;
  drifts.push_back({.where = where,
                    .value = std::string(value),
                    .decided = fmt::format("{}", *decided),
                    .actual = fmt::format("{}", *actual)});
}

std::optional<int64_t> KernelShares(std::optional<int64_t> shares) {
  if (!shares) return shares;
  return std::clamp(*shares, kLeastShares, kMostShares);
}

// Quotas of 0 and below all mean no limit; returns -1 for them.
std::optional<int64_t> Quota(std::optional<int64_t> quota) {
  if (quota && *quota <= 0) return -1;
  return quota;
}

// Whether a runtime may have written these shares as this cpu.weight: in proportion, as the OCI
// runtime specification has it, or, since runc 1.3.2 and crun 1.23, so that the default of 1024
// becomes the default of 100.
bool IsWeightOf(int64_t weight, int64_t shares) {
  const int64_t known = *KernelShares(shares);
  if (weight == 1 + (known - 2) * 9'999 / 262'142) return true;
  const double log = std::log2(static_cast<double>(known));
  const double exponent = (log * log + 125 * log) / 612.0 - 7.0 / 34.0;
  return weight == static_cast<int64_t>(std::ceil(std::pow(10, exponent)));
}

void CompareShares(const ResourceValues& decided, const CgroupValues& actual, Drifts& drifts) {
  if (!actual.cpu_weight) {
    CompareNumber(Drift::Where::kCgroup, "cpu.shares", KernelShares(decided.cpu_shares),
                  actual.set.cpu_shares, drifts);
    return;
  }
  if (!decided.cpu_shares || IsWeightOf(*actual.cpu_weight, *decided.cpu_shares)) return;
  drifts.push_back(
      {.where = Drift::Where::kCgroup,
       .value = "cpu.weight",
       .decided = fmt::format("that of {} shares", *decided.cpu_shares),
       .actual = fmt::format("{}", *actual.cpu_weight),
       .why = actual.idle ? "cpu.idle is 1, so the kernel takes no weight: set it to 0" : ""});
}

// Reports a container that runs on fewer CPUs than decided because it inherited the affinity of the
// process that started it (the runtime's shim or conmon). A program may also choose fewer of its
// CPUs itself, so only exactly the CPUs of that process count.
void CompareAffinity(const ResourceValues& decided, const CgroupValues& actual, Drifts& drifts) {
  if (!decided.cpus || !actual.process_cpus || !actual.parent_cpus) return;
  const CpuSet& left = actual.effective_cpus ? *actual.effective_cpus : *decided.cpus;
  if (actual.set.cpus != decided.cpus || *actual.process_cpus == left) return;
  if ((*actual.parent_cpus & left) != *actual.process_cpus) return;
  drifts.push_back({.where = Drift::Where::kAffinity,
                    .value = "cpu affinity",
                    .decided = decided.cpus->ToString(),
                    .actual = actual.process_cpus->ToString()});
}

// The text of the difference, without its cause.
std::string WithoutCause(const Drift& drift, std::string_view actual) {
  switch (drift.where) {
    case Drift::Where::kCgroup:
      return fmt::format("{} is {} in its cgroup, not {}", drift.value, actual, drift.decided);
    case Drift::Where::kEffective:
      return fmt::format("{} is {}, not {}", drift.value, actual, drift.decided);
    case Drift::Where::kRuntime:
      return fmt::format("{} is {} at the runtime, not {}", drift.value, actual, drift.decided);
    case Drift::Where::kAffinity:
      return fmt::format(
          "{} of its processes is {}: they inherited it from the runtime, whose CPUAffinity leaves "
          "no more of {}",
          drift.value, actual, drift.decided);
    case Drift::Where::kHierarchy:
      return fmt::format("{} cannot be {}", drift.value, drift.decided);
  }
  return "";
}

}  // namespace

std::string_view ToString(Drift::Where where) {
  switch (where) {
    case Drift::Where::kCgroup:
      return "cgroup";
    case Drift::Where::kEffective:
      return "effective";
    case Drift::Where::kRuntime:
      return "runtime";
    case Drift::Where::kAffinity:
      return "affinity";
    case Drift::Where::kHierarchy:
      return "hierarchy";
  }
  return "";
}

bool CanBeMended(const Drift& drift) {
  const bool sent = drift.where == Drift::Where::kCgroup || drift.where == Drift::Where::kRuntime;
  return sent && drift.why.empty();
}

// Effective CPUs may be others than the decided ones: on cgroup v2, a set without any effective CPU
// restricts nothing.
bool HasOthers(const Drift& drift) {
  const auto decided = CpuSet::Parse(drift.decided);
  const auto actual = CpuSet::Parse(drift.actual);
  return decided.ok() && actual.ok() && !actual->IsSubsetOf(*decided);
}

std::string Describe(const Drift& drift) {
  std::string text = WithoutCause(drift, drift.actual.empty() ? "not set" : drift.actual);
  if (drift.where == Drift::Where::kEffective) {
    if (HasOthers(drift))
      text += ", because none of these is left and the kernel gives it all of the cgroup above";
    if (drift.why.empty()) text += ": a cgroup above leaves no more";
  }
  return drift.why.empty() ? text : fmt::format("{}: {}", text, drift.why);
}

std::vector<Drift> CompareCgroup(const ResourceValues& decided, const CgroupValues& actual) {
  Drifts drifts;
  const auto where = Drift::Where::kCgroup;
  CompareSets(decided, actual, drifts);
  CompareAffinity(decided, actual, drifts);
  CompareShares(decided, actual, drifts);
  CompareNumber(where, "cpu quota", Quota(decided.cpu_quota), Quota(actual.set.cpu_quota), drifts);
  CompareNumber(where, "cpu period", decided.cpu_period, actual.set.cpu_period, drifts);
  return drifts;
}

std::vector<Drift> CompareReport(const ResourceValues& decided, const ResourceValues& reported) {
  Drifts drifts;
  const auto where = Drift::Where::kRuntime;
  if (reported.cpus) CompareSet(where, "cpuset.cpus", decided.cpus, reported.cpus, drifts);
  if (reported.mems) CompareSet(where, "cpuset.mems", decided.mems, reported.mems, drifts);
  CompareNumber(where, "cpu shares", KernelShares(decided.cpu_shares),
                KernelShares(reported.cpu_shares), drifts);
  CompareNumber(where, "cpu quota", Quota(decided.cpu_quota), Quota(reported.cpu_quota), drifts);
  CompareNumber(where, "cpu period", decided.cpu_period, reported.cpu_period, drifts);
  return drifts;
}

}  // namespace resmgr
