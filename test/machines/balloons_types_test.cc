// SPDX-License-Identifier: Apache-2.0
// The acceptance rows of balloons with real pods about types: groups, expressions, changes of the
// configuration, composite balloons and isolated CPUs.
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "policies/balloons/testing/row_configs.h"
#include "test/machines/balloons_rows.h"

namespace resmgr::test {
namespace {

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

}  // namespace
}  // namespace resmgr::test
