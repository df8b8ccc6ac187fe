// SPDX-License-Identifier: Apache-2.0
#include "pkg/usage/interrupts.h"

#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "pkg/base/parse.h"
#include "pkg/usage/kernel_words.h"

namespace resmgr {
namespace {

constexpr size_t kLongestInterruptName = 64;
// Machines with many queues of many devices have some thousand.
constexpr size_t kMostInterrupts = 16'384;

// The CPUs of the columns, of which offline ones have none. nullopt: not one that is looked for.
std::vector<std::optional<int>> ColumnsOf(std::string_view header, const CpuSet& cpus) {
  constexpr std::string_view kCpu = "CPU";
  std::vector<std::optional<int>> columns;
  for (std::string_view word = NextWord(header); !word.empty(); word = NextWord(header)) {
    if (!word.starts_with(kCpu) || columns.size() > CpuSet::kMaxId) break;
    const auto id = ParseInt(word.substr(kCpu.size()));
    const bool wanted =
        id && *id >= 0 && *id <= CpuSet::kMaxId && cpus.Contains(static_cast<int>(*id));
    columns.push_back(wanted ? std::optional(static_cast<int>(*id)) : std::nullopt);
  }
  return columns;
}

bool IsNumber(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

// "24" and "IR-PCI-MSI 327680-edge  nvme0q3" are "24 (nvme0q3)".
std::string InterruptName(std::string_view id, std::string_view description) {
  const std::string_view text = Trim(description);
  if (!IsNumber(id) || text.empty()) return Printable(id, kLongestInterruptName);
  const size_t space = text.find_last_of(" \t");
  const std::string_view last = space == std::string_view::npos ? text : text.substr(space + 1);
  return fmt::format("{} ({})", id.substr(0, kLongestInterruptName),
                     Printable(last, kLongestInterruptName));
}

}  // namespace

InterruptCounts ParseInterrupts(std::string_view text, const CpuSet& cpus) {
  InterruptCounts counts;
  const std::vector<std::optional<int>> columns = ColumnsOf(NextLine(text), cpus);
  for (size_t lines = 0; !text.empty() && lines < kMostInterrupts; ++lines) {
    std::string_view line = NextLine(text);
    std::string_view id = NextWord(line);
    if (!id.ends_with(':')) continue;
    id.remove_suffix(1);
    std::vector<std::pair<int, uint64_t>> found;
    bool complete = true;
    for (const std::optional<int>& cpu : columns) {
      const auto count = ParseUint(NextWord(line));
      complete = complete && count.has_value();
      if (!complete) break;
      if (cpu && *count > 0) found.emplace_back(*cpu, *count);
    }
    // ERR and MIS have one number for all CPUs.
    if (!complete || found.empty()) continue;
    const std::string name = InterruptName(id, line);
    for (const auto& [cpu, count] : found)
      counts[cpu][name] = count;
  }
  return counts;
}

std::string_view TopInterrupt::number() const {
  const std::string_view first = std::string_view(name).substr(0, name.find(' '));
  return IsNumber(first) ? first : std::string_view();
}

TopInterrupt TopOf(const InterruptCounts& before, const InterruptCounts& now, int cpu) {
  TopInterrupt top;
  const auto old = before.find(cpu);
  const auto present = now.find(cpu);
  if (old == before.end() || present == now.end()) return top;
  for (const auto& [name, count] : present->second) {
    const auto known = old->second.find(name);
    const uint64_t former = known == old->second.end() ? 0 : known->second;
    if (count > former && count - former > top.count) top = {.name = name, .count = count - former};
  }
  return top;
}

}  // namespace resmgr
