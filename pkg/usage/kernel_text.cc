// SPDX-License-Identifier: Apache-2.0
#include "pkg/usage/kernel_text.h"

#include <array>
#include <charconv>
#include <cmath>
#include <limits>

#include "pkg/base/parse.h"
#include "pkg/topology/cpu_set.h"
#include "pkg/usage/kernel_words.h"

namespace resmgr {
namespace {

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

// A share of the time in percent, as "12.34".
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
  // Sums of these do not overflow.
  constexpr uint64_t kMost = std::numeric_limits<uint64_t>::max() / (2 * kNumbers);
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
    const auto number = ParseInt(NextWord(line).substr(kCpu.size()));
    if (!number || *number < 0 || *number > CpuSet::kMaxId) return;
    if (const auto times = ParseCpuTimes(line)) cpus[static_cast<int>(*number)] = *times;
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

}  // namespace resmgr
