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

// Reads the texts of the kernel's files about use. Whatever is not as the kernel writes it is left
// out: a newer kernel may add lines and words.

// cpu.stat of cgroup v2, and of v1 (without `usage`, which is cpuacct.usage there).
struct CpuStat {
  std::optional<uint64_t> usage_ns{};
  std::optional<uint64_t> periods{};    // in which the quota counted
  std::optional<uint64_t> throttled{};  // number of periods in which the quota was used up
  std::optional<uint64_t> throttled_ns{};
};
CpuStat ParseCpuStat(std::string_view text);

// cpu.pressure, memory.pressure: how much of the last time some tasks waited, in percent.
struct Pressure {
  double some10 = 0;
  double some60 = 0;
  std::optional<uint64_t> some_us{};  // microseconds in all, since the cgroup was made
};
std::optional<Pressure> ParsePressure(std::string_view text);

// memory.events of cgroup v2, memory.oom_control of v1 (which has only `oom_kills`).
struct MemoryEvents {
  std::optional<uint64_t> high{};
  std::optional<uint64_t> oom{};  // the cgroup's own limit left no memory
  std::optional<uint64_t> oom_kills{};
};
MemoryEvents ParseMemoryEvents(std::string_view text);

// One CPU's line of /proc/stat, in ticks of the kernel's clock since its start.
struct CpuTimes {
  uint64_t user = 0;  // with low priorities, and the time of guests
  uint64_t system = 0;
  uint64_t idle = 0;  // also while it waits for a disk
  uint64_t irq = 0;
  uint64_t softirq = 0;
  uint64_t steal = 0;  // time that the hypervisor gave to others
};
// By the CPUs' numbers; the text may be cut off behind them.
std::map<int, CpuTimes> ParseProcStat(std::string_view text);

// /sys/devices/system/node/nodeN/meminfo and numastat.
struct NodeCounters {
  std::optional<int64_t> total_bytes{};
  std::optional<int64_t> free_bytes{};
  std::optional<uint64_t> local_pages{};  // allocated here by tasks that ran here
  std::optional<uint64_t> other_pages{};  // allocated here by tasks that ran elsewhere
};
void ParseNodeMeminfo(std::string_view text, NodeCounters& node);
void ParseNodeNumastat(std::string_view text, NodeCounters& node);

// A file with one number and a line break.
std::optional<uint64_t> ParseCount(std::string_view text);

// How often each interrupt came on some CPUs since the start of the machine, by CPU and by its
// name, "24 (nvme0q3)" or "LOC": only interrupts that occurred at all.
using InterruptCounts = std::map<int, std::map<std::string, uint64_t>>;

// Reads /proc/interrupts for these CPUs. Lines in any other form than the kernel's are left out.
InterruptCounts ParseInterrupts(std::string_view text, const CpuSet& cpus);

// The interrupt that came most often between two readings.
struct TopInterrupt {
  std::string name{};  // "": none came, or there was one reading
  uint64_t count = 0;  // between the readings
  // The number of an interrupt of a device, which has an affinity; "" for others.
  std::string_view number() const;
};
TopInterrupt TopOf(const InterruptCounts& before, const InterruptCounts& now, int cpu);

}  // namespace resmgr
