// SPDX-License-Identifier: Apache-2.0
// The acceptance rows of balloons with real pods, named as in
// policies/balloons/balloons_rows_test.cc: the kernel runs the containers on the CPUs and memory
// nodes of the rows. Rows about sizes, limits and the choice of CPUs, and
// then rows about types.
#include <chrono>
#include <cstdint>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "policies/balloons/testing/row_configs.h"
#include "test/machines/machine_fixture.h"

namespace resmgr::test {
namespace {

using ::testing::HasSubstr;

// Time limit for pending container updates.
constexpr std::chrono::seconds kSettled{20};

std::string FileOf(const std::string& section) {
  std::string file = "policy:\n  Active: balloons\n  balloons:\n";
  std::istringstream lines(section);
  for (std::string line; std::getline(lines, line);)
    file += "    " + line + '\n';
  return file;
}

bool Apart(const CpuSet& a, const CpuSet& b) {
  return !a.Intersects(b);
}

// The annotation of this name, of one container if it is given.
std::string Key(const std::string& name, const std::string& container = "") {
  const std::string key = name + ".resource-policy.nri.io";
  return container.empty() ? key : key + "/container." + container;
}

Workload Asks(const std::string& name, int64_t request) {
  return Burstable(name, MilliCpu{request});
}

Workload In(const std::string& namespace_name, Workload workload) {
  workload.namespace_name = namespace_name;
  return workload;
}

// A node under balloons for its acceptance rows. The rows' machine has two packages of two nodes of
// two cores of two threads.
class BalloonsRowsTest : public MachineTest {
 protected:
  using Texts = std::map<std::string, std::string>;

  void SetUp() override;

  // The text of the section policy.balloons.
  void OpenWith(const std::string& section);
  Status Change(const std::string& section);

  // A pod with this container; more of them by Add.
  RunningPod RunAs(const Workload& workload, const Texts& annotations = {},
                   const Texts& labels = {});
  RunningPod RunOf(const std::string& type, const Workload& workload);

  // The container's CPUs by the kernel; waits until there are `size` of them, with memory of their
  // nodes.
  CpuSet On(const RunningPod& pod, int size);

  // The balloon of each container, by its full name, and the balloons themselves.
  Texts Balloons();
  static int CoresOf(const CpuSet& cpus) { return TheMachine().WithSiblings(cpus).size() / 2; }
  // The number of these CPUs in the NUMA node.
  static int InNode(const CpuSet& cpus, int node);
};

void BalloonsRowsTest::SetUp() {
  if (All().size() != 16 || TheMachine().nodes().size() != 4 || TheMachine().cores().size() != 8)
    GTEST_SKIP() << "the rows are about another machine";
}

void BalloonsRowsTest::OpenWith(const std::string& section) {
  OpenDoorWith({.policy = "", .reserved = "", .starts_alone = false, .config = FileOf(section)});
}

Status BalloonsRowsTest::Change(const std::string& section) {
  return Configure(FileOf(section));
}

RunningPod BalloonsRowsTest::RunAs(const Workload& workload, const Texts& annotations,
                                   const Texts& labels) {
  RunningPod pod{
      .workload = workload, .config = node().PodConfig(workload), .pod_id = {}, .container_id = {}};
  for (const auto& [key, value] : annotations)
    (*pod.config.mutable_annotations())[key] = value;
  for (const auto& [key, value] : labels)
    (*pod.config.mutable_labels())[key] = value;
  const StatusOr<std::string> id = node().client().RunPod(pod.config);
  EXPECT_TRUE(id.ok()) << workload.name << ": " << Describe(id.status());
  pod.pod_id = id.value_or("");
  return Add(pod, workload);
}

RunningPod BalloonsRowsTest::RunOf(const std::string& type, const Workload& workload) {
  return RunAs(workload, {{Key("balloon.balloons"), type}});
}

CpuSet BalloonsRowsTest::On(const RunningPod& pod, int size) {
  if (pod.container_id.empty()) return {};
  const Status settled = WaitUntil("its CPUs and memory", kSettled, [&] {
    const CpuSet cpus = CpuSet::Parse(CpusOf(pod)).value_or(CpuSet());
    return cpus.size() == size && MemsOf(pod) == TheMachine().NodesOf(cpus).ToString();
  });
  EXPECT_TRUE(settled.ok()) << pod.workload.name << " is on " << CpusOf(pod) << ", not on " << size
                            << " CPUs, with memory nodes " << MemsOf(pod);
  return KernelCpus(pod);
}

BalloonsRowsTest::Texts BalloonsRowsTest::Balloons() {
  Texts balloons;
  for (const nlohmann::json& pool : Ctl({"pools"})) {
    const std::string name = pool.value("name", "");
    balloons[name] = name;
    for (const nlohmann::json& container : pool["containers"])
      balloons[container.get<std::string>()] = name;
  }
  return balloons;
}

int BalloonsRowsTest::InNode(const CpuSet& cpus, int node) {
  return cpus.CountCommon(TheMachine().FindNode(node)->cpus);
}

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

// Rows about types: groups, expressions, changes of the
// configuration, composite balloons and isolated CPUs.

TEST_P(BalloonsRowsTest, Test04GroupsOfPods) {
  ASSERT_NO_FATAL_FAILURE(OpenWith(kTest04));
  const auto run = [&](const std::string& name, const std::string& ns, const std::string& group) {
    return RunAs(In(ns, Asks(name, 500)), {}, {{"balloon-instance", group}});
  };
  const RunningPod pod0 = run("pod0", "default", "g1");
  const RunningPod pod1 = run("pod1", "default", "g2");
  const RunningPod pod2 = run("pod2", "default", "g1");
  const RunningPod pod3 = run("pod3", "other", "g1");
  const CpuSet first = On(pod0, 2);
  EXPECT_EQ(On(pod2, 2), first);
  EXPECT_TRUE(Apart(On(pod1, 2), first));
  EXPECT_TRUE(Apart(On(pod3, 2), first | On(pod1, 2)));
  // One balloon for each namespace.
  const RunningPod plain0 = RunAs(In("a", Asks("plain0", 500)));
  const RunningPod plain1 = RunAs(In("a", Asks("plain1", 500)));
  const RunningPod plain2 = RunAs(In("b", Asks("plain2", 500)));
  EXPECT_EQ(On(plain0, 1), On(plain1, 1));
  EXPECT_TRUE(Apart(On(plain2, 1), On(plain0, 1)));
}

constexpr const char* kTest06 = R"(
reservedResources: {cpu: "1"}
balloonTypes:
- {name: first, namespaces: [first], minCPUs: 2}
- {name: second, namespaces: [second], minCPUs: 3})";

TEST_P(BalloonsRowsTest, Test06TypesThatGoAndComeBack) {
  ASSERT_NO_FATAL_FAILURE(OpenWith(kTest06));
  const RunningPod a = RunAs(In("first", Asks("a", 100)));
  const RunningPod b = RunAs(In("second", Asks("b", 100)));
  const CpuSet kept = On(b, 3);
  EXPECT_TRUE(Apart(On(a, 2), kept));
  // The pod moves to the type that matches then, and back; the other one stays.
  Status changed = Change(
      "reservedResources: {cpu: \"1\"}\n"
      "balloonTypes: [{name: second, namespaces: [second], minCPUs: 3}]");
  ASSERT_TRUE(changed.ok()) << Describe(changed);
  On(a, 1);
  EXPECT_EQ(Balloons()["first/a/a"], "default[0]");
  changed = Change(kTest06);
  ASSERT_TRUE(changed.ok()) << Describe(changed);
  On(a, 2);
  EXPECT_EQ(Balloons()["first/a/a"], "first[0]");
  EXPECT_EQ(On(b, 3), kept);
  // With another class of CPUs nothing moves.
  const auto places = PlacesOf(a, b);
  changed =
      Change(std::string(kTest06).insert(std::string(kTest06).rfind('}'), ", cpuClass: turbo") +
             "\ncpuClasses: [{name: turbo, maxFreq: 2000000}]");
  ASSERT_TRUE(changed.ok()) << Describe(changed);
  EXPECT_EQ(PlacesOf(a, b), places);
}

TEST_P(BalloonsRowsTest, Test11ExpressionsAndPreservedContainers) {
  ASSERT_NO_FATAL_FAILURE(OpenWith(kTest11));
  const RunningPod precious =
      RunAs(Asks("precious", 100), {}, {{"app.kubernetes.io/component", "precious"}});
  const RunningPod kept = Add(precious, Asks("keep0", 100));
  const RunningPod plain = RunAs(Asks("plain", 100));
  const RunningPod kept_too = Add(plain, Asks("keep1", 100));
  EXPECT_TRUE(Apart(On(precious, 2), On(plain, 1)));
  EXPECT_EQ(KernelCpus(kept), All());
  EXPECT_EQ(KernelCpus(kept_too), All());
}

// Containers of one pod are in balloons of their own, so that few pods do.
constexpr const char* kTest16 = R"(
reservedResources: {cpu: "1"}
balloonTypes:
- {name: near6, preferCloseToDevices: [/sys/devices/system/cpu/cpu6/cache/index0]}
- {name: reserved, components: [{balloonType: near6}]}
- {name: node0, preferCloseToDevices: [/sys/devices/system/node/node0]}
- {name: node1, preferCloseToDevices: [/sys/devices/system/node/node1]}
- {name: node2, preferCloseToDevices: [/sys/devices/system/node/node2]}
- {name: node3, preferCloseToDevices: [/sys/devices/system/node/node3]}
- name: all
  minCPUs: 4
  components: [{balloonType: node0}, {balloonType: node1}, {balloonType: node2}, {balloonType: node3}]
- {name: pkg0, components: [{balloonType: node0}, {balloonType: node1}]}
- name: pkg1
  preferNewBalloons: true
  preferSpreadingPods: true
  components: [{balloonType: node2}, {balloonType: node3}]
- name: one-of
  preferNewBalloons: true
  preferSpreadingPods: true
  componentCreation: balance-balloons
  components: [{balloonType: node2}, {balloonType: node3}, {balloonType: node0}, {balloonType: node1}]
- name: any
  preferNewBalloons: true
  preferSpreadingPods: true
  componentCreation: balance-balloons
  components: [{balloonType: pkg0}, {balloonType: pkg1}]
)";

TEST_P(BalloonsRowsTest, Test16CompositeBalloons) {
  ASSERT_NO_FATAL_FAILURE(OpenWith(kTest16));
  const RunningPod system = RunAs(In("kube-system", Asks("system", 100)));
  EXPECT_TRUE(On(system, 1).IsSubsetOf(CpuSet::Range(6, 7)));

  const RunningPod a = RunOf("all", Asks("a", 500));
  const RunningPod b = Add(a, Asks("b", 500));
  const auto each = [&](int count) {
    const CpuSet cpus = On(a, 4 * count);
    for (int numa = 0; numa < 4; ++numa)
      EXPECT_EQ(InNode(cpus, numa), count) << numa << " of " << cpus.ToString();
    EXPECT_EQ(On(b, 4 * count), cpus);
  };
  each(1);
  const RunningPod nine = Add(a, Asks("nine", 9000));
  each(3);
  End(nine);
  each(1);
  Remove(a);

  const RunningPod one = RunOf("pkg1", Asks("one", 1000));
  const RunningPod four = Add(one, Asks("four", 4000));
  const CpuSet two = On(one, 2);
  const CpuSet rest = On(four, 4);
  EXPECT_EQ(InNode(two, 2), 1);
  EXPECT_EQ(InNode(two, 3), 1);
  EXPECT_EQ(InNode(rest, 2), 2);
  EXPECT_EQ(InNode(rest, 3), 2);
  EXPECT_TRUE(Apart(two, rest));
  Remove(one);

  // The component of which there are the fewest.
  std::vector<RunningPod> pods = {RunOf("one-of", Asks("of2", 1000))};
  for (const int numa : {3, 0, 1})
    pods.push_back(Add(pods.front(), Asks(fmt::format("of{}", numa), 1000)));
  for (size_t i = 0; i < pods.size(); ++i)
    EXPECT_EQ(InNode(On(pods[i], 1), std::vector{2, 3, 0, 1}[i]), 1) << i;
  End(pods[1]);
  EXPECT_EQ(InNode(On(Add(pods.front(), Asks("again", 1000)), 1), 3), 1);
  Remove(pods.front());

  const RunningPod near = RunAs(Asks("near", 1000), {{Key("balloon.balloons", "near"), "node1"},
                                                     {Key("balloon.balloons"), "any"}});
  EXPECT_EQ(InNode(On(near, 1), 1), 1);
  int number = 0;
  for (const int package : {1, 0, 1}) {
    const RunningPod any = Add(near, Asks(fmt::format("any{}", ++number), 2000));
    EXPECT_TRUE(On(any, 2).IsSubsetOf(TheMachine().packages()[static_cast<size_t>(package)]));
  }
}

TEST_P(BalloonsRowsTest, Test22IsolatedCpus) {
  const CpuSet isolated = CpuSet::Range(0, 1);
  if (TheMachine().isolated() != isolated) GTEST_SKIP() << "CPUs 0 and 1 are not isolated";
  ASSERT_NO_FATAL_FAILURE(
      OpenWith("balloonTypes: [{name: iso, minCPUs: 1, minBalloons: 1, preferIsolCpus: true}]"));
  const RunningPod plain = RunAs(Asks("plain", 3000));
  EXPECT_TRUE(Apart(On(plain, 3), isolated));
  const RunningPod a = RunOf("iso", Asks("a", 1000));
  const RunningPod b = Add(a, Asks("b", 1000));
  EXPECT_EQ(On(a, 2), isolated);
  EXPECT_EQ(On(b, 2), isolated);
}

INSTANTIATE_TEST_SUITE_P(Containerd, BalloonsRowsTest,
                         ::testing::Combine(::testing::Values(Door::kRelay),
                                            ::testing::Values("balloons")),
                         NameOfMachineCase);

}  // namespace
}  // namespace resmgr::test
