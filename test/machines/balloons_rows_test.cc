// SPDX-License-Identifier: Apache-2.0
// The acceptance rows of balloons with real pods, named as in
// policies/balloons/balloons_rows_test.cc: the kernel runs the containers on the CPUs and memory
// nodes of the rows. This file has sizes, limits and the choice of CPUs.
#include "test/machines/balloons_rows.h"

#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "policies/balloons/testing/row_configs.h"

namespace resmgr::test {
namespace {

using ::testing::HasSubstr;

constexpr const char* kRefused = "no suitable balloon instance available";

TEST_P(BalloonsRowsTest, Test01FixedAndGrowingTypes) {
  ASSERT_NO_FATAL_FAILURE(OpenWith(kTest01));
  const RunningPod system = RunAs(In("kube-system", BestEffort("system")));
  const RunningPod beside = Add(system, BestEffort("beside"));
  EXPECT_EQ(On(system, 1), On(beside, 1));
  // Three CPUs each; one container uses one thread of each core.
  const RunningPod c0 = RunAs(Asks("c0", 3000), {{Key("balloon.balloons"), "four-cpu"},
                                                 {Key("hide-hyperthreads", "c1"), "true"}});
  const RunningPod c1 = Add(c0, Asks("c1", 3000));
  const RunningPod c2 = Add(c0, Asks("c2", 3000));
  const CpuSet six = On(c0, 6);
  EXPECT_TRUE(On(c1, 3).IsSubsetOf(six));
  EXPECT_TRUE(Apart(On(c2, 4), six));
  Remove(c0);

  const RunningPod two = RunOf("two-cpu", Asks("two", 100));
  const RunningPod two_b = Add(two, Asks("two-b", 100));
  EXPECT_EQ(On(two, 2), On(two_b, 2));
  const RunningPod next = RunOf("two-cpu", Asks("next", 100));
  EXPECT_TRUE(Apart(On(next, 2), On(two, 2)));
  const RunningPod three = RunAs(In("three", Asks("three", 1500)));
  const RunningPod three_b = Add(three, Asks("three-b", 1500));
  EXPECT_EQ(On(three, 3), On(three_b, 3));

  // New balloons until all CPUs are in one; fewer of them than in the row.
  const RunningPod pair = RunOf("five-cpu", Asks("pair", 1250));
  const RunningPod single = RunOf("five-cpu", BestEffort("single"));
  const CpuSet last = On(single, 1);
  EXPECT_TRUE(Apart(last, On(pair, 2) | On(two, 2) | On(next, 2) | On(three, 3)));
  EXPECT_EQ(On(Add(single, BestEffort("late")), 1), last);
}

constexpr const char* kTests02And07 = R"(
reservedResources: {cpu: "1"}
balloonTypes:
- {name: full-core, minCPUs: 2, maxCPUs: 2, hideHyperthreads: true, preferNewBalloons: true}
- {name: fast-dualcore, minCPUs: 4, maxCPUs: 4, preferNewBalloons: true}
- {name: flex}
- {name: singleton, minCPUs: 2, maxCPUs: 2, minBalloons: 1, maxBalloons: 1}
- {name: dynamictwo, maxCPUs: 1, maxBalloons: 2, preferNewBalloons: true}
)";

TEST_P(BalloonsRowsTest, Tests02And07SizesFollowRequestsWithinLimits) {
  ASSERT_NO_FATAL_FAILURE(OpenWith(kTests02And07));
  const RunningPod hidden =
      RunAs(Asks("hidden", 100),
            {{Key("balloon.balloons"), "full-core"}, {Key("hide-hyperthreads", "open"), "false"}});
  const RunningPod open = Add(hidden, Asks("open", 100));
  EXPECT_TRUE(On(hidden, 1).IsSubsetOf(On(open, 2)));
  const RunningPod fast0 = RunOf("fast-dualcore", Asks("fast0", 200));
  const RunningPod fast1 = RunOf("fast-dualcore", Asks("fast1", 500));
  const CpuSet left = On(fast1, 4);
  EXPECT_TRUE(Apart(On(fast0, 4), left));
  Remove(fast0);

  const RunningPod flex = RunOf("flex", Asks("flex", 3500));
  On(flex, 4);
  const RunningPod more = Add(flex, Asks("more", 1200));
  EXPECT_EQ(On(flex, 5), On(more, 5));
  End(flex);
  On(more, 2);
  Remove(more);
  const RunningPod again = RunOf("fast-dualcore", Asks("again", 4000));
  EXPECT_TRUE(Apart(On(again, 4), left));
  EXPECT_EQ(On(fast1, 4), left);
  auto balloons = Balloons();
  EXPECT_EQ(balloons["default/again/again"], "fast-dualcore[0]");
  EXPECT_EQ(balloons["default/fast1/fast1"], "fast-dualcore[1]");
  EXPECT_FALSE(balloons.contains("flex[0]"));

  const RunningPod a = RunOf("singleton", Asks("a", 1500));
  const RunningPod b = Add(a, Asks("b", 500));
  EXPECT_EQ(On(a, 2), On(b, 2));
  EXPECT_THAT(RefusalOf(a, Asks("c", 100)), HasSubstr(kRefused));
  const RunningPod d = RunOf("dynamictwo", Asks("d", 800));
  const RunningPod e = Add(d, Asks("e", 600));
  const RunningPod f = Add(d, Asks("f", 300));
  EXPECT_TRUE(Apart(On(d, 1), On(e, 1)));
  EXPECT_EQ(On(f, 1), On(e, 1));
  EXPECT_THAT(RefusalOf(d, Asks("g", 300)), HasSubstr(kRefused));

  const auto places = PlacesOf(fast1, a, d);
  EXPECT_THAT(Describe(Change("balloonTypes: [{name: x, minBalloons: 2, maxBalloons: 1}]")),
              HasSubstr("is 2, more than maxBalloons 1"));
  EXPECT_EQ(PlacesOf(fast1, a, d), places);
}

TEST_P(BalloonsRowsTest, Test03ReservedCpusAndNamespaces) {
  ASSERT_NO_FATAL_FAILURE(OpenWith(kTest03));
  const CpuSet reserved = CpuSet::Range(0, 2);
  const RunningPod system = RunAs(In("kube-system", Asks("system", 100)),
                                  {{Key("balloon.balloons", "core"), "full-core"}});
  const RunningPod core = Add(system, Asks("core", 100));
  EXPECT_EQ(On(system, 3), reserved);
  EXPECT_TRUE(Apart(On(core, 2), reserved));
  const RunningPod monitor = RunAs(In("monitor-x", Asks("monitor", 1000)));
  const RunningPod log = RunAs(In("my-logger", Asks("log", 1000)));
  EXPECT_EQ(On(log, 3), reserved);
  EXPECT_EQ(On(monitor, 3), reserved);

  const RunningPod plain =
      RunAs(Asks("plain", 2500), {{Key("balloon.balloons", "as-system"), "reserved"}});
  const CpuSet own = On(plain, 3);
  EXPECT_TRUE(Apart(own, reserved | On(core, 2))) << own.ToString();
  const RunningPod as_system = Add(plain, Asks("as-system", 2500));
  const CpuSet grown = On(as_system, 5);
  EXPECT_TRUE(reserved.IsSubsetOf(grown)) << grown.ToString();
  EXPECT_TRUE(Apart(grown, own | On(core, 2))) << grown.ToString();
  EXPECT_EQ(On(system, 5), grown);

  for (const RunningPod& pod : {monitor, log, plain})
    Remove(pod);
  EXPECT_EQ(On(system, 3), reserved);
  On(RunAs(Asks("small", 999)), 1);
}

constexpr const char* kTest05 = R"(
availableResources: {cpu: "cpuset:0-9"}
reservedResources: {cpu: "1"}
PrivilegedNamespaces: ["*"]
balloonTypes:
- {name: ns, namespaces: ["*"], minCPUs: 2, maxCPUs: 4, preferPerNamespaceBalloon: true}
)";

TEST_P(BalloonsRowsTest, Test05OneBalloonPerNamespace) {
  ASSERT_NO_FATAL_FAILURE(OpenWith(kTest05));
  const RunningPod a = RunAs(Asks("a", 1000), {{Key("cpu.preserve", "free"), "true"}});
  const RunningPod b = Add(a, Asks("b", 900));
  EXPECT_EQ(On(a, 2), On(b, 2));
  const RunningPod other = RunAs(In("other", Asks("other", 100)));
  EXPECT_TRUE(Apart(On(other, 2), On(a, 2)));
  const RunningPod grow = RunAs(Asks("grow", 2000));
  const CpuSet grown = On(grow, 4);
  EXPECT_EQ(On(a, 4), grown);
  EXPECT_TRUE(Apart(grown, On(other, 2)));
  const RunningPod next = Add(grow, Asks("next", 200));
  EXPECT_TRUE(Apart(On(next, 2), grown | On(other, 2)));

  // All available CPUs but one are in balloons of namespaces: the containers of others share one.
  const RunningPod late = RunAs(In("e", Asks("late", 100)));
  const RunningPod late_b = Add(late, Asks("late-b", 100));
  EXPECT_EQ(On(late, 2), On(late_b, 2));

  EXPECT_EQ(KernelCpus(Add(a, Asks("free", 100))), All());
}

constexpr const char* kTests08And09 = R"(
reservedResources: {cpu: "1"}
balloonTypes:
- {name: isolated-pods, maxCPUs: 2, minBalloons: 2, preferNewBalloons: true}
- {name: isolated-ctrs, minCPUs: 1, maxCPUs: 1, preferNewBalloons: true, preferSpreadingPods: true}
- {name: all, namespaces: ["*"], maxCPUs: 4}
)";

TEST_P(BalloonsRowsTest, Tests08And09FullAndPreCreatedBalloons) {
  ASSERT_NO_FATAL_FAILURE(OpenWith(kTests08And09));
  const RunningPod idle = RunAs(BestEffort("idle"));
  On(idle, 1);
  std::vector<RunningPod> whole = {RunAs(Asks("whole1", 1000))};
  for (int i = 1; i <= 4; ++i) {
    if (i > 1) whole.push_back(Add(whole.front(), Asks(fmt::format("whole{}", i), 1000)));
    EXPECT_EQ(On(whole.back(), i), On(idle, i));
  }
  const RunningPod idle_b = Add(idle, BestEffort("idle-b"));
  EXPECT_EQ(On(idle_b, 4), On(idle, 4));
  const RunningPod next = RunAs(Asks("next", 1000));
  EXPECT_TRUE(Apart(On(next, 1), On(idle, 4)));
  for (int i = 0; i < 3; ++i)
    End(whole[static_cast<size_t>(i)]);
  EXPECT_EQ(On(whole[3], 1), On(idle, 1));
  End(whole[3]);
  EXPECT_EQ(On(idle, 1), On(idle_b, 1));

  CpuSet all = On(idle, 1) | On(next, 1);
  for (int i = 0; i < 3; ++i) {
    const RunningPod pod = RunOf("isolated-pods", Asks(fmt::format("pod{}", i), 500));
    const CpuSet cpus = On(pod, 1);
    EXPECT_TRUE(Apart(cpus, all)) << cpus.ToString();
    all |= cpus;
  }
  auto balloons = Balloons();
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(balloons[fmt::format("default/pod{0}/pod{0}", i)],
              fmt::format("isolated-pods[{}]", i));
  RunningPod alone = RunOf("isolated-ctrs", Asks("alone0", 100));
  for (int i = 0; i < 4; ++i) {
    if (i > 0) alone = Add(alone, Asks(fmt::format("alone{}", i), 100));
    const CpuSet cpus = On(alone, 1);
    EXPECT_TRUE(Apart(cpus, all)) << cpus.ToString();
    all |= cpus;
  }
}

// The device is node 2 itself.
TEST_P(BalloonsRowsTest, Tests10And23ChoiceOfCpus) {
  ASSERT_NO_FATAL_FAILURE(OpenWith(kTest23));
  const RunningPod system = RunAs(In("kube-system", BestEffort("system")));
  const RunningPod mine = RunAs(In("mine", BestEffort("mine")));
  EXPECT_EQ(On(system, 2), CpuSet::Range(2, 3));
  EXPECT_EQ(On(mine, 2), CpuSet::Range(2, 3));
  Remove(system);
  Remove(mine);

  const Status changed = Change(kTest10);
  ASSERT_TRUE(changed.ok()) << Describe(changed);
  const std::string type = "balloon.balloons";
  const RunningPod both = RunAs(Asks("both", 100), {{Key(type, "both"), "policydefaults"},
                                                    {Key(type, "balance"), "topo1cores0"},
                                                    {Key(type, "pack"), "topo0cores0"},
                                                    {Key(type, "spread"), "topo0cores1"},
                                                    {Key(type, "spread-b"), "topo0cores1"}});
  const CpuSet device = TheMachine().FindNode(2)->cpus;
  const CpuSet defaults = On(both, 2);
  EXPECT_EQ(CoresOf(defaults), 2) << defaults.ToString();
  EXPECT_TRUE(Apart(defaults, device)) << defaults.ToString();
  EXPECT_EQ(CoresOf(On(Add(both, Asks("balance", 100)), 2)), 1);
  EXPECT_EQ(CoresOf(On(Add(both, Asks("pack", 100)), 2)), 1);
  const RunningPod spread = Add(both, Asks("spread", 1000));
  const RunningPod spread_b = Add(both, Asks("spread-b", 1000));
  const CpuSet two = On(spread, 2);
  EXPECT_EQ(CoresOf(two), 2) << two.ToString();
  EXPECT_EQ(On(spread_b, 2), two);
  const CpuSet near = On(RunOf("device-node2", Asks("near", 3000)), 3);
  EXPECT_TRUE(near.IsSubsetOf(device)) << near.ToString();
  const CpuSet elsewhere = On(RunOf("device-node2", Asks("elsewhere", 2000)), 2);
  EXPECT_EQ(CoresOf(elsewhere), 2) << elsewhere.ToString();
  EXPECT_TRUE(Apart(elsewhere, device)) << elsewhere.ToString();
}

}  // namespace
}  // namespace resmgr::test
