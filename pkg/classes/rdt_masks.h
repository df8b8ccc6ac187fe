// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/config/rdt_config.h"

namespace resmgr {

// One level of caches, or the memory controllers, of a machine.
struct RdtCache {
  uint64_t mask = 0;  // the valid bits, from bit 0
  uint32_t min_bits = 1;
  bool sparse = false;  // a mask may have gaps
  bool split = false;   // masks for code and data are separate
  std::vector<uint32_t> ids{};
};
struct RdtBandwidth {
  // Percent; MBps (mount option mba_MBps); eighths of GB/s (AMD).
  enum class Unit { kPercent, kMbps, kEighths };
  Unit unit = Unit::kPercent;
  uint32_t least = 0;  // the least bandwidth, in `unit`
  uint32_t step = 1;   // the kernel rounds up to its multiples
  std::vector<uint32_t> ids{};
};
// The kernel's value for no limit in MBps.
inline constexpr uint64_t kUnlimitedMbps = std::numeric_limits<uint32_t>::max();

struct RdtMachine {
  std::optional<RdtCache> l2{};
  std::optional<RdtCache> l3{};
  std::optional<RdtBandwidth> mb{};
};

// The content of a file schemata: values by cache id, for "L3", "L3CODE", "MB", ...
using RdtSchemata = std::map<std::string, std::map<uint32_t, uint64_t>, std::less<>>;
// Schemata by the name of the class; the root group's name is "".
using RdtClassSchemata = std::map<std::string, RdtSchemata, std::less<>>;

// The masks of the configuration on this machine, by the arithmetic of goresctrl: partitions lie
// one after the other in the order of their names, and classes are parts of their partition.
// InvalidArgument: the configuration is impossible or does not fit the machine; the message names
// the partition or the class. Pure.
StatusOr<RdtClassSchemata> ComputeRdt(const RdtConfig& config, const RdtMachine& machine);

// Rounds bandwidth as the kernel does.
void RoundBandwidth(const RdtBandwidth& machine, RdtSchemata& schemata);

// "L3:0=fff;1=ff0\nMB:0=50;1=100\n".
std::string SchemataText(const RdtSchemata& schemata);
// Reads a file schemata, in which the kernel pads names and numbers. Skips lines that are not
// understood.
RdtSchemata ParseSchemata(std::string_view text);
// The value of a cache; nullptr: there is none.
const uint64_t* FindSchema(const RdtSchemata& schemata, std::string_view resource, uint32_t id);
// The part of `wanted` whose caches `now` has: one whose CPUs are all offline is in no schemata,
// and the kernel refuses to write it.
RdtSchemata SchemataOfPresent(const RdtSchemata& wanted, const RdtSchemata& now);
// Whether the schemata `now` include all values of `wanted`, those of caches that are offline left
// out.
bool HasSchemata(const RdtSchemata& wanted, const RdtSchemata& now);

}  // namespace resmgr
