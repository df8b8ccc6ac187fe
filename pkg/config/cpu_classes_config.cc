// SPDX-License-Identifier: Apache-2.0
#include "pkg/config/cpu_classes_config.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <system_error>
#include <utility>

#include "pkg/base/parse.h"
#include "pkg/config/classes_config.h"
#include "pkg/config/known_words.h"

namespace resmgr {
namespace {

constexpr size_t kMostClasses = 64;
constexpr size_t kMostIdleStates = 32;
constexpr int64_t kMostPriority = 1'000'000;
constexpr int64_t kMostLatencyUs = 1'000'000;
constexpr double kMostKilohertz = 1e9;

struct RateUnit {
  std::string_view text;
  double kilohertz;
};
// A unit must precede the units with which it ends.
constexpr std::array kRateUnits = {RateUnit{"ghz", 1e6}, RateUnit{"mhz", 1e3}, RateUnit{"khz", 1},
                                   RateUnit{"g", 1e6},   RateUnit{"m", 1e3},   RateUnit{"k", 1}};

std::optional<double> NumberOf(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return std::isfinite(number) ? std::optional(number) : std::nullopt;
}

// Checks that the text is a word of the kernel's list, or a number.
Status CheckEnergy(std::string_view text) {
  const std::optional<int64_t> number = ParseInt(text);
  if (number && *number >= 0 && *number <= 255) return OkStatus();
  const bool word =
      std::ranges::all_of(text, [](char c) { return (c >= 'a' && c <= 'z') || c == '_'; });
  if (!number && word && text.size() <= 32) return OkStatus();
  return InvalidArgument("\"{}\" is no word such as balance_power, and no number from 0 to 255",
                         Printable(text, 64));
}

void DescribeRate(ConfigSection& section, std::string_view key, ClockRate& rate,
                  std::string_view help) {
  section.Parse(key, TextOf(rate), rate, ParseClockRate, help).Default("none");
}

StatusOr<int64_t> ParseLatency(std::string_view text) {
  const std::optional<int64_t> latency = ParseInt(text);
  if (latency && *latency >= 0 && *latency <= kMostLatencyUs) return *latency;
  return InvalidArgument("\"{}\" is not a number of microseconds from 0 to {}", Printable(text, 64),
                         kMostLatencyUs);
}

void DescribeLatency(ConfigSection& section, std::string_view key, CpuClassConfig& item,
                     std::string_view help) {
  section.Parse(key, ShownValue(item.max_latency_us), item.max_latency_us, ParseLatency, help)
      .Default("none");
}

// In these profiles a number without a unit is in MHz.
StatusOr<ClockRate> ParseProfileRate(std::string_view text) {
  if (NumberOf(Trim(text)) && Trim(text) != "0") return ParseClockRate(fmt::format("{}MHz", text));
  return ParseClockRate(text);
}

void DescribeProfile(ConfigSection& section, CpuClassConfig& item) {
  section.Map("pstates", [&item](ConfigSection& states) {
    const auto rate = [&states](std::string_view key, ClockRate& target) {
      states
          .Parse(key, std::nullopt, target, ParseProfileRate,
                 "the same as `minFreq` and `maxFreq`; a plain number is in MHz")
          .Default("none");
    };
    rate("min", item.min_freq);
    rate("max", item.max_freq);
    std::string epp;
    states.Text("epp", epp, "the same as `energyPerformancePreference`", CheckEnergy)
        .Default("none");
    if (!epp.empty()) item.energy = epp;
    std::string governor;
    states.Text("governor", governor, "the same as `freqGovernor`", CheckGovernor).Default("none");
    if (!governor.empty()) item.governor = governor;
  });
  section.Map("cstates", [&item](ConfigSection& states) {
    DescribeLatency(states, "maxLatencyUs", item, "the same as `maxLatencyUs`");
    states
        .Value(
            "names", std::nullopt,
            [&item](const ConfigNode& value, const std::string&) -> Status {
              if (value.kind != ConfigNode::Kind::kMap && value.kind != ConfigNode::Kind::kNull)
                return InvalidArgument("must be a map of names to true or false");
              for (const ConfigNode::Entry& entry : value.entries) {
                const std::optional<bool> enabled = ParseBool(entry.value.text);
                if (!enabled) return InvalidArgument("{} is not true or false", entry.key);
                if (!*enabled) item.disabled_cstates.push_back(entry.key);
              }
              return OkStatus();
            },
            "idle states by their names; `false` disables one")
        .Default("none");
  });
}

// Whether the least rate is surely above the highest one. Words are in ascending order; different
// kinds of rates can only be compared on a machine.
bool IsAbove(const ClockRate& least, const ClockRate& highest) {
  using RateKind = ClockRate::Kind;
  if (least.kind == highest.kind) return least.value > highest.value;
  const bool words = least.kind >= RateKind::kMin && highest.kind >= RateKind::kMin;
  return words && least.kind > highest.kind;
}

void CheckRates(ConfigSection& section, std::string_view key, const ClockRate& least,
                const ClockRate& highest) {
  if (IsAbove(least, highest))
    section.Fail(key,
                 fmt::format("{} is above the highest rate, {}", *TextOf(least), *TextOf(highest)));
}

void DescribeCpuClass(ConfigSection& section, CpuClassConfig& item) {
  using Boost = CpuClassConfig::Boost;
  section.Text("name", item.name, "what annotations, balloon types and pools name", CheckClassName)
      .Default("none");
  DescribeRate(
      section, "minFreq", item.min_freq,
      "the least clock: `1.2GHz`, `1200MHz`, `1200000` (kHz), `min`, `base`, `turbo`, or a "
      "percentage of the CPU's range");
  DescribeRate(section, "maxFreq", item.max_freq, "the highest clock, likewise");
  DescribeRate(section, "uncoreMinFreq", item.uncore_min_freq,
               "the least clock of what the CPUs of a die have in common");
  DescribeRate(section, "uncoreMaxFreq", item.uncore_max_freq, "the highest one");
  section
      .Text("energyPerformancePreference", item.energy,
            "a word of the kernel's list, as `balance_power`, or a number from 0 (performance) to "
            "255",
            CheckEnergy)
      .Default("none");
  section.Text("freqGovernor", item.governor, "the clock governor", CheckGovernor).Default("none");
  section.Choice("boost", {{"leave", Boost::kLeave}, {"on", Boost::kOn}, {"off", Boost::kOff}},
                 item.boost,
                 "whether the CPUs may run faster than their nominal clock; where the machine has "
                 "one switch for all, the class has it only if no other one wants the contrary");
  section.List("disabledCstates", item.disabled_cstates, "names of idle states");
  if (item.disabled_cstates.size() > kMostIdleStates)
    section.Fail("disabledCstates", fmt::format("has more than {} names", kMostIdleStates));
  DescribeLatency(section, "maxLatencyUs", item,
                  "microseconds: idle states that take longer to wake up from are disabled");
  section.Int("turboPriority", 0, kMostPriority, item.turbo_priority,
              "of the classes in use, only those with the highest one have the clock `turbo`; the "
              "others have `base` meanwhile");
  DescribeProfile(section, item);
  CheckRates(section, "minFreq", item.min_freq, item.max_freq);
  CheckRates(section, "uncoreMinFreq", item.uncore_min_freq, item.uncore_max_freq);
  for (const std::string_view key :
       {"pctPriority", "sstClosID", "pctMinFreq", "pctMaxFreq", "publishExtendedResource"})
    section.Refuse(key, "is not supported: Speed Select is left alone; remove it");
}

}  // namespace

StatusOr<ClockRate> ParseClockRate(std::string_view text) {
  using RateKind = ClockRate::Kind;
  const std::string lower = ToLower(Trim(text));
  if (lower.empty()) return ClockRate();
  if (lower == "min") return ClockRate{RateKind::kMin};
  if (lower == "base") return ClockRate{RateKind::kBase};
  if (lower == "turbo") return ClockRate{RateKind::kTurbo};
  const auto wrong = [text] {
    return InvalidArgument(
        "\"{}\" is no clock rate such as 3.2GHz, 2900MHz, 2900000, min, base, turbo, 75%",
        Printable(text, 64));
  };
  std::string_view number = lower;
  double unit = 1;
  if (number.ends_with('%')) {
    number.remove_suffix(1);
    const std::optional<double> percent = NumberOf(Trim(number));
    if (!percent || *percent < 0 || *percent > 100) return wrong();
    return ClockRate{RateKind::kPercent, std::llround(*percent)};
  }
  for (const RateUnit& one : kRateUnits) {
    if (!number.ends_with(one.text)) continue;
    number.remove_suffix(one.text.size());
    unit = one.kilohertz;
    break;
  }
  const std::optional<double> value = NumberOf(Trim(number));
  if (!value || *value < 0) return wrong();
  if (*value == 0) return ClockRate();
  const double kilohertz = *value * unit;
  if (kilohertz < 1 || kilohertz > kMostKilohertz) return wrong();
  return ClockRate{RateKind::kKilohertz, std::llround(kilohertz)};
}

std::optional<std::string> TextOf(const ClockRate& rate) {
  using RateKind = ClockRate::Kind;
  switch (rate.kind) {
    case RateKind::kLeave:
      return std::nullopt;
    case RateKind::kKilohertz:
      return fmt::format("{}kHz", rate.value);
    case RateKind::kPercent:
      return fmt::format("{}%", rate.value);
    case RateKind::kMin:
      return "min";
    case RateKind::kBase:
      return "base";
    case RateKind::kTurbo:
      return "turbo";
  }
  return std::nullopt;
}

const CpuClassConfig* CpuClassesConfig::Find(std::string_view name) const {
  const auto found = std::ranges::find(classes, name, &CpuClassConfig::name);
  return found == classes.end() ? nullptr : &*found;
}

void DescribeCpuClasses(ConfigSection& section, CpuClassesConfig& config) {
  constexpr std::string_view kKey = "cpu";
  using Domain = CpuClassesConfig::TurboDomain;
  section.Items<CpuClassConfig>(kKey, config.classes, CpuClassConfig(), DescribeCpuClass,
                                "the classes of CPUs");
  section.Choice("turboDomain", {{"package", Domain::kPackage}, {"system", Domain::kSystem}},
                 config.turbo_domain,
                 "where the class with the highest `turboPriority` has `turbo` alone: in each "
                 "`package`, or in the `system`");
  const ConfigNode* const node = section.Node(kKey);
  if (node == nullptr) return;
  if (config.classes.size() > kMostClasses)
    section.Fail(*node, kKey, fmt::format("has more than {} classes", kMostClasses));
  CheckClassNames(section, kKey, config.classes);
}

void AddPolicyCpuClasses(const CpuClassesConfig& policys, CpuClassesConfig& config) {
  for (const CpuClassConfig& one : policys.classes) {
    std::erase_if(config.classes,
                  [&one](const CpuClassConfig& known) { return known.name == one.name; });
    config.classes.push_back(one);
  }
  if (policys.turbo_domain != CpuClassesConfig().turbo_domain)
    config.turbo_domain = policys.turbo_domain;
}

}  // namespace resmgr
