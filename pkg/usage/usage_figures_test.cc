// SPDX-License-Identifier: Apache-2.0
#include "pkg/usage/usage_figures.h"

#include <limits>
#include <memory>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/resmgr/testing/test_node.h"
#include "pkg/usage/usage_counters.h"
#include "test/support/machines/machines.h"
#include "test/support/seed.h"

namespace resmgr {
namespace {

using std::chrono::seconds;
using testing::DoubleNear;
using testing::Optional;

constexpr auto kStart = std::chrono::steady_clock::time_point(std::chrono::hours(1));

UsageCounters At(seconds time) {
  return {.at = kStart + time, .wall = std::chrono::system_clock::time_point(time)};
}

ContainerCounters CpuAt(seconds time, uint64_t usage_ns) {
  return {.read_at = kStart + time, .cpu = {.usage_ns = usage_ns}};
}

TEST(UsageFiguresTest, RatesAreBetweenTheSamples) {
  UsageCounters before = At(seconds(0));
  UsageCounters now = At(seconds(10));
  before.containers["a"] = {.read_at = kStart,
                            .cpu = {.usage_ns = 5, .periods = 100, .throttled = 10},
                            .pod_cpu = {.periods = 100, .throttled = 0},
                            .events = {.high = 1, .oom = 1, .oom_kills = 1}};
  now.containers["a"] = {.read_at = kStart + seconds(10),
                         .cpu = {.usage_ns = 15'000'000'005, .periods = 200, .throttled = 60},
                         .pod_cpu = {.periods = 150, .throttled = 50},
                         .memory_by_node = {{0, 300}, {1, 100}},
                         .events = {.high = 4, .oom = 2, .oom_kills = 2},
                         .memory_limit = 4096};
  const UsageFigures figures =
      ComputeUsage(&before, now, {{.id = "a", .mems = {0}, .pool = "p"}, {.id = "gone"}});
  ASSERT_EQ(figures.containers.size(), 1U);
  const ContainerFigures& a = figures.containers[0];
  EXPECT_THAT(a.cpu_used, Optional(1.5));
  EXPECT_THAT(a.throttled_percent, Optional(50.0));
  EXPECT_THAT(a.pod_throttled_percent, Optional(100.0));
  EXPECT_THAT(a.AnyThrottledPercent(), Optional(100.0));
  EXPECT_EQ(a.remote_bytes, 100);
  EXPECT_THAT(a.remote_percent, Optional(25.0));
  EXPECT_EQ(a.high_events, 3U);
  EXPECT_EQ(a.oom_kills, 1U);
  EXPECT_THAT(a.oom_events, Optional(1U));
  EXPECT_THAT(a.events.oom_kills, Optional(2U));
  EXPECT_THAT(a.memory_limit, Optional(4096U));
  EXPECT_FALSE(a.reset);
  EXPECT_DOUBLE_EQ(figures.pools.at("p").cpu_used, 1.5);
  EXPECT_EQ(figures.pools.at("p").remote_bytes, 100);
  EXPECT_EQ(figures.since, before.wall);
}

TEST(UsageFiguresTest, APodHasTheKillsOfContainersThatHaveEnded) {
  UsageCounters before = At(seconds(0));
  UsageCounters now = At(seconds(10));
  before.containers["ended"] = {.pod_cgroup = "/pod1", .events = {.oom_kills = 0}};
  before.containers["runs"] = {.pod_cgroup = "/pod1", .events = {.oom_kills = 1}};
  now.containers["runs"] = {.pod_cgroup = "/pod1", .events = {.oom_kills = 2}};
  now.containers["new"] = {.pod_cgroup = "/pod1", .events = {.oom_kills = 0}};
  before.pods = {{"/pod1", {"ns/web", 3}}, {"/pod2", {"ns/db", 3}}, {"/pod3", {"ns/x", 3}}};
  now.pods = {{"/pod1", {"ns/web", 6}},  // one of these is in "runs"
              {"/pod2", {"ns/db", 3}},
              {"/pod3", {"ns/x", 1}},     // went backwards
              {"/pod4", {"ns/new", 9}}};  // of an unknown time
  const UsageFigures figures = ComputeUsage(&before, now, {{.id = "runs"}, {.id = "new"}});
  ASSERT_EQ(figures.pods.size(), 1U);
  EXPECT_EQ(figures.pods[0].name, "ns/web");
  EXPECT_EQ(figures.pods[0].count, 2U);
  EXPECT_TRUE(ComputeUsage(nullptr, now, {}).pods.empty());
}

TEST(UsageFiguresTest, OnlyContainersWithoutAQuotaAndCpusOfTheirOwnWaitForThePool) {
  UsageCounters before = At(seconds(0));
  UsageCounters now = At(seconds(1));
  const auto add = [&](const std::string& id, double pressure, uint64_t throttled) {
    before.containers[id] = {.read_at = kStart, .cpu = {.periods = 0, .throttled = 0}};
    now.containers[id] = {.read_at = kStart + seconds(1),
                          .cpu = {.periods = 100, .throttled = throttled},
                          .cpu_pressure = Pressure{.some60 = pressure}};
  };
  add("throttled", 80, 90);
  add("own", 70, 0);
  add("free", 10, 0);
  before.cpus = {{0, {}}, {1, {}}, {2, {}}};
  now.cpus = {{0, {.user = 100}}, {1, {.user = 50, .idle = 50}}, {2, {.user = 100}}};
  const UsageFigures figures =
      ComputeUsage(&before, now,
                   {{.id = "throttled", .cpus = {0, 1}, .pool = "p"},
                    {.id = "own", .cpus = {1, 2}, .exclusive = {2}, .pool = "p"},
                    {.id = "free", .cpus = {0, 1}, .pool = "p"}});
  const PoolFigures& pool = figures.pools.at("p");
  EXPECT_DOUBLE_EQ(pool.cpu_pressure->some60, 80);
  EXPECT_DOUBLE_EQ(pool.waiting->some60, 10);
  EXPECT_DOUBLE_EQ(pool.busy, 1.5) << "CPU 2 is no CPU of the pool";
  EXPECT_EQ(figures.from, before.at);
}

TEST(UsageFiguresTest, OneSampleHasNoRates) {
  UsageCounters now = At(seconds(1));
  now.containers["a"] = CpuAt(seconds(1), 7);
  now.containers["a"].memory_bytes = 4096;
  const UsageFigures figures = ComputeUsage(nullptr, now, {{.id = "a"}});
  EXPECT_FALSE(figures.complete);
  EXPECT_FALSE(figures.containers[0].cpu_used);
  EXPECT_EQ(figures.containers[0].memory_bytes, 4096U);
  EXPECT_FALSE(figures.containers[0].remote_percent) << "it may have memory everywhere";
}

TEST(UsageFiguresTest, CountersThatBeginAnewAreNoticed) {
  UsageCounters before = At(seconds(0));
  UsageCounters now = At(seconds(2));
  before.containers["a"] = CpuAt(seconds(0), 9'000'000'000'000);
  before.containers["max"] = CpuAt(seconds(0), std::numeric_limits<uint64_t>::max());
  now.containers["a"] = CpuAt(seconds(2), 1'000'000'000);
  now.containers["max"] = CpuAt(seconds(2), 0);
  const UsageFigures figures = ComputeUsage(&before, now, {{.id = "a"}, {.id = "max"}});
  EXPECT_TRUE(figures.containers[0].reset);
  EXPECT_THAT(figures.containers[0].cpu_used, Optional(0.5)) << "since it began anew, at least";
  EXPECT_TRUE(figures.containers[1].reset);
  EXPECT_THAT(figures.containers[1].cpu_used, Optional(0.0));
}

// A restarted container of dockerd has its id again, and perhaps a higher count of one kind.
TEST(UsageFiguresTest, APartOfPeriodsIsOfCountersThatBeganAnewTogether) {
  UsageCounters before = At(seconds(0));
  UsageCounters now = At(seconds(2));
  before.containers["a"].cpu = {.periods = 1000, .throttled = 10};
  now.containers["a"].cpu = {.periods = 100, .throttled = 50};
  const UsageFigures figures = ComputeUsage(&before, now, {{.id = "a"}});
  EXPECT_TRUE(figures.containers[0].reset);
  EXPECT_THAT(figures.containers[0].throttled_percent, Optional(50.0));
}

// Before Linux 6.9 the idle time of a CPU begins anew when it comes online.
TEST(UsageFiguresTest, ACpuThatWasOfflineMeanwhileIsNotBusy) {
  UsageCounters before = At(seconds(0));
  UsageCounters now = At(seconds(10));
  before.cpus = {{0, {.user = 500, .idle = 900'000}}, {1, {}}};
  now.cpus = {{0, {.user = 502, .idle = 600}}, {1, {.user = 10, .idle = 990}}};
  const auto cpus = ComputeUsage(&before, now, {}).cpus;
  EXPECT_FALSE(cpus.contains(0));
  EXPECT_DOUBLE_EQ(cpus.at(1).busy_percent, 1);
}

TEST(UsageFiguresTest, CpusAreBusyWithInterruptsAndNotWithWhatWasStolen) {
  UsageCounters before = At(seconds(0));
  UsageCounters now = At(seconds(1));
  before.cpus = {{0, {}}, {1, {.user = 50, .idle = 50}}, {2, {}}};
  now.cpus = {{0, {.user = 20, .system = 10, .idle = 50, .irq = 5, .softirq = 5, .steal = 10}},
              {1, {.user = 60, .idle = 40}},
              {3, {.user = 1}}};
  const auto cpus = ComputeUsage(&before, now, {}).cpus;
  ASSERT_EQ(cpus.size(), 2U) << "those that both samples have";
  EXPECT_DOUBLE_EQ(cpus.at(0).busy_percent, 40);
  EXPECT_DOUBLE_EQ(cpus.at(0).irq_percent, 10);
  EXPECT_DOUBLE_EQ(cpus.at(0).steal_percent, 10);
  EXPECT_DOUBLE_EQ(cpus.at(1).busy_percent, 100) << "the kernel took idle time back";
}

TEST(UsageFiguresTest, OthersUseWhatIsBusyWithoutTheContainerAndInterrupts) {
  UsageCounters before = At(seconds(0));
  UsageCounters now = At(seconds(10));
  for (const char* const id : {"own", "mixed", "shared"}) {
    before.containers[id] = CpuAt(seconds(0), 0);
    now.containers[id] = CpuAt(seconds(10), 5'000'000'000);  // half a CPU
  }
  before.cpus = {{0, {}}, {1, {}}};
  now.cpus = {{0, {.user = 70, .idle = 20, .irq = 10}}, {1, {.user = 20, .idle = 80}}};
  before.interrupts = {{0, {{"24 (x)", 5}}}};
  now.interrupts = {{0, {{"24 (x)", 105}}}};
  const UsageFigures figures = ComputeUsage(&before, now,
                                            {{.id = "own", .cpus = {0, 1}, .exclusive = {0, 1}},
                                             {.id = "mixed", .cpus = {0, 1}, .exclusive = {0}},
                                             {.id = "shared", .cpus = {0, 1}}});
  EXPECT_THAT(figures.containers[0].others_used, Optional(DoubleNear(0.4, 1e-9)));
  EXPECT_EQ(figures.containers[1].others_used, std::nullopt) << "its others use the other CPU, too";
  EXPECT_EQ(figures.containers[2].others_used, std::nullopt);
  EXPECT_EQ(figures.cpus.at(0).top_interrupt.name, "24 (x)");
  EXPECT_DOUBLE_EQ(figures.cpus.at(0).interrupts_per_second, 10);
  EXPECT_DOUBLE_EQ(IrqPercent(before.cpus[0], now.cpus[0]), 10);
  EXPECT_DOUBLE_EQ(IrqPercent(now.cpus[0], now.cpus[0]), 0);
}

// Each counter that exists twice, in any order of its values.
TEST(UsageFiguresTest, NoEventIsInventedAtARestartInPlace) {
  const uint64_t seed = test::SeedOr(1);
  SCOPED_TRACE(test::Repeat(seed));
  std::mt19937_64 random(seed);
  const auto counter = [&random]() -> std::optional<uint64_t> {
    constexpr uint64_t kLargest = std::numeric_limits<uint64_t>::max();
    const uint64_t kind = random() % 8;
    if (kind == 0) return std::nullopt;
    return kind == 1 ? kLargest : kind == 2 ? 0 : random() % 1000;
  };
  const auto container = [&](seconds time) {
    ContainerCounters counters = CpuAt(time, counter().value_or(0));
    counters.pod_cgroup = "/pod";
    counters.cpu.periods = counter();
    counters.cpu.throttled = counter();
    counters.pod_cpu = {.periods = counter(), .throttled = counter()};
    counters.events = {.high = counter(), .oom = counter(), .oom_kills = counter()};
    counters.cpu_pressure = Pressure{.some_us = counter()};
    return counters;
  };
  for (int round = 0; round < 2000; ++round) {
    UsageCounters before = At(seconds(0));
    UsageCounters now = At(seconds(10));
    before.containers["a"] = container(seconds(0));
    now.containers["a"] = container(seconds(10));
    before.pods["/pod"] = {"ns/web", random() % 5};
    now.pods["/pod"] = {"ns/web", random() % 5};
    const MemoryEvents first = before.containers["a"].events;
    const MemoryEvents second = now.containers["a"].events;
    const UsageFigures figures = ComputeUsage(&before, now, {{.id = "a"}});
    const ContainerFigures& a = figures.containers[0];
    EXPECT_LE(a.oom_kills, second.oom_kills.value_or(0));
    EXPECT_LE(a.high_events, second.high.value_or(0));
    if (!first.oom_kills) EXPECT_EQ(a.oom_kills, 0U) << "of an unknown time";
    const bool backwards =
        first.oom_kills && second.oom_kills && *second.oom_kills < *first.oom_kills;
    if (backwards) EXPECT_TRUE(a.reset);
    for (const auto& percent : {a.throttled_percent, a.pod_throttled_percent, a.waited_percent}) {
      EXPECT_GE(percent.value_or(0), 0);
      EXPECT_LE(percent.value_or(0), 100);
    }
    uint64_t of_pods = 0;
    for (const PodKills& pod : figures.pods)
      of_pods += pod.count;
    EXPECT_LE(of_pods, now.pods["/pod"].oom_kills);
    if (now.pods["/pod"].oom_kills <= before.pods["/pod"].oom_kills) EXPECT_EQ(of_pods, 0U);
  }
}

// Sums of containers, pools and nodes, of numbers that no machine has.
TEST(UsageFiguresTest, SumsOfBytesEndAtTheLargestNumber) {
  constexpr int64_t kLargest = std::numeric_limits<int64_t>::max();
  UsageCounters now = At(seconds(1));
  now.nodes[0] = {.total_bytes = 1 << 30, .free_bytes = 0};
  for (const char* const id : {"a", "b"}) {
    now.containers[id] = CpuAt(seconds(1), 7);
    now.containers[id].memory_by_node = {{0, kLargest}, {1, kLargest}, {2, kLargest}};
  }
  const UsageFigures figures = ComputeUsage(
      nullptr, now, {{.id = "a", .mems = {1}, .pool = "p"}, {.id = "b", .mems = {1}, .pool = "p"}});
  EXPECT_EQ(figures.containers[0].remote_bytes, kLargest);
  EXPECT_LE(figures.containers[0].remote_percent.value_or(101), 100);
  EXPECT_EQ(figures.pools.at("p").memory_by_node.at(0), kLargest);
  EXPECT_EQ(figures.pools.at("p").remote_bytes, kLargest);
  EXPECT_EQ(figures.nodes.at(0).container_bytes, kLargest);
}

// Random counters, among them those that wrap, begin anew or are missing.
TEST(UsageFiguresTest, ContainersTogetherNeverHaveMoreThanPoolAndMachine) {
  const uint64_t seed = test::SeedOr(1);
  SCOPED_TRACE(test::Repeat(seed));
  std::mt19937_64 random(seed);
  const auto number = [&random](uint64_t most) { return random() % (most + 1); };
  int reduced = 0;  // samples in which the containers seemed to use more than there is
  for (int round = 0; round < 300; ++round) {
    UsageCounters before = At(seconds(0));
    UsageCounters now = At(seconds(1 + static_cast<int>(number(20))));
    const int cpus = 1 + static_cast<int>(number(7));
    for (int cpu = 0; cpu < cpus; ++cpu) {
      before.cpus[cpu] = {.user = number(100), .idle = number(100)};
      now.cpus[cpu] = {.user = number(300), .idle = 200 + number(300), .steal = number(9)};
    }
    for (int node = 0; node < 2; ++node)
      now.nodes[node] = {.total_bytes = 1 << 30, .free_bytes = number(1 << 30)};
    std::vector<UsageSubject> subjects;
    const uint64_t containers = number(12);
    for (uint64_t i = 0; i < containers; ++i) {
      const std::string id = std::to_string(i);
      subjects.push_back({.id = id, .mems = {0}, .pool = number(1) == 0 ? "a" : "b"});
      const uint64_t most =
          number(9) == 0 ? std::numeric_limits<uint64_t>::max() - 1 : uint64_t{20'000'000'000};
      if (number(9) > 0) before.containers[id] = CpuAt(seconds(0), number(most));
      if (number(9) == 0) continue;
      now.containers[id] =
          CpuAt(std::chrono::duration_cast<seconds>(now.at - kStart), number(most));
      now.containers[id].memory_by_node = {{0, static_cast<int64_t>(number(1 << 24))},
                                           {1, static_cast<int64_t>(number(1 << 24))}};
    }
    const UsageFigures figures = ComputeUsage(&before, now, subjects);
    std::map<std::string, double> used;
    std::map<int, int64_t> memory;
    double all = 0;
    for (const ContainerFigures& container : figures.containers) {
      const double cpu = container.cpu_used.value_or(0);
      EXPECT_GE(cpu, 0);
      used[container.subject.pool] += cpu;
      all += cpu;
      EXPECT_GE(container.remote_percent.value_or(0), 0);
      EXPECT_LE(container.remote_percent.value_or(0), 100);
      for (const auto& [node, bytes] : container.memory_by_node)
        memory[node] += bytes;
    }
    for (const auto& [name, pool] : figures.pools)
      EXPECT_THAT(used[name], DoubleNear(pool.cpu_used, 1e-6));
    EXPECT_LE(all, figures.cpu_used + 1e-6);
    EXPECT_LE(figures.cpu_used, cpus + 1e-6);
    if (all > cpus - 1e-6) ++reduced;
    for (const auto& [id, node] : figures.nodes) {
      EXPECT_EQ(memory[id], node.container_bytes);
      EXPECT_LE(node.container_bytes, *node.used_bytes);
      EXPECT_LE(*node.used_bytes, *node.total_bytes);
    }
    for (const auto& [id, cpu] : figures.cpus) {
      EXPECT_GE(cpu.busy_percent, 0);
      EXPECT_LE(cpu.busy_percent + cpu.steal_percent, 100 + 1e-6);
    }
  }
  EXPECT_GT(reduced, 30);
}

// The container's memory counts on a node and may lie elsewhere, so none of it is remote.
TEST(UsageSubjectTest, ContainersWithoutDecidedNodesHaveNone) {
  test::TestNode node(test::S1Ht(), [](const Machine& machine) {
    auto policy = std::make_unique<test::FirstFitPolicy>(machine);
    policy->spoil = [](Plan& plan) {
      for (auto& change : plan.changes) {
        change.placement.mems.reset();
        change.placement.counted_mems = {0};
      }
    };
    return policy;
  });
  node.Run("web", QosClass::kGuaranteed, 1000);
  const auto subjects = UsageSubjects(&node.manager());
  ASSERT_EQ(subjects.size(), 1U);
  EXPECT_EQ(subjects[0].FullName(), "ns/web/web");
  EXPECT_TRUE(subjects[0].mems.empty());
}

}  // namespace
}  // namespace resmgr
