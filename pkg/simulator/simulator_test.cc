// SPDX-License-Identifier: Apache-2.0
#include "pkg/simulator/simulator.h"

#include <ctime>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/simulator/report.h"
#include "pkg/simulator/testing/simulator_fixture.h"

namespace resmgr {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class SimulatorTest : public test::SimulatorFixture {
 protected:
  using SimulatorFixture::SimulatorFixture;

  // A pod with Guaranteed containers of `cpus` CPUs each, in flow style.
  static std::string Pod(const std::string& name, const std::string& cpus,
                         const std::string& init = "") {
    const auto container = [](const std::string& container_name, const std::string& count) {
      return fmt::format("{{name: {}, resources: {{limits: {{cpu: {}, memory: 1Gi}}}}}}",
                         container_name, count);
    };
    return fmt::format(
        "---\nkind: Pod\nmetadata: {{name: {}}}\nspec: {{initContainers: [{}], containers: "
        "[{}]}}\n",
        name, init.empty() ? "" : container("init", init), container("main", cpus));
  }
};

// Two packages of four CPUs, one of which is reserved. Four pods, two of which are crowded on one
// node.
class SimulatedUseTest : public SimulatorTest {
 protected:
  SimulatedUseTest() : SimulatorTest("synthetic:package:2 numa:1 core:4 pu:1") {
    Start("policy.Active: topology-aware");
  }

  static std::string Burstable(const std::string& name) {
    return fmt::format(
        "---\nkind: Pod\nmetadata: {{name: {}}}\nspec: {{containers: [{{name: main, resources: "
        "{{requests: {{cpu: 300m, memory: 1Mi}}}}}}]}}\n",
        name);
  }
  std::string PoolOf(const std::string& name) {
    for (const RunningContainer& container : simulator_->node().Running())
      if (container.pod == "default/" + name) return container.pool;
    return "";
  }
  // Each of the containers beside "a" wants this many CPUs.
  std::string Crowd(double cpus) {
    Run(Burstable("a") + Burstable("b") + Burstable("c") + Burstable("d"));
    std::string use = "use: {";
    for (const char* const name : {"a", "b", "c", "d"}) {
      const bool crowded = PoolOf(name) == PoolOf("b");
      use += fmt::format("default/{}: {}, ", name, crowded ? cpus : 0.1);
    }
    return use + "}\n";
  }
};

TEST_F(SimulatedUseTest, RebalancesByUseAndKeepsWhatHelps) {
  Run(Crowd(3));
  Run("wait: 40s");
  const auto pools = [this] {
    std::string all;
    for (const char* const name : {"a", "b", "c", "d"})
      all += PoolOf(name) + " ";
    return all;
  };
  const std::string before = pools();
  Run("rebalance: {by: use}");
  EXPECT_THAT(last_.reason, HasSubstr("a preview: nothing has moved; 3.0 CPUs are lacking"));
  EXPECT_EQ(last_.changed.size(), 1U);
  EXPECT_EQ(pools(), before);
  Run("rebalance: {by: use, apply: true}");
  EXPECT_THAT(last_.reason, HasSubstr("measured use: default/"));
  const std::string after = pools();
  EXPECT_NE(after, before);
  Run("rebalance: {by: use, apply: true}");
  EXPECT_THAT(last_.error, HasSubstr("not measured yet"));
  Run("wait: 50s");
  EXPECT_EQ(last_.reason, "");
  Run("wait: 20s");
  EXPECT_THAT(last_.reason, HasSubstr("by use, kept: 0.0 CPUs are lacking, 3.0 before 1 move"));
  EXPECT_EQ(pools(), after);
}

TEST_F(SimulatedUseTest, TakesBackWhatDidNotHelp) {
  const std::string use = Crowd(3);
  Run(use);
  Run("wait: 40s");
  Run("rebalance: {by: use, apply: true}");
  ASSERT_EQ(last_.changed.size(), 1U);
  // The other containers of that pool then want all of the freed CPUs, and more.
  const std::string moved = last_.changed[0].pod;
  for (const char* const name : {"a", "b", "c", "d"})
    if ("default/" + std::string(name) != moved) Run(fmt::format("use: {{default/{}: 8}}", name));
  Run("wait: 70s");
  EXPECT_THAT(last_.reason, HasSubstr("by use, taken back"));
  EXPECT_EQ(last_.changed.size(), 1U);
  EXPECT_EQ(last_.changed[0].pod, moved);
}

TEST_F(SimulatedUseTest, WithoutUseNothingIsMeasuredAndUnknownContainersAreTold) {
  Run(Burstable("a") + "---\nwait: 1h\n---\nrebalance: {by: use}\n");
  EXPECT_THAT(last_.error, HasSubstr("not measured yet"));
  Run("use: {default/none: 1}");
  EXPECT_THAT(last_.error, HasSubstr("no such container"));
}

TEST_F(SimulatedUseTest, ConfiguredRebalancesRunByThemselvesAndARestartMovesNobody) {
  const std::string use = Crowd(3);
  Run("config: {policy: {Active: topology-aware}, usage: {RebalanceInterval: 1m}}");
  Run(use);
  Run("wait: 65s");
  EXPECT_THAT(last_.reason, HasSubstr("by use, measuring"));
  EXPECT_EQ(last_.changed.size(), 1U);
  const std::string pool = PoolOf(last_.changed[0].pod.substr(8));
  const std::string moved = last_.changed[0].pod.substr(8);
  Run("restart: relay");
  EXPECT_EQ(PoolOf(moved), pool);
  Run("wait: 1h");
  EXPECT_EQ(PoolOf(moved), pool);
}

TEST_F(SimulatedUseTest, AStaticPolicyHasNothingToMove) {
  Start("policy.Active: static");
  Run(SharedPod("web") +
      "---\nuse: {default/web: 9}\n---\nwait: 1m\n---\nrebalance: {by: "
      "use, apply: true}\n");
  EXPECT_EQ(last_.error, "");
  EXPECT_THAT(last_.reason, HasSubstr("policy static has no shared pools"));
}

// A day of samples, every minute.
TEST_F(SimulatedUseTest, ARecordedDayIsReplayedWithWhatWasUsed) {
  std::string day =
      "{\"recording\":\"cri-resmgr\",\"version\":1,\"start\":\"2026-03-05T09:10:11Z\"}\n";
  for (int i = 0; i < 4; ++i) {
    const std::string pod = fmt::format(
        R"("pod":{{"id":"s{0}","uid":"u{0}","name":"p{0}","namespace":"default","cgroup_parent":"/kubepods/burstable/podu{0}"}})",
        i);
    day += fmt::format(R"({{"t":0.1,"op":"RunPodSandbox","ok":true,"code":0,{}}})"
                       "\n",
                       pod);
    day += fmt::format(
        R"({{"t":0.2,"op":"CreateContainer","ok":true,"code":0,"container":{{"id":"c{}","name":"main","resources":{{"cpu_period":100000,"cpu_shares":307}}}},{}}})"
        "\n",
        i, pod);
    day += fmt::format(
        R"({{"t":0.3,"op":"StartContainer","ok":true,"code":0,"container":{{"id":"c{}"}}}})"
        "\n",
        i);
  }
  for (int minute = 1; minute <= 24 * 60; ++minute)
    day += fmt::format(
        R"({{"t":{},"op":"use","use":{{"c0":[1.5,50],"c1":[0.1],"c2":[1.5,50],"c3":[0.1]}}}})"
        "\n",
        60 * minute);
  Run(day);
  EXPECT_TRUE(simulator_->node().rounds().empty()) << "off unless it is configured";
  Run("rebalance: {by: use, apply: true}");
  EXPECT_EQ(last_.error, "");
  EXPECT_EQ(last_.changed.size(), 1U) << last_.reason;
}

// A recording of a year in which hardly anything happened.
TEST(SampleTimeTest, AYearHasNotManyMoreSamplesThanADay) {
  using std::chrono::hours;
  static constexpr std::chrono::milliseconds kInterval{10'000};
  const auto samples = [](std::chrono::milliseconds time) {
    int count = 0;
    for (std::chrono::milliseconds passed{0}; passed < time; ++count)
      passed += SampleTime(kInterval, passed);
    return count;
  };
  EXPECT_EQ(samples(hours(24)), 24 * 360) << "each interval has one";
  EXPECT_LT(samples(hours(24 * 366)), 10 * 24 * 360);
}

TEST_F(SimulatorTest, PlacesContainersAndMovesOthersAway) {
  EXPECT_THAT(Run(SharedPod("web") + Pod("db", "2")),
              ElementsAre("create default/web/main 0-7()",
                          "create default/db/main 1-2(1-2) default/web/main=0,3-7"));
  EXPECT_EQ(last_.step, 2u);
  EXPECT_EQ(last_.shares, 2048);
  EXPECT_EQ(last_.changed[0].old_cpus, "0-7");
}

TEST_F(SimulatorTest, InitContainersEndBeforeTheNext) {
  EXPECT_THAT(Run(Pod("db", "2", "3")),
              ElementsAre("create default/db/init 1-3(1-3)", "exit default/db/init ()",
                          "create default/db/main 1-2(1-2)"));
}

TEST_F(SimulatorTest, SidecarsGoOnRunning) {
  EXPECT_THAT(Run("kind: Pod\nmetadata: {name: p}\nspec:\n  initContainers:\n"
                  "  - {name: proxy, restartPolicy: Always,"
                  " resources: {limits: {cpu: 1, memory: 1Gi}}}\n"
                  "  containers:\n  - {name: main, resources: {limits: {cpu: 2, memory: 1Gi}}}\n"
                  "---\ndelete: default/p\n"),
              ElementsAre("create default/p/proxy 1(1)", "create default/p/main 2-3(2-3)",
                          "delete default/p/main ()", "delete default/p/proxy ()"));
}

TEST_F(SimulatorTest, ARefusalSaysWhyAndChangesNothing) {
  EXPECT_THAT(Run(SharedPod("web") + Pod("big", "8") + Pod("db", "1")),
              ElementsAre("create default/web/main 0-7()", "create default/big/main () error",
                          "create default/db/main 1(1) default/web/main=0,2-7"));
  Run(Pod("huge", "9"));
  EXPECT_THAT(last_.error, HasSubstr("default/huge/main"));
}

// As with a kubelet, three containers of a pod of 4 CPUs share these.
TEST_F(SimulatorTest, ContainersWithoutTheirOwnResourcesShareThoseOfTheirPod) {
  Run("kind: Pod\nmetadata: {name: p}\nspec:\n  resources: {limits: &l {cpu: 4, memory: 4Gi}, "
      "requests: *l}\n"
      "  containers: [{name: a}, {name: b}, {name: c},\n"
      "    {name: own, resources: {limits: {cpu: 1, memory: 1Gi}}}]\n");
  EXPECT_EQ(last_.exclusive, "1");
  for (const RunningContainer& container : simulator_->node().Running()) {
    EXPECT_EQ(container.exclusive, container.name == "own" ? "1" : "") << container.name;
    EXPECT_EQ(container.cpus, container.name == "own" ? "1" : "0,2-7") << container.name;
  }
}

TEST_F(SimulatorTest, ARefusedInitContainerStopsThePod) {
  EXPECT_THAT(Run(Pod("db", "1", "8")), ElementsAre("create default/db/init () error"));
}

TEST_F(SimulatorTest, DeletesPodsAndContainers) {
  Run(SharedPod("web") + Pod("a", "2") + Pod("b", "2"));
  EXPECT_THAT(Run("delete: default/a\n"),
              ElementsAre("delete default/a/main () default/web/main=0-2,5-7"));
  EXPECT_THAT(Run("delete: default/b/main\n---\ndelete: default/b\n"),
              ElementsAre("delete default/b/main () default/web/main=0-7"));
  EXPECT_THAT(Run("delete: default/b\n"), ElementsAre("delete default/b () error"));
  EXPECT_EQ(last_.error, "there is no pod default/b");
  EXPECT_THAT(Run("delete: default/web/other\n"), ElementsAre("delete default/web/other () error"));
  EXPECT_THAT(Run(Pod("a", "2")),
              ElementsAre("create default/a/main 1-2(1-2) default/web/main=0,3-7"));
}

TEST_F(SimulatorTest, APodThatExistsIsRefused) {
  Run(Pod("a", "2"));
  EXPECT_THAT(Run(Pod("a", "2")), ElementsAre("create default/a () error"));
}

TEST_F(SimulatorTest, ThePodAgainCreatesWhatIsMissing) {
  Run(Pod("a", "6") + Pod("b", "2", "3"));
  EXPECT_THAT(last_.error, HasSubstr("default/b/init"));
  EXPECT_THAT(Run("delete: default/a\n" + Pod("b", "2", "3")),
              ElementsAre("delete default/a/main ()", "create default/b/init 1-3(1-3)",
                          "exit default/b/init ()", "create default/b/main 1-2(1-2)"));
  EXPECT_THAT(Run("delete: default/b/main\n" + Pod("b", "2", "3")),
              ElementsAre("delete default/b/main ()", "create default/b/main 1-2(1-2)"));
}

TEST_F(SimulatorTest, ResizesKeepTheCpusThatTheyCan) {
  Run(SharedPod("web") + Pod("db", "2"));
  EXPECT_THAT(Run("resize: {pod: default/db, container: main, resources: {limits: {cpu: 3}, "
                  "requests: {cpu: 3}}}"),
              ElementsAre("resize default/db/main 1-3(1-3) default/web/main=0,4-7"));
  EXPECT_EQ(last_.shares, 3072);
  EXPECT_THAT(
      Run("resize: {pod: default/db, container: main, resources: {limits: {cpu: 1}, requests: "
          "{cpu: 1}}}"),
      ElementsAre(testing::MatchesRegex("resize default/db/main 1\\(1\\) default/web/main=0,2-7")));
}

TEST_F(SimulatorTest, ResizesThatAnApiServerRefusesAreErrors) {
  Run(Pod("db", "2"));
  Run("resize: {pod: default/db, container: main, resources: {requests: {cpu: 1}}}");
  EXPECT_EQ(
      last_.error,
      "default/db: a resize must not change the QoS class Guaranteed of the pod to Burstable");
  Run("resize: {pod: default/db, container: main, resources: {requests: {cpu: 3}}}");
  EXPECT_THAT(last_.error, HasSubstr("more would be requested than the limit allows"));
  Run("resize: {pod: default/db, container: other, resources: {requests: {cpu: 3}}}");
  EXPECT_EQ(last_.error, "pod default/db has no running container other");
  Run("resize: {pod: default/x, container: main, resources: {requests: {cpu: 3}}}");
  EXPECT_EQ(last_.error, "there is no pod default/x");
}

TEST_F(SimulatorTest, ARestartMovesNothing) {
  Run(SharedPod("web") + Pod("a", "2") + Pod("b", "2") + "---\ndelete: default/a\n");
  EXPECT_THAT(Run("restart: relay"), ElementsAre("restart ()"));
  EXPECT_THAT(Run(Pod("c", "1")),
              ElementsAre("create default/c/main 1(1) default/web/main=0,2,5-7"));
}

TEST_F(SimulatorTest, ConfigurationsChangeThePolicyOfWhatRuns) {
  Start("policy: {Active: \"null\"}");
  EXPECT_THAT(Run(SharedPod("web") + Pod("db", "2")),
              ElementsAre("create default/web/main ()", "create default/db/main ()"));
  EXPECT_THAT(Run("config: {policy: {Active: static}}"),
              ElementsAre("config () default/web/main=0,3-7 default/db/main=1-2"));
  EXPECT_THAT(Run("config: {policy: {Active: \"null\"}}"),
              ElementsAre("config () default/web/main=0-7 default/db/main=0-7"));
}

TEST_F(SimulatorTest, ARefusedConfigurationKeepsTheOld) {
  Run(Pod("db", "2"));
  EXPECT_THAT(Run("config: {policy: {Active: greedy}}"), ElementsAre("config () error"));
  EXPECT_EQ(last_.error, "it does not fit");
  EXPECT_THAT(Run(Pod("other", "2")), ElementsAre("create default/other/main 3-4(3-4)"));
}

TEST_F(SimulatorTest, ConfigurationsThatCannotBeReadAreFoundBeforehand) {
  Start("policy.Active: static");
  const auto scenario = ReadScenario("restart: relay\n---\nconfig:\n  polcy: {}\n", "s.yaml");
  ASSERT_TRUE(scenario.ok());
  const Status status = simulator_->Check(*scenario);
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(Message(status)), HasSubstr("s.yaml:4: polcy"));
}

TEST_F(SimulatorTest, ReplaysARecording) {
  const std::string header = R"({"recording":"cri-resmgr","version":1})";
  const std::string pod = R"("pod":{"id":"s1","name":"web","namespace":"shop")";
  const std::string guaranteed =
      R"("resources":{"cpu_shares":2048,"cpu_period":100000,"cpu_quota":200000,"memory_limit_in_bytes":1})";
  const std::string text =
      header + "\n" + R"({"op":"RunPodSandbox","ok":true,)" + pod +
      R"(,"uid":"u1","cgroup_parent":"/kubepods/podu1"}})" + "\n" +
      R"({"op":"CreateContainer","ok":true,"container":{"id":"c1","name":"main",)" + guaranteed +
      "}," + pod + "}}\n" + R"({"op":"StartContainer","ok":true,"container":{"id":"c1"}})" + "\n" +
      R"({"op":"UpdateContainerResources","ok":true,"container":{"id":"c1","resources":{"cpu_shares":1024,"cpu_quota":100000}}})" +
      "\n" + R"({"op":"StopContainer","ok":true,"container":{"id":"c1"}})" + "\n" +
      R"({"op":"RemoveContainer","ok":true,"container":{"id":"c1"}})" + "\n" +
      R"({"op":"StartContainer","ok":true,"container":{"id":"unknown"}})" + "\n";
  EXPECT_THAT(Run(text), ElementsAre("create shop/web/main 1-2(1-2)", "resize shop/web/main 1(1)",
                                     "exit shop/web/main ()"));
}

// Measured in processor time, since the machine may be busy: four times the pods take about four
// times as long. It was thirty times when each effect looked at all running containers.
TEST_F(SimulatorTest, APodCostsTheSameHoweverManyThereAre) {
  const auto seconds = [this](int pods) {
    simulator_.reset();
    std::string text;
    for (int i = 0; i < pods; ++i)
      text += SharedPod(fmt::format("p{}", i));
    const auto now = [] {
      timespec time{};
      ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
      return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
    };
    const double begin = now();
    EXPECT_EQ(Run(text).size(), static_cast<size_t>(pods));
    return now() - begin;
  };
  const double few = seconds(400);
  EXPECT_LT(seconds(1600), 10 * few);
}

TEST_F(SimulatorTest, IsTheSameEachTime) {
  std::string text;
  for (int i = 0; i < 20; ++i) {
    text += i % 3 == 0 ? SharedPod(fmt::format("p{}", i)) : Pod(fmt::format("p{}", i), "1");
    if (i % 5 == 4) text += fmt::format("---\ndelete: default/p{}\n---\nrestart: relay\n", i - 2);
  }
  const auto first = Run(text);
  EXPECT_GT(first.size(), 20u);
  simulator_.reset();
  EXPECT_EQ(Run(text), first);
}

// Claims in scenarios: prepared, carried, given back.

class SimulatedClaimsTest : public test::SimulatorFixture {
 protected:
  // Allocated on the device of a NUMA node.
  static std::string Claim(std::string_view name, int node, std::string_view cpus,
                           std::string_view parameters = "") {
    const std::string config =
        parameters.empty()
            ? ""
            : fmt::format(
                  ", config: [{{source: FromClaim, opaque: {{driver: cpu.cri-resmgr.intel.com, "
                  "parameters: {{apiVersion: cri-resource-manager.intel.com/v1, kind: CpuClaim, "
                  "{}}}}}}}]",
                  parameters);
    return fmt::format(
        "---\nkind: ResourceClaim\nmetadata: {{name: {}}}\nstatus: {{allocation: {{devices: "
        "{{results: [{{request: r, driver: cpu.cri-resmgr.intel.com, pool: n, device: "
        "cpu-numa-{}, consumedCapacity: {{cpu: {}}}}}]{}}}}}}}\n",
        name, node, cpus, config);
  }
  // Containers "a" and "b" carry the claim, "own" does not.
  static std::string Carrier(std::string_view pod, std::string_view claim,
                             std::string_view containers = "a") {
    std::string all = "{name: own}";
    for (const char name : containers)
      all += fmt::format(", {{name: {}, resources: {{claims: [{{name: x}}]}}}}", name);
    return fmt::format(
        "---\nkind: Pod\nmetadata: {{name: {}}}\nspec: {{resourceClaims: [{{name: x, "
        "resourceClaimName: {}}}], containers: [{}]}}\n",
        pod, claim, all);
  }
};

TEST_F(SimulatedClaimsTest, AClaimTakesCpusOfItsNodeFromSharedContainers) {
  EXPECT_THAT(Run(SharedPod("web") + Claim("fast", 1, "2")),
              ElementsAre("create default/web/main 0-7()",
                          "prepare default/fast 4-5(4-5) default/web/main=0-3,6-7"));
  EXPECT_THAT(last_.reason, HasSubstr("cpu-numa-1: CPUs 4-5"));
  EXPECT_EQ(last_.quota, -1);
}

TEST_F(SimulatedClaimsTest, AContainerThatCarriesItRunsOnItsCpus) {
  EXPECT_THAT(Run(Claim("fast", 1, "2") + Carrier("dsp", "fast")),
              ElementsAre("prepare default/fast 4-5(4-5)", "create default/dsp/own 0-3,6-7()",
                          "create default/dsp/a 4-5(4-5)"));
  EXPECT_THAT(last_.reason, HasSubstr("claim default/fast"));
}

TEST_F(SimulatedClaimsTest, ItGoesBackWithTheLastPodThatCarriesIt) {
  Run(Claim("fast", 1, "2", "shareWithin: pod") + Carrier("dsp", "fast", "ab"));
  EXPECT_EQ(last_.cpus, "4-5") << "two containers of a pod share it";
  EXPECT_THAT(Run("delete: default/dsp\n"),
              ElementsAre("delete default/dsp/own ()", "delete default/dsp/a ()",
                          "delete default/dsp/b ()", "unprepare default/fast ()"));
  EXPECT_TRUE(simulator_->node().Claimed().empty());
}

TEST_F(SimulatedClaimsTest, APodThatComesBackHasItsClaimsPreparedAgain) {
  Run(Claim("fast", 1, "2") + Carrier("dsp", "fast") + "---\ndelete: default/dsp\n");
  EXPECT_THAT(Run(Carrier("dsp", "fast")),
              ElementsAre("prepare default/fast 4-5(4-5)", "create default/dsp/own 0-3,6-7()",
                          "create default/dsp/a 4-5(4-5)"));
}

TEST_F(SimulatedClaimsTest, WithoutSharingASecondContainerIsRefused) {
  EXPECT_THAT(Run(Claim("fast", 1, "2") + Carrier("dsp", "fast", "ab")),
              ElementsAre("prepare default/fast 4-5(4-5)", "create default/dsp/own 0-3,6-7()",
                          "create default/dsp/a 4-5(4-5)", "create default/dsp/b () error"));
  EXPECT_THAT(last_.error, HasSubstr("is in use by container default/dsp/a"));
}

TEST_F(SimulatedClaimsTest, ARefusalTellsNeedFreeAndHolders) {
  EXPECT_THAT(Run(Claim("one", 1, "3") + Claim("two", 1, "2") + Claim("three", 0, "2")),
              ElementsAre("prepare default/one 4-6(4-6)", "prepare default/two () error",
                          "prepare default/three 1-2(1-2)"));
  EXPECT_THAT(effects_[1].error,
              testing::AllOf(HasSubstr("claim default/two: needs 2 exclusive CPUs of NUMA node 1"),
                             HasSubstr("1 that is free"), HasSubstr("default/one")));
}

TEST_F(SimulatedClaimsTest, APodWaitsForItsClaimAndGetsItLater) {
  EXPECT_THAT(Run(Claim("one", 1, "3") + Carrier("first", "one") + Claim("two", 1, "2") +
                  Carrier("second", "two")),
              ElementsAre("prepare default/one 4-6(4-6)", "create default/first/own 0-3,7()",
                          "create default/first/a 4-6(4-6)", "prepare default/two () error",
                          "prepare default/two () error", "create default/second () error"));
  EXPECT_THAT(last_.error, HasSubstr("the pod waits for a claim: claim default/two: needs 2"));
  Run("delete: default/first\n");
  EXPECT_THAT(Run(Carrier("second", "two")),
              ElementsAre("prepare default/two 4-5(4-5)", "create default/second/own 0-3,6-7()",
                          "create default/second/a 4-5(4-5)"));
}

// A fault that the driver finds in an object is why the claim is refused, and no error of the file.
TEST_F(SimulatedClaimsTest, TheDriverSaysWhatItDoesNotServe) {
  Run(Claim("half", 1, "1500m"));
  EXPECT_THAT(last_.error, HasSubstr("are not a whole number"));
  Run(Claim("odd", 1, "2", "coreType: fast"));
  EXPECT_THAT(last_.error, HasSubstr("coreType"));
  Run(Claim("far", 7, "2"));
  EXPECT_THAT(last_.error, HasSubstr("there is no NUMA node 7"));
  Run("kind: ResourceClaim\nmetadata: {name: pending}\n");
  EXPECT_THAT(last_.error, HasSubstr("has no allocation"));
}

TEST_F(SimulatedClaimsTest, ParametersThatCannotBeHadAreNamed) {
  Run(Claim("fast", 1, "2", "coreType: p-core"));
  EXPECT_THAT(last_.error,
              HasSubstr("claim default/fast: device cpu-numa-1: needs 2 CPUs (coreType p-core), "
                        "and there are 0"));
  EXPECT_THAT(Run(Claim("near", 1, "2", "coreType: standard, avoidSiblings: true")),
              ElementsAre("prepare default/near 4-5(4-5)"))
      << "no core has a second thread";
}

TEST_F(SimulatedClaimsTest, ClaimsOfOtherDriversHoldNothingAndStopNoPod) {
  EXPECT_THAT(Run("kind: ResourceClaim\nmetadata: {name: gpu}\nstatus: {allocation: {devices: "
                  "{results: [{driver: gpu.example.com, device: g0, request: r}]}}}\n" +
                  Carrier("dsp", "gpu")),
              ElementsAre("prepare default/gpu ()", "create default/dsp/own 0-7()",
                          "create default/dsp/a 0-7()"));
  EXPECT_EQ(effects_[0].reason, "it has no device of cpu.cri-resmgr.intel.com");
}

TEST_F(SimulatedClaimsTest, TheDriverIsTheConfiguredOne) {
  Start("policy: {Active: static}\ndra: {Compatible: true}");
  EXPECT_THAT(Run("kind: ResourceClaim\nmetadata: {name: c}\nstatus: {allocation: {devices: "
                  "{results: [{driver: dra.cpu, device: cpudevnuma001, request: r, "
                  "consumedCapacity: {dra.cpu/cpu: \"2\"}}]}}}\n"),
              ElementsAre("prepare default/c 4-5(4-5)"));
}

TEST_F(SimulatedClaimsTest, ClaimsOutlastARestartAndAnotherPolicy) {
  Run(Claim("fast", 1, "2") + Carrier("dsp", "fast"));
  for (const char* const change :
       {"restart: relay\n", "config: {policy: {Active: topology-aware}}\n"}) {
    Run(change);
    EXPECT_EQ(last_.error, "") << change;
    for (const StepEffect::Change& moved : last_.changed)
      EXPECT_NE(moved.container, "a") << change;
    EXPECT_EQ(simulator_->node().Claimed(), (CpuSet{4, 5})) << change;
  }
  Run(Claim("fast", 1, "2"));
  EXPECT_EQ(last_.cpus, "4-5") << "the same again";
  EXPECT_EQ(last_.error, "");
}

TEST_F(SimulatedClaimsTest, WithoutAPolicyNoClaimIsHeld) {
  Start("policy: {Active: \"null\"}");
  Run(Claim("fast", 1, "2"));
  EXPECT_THAT(last_.error, HasSubstr("no policy is active that gives exclusive CPUs"));
}

TEST_F(SimulatedClaimsTest, AnotherObjectOfTheNameIsRefusedWhileTheFirstHoldsCpus) {
  Run(Claim("fast", 1, "2"));
  Run("kind: ResourceClaim\nmetadata: {name: fast, uid: other}\n");
  EXPECT_THAT(last_.error, HasSubstr("exists already, with another UID"));
}

// Each claim counts once: one that is refused is tried again when its pod comes.
TEST_F(SimulatedClaimsTest, ARefusedClaimIsCountedOnceAndNotWhereItSucceedsLater) {
  Run(Claim("one", 1, "3") + Carrier("first", "one") + Claim("two", 1, "2") +
      Carrier("second", "two"));
  EXPECT_THAT(Summary(effects_, simulator_->node()),
              HasSubstr("claims         1 granted, 1 refused"));
  Run("delete: default/first\n");
  Run(Carrier("second", "two"));
  EXPECT_THAT(Summary(effects_, simulator_->node()),
              HasSubstr("claims         2 granted, 0 refused"));
}

TEST_F(SimulatedClaimsTest, TheSummaryCountsClaims) {
  Run(Claim("one", 1, "3") + Claim("two", 1, "2") + SharedPod("web"));
  const std::string summary = Summary(effects_, simulator_->node());
  EXPECT_THAT(summary,
              HasSubstr("claims         1 granted, 1 refused; 3 CPUs (4-6) held at the end\n"
                        "exclusive      3 CPUs (4-6)\n"));
  EXPECT_THAT(summary, HasSubstr("refused        0\n"));
}

}  // namespace
}  // namespace resmgr
