// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "pkg/topology/cpu_set.h"

namespace resmgr {

// Reads the texts of the kernel's files about use. Everything in an unknown form is left out: a
// newer kernel may add lines and words.

// cpu.stat of cgroup v2 or v1; v1 has no `usage` there, but in cpuacct.usage.
struct CpuStat {
  std::optional<uint64_t> usage_ns{};
  std::optional<uint64_t> periods{};    // periods of the quota that have passed
  std::optional<uint64_t> throttled{};  // number of periods in which the quota was used up
  std::optional<uint64_t> throttled_ns{};
};
CpuStat ParseCpuStat(std::string_view text);

// cpu.pressure, memory.pressure: the percentage of the recent time in which some task waited.
struct Pressure {
  double some10 = 0;
  double some60 = 0;
  std::optional<uint64_t> some_us{};  // microseconds in all, since the cgroup was made
};
std::optional<Pressure> ParsePressure(std::string_view text);

// memory.events of cgroup v2, memory.oom_control of v1 (which has only `oom_kills`).
struct MemoryEvents {
  std::optional<uint64_t> high{};
  std::optional<uint64_t> oom{};  // times that the cgroup's own limit left no memory
  std::optional<uint64_t> oom_kills{};
};
MemoryEvents ParseMemoryEvents(std::string_view text);

// One CPU's line of /proc/stat, in ticks of the kernel's clock since its start.
struct CpuTimes {
  uint64_t user = 0;  // including low-priority tasks and guests
  uint64_t system = 0;
  uint64_t idle = 0;  // including waits for a disk
  uint64_t irq = 0;
  uint64_t softirq = 0;
  uint64_t steal = 0;  // time in which the hypervisor ran others
};
// By CPU number. The text may be cut off behind the lines of CPUs.
std::map<int, CpuTimes> ParseProcStat(std::string_view text);

// /sys/devices/system/node/nodeN/meminfo and numastat.
struct NodeCounters {
  std::optional<int64_t> total_bytes{};
  std::optional<int64_t> free_bytes{};
  std::optional<uint64_t> local_pages{};  // allocated on this node by tasks that ran on it
  std::optional<uint64_t> other_pages{};  // allocated on this node by tasks that ran elsewhere
};
void ParseNodeMeminfo(std::string_view text, NodeCounters& node);
void ParseNodeNumastat(std::string_view text, NodeCounters& node);

// A file with one number and a line break.
std::optional<uint64_t> ParseCount(std::string_view text);

// How often each interrupt has come since the machine's start, by CPU and by its name, "24
// (nvme0q3)" or "LOC"; interrupts that never came are left out.
using InterruptCounts = std::map<int, std::map<std::string, uint64_t>>;

// Reads /proc/interrupts for these CPUs. Lines in any other form than the kernel's are left out.
InterruptCounts ParseInterrupts(std::string_view text, const CpuSet& cpus);

// The interrupt that a CPU got most often between two readings.
struct TopInterrupt {
  std::string name{};  // "": none came, or there was only one reading
  uint64_t count = 0;  // between the readings
  // The number of a device's interrupt, which can have an affinity; "" for other interrupts.
  std::string_view number() const;
};
TopInterrupt TopOf(const InterruptCounts& before, const InterruptCounts& now, int cpu);

}  // namespace resmgr
