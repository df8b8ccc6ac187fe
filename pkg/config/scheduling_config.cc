// SPDX-License-Identifier: Apache-2.0
#include "pkg/config/scheduling_config.h"

#include <algorithm>
#include <array>
#include <utility>

#include "pkg/base/parse.h"
#include "pkg/config/known_words.h"

namespace resmgr {
namespace {

using SchedPolicy = SchedulerSettings::Policy;
using SchedFlag = SchedulerSettings::Flag;
using IoClass = IoPriority::Class;

// Linux: kernel/sched/deadline.c refuses less than 1 << 10 nanoseconds, and sched_rt_runtime_us
// leaves 5 % of the time to others.
constexpr uint64_t kLeastRuntime = 1024;
constexpr uint64_t kMostPercent = 95;
constexpr int64_t kLowestIoPriority = 7;
constexpr uint64_t kMostNanoseconds = uint64_t{1} << 62;

constexpr std::array<std::pair<std::string_view, SchedFlag>, 7> kSchedFlags = {{
    {"reset-on-fork", SchedFlag::kResetOnFork},
    {"reclaim", SchedFlag::kReclaim},
    {"dl-overrun", SchedFlag::kDeadlineOverrun},
    {"keep-policy", SchedFlag::kKeepPolicy},
    {"keep-params", SchedFlag::kKeepParameters},
    {"util-clamp-min", SchedFlag::kUtilizationClampMin},
    {"util-clamp-max", SchedFlag::kUtilizationClampMax},
}};

void DescribeSchedFlags(ConfigSection& section, std::vector<SchedFlag>& flags) {
  std::vector<std::string> names;
  names.reserve(flags.size());
  for (const SchedFlag flag : flags)
    names.emplace_back(WordOf(flag, kSchedFlags));
  const auto as_it_is = [](std::string_view word) { return std::string(word); };
  DescribeFlags(section, std::move(names), kSchedFlags, +as_it_is, flags,
                "flags of `sched_setattr`, such as `reset-on-fork`");
}

void DescribeSchedTime(ConfigSection& section, std::string_view key, uint64_t& target,
                       std::string_view help) {
  section
      .Parse(key, target == 0 ? std::nullopt : std::optional(fmt::format("{}ns", target)), target,
             ParseNanoseconds, help)
      .Default("none");
}

void DescribeSchedNumber(ConfigSection& section, std::string_view key, int64_t min, int64_t max,
                         int32_t& target, std::string_view help) {
  int64_t number = target;
  section.Int(key, min, max, number, help);
  target = static_cast<int32_t>(number);
}

StatusOr<int64_t> BurstPercent(std::string_view text) {
  constexpr int64_t kMost = 1000;
  std::optional<int64_t> percent;
  if (text.ends_with('%')) percent = ParseInt(text.substr(0, text.size() - 1));
  if (percent && *percent >= 0 && *percent <= kMost) return *percent;
  return InvalidArgument("\"{}\" is not a part from 0% to {}%", Printable(text, 64), kMost);
}

void DescribeBurst(ConfigSection& section, std::optional<int64_t>& percent) {
  section
      .Parse(
          "burst", ShownValue(percent, "%"), percent, BurstPercent,
          "the CPU time, as a part of the container's CPU limit, that it may save up and use above "
          "the limit later: `cpu.max.burst`; never more than the limit")
      .Default("none");
}

void CheckScheduler(ConfigSection& section, SchedulerSettings& scheduler) {
  const bool fixed =
      scheduler.policy == SchedPolicy::kFifo || scheduler.policy == SchedPolicy::kRoundRobin;
  const bool deadline = scheduler.policy == SchedPolicy::kDeadline;
  if (scheduler.nice != 0 && scheduler.policy == SchedPolicy::kNone)
    scheduler.policy = SchedPolicy::kOther;
  if (fixed && scheduler.priority == 0)
    section.Fail("priority", "fifo and rr need a priority from 1 to 99");
  if (!fixed && scheduler.priority != 0) section.Fail("priority", "is for fifo and rr alone");
  if ((fixed || deadline) && scheduler.nice != 0)
    section.Fail("nice", "is for other, batch and idle alone");
  if (scheduler.policy == SchedPolicy::kNone && !scheduler.flags.empty())
    section.Fail("flags", "are for a policy");
  const bool times = scheduler.runtime_ns + scheduler.deadline_ns + scheduler.period_ns != 0;
  if (!deadline) {
    if (times) section.Fail("runtime", "runtime, deadline and period are for deadline alone");
    return;
  }
  if (scheduler.deadline_ns == 0) scheduler.deadline_ns = scheduler.period_ns;
  if (scheduler.period_ns == 0) scheduler.period_ns = scheduler.deadline_ns;
  if (scheduler.runtime_ns < kLeastRuntime)
    section.Fail("runtime", fmt::format("deadline needs a runtime of {}ns or more", kLeastRuntime));
  if (scheduler.runtime_ns > scheduler.deadline_ns || scheduler.deadline_ns > scheduler.period_ns) {
    section.Fail("deadline",
                 fmt::format("runtime ({}ns), deadline ({}ns) and period ({}ns) do not "
                             "ascend",
                             scheduler.runtime_ns, scheduler.deadline_ns, scheduler.period_ns));
  } else if (scheduler.runtime_ns / kMostPercent > scheduler.period_ns / 100) {
    section.Fail("runtime", fmt::format("is more than {} % of the period", kMostPercent));
  }
}

bool HasLevels(const IoPriority& io) {
  return io.io_class == IoClass::kRealTime || io.io_class == IoClass::kBestEffort;
}

void CheckIo(ConfigSection& section, const std::optional<int64_t>& priority, IoPriority& io) {
  const bool levels = HasLevels(io);
  if (priority && !levels) section.Fail("ioPriority", "is for rt and be alone");
  if (!priority && io.io_class == IoClass::kRealTime)
    section.Fail("ioPriority", "rt needs a priority from 0 to 7");
  // The kernel's value for processes without a priority.
  constexpr int32_t kUsual = 4;
  io.priority = !levels ? 0 : static_cast<int32_t>(priority.value_or(kUsual));
}

void DescribeIo(ConfigSection& section, IoPriority& io) {
  const bool shown = HasLevels(io);
  section.Choice("ioClass",
                 {{"none", IoClass::kNone},
                  {"rt", IoClass::kRealTime},
                  {"be", IoClass::kBestEffort},
                  {"idle", IoClass::kIdle}},
                 io.io_class, "the class of its I/O, as `ionice` has it");
  std::optional<int64_t> priority;
  section
      .Parse(
          "ioPriority", shown ? std::optional(fmt::format("{}", io.priority)) : std::nullopt,
          [&priority](std::string_view text) -> Status {
            priority = ParseInt(text);
            if (priority && *priority >= 0 && *priority <= kLowestIoPriority) return OkStatus();
            return InvalidArgument("\"{}\" is not a whole number from 0 to {}", Printable(text, 64),
                                   kLowestIoPriority);
          },
          "from 0, the first, to 7; of `rt` and `be`")
      .Default("4 of be");
  if (shown && !priority) priority = io.priority;
  CheckIo(section, priority, io);
}

void DescribeSchedulingClass(ConfigSection& section, SchedulingClassConfig& item) {
  SchedulerSettings& scheduler = item.scheduler;
  section.Text("name", item.name, "what annotations and pools name", CheckClassName)
      .Default("none");
  section.Choice("policy",
                 {{"none", SchedPolicy::kNone},
                  {"other", SchedPolicy::kOther},
                  {"fifo", SchedPolicy::kFifo},
                  {"rr", SchedPolicy::kRoundRobin},
                  {"batch", SchedPolicy::kBatch},
                  {"idle", SchedPolicy::kIdle},
                  {"deadline", SchedPolicy::kDeadline}},
                 scheduler.policy, "the policy of the kernel's scheduler (`sched(7)`)");
  DescribeSchedNumber(section, "priority", 0, 99, scheduler.priority,
                      "of `fifo` and `rr`: 1 to 99");
  DescribeSchedNumber(section, "nice", -20, 19, scheduler.nice, "of `other`, `batch` and `idle`");
  DescribeSchedFlags(section, scheduler.flags);
  DescribeSchedTime(
      section, "runtime", scheduler.runtime_ns,
      "of `deadline`, in each period: `10ms`, `500us`; a number alone has nanoseconds");
  DescribeSchedTime(section, "deadline", scheduler.deadline_ns,
                    "of `deadline`; by default the period");
  DescribeSchedTime(section, "period", scheduler.period_ns,
                    "of `deadline`; by default the deadline");
  CheckScheduler(section, scheduler);
  DescribeIo(section, item.io_priority);
  DescribeBurst(section, item.burst_percent);
}

}  // namespace

StatusOr<uint64_t> ParseNanoseconds(std::string_view text) {
  struct Unit {
    std::string_view name;
    uint64_t nanoseconds;
  };
  constexpr std::array<Unit, 4> kUnits = {
      {{"ns", 1}, {"us", 1'000}, {"ms", 1'000'000}, {"s", 1'000'000'000}}};
  std::string_view number = text;
  uint64_t unit = 1;
  const auto* const found =
      std::ranges::find_if(kUnits, [text](const Unit& one) { return text.ends_with(one.name); });
  if (found != kUnits.end()) {
    number.remove_suffix(found->name.size());
    unit = found->nanoseconds;
  }
  const std::optional<uint64_t> value = ParseUint(number);
  if (value && *value <= kMostNanoseconds / unit) return *value * unit;
  return InvalidArgument("\"{}\" is no time such as 10ms, 500us or 1000000 (nanoseconds)",
                         Printable(text, 64));
}

const SchedulingClassConfig* SchedulingConfig::Find(std::string_view name) const {
  const auto found = std::ranges::find(classes, name, &SchedulingClassConfig::name);
  return found == classes.end() ? nullptr : &*found;
}

void DescribeScheduling(ConfigSection& classes, SchedulingConfig& config) {
  constexpr const char* kKey = "scheduling";
  classes.Items<SchedulingClassConfig>(kKey, config.classes, SchedulingClassConfig(),
                                       DescribeSchedulingClass,
                                       "the classes of scheduling and I/O priority");
  CheckClassNames(classes, kKey, config.classes);
}

}  // namespace resmgr
