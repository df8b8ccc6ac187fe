// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "pkg/topology/cpu_set.h"
#include "pkg/topology/numa_stat.h"
#include "pkg/usage/kernel_text.h"

// Whatever a file of the kernel says: percentages are percentages, and ids and amounts are in
// range.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto pressure = resmgr::ParsePressure(text)) {
    const auto is_percent = [](double value) { return value >= 0 && value <= 100; };
    if (!is_percent(pressure->some10) || !is_percent(pressure->some60)) std::abort();
  }
  for (const auto& [id, times] : resmgr::ParseProcStat(text)) {
    if (id < 0 || id > resmgr::CpuSet::kMaxId) std::abort();
    const uint64_t sum = times.user + times.system + times.idle + times.irq + times.softirq;
    if (sum < times.user || sum + times.steal < times.steal) std::abort();
  }
  for (const bool unified : {false, true}) {
    for (const auto& [node, bytes] : resmgr::ParseNumaStat(text, unified, true).All())
      if (node < 0 || node > resmgr::NodeSet::kMaxId || bytes < 0) std::abort();
  }
  resmgr::NodeCounters counters;
  resmgr::ParseNodeMeminfo(text, counters);
  resmgr::ParseNodeNumastat(text, counters);
  if (counters.total_bytes.value_or(0) < 0 || counters.free_bytes.value_or(0) < 0) std::abort();
  for (const auto& [cpu, counts] : resmgr::ParseInterrupts(text, resmgr::CpuSet::Range(0, 7))) {
    if (cpu < 0 || cpu > 7 || counts.empty()) std::abort();
    for (const auto& [name, count] : counts)
      if (count == 0 || name.size() > 1024) std::abort();
  }
  resmgr::ParseCpuStat(text);
  resmgr::ParseMemoryEvents(text);
  resmgr::ParseCount(text);
  return 0;
}
