// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/config/config_section.h"

namespace resmgr {

// A clock rate as a class names it.
struct ClockRate {
  enum class Kind {
    kLeave,  // leaves the rate unchanged
    kKilohertz,
    kPercent,  // of the range between the CPU's least and highest rate
    kMin,      // the CPU's least rate
    kBase,     // its nominal rate
    kTurbo,    // its highest rate, or the nominal one while a class of a higher priority is in use
  };
  Kind kind = Kind::kLeave;
  int64_t value = 0;  // of kKilohertz and kPercent

  friend bool operator==(const ClockRate&, const ClockRate&) = default;
};

// How CPUs run: clock, energy, idle states (docs/classes.md). The keys are those of nri-plugins.
struct CpuClassConfig {
  enum class Boost { kLeave, kOn, kOff };

  std::string name{};
  ClockRate min_freq{};
  ClockRate max_freq{};
  ClockRate uncore_min_freq{};
  ClockRate uncore_max_freq{};
  std::string energy{};    // energy_performance_preference: a word or a number; "": unchanged
  std::string governor{};  // "": unchanged
  Boost boost = Boost::kLeave;
  std::vector<std::string> disabled_cstates{};  // names of idle states
  std::optional<int64_t> max_latency_us{};      // idle states that take longer are disabled
  int64_t turbo_priority = 0;

  friend bool operator==(const CpuClassConfig&, const CpuClassConfig&) = default;
};

// The classes of CPUs.
struct CpuClassesConfig {
  // The part of the machine in which `turbo` counts only for the class of the highest priority.
  enum class TurboDomain { kPackage, kSystem };

  std::vector<CpuClassConfig> classes{};
  TurboDomain turbo_domain = TurboDomain::kPackage;

  const CpuClassConfig* Find(std::string_view name) const;  // nullptr if there is none
  bool any() const { return !classes.empty(); }
  friend bool operator==(const CpuClassesConfig&, const CpuClassesConfig&) = default;
};

// The keys `cpu` and `turboDomain` of the module `classes`.
void DescribeCpuClasses(ConfigSection& classes, CpuClassesConfig& config);
// Adds the classes of a policy's section; each replaces a class of the same name.
void AddPolicyCpuClasses(const CpuClassesConfig& policys, CpuClassesConfig& config);

// "3.2GHz", "2900 MHz", "2900000kHz", "2900000", "min", "base", "turbo", "75%"; in any case. Empty
// and 0 leave the rate unchanged. InvalidArgument: the text has another form.
StatusOr<ClockRate> ParseClockRate(std::string_view text);
// The text of a rate; nullopt if it is left unchanged.
std::optional<std::string> TextOf(const ClockRate& rate);

}  // namespace resmgr
