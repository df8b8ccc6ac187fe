// SPDX-License-Identifier: Apache-2.0
#include "pkg/usage/kernel_text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "pkg/base/parse.h"
#include "pkg/topology/cpu_set.h"

namespace resmgr {
namespace {

// Take lines from a text of the kernel, and words, which spaces or tabs separate, from a line. Each
// function removes a line or a word from the beginning of its argument and returns it; "" at the
// end.

std::string_view NextLine(std::string_view& text) {
  const size_t end = text.find('\n');
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return line;
}

std::string_view NextWord(std::string_view& line) {
  line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
  const std::string_view word = line.substr(0, line.find_first_of(" \t"));
  line.remove_prefix(word.size());
  return word;
}

// Calls `visit` with each line.
template <typename Visit>
void ForEachLine(std::string_view text, const Visit& visit) {
  while (!text.empty())
    visit(NextLine(text));
}

std::optional<uint64_t> Times(std::optional<uint64_t> number, uint64_t factor) {
  uint64_t product = 0;
  if (!number || __builtin_mul_overflow(*number, factor, &product)) return std::nullopt;
  return product;
}

// A percentage of the time, as "12.34".
std::optional<double> ParsePercent(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if (!std::isfinite(value) || value < 0 || value > 100) return std::nullopt;
  return value;
}

void Read(std::string_view word, std::optional<uint64_t>& target) {
  if (const auto number = ParseUint(word)) target = number;
}

std::optional<CpuTimes> ParseCpuTimes(std::string_view line) {
  enum { kUser, kNice, kSystem, kIdle, kIoWait, kIrq, kSoftirq, kSteal, kNumbers };
  std::array<uint64_t, kNumbers> numbers{};
  // Larger numbers are refused, so sums do not overflow.
  constexpr uint64_t kMost = std::numeric_limits<uint64_t>::max() / (uint64_t{2} * kNumbers);
  for (uint64_t& number : numbers) {
    const auto read = ParseUint(NextWord(line));
    if (!read || *read > kMost) return std::nullopt;
    number = *read;
  }
  return CpuTimes{.user = numbers[kUser] + numbers[kNice],
                  .system = numbers[kSystem],
                  .idle = numbers[kIdle] + numbers[kIoWait],
                  .irq = numbers[kIrq],
                  .softirq = numbers[kSoftirq],
                  .steal = numbers[kSteal]};
}

constexpr size_t kLongestInterruptName = 64;
// Limit of lines: machines with many queues of many devices have some thousand.
constexpr size_t kMostInterrupts = 16'384;

// The CPU of each column, nullopt for a CPU that is not wanted. An offline CPU has no column.
std::vector<std::optional<int>> ColumnsOf(std::string_view header, const CpuSet& cpus) {
  constexpr std::string_view kCpu = "CPU";
  std::vector<std::optional<int>> columns;
  for (std::string_view word = NextWord(header); !word.empty(); word = NextWord(header)) {
    if (!word.starts_with(kCpu) || columns.size() > CpuSet::kMaxId) break;
    const std::optional<int> id = ParseId(word.substr(kCpu.size()), CpuSet::kMaxId);
    columns.push_back(id && cpus.Contains(*id) ? id : std::nullopt);
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

CpuStat ParseCpuStat(std::string_view text) {
  constexpr uint64_t kMicro = 1000;
  CpuStat stat;
  ForEachLine(text, [&stat](std::string_view line) {
    const std::string_view key = NextWord(line);
    const std::string_view value = NextWord(line);
    if (key == "usage_usec") stat.usage_ns = Times(ParseUint(value), kMicro);
    if (key == "nr_periods") Read(value, stat.periods);
    if (key == "nr_throttled") Read(value, stat.throttled);
    if (key == "throttled_usec") stat.throttled_ns = Times(ParseUint(value), kMicro);
    if (key == "throttled_time") Read(value, stat.throttled_ns);
  });
  return stat;
}

std::optional<Pressure> ParsePressure(std::string_view text) {
  std::optional<Pressure> pressure;
  ForEachLine(text, [&pressure](std::string_view line) {
    if (NextWord(line) != "some") return;
    constexpr std::string_view k10 = "avg10=";
    constexpr std::string_view k60 = "avg60=";
    std::optional<double> some10;
    std::optional<double> some60;
    std::optional<uint64_t> some_us;
    constexpr std::string_view kTotal = "total=";
    for (std::string_view word = NextWord(line); !word.empty(); word = NextWord(line)) {
      if (word.starts_with(k10)) some10 = ParsePercent(word.substr(k10.size()));
      if (word.starts_with(k60)) some60 = ParsePercent(word.substr(k60.size()));
      if (word.starts_with(kTotal)) some_us = ParseCount(word.substr(kTotal.size()));
    }
    if (some10 && some60)
      pressure = Pressure{.some10 = *some10, .some60 = *some60, .some_us = some_us};
  });
  return pressure;
}

MemoryEvents ParseMemoryEvents(std::string_view text) {
  MemoryEvents events;
  ForEachLine(text, [&events](std::string_view line) {
    const std::string_view key = NextWord(line);
    if (key == "high") Read(NextWord(line), events.high);
    if (key == "oom") Read(NextWord(line), events.oom);
    if (key == "oom_kill") Read(NextWord(line), events.oom_kills);
  });
  return events;
}

std::map<int, CpuTimes> ParseProcStat(std::string_view text) {
  constexpr std::string_view kCpu = "cpu";
  std::map<int, CpuTimes> cpus;
  ForEachLine(text, [&](std::string_view line) {
    if (!line.starts_with(kCpu)) return;
    const std::optional<int> cpu = ParseId(NextWord(line).substr(kCpu.size()), CpuSet::kMaxId);
    if (!cpu) return;
    if (const auto times = ParseCpuTimes(line)) cpus[*cpu] = *times;
  });
  return cpus;
}

void ParseNodeMeminfo(std::string_view text, NodeCounters& node) {
  ForEachLine(text, [&node](std::string_view line) {
    constexpr int64_t kKibi = 1024;
    NextWord(line);  // "Node"
    NextWord(line);
    const std::string_view key = NextWord(line);
    const auto amount = ParseInt(NextWord(line));
    int64_t bytes = 0;
    if (!amount || *amount < 0 || __builtin_mul_overflow(*amount, kKibi, &bytes)) return;
    if (key == "MemTotal:") node.total_bytes = bytes;
    if (key == "MemFree:") node.free_bytes = bytes;
  });
}

void ParseNodeNumastat(std::string_view text, NodeCounters& node) {
  ForEachLine(text, [&node](std::string_view line) {
    const std::string_view key = NextWord(line);
    if (key == "local_node") Read(NextWord(line), node.local_pages);
    if (key == "other_node") Read(NextWord(line), node.other_pages);
  });
}

std::optional<uint64_t> ParseCount(std::string_view text) {
  return ParseUint(Trim(text));
}

InterruptCounts ParseInterrupts(std::string_view text, const CpuSet& cpus) {
  InterruptCounts counts;
  const std::vector<std::optional<int>> columns = ColumnsOf(NextLine(text), cpus);
  for (size_t lines = 0; !text.empty() && lines < kMostInterrupts; ++lines) {
    std::string_view line = NextLine(text);
    std::string_view id = NextWord(line);
    if (!id.ends_with(':')) continue;
    id.remove_suffix(1);
    if (id == "ERR" || id == "MIS") continue;  // one counter for all CPUs
    std::vector<std::pair<int, uint64_t>> found;
    bool complete = true;
    for (const std::optional<int>& cpu : columns) {
      const auto count = ParseUint(NextWord(line));
      complete = complete && count.has_value();
      if (!complete) break;
      if (cpu && *count > 0) found.emplace_back(*cpu, *count);
    }
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
