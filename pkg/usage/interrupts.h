// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "pkg/topology/cpu_set.h"

namespace resmgr {

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
