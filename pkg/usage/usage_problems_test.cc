// SPDX-License-Identifier: Apache-2.0
#include "pkg/usage/usage_problems.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace resmgr {
namespace {

using std::chrono::seconds;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

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
    time_ += step;
    problems_.Observe({.since = since,
                       .until = std::chrono::system_clock::time_point(time_),
                       .at = std::chrono::steady_clock::time_point(time_),
                       .containers = std::move(containers),
                       .pools = std::move(pools),
                       .complete = true,
                       .unified = true});
  }

  seconds time_{1000};
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
  ASSERT_THAT(problems_.List(), SizeIs(1));
  Problem problem = problems_.List()[0];
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
  EXPECT_THAT(problems_.List(), IsEmpty());
  Observe({container}, {}, seconds(60));
  ASSERT_THAT(problems_.List(), SizeIs(1));
  EXPECT_EQ(problems_.List()[0].message,
            "ns/web/main leaves CPUs 2-3, which no other container may use, idle: 1.0 % busy");
  // Once is enough to begin anew.
  container.cpu_used = 0.5;
  Observe({container});
  container.cpu_used = 0.02;
  Observe({container});
  EXPECT_THAT(problems_.List(), IsEmpty());
}

TEST_F(UsageProblemsTest, APoolUnderPressureWhileAnotherOneHasRoom) {
  const auto pools = [](double pressure, double other_used) -> std::map<std::string, PoolFigures> {
    return {{"a",
             {.cpus = {0, 1},
              .cpu_used = 2,
              .cpu_pressure = Pressure{.some60 = pressure},
              .shared = true}},
            {"b", {.cpus = {2, 3}, .cpu_used = other_used, .shared = true}}};
  };
  for (int i = 0; i < 6; ++i)
    Observe({}, pools(40, 0.5));
  ASSERT_THAT(problems_.List(), SizeIs(1));
  const Problem problem = problems_.List()[0];
  EXPECT_EQ(problem.kind, "pressure");
  EXPECT_EQ(problem.message,
            "tasks in pool a wait for a CPU in 40 % of the time (it uses 2.0 of 2 CPUs), while "
            "pool b has room (it uses 0.5 of 2 CPUs)");
  EXPECT_EQ(problem.next, "cri-resmgr-ctl rebalance");
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
  ASSERT_THAT(problems_.List(), SizeIs(1));
  const Problem problem = problems_.List()[0];
  EXPECT_EQ(problem.kind, "remote-memory");
  EXPECT_EQ(problem.message,
            "ns/web/main has 75 % of its memory off its nodes 0: 300 MiB on node 1");
  EXPECT_THAT(problem.objects, ElementsAre("ns/web/main", "node 1"));
  EXPECT_THAT(problem.next, AllOf(HasSubstr("migratepages"), HasSubstr(" 1 0")));
  container.remote_bytes = 1 << 20;
  Observe({container});
  EXPECT_THAT(problems_.List(), IsEmpty()) << "a little is always elsewhere";
}

TEST_F(UsageProblemsTest, WhatWasBeforeAGapIsForgotten) {
  ContainerFigures container = Exclusive();
  container.throttled_percent = 42;
  for (int i = 0; i < 3; ++i)
    Observe({container});
  EXPECT_THAT(problems_.List(), SizeIs(1));
  time_ += seconds(1000);
  Observe({container});
  EXPECT_THAT(problems_.List(), IsEmpty());
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
