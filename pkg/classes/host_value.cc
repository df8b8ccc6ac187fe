// SPDX-License-Identifier: Apache-2.0
#include "pkg/classes/host_value.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>

#include <unistd.h>

#include "pkg/base/parse.h"
#include "pkg/classes/cpu_mask.h"
#include "pkg/classes/irqbalance.h"
#include "pkg/classes/rdt_masks.h"

namespace resmgr {
namespace {

bool IsMaskFile(std::string_view path) {
  return path.ends_with("smp_affinity") || path.ends_with("/cpumask") || IsIrqbalanceSocket(path);
}

bool SameMask(std::string_view a, std::string_view b) {
  const StatusOr<CpuSet> first = ParseCpuMask(a);
  const StatusOr<CpuSet> second = ParseCpuMask(b);
  return first.ok() && second.ok() && *first == *second;
}

bool IsAmountFile(std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  return name.starts_with("memory.");
}

// As the kernel reads an amount: "64M" are 64 << 20 bytes.
std::optional<uint64_t> AmountOf(std::string_view text) {
  constexpr std::string_view kUnits = "kmgtpe";
  constexpr unsigned kBitsOfUnit = 10;
  unsigned shift = 0;
  if (!text.empty()) {
    const char last = text.back();
    const size_t unit =
        kUnits.find(static_cast<char>(last >= 'A' && last <= 'Z' ? last - 'A' + 'a' : last));
    if (unit != std::string_view::npos) {
      shift = static_cast<unsigned>(unit + 1) * kBitsOfUnit;
      text.remove_suffix(1);
    }
  }
  const std::optional<uint64_t> number = ParseUint(text);
  if (!number || *number > std::numeric_limits<uint64_t>::max() >> shift) return std::nullopt;
  return *number << shift;
}

// The kernel keeps whole pages.
bool SameAmount(std::string_view a, std::string_view b) {
  const auto page = static_cast<uint64_t>(::getpagesize());
  const std::optional<uint64_t> first = AmountOf(Trim(a));
  const std::optional<uint64_t> second = AmountOf(Trim(b));
  return first && second && *first / page == *second / page;
}

}  // namespace

bool SameHostValue(std::string_view path, std::string_view a, std::string_view b) {
  if (Trim(a) == Trim(b)) return true;
  if (IsMaskFile(path)) return SameMask(a, b);
  if (IsAmountFile(path)) return SameAmount(a, b);
  if (path.ends_with("/schemata")) return HasSchemata(ParseSchemata(b), ParseSchemata(a));
  return false;
}

std::string_view FreshValue(std::string_view path) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 10> kFresh = {{
      {"io.bfq.weight", "default 100\n"},
      {"io.max", "\n"},
      {"io.weight", "default 100\n"},
      {"memory.high", "max\n"},
      {"memory.low", "0\n"},
      {"memory.min", "0\n"},
      {"memory.oom.group", "0\n"},
      {"memory.swap.high", "max\n"},
      {"memory.swap.max", "max\n"},
      {"memory.zswap.max", "max\n"},
  }};
  const std::string_view name = path.substr(path.rfind('/') + 1);
  const auto* const found =
      std::ranges::find(kFresh, name, &std::pair<std::string_view, std::string_view>::first);
  return found == kFresh.end() ? std::string_view() : found->second;
}

std::string HostValueLine(std::string_view text) {
  return fmt::format("{}", fmt::join(Split(Trim(text), '\n'), "; "));
}

}  // namespace resmgr
