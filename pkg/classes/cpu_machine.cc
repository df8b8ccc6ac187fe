// SPDX-License-Identifier: Apache-2.0
#include "pkg/classes/cpu_machine.h"

#include <algorithm>
#include <set>

#include "pkg/base/parse.h"

namespace resmgr {
namespace {

constexpr const char* kUncore = "sys/devices/system/cpu/intel_uncore_frequency";
constexpr int64_t kMegahertz = 1000;
constexpr int64_t kWholeRate = 100;

// "package_01_die_00" to 1 and 0.
std::optional<UncoreClock> ReadUncoreName(std::string_view name) {
  const std::vector<std::string_view> words = Split(name, '_');
  if (words.size() != 4 || words[0] != "package" || words[2] != "die") return std::nullopt;
  const std::optional<int64_t> package = ParseInt(words[1]);
  const std::optional<int64_t> die = ParseInt(words[3]);
  if (!package || !die) return std::nullopt;
  return UncoreClock{.directory = fmt::format("{}/{}", kUncore, name),
                     .package = static_cast<int>(*package),
                     .die = static_cast<int>(*die)};
}

}  // namespace

std::string CpuFile(int cpu, std::string_view file) {
  return fmt::format("sys/devices/system/cpu/cpu{}/{}", cpu, file);
}

std::optional<int64_t> CpuMachine::FirstNumber(const std::string& path) {
  const StatusOr<std::string> text = host_.ReadFirst(path);
  return text.ok() ? ParseInt(Trim(*text)) : std::nullopt;
}

std::optional<int64_t> CpuMachine::NumberNow(const std::string& path) {
  return ParseInt(TextNow(path));
}

Status CpuMachine::CheckListed(int cpu, std::string_view file, std::string_view what,
                               std::string_view word) {
  const std::vector<std::string> known = WordsOf(CpuFile(cpu, file));
  if (known.empty() || std::ranges::find(known, word) != known.end()) return OkStatus();
  return NotFound("CPU {} has no {} {}: it has {}", cpu, what, word,
                  Printable(fmt::format("{}", fmt::join(known, " ")), 256));
}

int CpuMachine::PackageOf(int cpu) {
  return static_cast<int>(NumberNow(CpuFile(cpu, "topology/physical_package_id")).value_or(0));
}

int CpuMachine::DieOf(int cpu) {
  return static_cast<int>(NumberNow(CpuFile(cpu, "topology/die_id")).value_or(0));
}

CpuSet CpuMachine::ClockOf(int cpu) {
  CpuSet cpus = {cpu};
  for (const std::string& word : WordsOf(CpuFile(cpu, "cpufreq/related_cpus")))
    if (const std::optional<int> other = ParseId(word, CpuSet::kMaxId)) cpus.Add(*other);
  return cpus;
}

std::optional<CpuMachine::Range> CpuMachine::RangeOf(int cpu) {
  const auto known = ranges_.find(cpu);
  if (known != ranges_.end()) return known->second;
  std::optional<Range>& range = ranges_[cpu];
  const auto min = NumberNow(CpuFile(cpu, "cpufreq/cpuinfo_min_freq"));
  const auto max = NumberNow(CpuFile(cpu, "cpufreq/cpuinfo_max_freq"));
  if (!min || !max || *min > *max) return range;
  std::optional<int64_t> base = NumberNow(CpuFile(cpu, "cpufreq/base_frequency"));
  if (!base) {
    base = NumberNow(CpuFile(cpu, "acpi_cppc/nominal_freq"));
    if (base) *base *= kMegahertz;
  }
  range = Range{*min, *max, std::clamp(base.value_or(*max), *min, *max)};
  return range;
}

int64_t CpuMachine::Clamped(const ClockRate& rate, const Range& range, bool turbo) {
  switch (rate.kind) {
    case ClockRate::Kind::kLeave:
      break;
    case ClockRate::Kind::kKilohertz:
      return std::clamp(rate.value, range.min, range.max);
    case ClockRate::Kind::kPercent:
      return range.min + (range.max - range.min) * rate.value / kWholeRate;
    case ClockRate::Kind::kMin:
      return range.min;
    case ClockRate::Kind::kBase:
      return range.base;
    case ClockRate::Kind::kTurbo:
      return turbo ? range.max : range.base;
  }
  return range.max;
}

std::optional<int64_t> CpuMachine::RateOf(const ClockRate& rate, int cpu, bool turbo) {
  if (rate.kind == ClockRate::Kind::kLeave) return std::nullopt;
  const std::optional<Range> range = RangeOf(cpu);
  if (!range) return std::nullopt;
  return Clamped(rate, *range, turbo);
}

std::optional<int64_t> CpuMachine::RateOf(const ClockRate& rate, const UncoreClock& clock) {
  if (rate.kind == ClockRate::Kind::kLeave) return std::nullopt;
  const auto min = NumberNow(clock.directory + "/initial_min_freq_khz");
  const auto max = NumberNow(clock.directory + "/initial_max_freq_khz");
  if (!min || !max || *min > *max) return std::nullopt;
  return Clamped(rate, {*min, *max, *max}, true);
}

const std::vector<UncoreClock>& CpuMachine::UncoreClocks() {
  if (uncore_) return *uncore_;
  std::vector<UncoreClock>& clocks = uncore_.emplace();
  std::set<int> exact;
  for (const std::string& name : host_.files().List(kUncore)) {
    if (!name.starts_with("uncore")) continue;
    const std::string directory = fmt::format("{}/{}", kUncore, name);
    const std::optional<int64_t> package = NumberNow(directory + "/package_id");
    if (!package) continue;
    clocks.push_back({.directory = directory, .package = static_cast<int>(*package)});
    exact.insert(clocks.back().package);
  }
  for (const std::string& name : host_.files().List(kUncore)) {
    std::optional<UncoreClock> clock = ReadUncoreName(name);
    if (clock && !exact.contains(clock->package)) clocks.push_back(*std::move(clock));
  }
  return clocks;
}

std::vector<IdleState> CpuMachine::IdleStatesOf(int cpu) {
  std::vector<IdleState> states;
  const std::string all = CpuFile(cpu, "cpuidle");
  for (const std::string& name : host_.files().List(all)) {
    if (!name.starts_with("state")) continue;
    const std::string directory = fmt::format("{}/{}", all, name);
    states.push_back({.directory = directory,
                      .name = TextNow(directory + "/name"),
                      .latency_us = NumberNow(directory + "/latency").value_or(0)});
  }
  return states;
}

}  // namespace resmgr
