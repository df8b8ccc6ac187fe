// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/classes/host_keeper.h"
#include "pkg/config/cpu_classes_config.h"
#include "pkg/topology/cpu_set.h"

namespace resmgr {

// Paths of HostFiles: "sys/devices/system/cpu/cpu3/cpufreq/scaling_governor".
std::string CpuFile(int cpu, std::string_view file);
inline constexpr std::string_view kGovernorFile = "cpufreq/scaling_governor";
inline constexpr std::string_view kGovernorsFile = "cpufreq/scaling_available_governors";
inline constexpr std::string_view kLatencyFile = "power/pm_qos_resume_latency_us";

// A clock of the parts that the CPUs of a package or a die share, beside the CPUs' own clocks.
struct UncoreClock {
  std::string directory{};
  int package = 0;
  std::optional<int> die{};  // nullopt: all of the package
};

struct IdleState {
  std::string directory{};
  std::string name{};
  int64_t latency_us = 0;
};

// Reads the clocks and idle states of CPUs from the kernel (Documentation/admin-guide/pm). Each
// file is read once. May block. Thread-compatible.
class CpuMachine {
 public:
  explicit CpuMachine(HostKeeper& host) : host_(host) {}

  int PackageOf(int cpu);
  int DieOf(int cpu);
  // The CPUs that share this CPU's clock, itself included.
  CpuSet ClockOf(int cpu);
  // The rate in kHz, within the CPU's range; `turbo`: the highest rate is allowed.
  // nullopt: the class leaves the rate as it is, or the CPU reports no range.
  std::optional<int64_t> RateOf(const ClockRate& rate, int cpu, bool turbo);
  // The rate of a clock that several CPUs share; nullopt as above.
  std::optional<int64_t> RateOf(const ClockRate& rate, const UncoreClock& clock);
  // If a package has clocks of both forms, only the more exact ones ("uncoreNN").
  const std::vector<UncoreClock>& UncoreClocks();
  std::vector<IdleState> IdleStatesOf(int cpu);
  // The number in a file that this daemon may have written: before its first write, and now.
  std::optional<int64_t> FirstNumber(const std::string& path);
  std::optional<int64_t> NumberNow(const std::string& path);
  // NotFound: this CPU's file lists words, without this one. `what` names it in the message.
  Status CheckListed(int cpu, std::string_view file, std::string_view what, std::string_view word);
  // ReadText and ReadWords.
  std::string TextNow(const std::string& path) { return ReadText(host_.files(), path); }
  std::vector<std::string> WordsOf(const std::string& path) {
    return ReadWords(host_.files(), path);
  }

 private:
  struct Range {
    int64_t min = 0;
    int64_t max = 0;
    int64_t base = 0;
  };
  static int64_t Clamped(const ClockRate& rate, const Range& range, bool turbo);
  std::optional<Range> RangeOf(int cpu);

  HostKeeper& host_;
  std::map<int, std::optional<Range>> ranges_;
  std::optional<std::vector<UncoreClock>> uncore_;
};

}  // namespace resmgr
