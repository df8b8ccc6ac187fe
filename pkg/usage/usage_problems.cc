// SPDX-License-Identifier: Apache-2.0
#include "pkg/usage/usage_problems.h"

#include <algorithm>
#include <ratio>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "pkg/base/amount_text.h"
#include "pkg/policy/conventions.h"

namespace resmgr {
namespace {

// "CPU 2", "CPUs 2-3"
std::string CpusText(const CpuSet& cpus) {
  return fmt::format("{} {}", cpus.size() == 1 ? "CPU" : "CPUs", cpus.ToString());
}

Problem Throttled(const UsageFigures& figures, const ContainerFigures& container, bool by_pod) {
  const UsageSubject& subject = container.subject;
  const std::string name = subject.FullName();
  const double percent =
      (by_pod ? container.pod_throttled_percent : container.throttled_percent).value_or(0);
  Problem problem{.kind = "throttled", .objects = {name}};
  problem.message = fmt::format(
      "{} has {} for itself, and {} throttles it in {:.0f} % of the periods (it uses {:.2f} of {})",
      name, CpusText(subject.exclusive), by_pod ? "the quota of its pod" : "its own quota", percent,
      container.cpu_used.value_or(0), CountText(subject.exclusive.size(), "CPU"));
  if (by_pod) {
    problem.next = figures.unified
                       ? fmt::format("echo max > {}/cpu.max", container.pod_cgroup)
                       : fmt::format("echo -1 > {}/cpu.cfs_quota_us", container.pod_cgroup);
  } else {
    problem.next = fmt::format(
        "cri-resmgr-ctl explain {} tells who set the quota; the policy lifts it with cpu-quota: "
        "lift (CPUQuota: lift of topology-aware)",
        name);
  }
  return problem;
}

Problem Idle(const ContainerFigures& container, double percent) {
  const UsageSubject& subject = container.subject;
  const std::string name = subject.FullName();
  return {.message = fmt::format("{} leaves {}, which no other container may use, idle: {:.1f} % "
                                 "busy",
                                 name, CpusText(subject.exclusive), percent),
          .objects = {name},
          .next = fmt::format("kubectl -n {} patch pod {} --subresource resize with fewer CPUs, or "
                              "with a fraction, for which it shares CPUs",
                              subject.namespace_name, subject.pod)};
}

Problem Remote(const UsageFigures& figures, const ContainerFigures& container) {
  const UsageSubject& subject = container.subject;
  const std::string name = subject.FullName();
  std::string where;
  int from = -1;
  int64_t most = 0;
  for (const auto& [node, bytes] : container.memory_by_node) {
    if (subject.mems.Contains(node) || bytes == 0) continue;
    where += fmt::format("{}{} on node {}", where.empty() ? "" : ", ", BytesText(bytes), node);
    if (bytes > most) from = node;
    most = std::max(most, bytes);
  }
  return {.kind = "remote-memory",
          .message = fmt::format("{} has {:.0f} % of its memory off its nodes {}: {}{}", name,
                                 container.remote_percent.value_or(0), subject.mems.ToString(),
                                 where, figures.unified ? "" : " (cgroup v1 moves no memory)"),
          .objects = {name, fmt::format("node {}", from)},
          .next = fmt::format("for p in $(cat {}/cgroup.procs); do migratepages $p {} {}; done",
                              container.cgroup, from, subject.mems.First())};
}

// The CPU among these that is busiest with interrupts, and its figures; id -1 if none is known.
std::pair<int, CpuFigures> MostInterrupted(const UsageFigures& figures, const CpuSet& cpus) {
  std::pair<int, CpuFigures> most{-1, {}};
  for (const int id : cpus) {
    const auto cpu = figures.cpus.find(id);
    if (cpu != figures.cpus.end() && cpu->second.irq_percent > most.second.irq_percent) most = *cpu;
  }
  return most;
}

// CPUs that no container has exclusively.
CpuSet UnownedCpus(const UsageFigures& figures) {
  CpuSet cpus;
  for (const auto& [id, cpu] : figures.cpus)
    cpus |= CpuSet{id};
  for (const ContainerFigures& container : figures.containers)
    cpus = cpus - container.subject.exclusive;
  return cpus;
}

Problem Interrupted(const UsageFigures& figures, const ContainerFigures& container, int id,
                    const CpuFigures& cpu) {
  const std::string name = container.subject.FullName();
  const TopInterrupt& top = cpu.top_interrupt;
  Problem problem{.kind = "pressure", .objects = {name, fmt::format("CPU {}", id)}};
  problem.message = fmt::format("interrupts take {:.0f} % of CPU {}, which is {}'s own",
                                cpu.irq_percent, id, name);
  if (!top.name.empty())
    problem.message +=
        fmt::format(": mostly {}, {:.0f} a second", top.name, cpu.interrupts_per_second);
  const CpuSet others = UnownedCpus(figures);
  problem.next = top.number().empty() || others.empty()
                     ? "cat /proc/interrupts"
                     : fmt::format("echo {} > /proc/irq/{}/smp_affinity_list", others.ToString(),
                                   top.number());
  return problem;
}

Problem UsedByOthers(const ContainerFigures& container) {
  const UsageSubject& subject = container.subject;
  const std::string name = subject.FullName();
  return {
      .kind = "pressure",
      .message = fmt::format("tasks of the kernel, or others that are in no container, use {:.2f} "
                             "CPUs of {}, which {} {}'s own",
                             container.others_used.value_or(0), CpusText(subject.exclusive),
                             subject.exclusive.size() == 1 ? "is" : "are", name),
      .objects = {name},
      .next = fmt::format("ps -eLo psr,pid,tid,pcpu,cgroup:60,comm --sort=-pcpu | "
                          "grep -wE '^ *({})' | head",
                          fmt::join(subject.exclusive, "|"))};
}

double TimesAMinute(const UsageFigures& figures, uint64_t times) {
  const double minutes =
      std::chrono::duration<double, std::ratio<60>>(figures.at - figures.from).count();
  return minutes > 0 ? static_cast<double>(times) / minutes : 0;
}

Problem Confined(const ContainerFigures& container) {
  const UsageSubject& subject = container.subject;
  const std::string name = subject.FullName();
  return {.kind = "pressure",
          .message =
              fmt::format("{} waits for a CPU in {:.0f} % of the time: its limit is {:.3g} "
                          "CPUs, and pool {} has {} ({})",
                          name, container.cpu_pressure.value_or(Pressure()).some60, subject.limit,
                          subject.pool, subject.cpus.size(), subject.cpus.ToString()),
          .objects = {name, "pool " + subject.pool},
          .next = "cri-resmgr-ctl rebalance"};
}

}  // namespace

size_t UsageProblems::Observe(const UsageFigures& figures) {
  if (!figures.complete) return 0;
  for (auto& [key, known] : known_)
    known.seen = false;
  for (const ContainerFigures& container : figures.containers)
    ObserveContainer(figures, container);
  CountKills(figures);
  ObservePools(figures);
  size_t ended = 0;
  for (const auto& [key, known] : known_)
    if (!known.seen && End(figures, key, known)) ++ended;
  std::erase_if(known_, [](const auto& known) { return !known.second.seen; });
  return std::min(ended, effects_.size());
}

void UsageProblems::Forget() {
  std::erase_if(known_, [](const auto& known) { return known.first.first != Kind::kKilled; });
  for (auto& [key, known] : known_)
    known.lasts = false;
}

UsageProblems::AboutNow UsageProblems::Now(const UsageFigures& figures,
                                           const ContainerFigures& container, Kind kind) {
  const std::string name = container.subject.FullName();
  switch (kind) {
    case Kind::kRemote:
      return {container.remote_percent.value_or(0), name + " has off its nodes", "% of its memory"};
    case Kind::kInterrupts:
      return {MostInterrupted(figures, container.subject.exclusive).second.irq_percent,
              fmt::format("interrupts take of one of the CPUs of {}", name), "% of the time"};
    case Kind::kOthers:
      return {100 * container.others_used.value_or(0),
              fmt::format("others use of the CPUs of {}", name), "% of one CPU"};
    case Kind::kSmallPool:
      return {container.cpu_pressure.value_or(Pressure()).some60, name + " waits for a CPU in",
              "% of the time"};
    case Kind::kMemoryHigh:
      return {TimesAMinute(figures, container.high_events), name + " reaches memory.high",
              "times a minute"};
    default:
      return {container.AnyThrottledPercent().value_or(0), name + " is throttled in",
              "% of the periods"};
  }
}

// Ends a problem. False: it was not reported, or its object does not exist any more.
bool UsageProblems::End(const UsageFigures& figures, const Key& key, const Known& known) {
  const auto& [kind, id] = key;
  if (!known.lasts || kind == Kind::kIdle) return false;
  Effect effect{.kind = known.problem.kind,
                .id = id,
                .since = known.since,
                .ended = figures.until,
                .before = known.percent};
  AboutNow now;
  if (kind == Kind::kPressure) {
    const auto pool = figures.pools.find(id);
    if (pool == figures.pools.end()) return false;
    now = {pool->second.waiting.value_or(Pressure()).some60,
           fmt::format("tasks in pool {} wait in", id), "% of the time"};
  } else if (kind != Kind::kKilled) {
    const auto found = std::ranges::find(
        figures.containers, id, [](const ContainerFigures& each) { return each.subject.id; });
    if (found == figures.containers.end()) return false;
    now = Now(figures, *found, kind);
  }
  effect.after = now.percent;
  effect.message =
      kind == Kind::kKilled
          ? fmt::format("{}, {:.0f} before", KillsText(id, 0), effect.before)
          : fmt::format("{} {:.0f} {}, {:.0f}{} before", now.begin, now.percent, now.unit,
                        effect.before, now.unit.starts_with('%') ? " %" : "");
  if (effects_.size() == kMostEffects) effects_.pop_front();
  effects_.push_back(std::move(effect));
  return true;
}

void UsageProblems::ObserveContainer(const UsageFigures& figures,
                                     const ContainerFigures& container) {
  const UsageSubject& subject = container.subject;
  subject.exclusive.empty() ? ObserveShared(figures, container)
                            : ObserveExclusive(figures, container);
  ObserveMemory(figures, container);
  if (container.remote_bytes >= limits_.remote_bytes &&
      container.remote_percent.value_or(0) >= limits_.remote_percent)
    Note(figures, {Kind::kRemote, subject.id}, limits_.lasts, container.remote_percent.value_or(0),
         Remote(figures, container));
}

// Returns at once if the counters were reset: they say nothing about the time between the samples.
void UsageProblems::ObserveMemory(const UsageFigures& figures, const ContainerFigures& container) {
  if (container.reset) return;
  if (container.oom_kills > 0)
    NoteKills(figures, container.subject.FullName(), container.oom_kills,
              KilledForMemory(container));
  const bool waits = !container.memory_pressure ||
                     container.memory_pressure->some60 >= limits_.memory_pressure_percent;
  if (container.high_events == 0 || !waits) return;
  const double times = TimesAMinute(figures, container.high_events);
  Note(figures, {Kind::kMemoryHigh, container.subject.id}, limits_.pressure_lasts, times,
       ReachesMemoryHigh(container, times));
}

void UsageProblems::NoteKills(const UsageFigures& figures, const std::string& name, uint64_t count,
                              Problem problem) {
  const Key key{Kind::kKilled, name};
  const auto former = known_.find(key);
  if (former != known_.end() && former->second.kills.Count(figures.at) == 0) known_.erase(former);
  const auto killed = [](const auto& known) { return known.first.first == Kind::kKilled; };
  if (!known_.contains(key) && std::ranges::count_if(known_, killed) >= kMostKilled) return;
  std::string cause = std::exchange(problem.message, "");
  Known& known = Note(figures, key, std::chrono::seconds(0), 0, std::move(problem));
  known.cause = std::move(cause);
  known.kills.Add(figures.at, count);
}

// Forgets kills of more than an hour ago, also for containers that have ended.
void UsageProblems::CountKills(const UsageFigures& figures) {
  for (const PodKills& pod : figures.pods)
    NoteKills(figures, pod.name, pod.count, KilledWithContainer(pod.name));
  for (auto& [key, known] : known_) {
    if (key.first != Kind::kKilled) continue;
    const uint64_t kills = known.kills.Count(figures.at);
    known.seen = kills > 0;
    if (!known.seen) continue;
    known.lasts = true;
    known.percent = static_cast<double>(kills);
    known.problem.message = fmt::format("{}, {}", KillsText(key.second, kills), known.cause);
  }
}

void UsageProblems::ObserveExclusive(const UsageFigures& figures,
                                     const ContainerFigures& container) {
  const UsageSubject& subject = container.subject;
  const double own = container.throttled_percent.value_or(0);
  const double pods = container.pod_throttled_percent.value_or(0);
  if (std::max(own, pods) >= limits_.throttled_percent)
    Note(figures, {Kind::kThrottled, subject.id}, limits_.lasts, std::max(own, pods),
         Throttled(figures, container, pods > own));
  const double percent =
      100 * container.cpu_used.value_or(subject.exclusive.size()) / subject.exclusive.size();
  if (percent < limits_.idle_percent)
    Note(figures, {Kind::kIdle, subject.id}, limits_.idle_lasts, percent, Idle(container, percent));
  const auto [id, cpu] = MostInterrupted(figures, subject.exclusive);
  if (cpu.irq_percent >= limits_.interrupt_percent)
    Note(figures, {Kind::kInterrupts, subject.id}, limits_.lasts, cpu.irq_percent,
         Interrupted(figures, container, id, cpu));
  const double most = std::max(limits_.others_used, limits_.others_part * subject.exclusive.size());
  if (container.others_used.value_or(0) >= most)
    Note(figures, {Kind::kOthers, subject.id}, limits_.lasts, 100 * *container.others_used,
         UsedByOthers(container));
}

// A throttled container waits for its quota, and not for CPUs, so its pressure does not count.
void UsageProblems::ObserveShared(const UsageFigures& figures, const ContainerFigures& container) {
  const UsageSubject& subject = container.subject;
  if (subject.cpus.empty() || subject.limit <= subject.cpus.size()) return;
  if (container.IsThrottled()) return;
  const double waits = container.cpu_pressure.value_or(Pressure()).some60;
  if (waits < limits_.pressure_percent) return;
  Note(figures, {Kind::kSmallPool, subject.id}, limits_.pressure_lasts, waits, Confined(container));
}

void UsageProblems::ObservePools(const UsageFigures& figures) {
  const auto is_compared = [](const std::string& name, const PoolFigures& pool) {
    return pool.shared && !pool.cpus.empty() && !IsReservedPool(name);
  };
  const auto has_room = [this](const PoolFigures& pool) {
    return 100 * pool.busy <= limits_.room_percent * static_cast<double>(pool.cpus.size()) &&
           pool.waiting.value_or(Pressure()).some60 <= limits_.room_pressure_percent;
  };
  for (const auto& [name, pool] : figures.pools) {
    const double pressure = pool.waiting.value_or(Pressure()).some60;
    if (!is_compared(name, pool) || pressure < limits_.pressure_percent) continue;
    const auto other =
        std::ranges::find_if(figures.pools, [&, &cpus = pool.cpus](const auto& each) {
          return is_compared(each.first, each.second) && !each.second.cpus.Intersects(cpus) &&
                 has_room(each.second);
        });
    if (other == figures.pools.end()) continue;
    Note(figures, {Kind::kPressure, name}, limits_.pressure_lasts, pressure,
         {.kind = "pressure",
          .message = fmt::format(
              "tasks in pool {} wait for a CPU in {:.0f} % of the time ({:.1f} of {} are busy), "
              "while pool {} has room ({:.1f} of {})",
              name, pressure, pool.busy, CountText(pool.cpus.size(), "CPU"), other->first,
              other->second.busy, CountText(other->second.cpus.size(), "CPU")),
          .objects = {"pool " + name, "pool " + other->first},
          .next = "cri-resmgr-ctl rebalance -by use"});
  }
}

UsageProblems::Known& UsageProblems::Note(const UsageFigures& figures, Key key,
                                          std::chrono::seconds lasts, double percent,
                                          Problem problem) {
  const auto [found, added] = known_.try_emplace(std::move(key));
  Known& known = found->second;
  if (added) {
    known.since = figures.since;
    known.begun = figures.from;
  }
  known.seen = true;
  known.lasts = !added && figures.at - known.begun >= lasts;
  known.problem = std::move(problem);
  known.percent = percent;
  known.problem.since = known.since;
  return known;
}

std::vector<Problem> UsageProblems::List() const {
  std::vector<Problem> problems;
  std::map<Kind, size_t> counts;
  for (const auto& [key, known] : known_) {
    if (!known.lasts || key.first == Kind::kIdle) continue;
    const size_t count = ++counts[key.first];
    if (count <= kMostNamed) {
      problems.push_back(known.problem);
    } else if (count == kMostNamed + 1) {
      problems.push_back({.kind = known.problem.kind, .since = known.since});
    }
    if (count > kMostNamed) {
      problems.back().message =
          fmt::format("and {} more such containers or pools", count - kMostNamed);
      problems.back().next = "cri-resmgr-ctl top";
    }
  }
  return problems;
}

std::string UsageProblems::AdviceOf(const std::string& id) const {
  const auto found = known_.find({Kind::kIdle, id});
  if (found == known_.end() || !found->second.lasts) return "";
  const Problem& advice = found->second.problem;
  return fmt::format("{}; try: {}", advice.message, advice.next);
}

}  // namespace resmgr
