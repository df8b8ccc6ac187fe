// SPDX-License-Identifier: Apache-2.0
#include "pkg/config/classes_config.h"

#include <algorithm>
#include <cstdint>
#include <optional>

#include "pkg/base/parse.h"
#include "pkg/kube/glob.h"

namespace resmgr {
namespace {

constexpr std::string_view kNoLatency = "n/a";
constexpr int64_t kMostMicroseconds = 1'000'000;
// The kernel's own limit is 16 with the zero at the end.
constexpr size_t kLongestGovernor = 15;

constexpr std::string_view kUndisturbed = "Undisturbed";

// "10us", "1ms", "n/a", to the text of the kernel's file.
StatusOr<std::string> LatencyText(std::string_view text) {
  if (EqualsIgnoreCase(text, kNoLatency)) return std::string(kNoLatency);
  std::string_view number = text;
  int64_t unit = 0;
  if (number.ends_with("us")) unit = 1;
  if (number.ends_with("ms")) unit = 1000;
  if (unit != 0) number.remove_suffix(2);
  const std::optional<int64_t> value = unit == 0 ? std::nullopt : ParseInt(number);
  if (!value || *value < 1 || *value > kMostMicroseconds / unit) {
    return InvalidArgument("\"{}\" is not a time from 1us to 1000ms, and not \"{}\"",
                           Printable(text, 64), kNoLatency);
  }
  return fmt::format("{}", *value * unit);
}

std::optional<std::string> ShownLatency(const std::string& text) {
  if (text.empty()) return std::nullopt;
  return text == kNoLatency ? text : text + "us";
}

void DescribeGlobs(ConfigSection& section, std::string_view key, std::vector<std::string>& globs,
                   std::string_view help) {
  section.List(key, globs, help);
  const auto wrong =
      std::ranges::find_if(globs, [](const std::string& glob) { return !IsGlob(glob); });
  if (wrong != globs.end() && section.Node(key) != nullptr)
    section.Fail(key, fmt::format("\"{}\" has a [ without its ]", Printable(*wrong, 64)));
}

}  // namespace

Status CheckGovernor(std::string_view name) {
  const bool plain = std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  });
  if (plain && name.size() <= kLongestGovernor) return OkStatus();
  return InvalidArgument("\"{}\" can be no governor", Printable(name, 64));
}

void DescribeIsolation(ConfigSection& section, IsolationConfig& config) {
  using Interrupts = IsolationConfig::Interrupts;
  using Workqueues = IsolationConfig::Workqueues;
  using Quota = IsolationConfig::Quota;
  using Partition = IsolationConfig::Partition;
  section.Choice("Interrupts",
                 {ConfigWord<Interrupts>{"leave", Interrupts::kLeave},
                  ConfigWord<Interrupts>{"isolate", Interrupts::kIsolate}},
                 config.interrupts, "`isolate`: interrupts go to other CPUs");
  section.Choice("Workqueues",
                 {ConfigWord<Workqueues>{"leave", Workqueues::kLeave},
                  ConfigWord<Workqueues>{"isolate", Workqueues::kIsolate}},
                 config.workqueues, "`isolate`: the kernel's unbound work runs on other CPUs");
  section.Choice("Quota",
                 {ConfigWord<Quota>{"keep", Quota::kKeep}, ConfigWord<Quota>{"lift", Quota::kLift}},
                 config.quota,
                 "`lift`: the pod has no CPU quota; that of the container is the policy's to lift");
  section.Choice("Partition",
                 {ConfigWord<Partition>{"none", Partition::kNone},
                  ConfigWord<Partition>{"root", Partition::kRoot},
                  ConfigWord<Partition>{"isolated", Partition::kIsolated}},
                 config.partition,
                 "`root`: the CPUs are a scheduling domain of their own, `isolated`: one in which "
                 "the kernel balances no load");
  section
      .Parse(
          "MaxLatency", ShownLatency(config.max_latency),
          [&config](std::string_view text) -> Status {
            RESMGR_ASSIGN_OR_RETURN(config.max_latency, LatencyText(text));
            return OkStatus();
          },
          "the longest time that the CPUs may take to wake up, from `1us` to `1000ms`; `n/a`: they "
          "never leave C0")
      .Default("none");
  section.Text("Governor", config.governor, "the clock governor of the CPUs", CheckGovernor)
      .Default("none");
}

void DescribeUndisturbed(ConfigSection& section, IsolationConfig& config) {
  section.Map(kUndisturbed,
              [&config](ConfigSection& isolation) { DescribeIsolation(isolation, config); });
}

void OverrideIsolation(const ConfigNode& section, std::string_view path, ClassesConfig& config) {
  for (const ConfigNode::Entry& entry : section.entries) {
    if (!EqualsIgnoreCase(entry.key, kUndisturbed) || entry.value.entries.empty()) continue;
    const std::string source = fmt::format("{}.{}", path, kUndisturbed);
    ConfigSection reader(entry.value, source);
    DescribeIsolation(reader, config.isolation);
    config.isolation_source = source;
  }
}

void DescribeClasses(ConfigSection& root, ClassesConfig& config) {
  root.Map("classes", [&config](ConfigSection& classes) {
    classes.Map("isolation", [&config](ConfigSection& isolation) {
      DescribeIsolation(isolation, config.isolation);
    });
    classes.Map("irq", [&config](ConfigSection& irq) {
      DescribeGlobs(irq, "Controllable", config.controllable,
                    "globs of the interrupts that may be moved, by their number or by the end of "
                    "their line in `/proc/interrupts`");
    });
    DescribeMemoryClasses(classes, config.memory);
    classes.List("MemoryAnnotations", config.memory_files,
                 "files `memory.*` of their cgroup that pods may set by annotations");
    for (const std::string& file : config.memory_files) {
      const bool valid = file.starts_with("memory.") && file.find('/') == std::string::npos;
      if (!valid && classes.Node("MemoryAnnotations") != nullptr)
        classes.Fail("MemoryAnnotations",
                     fmt::format("\"{}\" is no file memory.*", Printable(file, 64)));
    }
    classes.Map("AllowedNamespaces", [&config](ConfigSection& allowed) {
      DescribeGlobs(allowed, "isolation", config.isolation_namespaces,
                    "globs of the namespaces whose pods may choose their isolation by annotations");
      DescribeGlobs(allowed, "memory", config.memory_namespaces,
                    "globs of the namespaces whose pods may choose a class of memory");
    });
  });
}

}  // namespace resmgr
