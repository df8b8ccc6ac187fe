// SPDX-License-Identifier: Apache-2.0
#include "pkg/classes/cpu_mask.h"

#include <algorithm>

#include "pkg/base/characters.h"
#include "pkg/base/parse.h"

namespace resmgr {
namespace {

constexpr int kBitsOfDigit = 4;
constexpr size_t kDigitsOfGroup = 8;

size_t CountDigits(std::string_view mask) {
  return static_cast<size_t>(std::ranges::count_if(mask, [](char c) { return HexDigit(c) >= 0; }));
}

}  // namespace

StatusOr<CpuSet> ParseCpuMask(std::string_view text) {
  const auto wrong = [text] {
    return InvalidArgument("\"{}\" is not a mask of CPUs", Printable(Trim(text), 64));
  };
  const std::vector<std::string_view> groups = Split(Trim(text), ',');
  CpuSet cpus;
  int first = 0;  // the CPU of the group's lowest bit
  for (auto group = groups.rbegin(); group != groups.rend(); ++group) {
    if (group->empty() || group->size() > kDigitsOfGroup) return wrong();
    int cpu = first;
    for (auto c = group->rbegin(); c != group->rend(); ++c, cpu += kBitsOfDigit) {
      const int digit = HexDigit(*c);
      if (digit < 0) return wrong();
      for (int bit = 0; bit < kBitsOfDigit; ++bit) {
        if ((digit >> bit & 1) == 0) continue;
        if (cpu + bit > CpuSet::kMaxId) return wrong();
        cpus.Add(cpu + bit);
      }
    }
    first += static_cast<int>(kDigitsOfGroup) * kBitsOfDigit;
  }
  return cpus;
}

std::string FormatCpuMask(const CpuSet& cpus, std::string_view like) {
  int highest = 0;
  for (const int cpu : cpus)
    highest = cpu;
  const size_t needed = static_cast<size_t>(highest / kBitsOfDigit) + 1;
  const size_t digits = std::max(needed, CountDigits(like));
  std::string mask;
  for (size_t left = digits; left > 0; --left) {
    int value = 0;
    const int lowest = static_cast<int>(left - 1) * kBitsOfDigit;
    for (int bit = 0; bit < kBitsOfDigit; ++bit) {
      if (lowest + bit <= CpuSet::kMaxId && cpus.Contains(lowest + bit)) value |= 1 << bit;
    }
    mask += "0123456789abcdef"[value];
    if (left > 1 && (left - 1) % kDigitsOfGroup == 0) mask += ',';
  }
  return mask;
}

StatusOr<std::string> MaskWithout(std::string_view first, const CpuSet& without,
                                  const CpuSet& online, std::string_view path) {
  RESMGR_ASSIGN_OR_RETURN(const CpuSet before, ParseCpuMask(first));
  CpuSet after = before - without;
  const bool none_online = !online.empty() && (after & online).empty();
  if (after.empty() || none_online) after = online - without;
  if (after.empty())
    return FailedPrecondition("{} would have no CPU: all are containers' own", path);
  return after == before ? "" : FormatCpuMask(after, Trim(first));
}

}  // namespace resmgr
