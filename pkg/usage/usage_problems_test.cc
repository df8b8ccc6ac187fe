// SPDX-License-Identifier: Apache-2.0
#include "pkg/usage/usage_problems.h"

#include <random>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/support/seed.h"

namespace resmgr {
namespace {

using std::chrono::seconds;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing::StartsWith;

class UsageProblemsTest : public testing::Test {
 protected:
  static ContainerFigures Exclusive() {
    return {.subject = {.id = "e",
                        .namespace_name = "ns",
                        .pod = "web",
                        .container = "main",
                        .cpus = {2, 3},
                        .exclusive = {2, 3},
                        .pool = "exclusive",
                        .granted = 2},
            .cpu_used = 1.5,
            .pod_cgroup = "/sys/fs/cgroup/kubepods/pod1",
            .cgroup = "/sys/fs/cgroup/kubepods/pod1/e"};
  }
  // Ten seconds later each time.
  void Observe(std::vector<ContainerFigures> containers,
               std::map<std::string, PoolFigures> pools = {}, seconds step = seconds(10)) {
    const auto since = std::chrono::system_clock::time_point(time_);
    const auto from = std::chrono::steady_clock::time_point(time_);
    time_ += step;
    problems_.Observe({.since = since,
                       .until = std::chrono::system_clock::time_point(time_) + step_,
                       .from = from,
                       .at = std::chrono::steady_clock::time_point(time_),
                       .containers = std::move(containers),
                       .cpus = cpus_,
                       .pools = std::move(pools),
                       .complete = true,
                       .unified = true});
  }

  Problem Only() const {
    EXPECT_THAT(problems_.List(), SizeIs(1));
    return problems_.List().at(0);
  }
  // The problem that there is once the container was seen like this for a minute, not before.
  Problem AfterAMinute(const ContainerFigures& container) {
    for (int i = 0; i < 5; ++i)
      Observe({container});
    EXPECT_THAT(problems_.List(), IsEmpty());
    Observe({container});
    return Only();
  }

  static PoolFigures Busy(const CpuSet& cpus, double busy, double waiting) {
    return {.cpus = cpus, .busy = busy, .waiting = Pressure{.some60 = waiting}, .shared = true};
  }

  seconds time_{1000};
  seconds step_{0};  // of the wall clock between two samples
  std::map<int, CpuFigures> cpus_;
  UsageProblems problems_;
};

TEST_F(UsageProblemsTest, NamesByWhoseQuotaAnExclusiveContainerIsThrottled) {
  ContainerFigures container = Exclusive();
  container.throttled_percent = 42;
  container.pod_throttled_percent = 1;
  Observe({container});
  Observe({container});
  EXPECT_THAT(problems_.List(), IsEmpty()) << "not for long";
  Observe({container});
  Problem problem = Only();
  EXPECT_EQ(problem.kind, "throttled");
  EXPECT_EQ(problem.since, std::chrono::system_clock::time_point(seconds(1000)));
  EXPECT_EQ(problem.message,
            "ns/web/main has CPUs 2-3 for itself, and its own quota throttles it in 42 % of the "
            "periods (it uses 1.50 of 2 CPUs)");
  EXPECT_THAT(problem.objects, ElementsAre("ns/web/main"));
  EXPECT_THAT(problem.next, HasSubstr("cri-resmgr-ctl explain ns/web/main"));

  container.pod_throttled_percent = 50;
  Observe({container});
  problem = problems_.List()[0];
  EXPECT_THAT(problem.message, HasSubstr("the quota of its pod throttles it in 50 %"));
  EXPECT_EQ(problem.next, "echo max > /sys/fs/cgroup/kubepods/pod1/cpu.max");
  container.throttled_percent = container.pod_throttled_percent = 0;
  Observe({container});
  EXPECT_THAT(problems_.List(), IsEmpty());
}

TEST_F(UsageProblemsTest, TheEndOfAToldProblemTellsWhatItBrought) {
  ContainerFigures container = Exclusive();
  container.throttled_percent = 42;
  Observe({container});
  container.throttled_percent = 0;
  Observe({container});
  EXPECT_THAT(problems_.effects(), IsEmpty()) << "it was not told";
  container.throttled_percent = 42;
  for (int i = 0; i < 4; ++i)
    Observe({container});
  container.throttled_percent = 1;
  Observe({container});
  ASSERT_THAT(problems_.effects(), SizeIs(1));
  const UsageProblems::Effect& effect = problems_.effects()[0];
  EXPECT_EQ(effect.kind, "throttled");
  EXPECT_EQ(effect.id, "e");
  EXPECT_EQ(effect.before, 42);
  EXPECT_EQ(effect.after, 1);
  EXPECT_EQ(effect.message, "ns/web/main is throttled in 1 % of the periods, 42 % before");
  EXPECT_GT(effect.ended, effect.since);
}

TEST_F(UsageProblemsTest, EffectsOfPoolsAndMemoryAreToldAndBounded) {
  ContainerFigures container = Exclusive();
  for (size_t round = 0; round < UsageProblems::kMostEffects; ++round) {
    container.subject.mems = {0};
    container.memory_by_node = {{0, 1 << 20}, {1, 1 << 30}};
    container.remote_bytes = 1 << 30;
    container.remote_percent = 99;
    for (int i = 0; i < 7; ++i)
      Observe({container}, {{"a", Busy({0, 1}, 2, 40)}, {"b", Busy({2, 3}, 0.5, 0)}});
    container.remote_bytes = 0;
    container.remote_percent = 0;
    Observe({container}, {{"a", Busy({0, 1}, 1, 3)}, {"b", Busy({2, 3}, 1.5, 1)}});
  }
  ASSERT_THAT(problems_.effects(), SizeIs(UsageProblems::kMostEffects));
  EXPECT_EQ(problems_.effects()[0].message, "tasks in pool a wait in 3 % of the time, 40 % before");
  EXPECT_EQ(problems_.effects()[1].message,
            "ns/web/main has off its nodes 0 % of its memory, 99 % before");
  // A container that is gone makes no problem.
  container.remote_bytes = 1 << 30;
  container.remote_percent = 99;
  for (int i = 0; i < 7; ++i)
    Observe({container});
  const auto last = problems_.effects().back().ended;
  Observe({});
  EXPECT_EQ(problems_.effects().back().ended, last);
}

// Programs of the node run on all CPUs, so some of their use is on any large part of them.
TEST_F(UsageProblemsTest, OthersOnManyCpusMayUseATenth) {
  ContainerFigures own = Exclusive();
  own.subject.exclusive = CpuSet::Range(2, 15);
  own.cpu_used = 13;
  own.others_used = 0.62;
  for (int i = 0; i < 6; ++i)
    Observe({own});
  EXPECT_THAT(problems_.List(), IsEmpty());
  own.others_used = 1.5;
  for (int i = 0; i < 6; ++i)
    Observe({own});
  EXPECT_THAT(problems_.List(), SizeIs(1));
}

TEST_F(UsageProblemsTest, EffectsOfInterruptsOthersAndSmallPools) {
  ContainerFigures own = Exclusive();
  own.others_used = 0.4;
  ContainerFigures shared = Exclusive();
  shared.subject.id = "s";
  shared.subject.pod = "job";
  shared.subject.exclusive = {};
  shared.subject.limit = 4;
  shared.cpu_pressure = Pressure{.some60 = 31};
  cpus_ = {{2, {.irq_percent = 5}}, {3, {.irq_percent = 23}}};
  for (int i = 0; i < 6; ++i)
    Observe({own, shared});
  EXPECT_THAT(problems_.List(), SizeIs(3));
  own.others_used = 0.1;
  shared.cpu_pressure = Pressure{.some60 = 4};
  cpus_[3].irq_percent = 2;
  Observe({own, shared});
  EXPECT_THAT(problems_.List(), IsEmpty());
  std::vector<std::string> messages;
  for (const UsageProblems::Effect& effect : problems_.effects()) {
    EXPECT_EQ(effect.kind, "pressure");
    messages.push_back(effect.message);
  }
  EXPECT_THAT(messages,
              ElementsAre("interrupts take of one of the CPUs of ns/web/main 5 % of the time, 23 % "
                          "before",
                          "others use of the CPUs of ns/web/main 10 % of one CPU, 40 % before",
                          "ns/job/main waits for a CPU in 4 % of the time, 31 % before"));
}

TEST_F(UsageProblemsTest, AThrottledSharedContainerIsAsItShouldBe) {
  ContainerFigures container = Exclusive();
  container.subject.exclusive = {};
  container.throttled_percent = 90;
  for (int i = 0; i < 10; ++i)
    Observe({container});
  EXPECT_THAT(problems_.List(), IsEmpty());
}

TEST_F(UsageProblemsTest, ExclusiveCpusThatAreIdleForAnHour) {
  ContainerFigures container = Exclusive();
  container.cpu_used = 0.02;
  for (int i = 0; i < 59; ++i)
    Observe({container}, {}, seconds(60));
  EXPECT_EQ(problems_.AdviceOf("e"), "");
  Observe({container}, {}, seconds(60));
  EXPECT_THAT(problems_.AdviceOf("e"),
              StartsWith("ns/web/main leaves CPUs 2-3, which no other container may use, idle: 1.0 "
                         "% busy; try: kubectl -n ns patch pod web"));
  EXPECT_THAT(problems_.List(), IsEmpty()) << "an idle database is in order";
  // Once is enough to begin anew.
  container.cpu_used = 0.5;
  Observe({container});
  container.cpu_used = 0.02;
  Observe({container});
  EXPECT_EQ(problems_.AdviceOf("e"), "");
}

TEST_F(UsageProblemsTest, APoolUnderPressureWhileAnotherOneHasRoom) {
  const auto pools = [](double pressure, double other_busy) -> std::map<std::string, PoolFigures> {
    return {{"a", Busy({0, 1}, 2, pressure)}, {"b", Busy({2, 3}, other_busy, 0)}};
  };
  for (int i = 0; i < 6; ++i)
    Observe({}, pools(40, 0.5));
  const Problem problem = Only();
  EXPECT_EQ(problem.kind, "pressure");
  EXPECT_EQ(problem.message,
            "tasks in pool a wait for a CPU in 40 % of the time (2.0 of 2 CPUs are busy), while "
            "pool b has room (0.5 of 2 CPUs)");
  EXPECT_EQ(problem.next, "cri-resmgr-ctl rebalance -by use");
  Observe({}, pools(40, 1.9));
  EXPECT_THAT(problems_.List(), IsEmpty()) << "nowhere to go";
  for (int i = 0; i < 10; ++i)
    Observe({}, pools(10, 0.5));
  EXPECT_THAT(problems_.List(), IsEmpty());
}

TEST_F(UsageProblemsTest, MemoryOffItsNodes) {
  ContainerFigures container = Exclusive();
  container.subject.mems = {0};
  container.memory_by_node = {{0, 100 << 20}, {1, 300 << 20}};
  container.remote_bytes = 300 << 20;
  container.remote_percent = 75;
  for (int i = 0; i < 3; ++i)
    Observe({container});
  const Problem problem = Only();
  EXPECT_EQ(problem.kind, "remote-memory");
  EXPECT_EQ(problem.message,
            "ns/web/main has 75 % of its memory off its nodes 0: 300 MiB on node 1");
  EXPECT_THAT(problem.objects, ElementsAre("ns/web/main", "node 1"));
  EXPECT_THAT(problem.next, AllOf(HasSubstr("migratepages"), HasSubstr(" 1 0")));
  container.remote_bytes = 1 << 20;
  Observe({container});
  EXPECT_THAT(problems_.List(), IsEmpty()) << "a little is always elsewhere";
}

// Each of these pools was reported as under pressure once.
TEST_F(UsageProblemsTest, PoolsThatAreNoneForEachOtherAreNotCompared) {
  const std::map<std::string, PoolFigures> others[] = {
      // Its tasks wait for a quota, which does not count in `waiting`.
      {{"a", {.cpus = {0, 1}, .busy = 0.1, .cpu_pressure = Pressure{.some60 = 80}, .shared = true}},
       {"b", Busy({2, 3}, 0, 0)}},
      // Topology-aware: the root has the CPUs of both nodes.
      {{"node0", Busy({0, 1}, 2, 60)},
       {"node1", Busy({2, 3}, 2, 60)},
       {"root", Busy({0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, 4, 0)}},
      {{"shared", Busy({1, 2, 3}, 3, 60)}, {"reserved", Busy({0}, 0, 0)}},
      {{"shared", Busy({1, 2, 3}, 0, 0)}, {"reserved", Busy({0}, 1, 60)}},
      {{"unbound", Busy({}, 0, 60)}, {"shared", Busy({1, 2, 3}, 0, 0)}},
  };
  for (const auto& pools : others) {
    for (int i = 0; i < 10; ++i)
      Observe({}, pools);
    EXPECT_THAT(problems_.List(), IsEmpty()) << pools.begin()->first;
  }
}

TEST_F(UsageProblemsTest, InterruptsOnCpusOfAContainersOwn) {
  const ContainerFigures container = Exclusive();
  ContainerFigures other = Exclusive();
  other.subject.exclusive = other.subject.cpus = {1};
  cpus_ = {{0, {.irq_percent = 90}},
           {1, {}},
           {2, {.irq_percent = 5}},
           {3, {.irq_percent = 23, .top_interrupt = {"24 (nvme0q3)", 9}}},
           {4, {}}};
  cpus_[3].interrupts_per_second = 1200;
  for (int i = 0; i < 3; ++i)
    Observe({container, other});
  Problem problem = Only();
  EXPECT_EQ(problem.kind, "pressure");
  EXPECT_EQ(
      problem.message,
      "interrupts take 23 % of CPU 3, which is ns/web/main's own: mostly 24 (nvme0q3), 1200 a "
      "second");
  EXPECT_THAT(problem.objects, ElementsAre("ns/web/main", "CPU 3"));
  EXPECT_EQ(problem.next, "echo 0,4 > /proc/irq/24/smp_affinity_list");
  cpus_[3].top_interrupt = {"LOC", 9};
  Observe({container, other});
  EXPECT_EQ(problems_.List()[0].next, "cat /proc/interrupts") << "it is each CPU's own";
  cpus_[3].irq_percent = 9;
  Observe({container, other});
  EXPECT_THAT(problems_.List(), IsEmpty());
}

TEST_F(UsageProblemsTest, OthersOnCpusOfAContainersOwn) {
  ContainerFigures container = Exclusive();
  container.others_used = 0.4;
  for (int i = 0; i < 3; ++i)
    Observe({container});
  const Problem problem = Only();
  EXPECT_EQ(problem.kind, "pressure");
  EXPECT_EQ(problem.message,
            "tasks of the kernel, or others that are in no container, use 0.40 CPUs of CPUs 2-3, "
            "which are ns/web/main's own");
  EXPECT_EQ(problem.next,
            "ps -eLo psr,pid,tid,pcpu,cgroup:60,comm --sort=-pcpu | grep -wE '^ *(2|3)' | head")
      << "process and cgroup say what to change";
  container.others_used = 0.1;
  Observe({container});
  EXPECT_THAT(problems_.List(), IsEmpty());
}

TEST_F(UsageProblemsTest, ASharedContainerThatWaitsInAPoolSmallerThanItsLimit) {
  ContainerFigures container = Exclusive();
  container.subject.exclusive = {};
  container.subject.pool = "node0";
  container.subject.limit = 4;
  container.cpu_pressure = Pressure{.some60 = 31};
  container.throttled_percent = 0;
  const Problem problem = AfterAMinute(container);
  EXPECT_EQ(problem.kind, "pressure");
  EXPECT_EQ(problem.message,
            "ns/web/main waits for a CPU in 31 % of the time: its limit is 4 CPUs, and pool node0 "
            "has 2 (2-3)");
  EXPECT_THAT(problem.objects, ElementsAre("ns/web/main", "pool node0"));
  container.throttled_percent = 3;
  Observe({container});
  EXPECT_THAT(problems_.List(), IsEmpty()) << "it waits for its quota";
  container.throttled_percent = 0;
  container.subject.limit = 2;
  for (int i = 0; i < 10; ++i)
    Observe({container});
  EXPECT_THAT(problems_.List(), IsEmpty()) << "it has room";
}

TEST_F(UsageProblemsTest, KilledProcessesAreToldForAnHour) {
  ContainerFigures container = Exclusive();
  container.memory_bytes = 300 << 20;
  container.memory_by_node = {{0, 200 << 20}, {1, 100 << 20}};
  container.memory_limit = 512 << 20;
  Observe({container});
  EXPECT_THAT(problems_.List(), IsEmpty());
  container.oom_kills = 2;
  container.oom_events = 1;
  Observe({container});
  const Problem problem = Only();  // one sample is enough
  EXPECT_EQ(problem.kind, "out-of-memory");
  EXPECT_EQ(problem.since, std::chrono::system_clock::time_point(seconds(1010)));
  EXPECT_EQ(problem.message,
            "2 processes of ns/web/main were killed for want of memory in the last hour, by its "
            "limit of 512 MiB; afterwards it had 300 MiB (200 MiB on node 0, 100 MiB on node 1)");
  EXPECT_THAT(problem.objects, ElementsAre("ns/web/main"));
  EXPECT_EQ(problem.next, "kubectl -n ns patch pod web --subresource resize with more memory");

  // Created anew, with another id.
  container.subject.id = "f";
  container.oom_kills = 0;
  Observe({});
  Observe({container}, {}, std::chrono::minutes(30));
  container.oom_kills = 1;
  Observe({container});
  EXPECT_THAT(problems_.List()[0].message, StartsWith("3 processes of ns/web/main were killed"));
  container.oom_kills = 0;
  Observe({container}, {}, std::chrono::minutes(30));
  EXPECT_THAT(problems_.List()[0].message, StartsWith("1 process of ns/web/main was killed"));
  EXPECT_THAT(problems_.effects(), IsEmpty());
  Observe({container}, {}, std::chrono::minutes(30));
  EXPECT_THAT(problems_.List(), IsEmpty());
  ASSERT_THAT(problems_.effects(), SizeIs(1));
  EXPECT_EQ(problems_.effects()[0].kind, "out-of-memory");
  EXPECT_EQ(problems_.effects()[0].message,
            "0 processes of ns/web/main were killed for want of memory in the last hour, 1 before");
}

TEST_F(UsageProblemsTest, KillsThatEndedTheContainerAreThePods) {
  UsageFigures figures{.until = std::chrono::system_clock::time_point(seconds(10)),
                       .at = std::chrono::steady_clock::time_point(seconds(10)),
                       .pods = {{.name = "ns/web", .count = 1}},
                       .complete = true};
  problems_.Observe(figures);
  const Problem problem = Only();
  EXPECT_EQ(problem.kind, "out-of-memory");
  EXPECT_EQ(problem.message,
            "1 process of ns/web was killed for want of memory in the last hour, with containers "
            "that have ended");
  EXPECT_THAT(problem.objects, ElementsAre("ns/web"));
  EXPECT_EQ(problem.next, "kubectl -n ns describe pod web");
}

TEST_F(UsageProblemsTest, KilledProcessesOutlastAPauseOfTheSamplesWithinTheHour) {
  ContainerFigures container = Exclusive();
  container.oom_kills = 1;
  Observe({container});
  problems_.Forget();
  EXPECT_THAT(problems_.List(), IsEmpty()) << "the time is not known";
  container.oom_kills = 0;
  Observe({container}, {}, std::chrono::minutes(50));
  EXPECT_THAT(problems_.List(), SizeIs(1));
  problems_.Forget();
  Observe({container}, {}, std::chrono::minutes(50));
  EXPECT_THAT(problems_.List(), IsEmpty());
  EXPECT_THAT(problems_.effects(), IsEmpty());
  container.oom_kills = 1;
  Observe({container});
  EXPECT_EQ(problems_.List()[0].since, std::chrono::system_clock::time_point(seconds(1010 + 6000)));
}

TEST_F(UsageProblemsTest, ContainersWithKilledProcessesAreBounded) {
  std::vector<ContainerFigures> containers(UsageProblems::kMostKilled + 10, Exclusive());
  for (size_t i = 0; i < containers.size(); ++i) {
    containers[i].subject.pod = std::to_string(i);
    containers[i].oom_kills = 1;
  }
  Observe(containers);
  EXPECT_EQ(problems_.List().back().message,
            fmt::format("and {} more such containers or pools",
                        UsageProblems::kMostKilled - UsageProblems::kMostNamed));
}

TEST_F(UsageProblemsTest, AContainerThatMemoryHighSlowsDownForAMinute) {
  ContainerFigures container = Exclusive();
  container.high_events = 20;
  container.memory_high = 256 << 20;
  container.memory_limit = 512 << 20;
  container.memory_bytes = 257 << 20;
  container.memory_by_node = {{1, 257 << 20}};
  container.memory_pressure = Pressure{.some60 = 31};
  const Problem problem = AfterAMinute(container);
  EXPECT_EQ(problem.kind, "memory-high");
  EXPECT_EQ(problem.message,
            "ns/web/main reaches memory.high (256 MiB) 120 times a minute, and the kernel slows it "
            "down: it has 257 MiB (257 MiB on node 1), its limit is 512 MiB; some task of it waits "
            "for memory in 31 % of the time");
  EXPECT_THAT(problem.objects, ElementsAre("ns/web/main"));
  EXPECT_THAT(problem.next, StartsWith("cri-resmgr-ctl explain ns/web/main tells its class"));
  container.high_events = 0;
  Observe({container});
  EXPECT_THAT(problems_.List(), IsEmpty());
  ASSERT_THAT(problems_.effects(), SizeIs(1));
  EXPECT_EQ(problems_.effects()[0].kind, "memory-high");
  EXPECT_EQ(problems_.effects()[0].message,
            "ns/web/main reaches memory.high 0 times a minute, 120 before");
}

TEST_F(UsageProblemsTest, CachesOfFilesAtMemoryHighDoNoHarm) {
  ContainerFigures container = Exclusive();
  container.high_events = 1000;
  container.memory_pressure = Pressure{.some60 = 0.2};
  for (int i = 0; i < 20; ++i)
    Observe({container});
  EXPECT_THAT(problems_.List(), IsEmpty());
  container.memory_pressure.reset();
  for (int i = 0; i < 7; ++i)
    Observe({container});
  EXPECT_THAT(problems_.List(), SizeIs(1)) << "a kernel without PSI does not tell";
}

TEST_F(UsageProblemsTest, CountersOfMemoryThatGoBackwardsGiveNoProblem) {
  const uint64_t seed = test::SeedOr(1);
  SCOPED_TRACE(test::Repeat(seed));
  std::mt19937_64 random(seed);
  const std::vector<UsageSubject> subjects = {Exclusive().subject};
  for (int round = 0; round < 50; ++round) {
    UsageProblems problems;
    UsageCounters before;
    MemoryEvents events{.high = 1'000'000, .oom = 1'000'000, .oom_kills = 1'000'000};
    for (int i = 0; i < 20; ++i) {
      UsageCounters now{.at = std::chrono::steady_clock::time_point(seconds(10 * i))};
      now.containers["e"] = {.read_at = now.at, .events = events};
      if (i > 0) problems.Observe(ComputeUsage(&before, now, subjects));
      before = now;
      // Each of them is as before or smaller, and one at least is smaller.
      *events.oom_kills -= 1 + random() % (*events.oom_kills / 2);
      *events.high -= random() % (*events.high / 2);
      *events.oom -= random() % (*events.oom / 2);
      if (*events.oom_kills < 4 || *events.high < 4 || *events.oom < 4) break;
    }
    EXPECT_THAT(problems.List(), IsEmpty());
  }
}

TEST_F(UsageProblemsTest, SamplesMayBeFarApart) {
  ContainerFigures container = Exclusive();
  container.throttled_percent = 42;
  Observe({container}, {}, seconds(301));
  EXPECT_THAT(problems_.List(), IsEmpty());
  Observe({container}, {}, seconds(301));
  EXPECT_THAT(problems_.List(), SizeIs(1));
  problems_.Forget();
  Observe({container}, {}, seconds(301));
  EXPECT_THAT(problems_.List(), IsEmpty());
}

TEST_F(UsageProblemsTest, AStepOfTheWallClockIsNoTime) {
  ContainerFigures container = Exclusive();
  container.throttled_percent = 42;
  step_ = std::chrono::hours(1);
  Observe({container});
  step_ = seconds(0);
  Observe({container});
  EXPECT_THAT(problems_.List(), IsEmpty());
  Observe({container});
  EXPECT_THAT(problems_.List(), SizeIs(1));
}

TEST_F(UsageProblemsTest, ManyAreCounted) {
  std::vector<ContainerFigures> containers;
  for (int i = 0; i < 100; ++i) {
    containers.push_back(Exclusive());
    containers.back().subject.id = std::to_string(i);
    containers.back().throttled_percent = 50;
  }
  for (int i = 0; i < 3; ++i)
    Observe(containers);
  const auto list = problems_.List();
  ASSERT_THAT(list, SizeIs(UsageProblems::kMostNamed + 1));
  EXPECT_EQ(list.back().message, "and 95 more such containers or pools");
  EXPECT_EQ(list.back().kind, "throttled");
}

}  // namespace
}  // namespace resmgr
