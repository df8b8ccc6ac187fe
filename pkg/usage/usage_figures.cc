// SPDX-License-Identifier: Apache-2.0
#include "pkg/usage/usage_figures.h"

#include <algorithm>
#include <limits>
#include <string_view>

namespace resmgr {
namespace {

using Seconds = std::chrono::duration<double>;

// From this percentage of the periods on, the quota counts as the reason why tasks wait.
constexpr double kThrottledPercent = 1;

// The growth of a counter; nullopt if unknown. If a counter is smaller than before, it was reset,
// and the whole count is growth.
std::optional<uint64_t> Growth(const std::optional<uint64_t>& before,
                               const std::optional<uint64_t>& now, bool& reset) {
  if (!before || !now) return std::nullopt;
  if (*now >= *before) return *now - *before;
  reset = true;
  return *now;
}

// Adds without overflow: if the kernel miscounts, the sum stays at the largest number.
void AddBytes(int64_t bytes, int64_t& sum) {
  if (__builtin_add_overflow(sum, bytes, &sum)) sum = std::numeric_limits<int64_t>::max();
}

// The percentage of the periods in which the quota was used up; 0 if there were no periods.
std::optional<double> ThrottledPercent(const CpuStat& before, const CpuStat& now, bool& reset) {
  bool anew = false;
  auto periods = Growth(before.periods, now.periods, anew);
  auto throttled = Growth(before.throttled, now.throttled, anew);
  if (!periods || !throttled) return std::nullopt;
  if (anew) {
    // Both began anew, although one may have passed its former count already.
    reset = true;
    periods = now.periods;
    throttled = now.throttled;
  }
  if (*periods == 0) return 0;
  return std::min(100.0, 100 * static_cast<double>(*throttled) / static_cast<double>(*periods));
}

void ComputeRates(const ContainerCounters& before, const ContainerCounters& now,
                  ContainerFigures& figures) {
  bool pod_reset = false;  // ignored: the pod's other containers may be the cause
  const double seconds = Seconds(now.read_at - before.read_at).count();
  const auto used = Growth(before.cpu.usage_ns, now.cpu.usage_ns, figures.reset);
  if (used && seconds > 0) figures.cpu_used = static_cast<double>(*used) / 1e9 / seconds;
  figures.throttled_percent = ThrottledPercent(before.cpu, now.cpu, figures.reset);
  figures.pod_throttled_percent = ThrottledPercent(before.pod_cpu, now.pod_cpu, pod_reset);
  const auto growth = [&figures](const auto& first, const auto& second) {
    return Growth(first, second, figures.reset).value_or(0);
  };
  if (before.cpu_pressure && now.cpu_pressure) {
    const auto waited = Growth(before.cpu_pressure->some_us, now.cpu_pressure->some_us, pod_reset);
    if (waited && seconds > 0)
      figures.waited_percent = std::min(100.0, static_cast<double>(*waited) / 1e4 / seconds);
  }
  figures.oom_kills = growth(before.events.oom_kills, now.events.oom_kills);
  figures.high_events = growth(before.events.high, now.events.high);
  figures.oom_events = Growth(before.events.oom, now.events.oom, figures.reset);
}

ContainerFigures ComputeContainer(const UsageSubject& subject, const ContainerCounters& now) {
  ContainerFigures figures{.subject = subject,
                           .pod_cgroup = now.pod_cgroup,
                           .cgroup = now.cgroup,
                           .cpu_pressure = now.cpu_pressure,
                           .memory_pressure = now.memory_pressure,
                           .memory_bytes = now.memory_bytes,
                           .memory_by_node = now.memory_by_node,
                           .events = now.events,
                           .memory_limit = now.memory_limit,
                           .memory_high = now.memory_high};
  if (subject.mems.empty()) return figures;
  double all = 0;
  for (const auto& [node, bytes] : now.memory_by_node) {
    all += static_cast<double>(bytes);
    if (!subject.mems.Contains(node)) AddBytes(bytes, figures.remote_bytes);
  }
  if (!now.memory_by_node.empty())
    figures.remote_percent =
        all > 0 ? std::min(100.0, 100 * static_cast<double>(figures.remote_bytes) / all) : 0;
  return figures;
}

// If the idle time of a CPU goes back further than this, in ticks of 10 ms, the CPU was offline
// meanwhile, and counts its idle time anew.
constexpr uint64_t kIdleAnew = 1000;

// nullopt if no time has passed, or the CPU was offline meanwhile.
std::optional<CpuFigures> ComputeCpu(const CpuTimes& before, const CpuTimes& now) {
  if (now.idle < before.idle && before.idle - now.idle > kIdleAnew) return std::nullopt;
  // Counters may go back a little, since the kernel estimates the times of idle CPUs.
  const auto grown = [&before, &now](uint64_t CpuTimes::*member) {
    return now.*member > before.*member ? static_cast<double>(now.*member - before.*member) : 0.0;
  };
  const double irq = grown(&CpuTimes::irq) + grown(&CpuTimes::softirq);
  const double busy = grown(&CpuTimes::user) + grown(&CpuTimes::system) + irq;
  const double steal = grown(&CpuTimes::steal);
  const double all = busy + steal + grown(&CpuTimes::idle);
  if (all <= 0) return std::nullopt;
  return CpuFigures{.busy_percent = 100 * busy / all,
                    .irq_percent = 100 * irq / all,
                    .steal_percent = 100 * steal / all};
}

std::map<int, CpuFigures> ComputeCpus(const UsageCounters& before, const UsageCounters& now) {
  std::map<int, CpuFigures> figures;
  const double seconds = Seconds(now.at - before.at).count();
  for (const auto& [id, times] : now.cpus) {
    const auto found = before.cpus.find(id);
    if (found == before.cpus.end()) continue;
    std::optional<CpuFigures> cpu = ComputeCpu(found->second, times);
    if (!cpu) continue;
    cpu->top_interrupt = TopOf(before.interrupts, now.interrupts, id);
    if (seconds > 0)
      cpu->interrupts_per_second = static_cast<double>(cpu->top_interrupt.count) / seconds;
    figures.emplace(id, *std::move(cpu));
  }
  return figures;
}

// If all CPUs of the container are exclusive, use beyond the container's own is by others.
void ComputeOthers(const UsageFigures& figures, ContainerFigures& container) {
  const CpuSet& own = container.subject.exclusive;
  if (own.empty() || own != container.subject.cpus || !container.cpu_used) return;
  double used = 0;
  for (const int id : own) {
    const auto cpu = figures.cpus.find(id);
    if (cpu == figures.cpus.end()) return;
    used += (cpu->second.busy_percent - cpu->second.irq_percent) / 100;
  }
  container.others_used = std::max(0.0, used - *container.cpu_used);
}

NodeFigures ComputeNode(const NodeCounters* before, const NodeCounters& now) {
  NodeFigures figures{.total_bytes = now.total_bytes};
  if (now.total_bytes && now.free_bytes)
    figures.used_bytes = std::max<int64_t>(0, *now.total_bytes - *now.free_bytes);
  if (before == nullptr) return figures;
  bool reset = false;
  const auto local = Growth(before->local_pages, now.local_pages, reset);
  const auto other = Growth(before->other_pages, now.other_pages, reset);
  if (!local || !other) return figures;
  const double all = static_cast<double>(*local) + static_cast<double>(*other);
  figures.other_pages_percent = all > 0 ? 100 * static_cast<double>(*other) / all : 0;
  return figures;
}

void AddPressure(const std::optional<Pressure>& pressure, std::optional<Pressure>& highest) {
  if (!pressure) return;
  const Pressure known = highest.value_or(Pressure());
  highest = Pressure{.some10 = std::max(known.some10, pressure->some10),
                     .some60 = std::max(known.some60, pressure->some60)};
}

void AddToPool(const ContainerFigures& container, PoolFigures& pool) {
  ++pool.containers;
  pool.cpus |= container.subject.cpus - container.subject.exclusive;
  pool.shared |= container.subject.exclusive.empty();
  pool.cpu_used += container.cpu_used.value_or(0);
  AddBytes(container.remote_bytes, pool.remote_bytes);
  for (const auto& [node, bytes] : container.memory_by_node)
    AddBytes(bytes, pool.memory_by_node[node]);
  AddPressure(container.cpu_pressure, pool.cpu_pressure);
  if (container.subject.exclusive.empty() && !container.IsThrottled())
    AddPressure(container.cpu_pressure, pool.waiting);
}

// The counters of containers and CPUs are read one after the other, so that together containers may
// seem to use more than all CPUs have. Then their use is scaled down to that.
void BoundByMachine(UsageFigures& figures) {
  double sum = 0;
  for (const ContainerFigures& container : figures.containers)
    sum += container.cpu_used.value_or(0);
  double busy = 0;
  for (const auto& [id, cpu] : figures.cpus)
    busy += cpu.busy_percent / 100;
  const auto all = static_cast<double>(figures.cpus.size());
  if (all > 0 && sum > all) {
    for (ContainerFigures& container : figures.containers)
      if (container.cpu_used) *container.cpu_used *= all / sum;
    sum = all;
  }
  figures.cpu_used = std::max(busy, sum);
}

void AddContainersToNodes(UsageFigures& figures) {
  for (const ContainerFigures& container : figures.containers) {
    for (const auto& [id, bytes] : container.memory_by_node) {
      const auto node = figures.nodes.find(id);
      if (node != figures.nodes.end()) AddBytes(bytes, node->second.container_bytes);
    }
  }
  for (auto& [id, node] : figures.nodes)
    if (node.used_bytes) node.used_bytes = std::max(*node.used_bytes, node.container_bytes);
}

std::map<std::string, MonitorFigures> ComputeMonitors(const UsageCounters* before,
                                                      const UsageCounters& now) {
  std::map<std::string, MonitorFigures> figures;
  for (const auto& [name, monitor] : now.monitors) {
    MonitorFigures& figure = figures[name];
    figure.llc_bytes = monitor.llc_bytes;
    if (before == nullptr) continue;
    const auto old = before->monitors.find(name);
    const double seconds = Seconds(now.at - before->at).count();
    if (old == before->monitors.end() || seconds <= 0) continue;
    bool reset = false;
    const auto traffic =
        Growth(old->second.memory_traffic_bytes, monitor.memory_traffic_bytes, reset);
    // Growth counts only without a reset. The hardware's counter has 24 bits or more, and the
    // kernel reads it once a second, so wraps are not resets.
    if (traffic && !reset) figure.memory_bytes_per_second = static_cast<double>(*traffic) / seconds;
  }
  return figures;
}

// Counts kills by the pods' counters: a container whose only process is killed ends before its own
// counter can be read. A kill between the readings of a container and of its pod counts for both,
// which is rare.
void ComputePodKills(const UsageCounters& before, const UsageCounters& now, UsageFigures& figures) {
  std::map<std::string_view, uint64_t> known;
  for (const ContainerFigures& container : figures.containers)
    if (!container.reset) known[container.pod_cgroup] += container.oom_kills;
  for (const auto& [cgroup, pod] : now.pods) {
    const auto old = before.pods.find(cgroup);
    if (old == before.pods.end() || pod.oom_kills <= old->second.oom_kills) continue;
    const uint64_t all = pod.oom_kills - old->second.oom_kills;
    const auto told = known.find(cgroup);
    const uint64_t of_known = told == known.end() ? 0 : told->second;
    if (all > of_known) figures.pods.push_back({.name = pod.name, .count = all - of_known});
  }
}

}  // namespace

std::optional<double> ContainerFigures::AnyThrottledPercent() const {
  if (!throttled_percent) return pod_throttled_percent;
  return std::max(*throttled_percent, pod_throttled_percent.value_or(0));
}

double IrqPercent(const CpuTimes& before, const CpuTimes& now) {
  return ComputeCpu(before, now).value_or(CpuFigures()).irq_percent;
}

bool ContainerFigures::IsThrottled() const {
  return AnyThrottledPercent().value_or(0) >= kThrottledPercent;
}

std::optional<double> ContainerFigures::PressureForCpus() const {
  if (IsThrottled()) return std::nullopt;
  if (waited_percent || !cpu_pressure) return waited_percent;
  return cpu_pressure->some10;
}

double BusyCpus(const UsageFigures& figures, const CpuSet& cpus) {
  double busy = 0;
  for (const int cpu : cpus) {
    const auto found = figures.cpus.find(cpu);
    if (found != figures.cpus.end()) busy += found->second.busy_percent / 100;
  }
  return busy;
}

UsageFigures ComputeUsage(const UsageCounters* before, const UsageCounters& now,
                          const std::vector<UsageSubject>& subjects) {
  UsageFigures figures{.since = before == nullptr ? now.wall : before->wall,
                       .until = now.wall,
                       .from = before == nullptr ? now.at : before->at,
                       .at = now.at,
                       .monitors = ComputeMonitors(before, now),
                       .complete = before != nullptr,
                       .unified = now.unified,
                       .files = now.files,
                       .notes = now.notes};
  for (const UsageSubject& subject : subjects) {
    const auto found = now.containers.find(subject.id);
    if (found == now.containers.end()) continue;
    ContainerFigures& container =
        figures.containers.emplace_back(ComputeContainer(subject, found->second));
    if (before == nullptr) continue;
    const auto old = before->containers.find(subject.id);
    if (old != before->containers.end()) ComputeRates(old->second, found->second, container);
  }
  if (before != nullptr) {
    figures.cpus = ComputeCpus(*before, now);
    ComputePodKills(*before, now, figures);
  }
  for (const auto& [id, node] : now.nodes) {
    const NodeCounters* old = nullptr;
    if (before != nullptr) {
      const auto known = before->nodes.find(id);
      if (known != before->nodes.end()) old = &known->second;
    }
    figures.nodes.emplace(id, ComputeNode(old, node));
  }
  BoundByMachine(figures);
  for (ContainerFigures& container : figures.containers)
    ComputeOthers(figures, container);
  AddContainersToNodes(figures);
  for (const ContainerFigures& container : figures.containers) {
    if (!container.subject.pool.empty())
      AddToPool(container, figures.pools[container.subject.pool]);
  }
  for (auto& [name, pool] : figures.pools)
    pool.busy = BusyCpus(figures, pool.cpus);
  return figures;
}

}  // namespace resmgr
