// SPDX-License-Identifier: Apache-2.0
// The assertions of cri-resource-manager's end-to-end tests about its topology-aware policy, on the
// same machines, through the brain.
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/config/config.h"
#include "pkg/node/policy_setup.h"
#include "pkg/sys/files.h"
#include "pkg/sys/temp_dir.h"
#include "test/integration/brain/topology_aware_node.h"
#include "test/support/machines/machines.h"
#include "test/support/status_matchers.h"

namespace resmgr::test {
namespace {

using testing::AnyOf;
using testing::HasSubstr;

using enum QosClass;

StringMap Annotation(const std::string& key, const std::string& value) {
  return {{key + ".cri-resource-manager.intel.com/pod", value}};
}

StringMap Both(StringMap some, const StringMap& others) {
  for (const auto& [name, value] : others)
    some.Set(name, value);
  return some;
}

TEST(TopologyAwareAcceptanceTest, SpreadsExclusiveContainersOverNodes) {
  for (const int64_t milli_cpu : {1000, 3000}) {
    TopologyAwareNode node(N4C16(), {});
    node.MustRun({.name = "p", .milli_cpu = {milli_cpu, milli_cpu, milli_cpu, milli_cpu}});
    EXPECT_TRUE(node.NodesDisjoint({"pc0", "pc1", "pc2", "pc3"})) << milli_cpu;
  }
}

// A sibling without a request of its own has less once a container of its pod gets more.
TEST(TopologyAwareAcceptanceTest, AResizeWithinAPodWithResourcesOfItsOwnIsNotRefused) {
  TopologyAwareNode topology_aware(S1Ht(), {});
  TestNode& node = topology_aware.node();
  const PodSandboxId pod = node.AddPod("pod", kGuaranteed);
  node.manager().PodResourcesChanged(pod, {}, TestNode::Resources(7000));
  ASSERT_TRUE(node.Create(TestNode::Request(pod, "shares", 7000)).ok());
  const ContainerId own = *node.Create(TestNode::Request(pod, "own", 1000));
  node.runtime.AnswerAll();
  const auto grown = Must(node.manager().AdmitUpdate(own, TestNode::Resources(6000)));
  EXPECT_EQ(Cpus(node.Exclusive(own)).size(), 6);
  node.manager().UpdateSucceeded(grown);
  EXPECT_TRUE(node.manager().AdmitUpdate(own, TestNode::Resources(2000)).ok());
  EXPECT_EQ(Cpus(node.Exclusive(own)).size(), 2);
}

TEST(TopologyAwareAcceptanceTest, SpreadsBurstableContainersOverNodes) {
  TopologyAwareNode node(N4C16(), {});
  node.MustRun(
      {.name = "p", .qos = kBurstable, .milli_cpu = {2000, 2000, 2000, 2000}, .limit = 4000});
  EXPECT_TRUE(node.NodesDisjoint({"pc0", "pc1", "pc2", "pc3"}));
}

TEST(TopologyAwareAcceptanceTest, InitContainersGiveTheirCpusBack) {
  TopologyAwareNode node(N4C16(), {});
  for (int i = 0; i < 5; ++i) {
    node.MustRun({.name = "init", .milli_cpu = {5000}});
    node.End("initc0");
  }
  node.MustRun({.name = "p", .milli_cpu = {5000, 5000}});
  EXPECT_EQ(node.Packages("pc0"), 1);
  EXPECT_EQ(node.Packages("pc1"), 1);
  EXPECT_TRUE(node.NodesDisjoint({"pc0", "pc1"}));
}

TEST(TopologyAwareAcceptanceTest, ColocatesPods) {
  TopologyAwareNode node(N4C16(), {.section = "{ColocatePods: true}"});
  node.MustRun({.name = "p", .milli_cpu = {100, 100, 100, 100}});
  for (const char* const other : {"pc1", "pc2", "pc3"})
    EXPECT_EQ(node.CpuList(other), node.CpuList("pc0"));
}

TEST(TopologyAwareAcceptanceTest, ColocatesNamespaces) {
  TopologyAwareNode node(N4C16(), {.section = "{ColocateNamespaces: true}"});
  node.MustRun({.name = "a", .milli_cpu = {100, 100}, .name_space = "one"});
  node.MustRun({.name = "b", .milli_cpu = {100, 100}, .name_space = "one"});
  node.MustRun({.name = "x", .milli_cpu = {100}, .name_space = "two"});
  for (const char* const other : {"ac1", "bc0", "bc1"})
    EXPECT_EQ(node.CpuList(other), node.CpuList("ac0"));
  EXPECT_TRUE(node.Disjoint({"ac0", "xc0"}));
}

TEST(TopologyAwareAcceptanceTest, AlwaysFits) {
  TopologyAwareNode node(N4C16(), {});
  node.MustRun({.name = "a", .milli_cpu = {1000}});
  EXPECT_EQ(node.CpuList("ac0"), "4");
  node.MustRun({.name = "b", .milli_cpu = {2000}});
  EXPECT_EQ(node.CpuList("bc0"), "8-9");
  node.MustRun({.name = "c", .milli_cpu = {3000}});
  EXPECT_EQ(node.Cpus("cc0").size(), 3);
  EXPECT_EQ(node.Cores("cc0"), 2);
  EXPECT_EQ(node.Nodes("cc0"), 1);
  const std::string third = node.CpuList("cc0");
  node.MustRun({.name = "d", .milli_cpu = {4000}});
  EXPECT_EQ(node.Cpus("dc0").size(), 4);
  EXPECT_EQ(node.Cores("dc0"), 2);
  EXPECT_EQ(node.Nodes("dc0"), 2);
  EXPECT_EQ(node.CpuList("ac0"), "4") << "the earlier ones are where they were";
  EXPECT_EQ(node.CpuList("bc0"), "8-9");
  EXPECT_EQ(node.CpuList("cc0"), third);
}

TEST(TopologyAwareAcceptanceTest, LargeContainersStayTogether) {
  struct Case {
    int64_t cpus;
    int cores;
    int nodes;
    int packages;
  };
  for (const Case& c : {Case{5, 3, 2, 1}, Case{7, 4, 2, 1}, Case{9, 5, 3, 2}}) {
    TopologyAwareNode node(N4C16(), {});
    node.MustRun({.name = "p", .milli_cpu = {c.cpus * 1000}});
    EXPECT_EQ(node.Cpus("pc0").size(), c.cpus);
    EXPECT_EQ(node.Cores("pc0"), c.cores) << c.cpus;
    EXPECT_EQ(node.Nodes("pc0"), c.nodes) << c.cpus;
    EXPECT_EQ(node.Packages("pc0"), c.packages) << c.cpus;
  }
}

TEST(TopologyAwareAcceptanceTest, BurstsGetAtLeastTheirRequest) {
  TopologyAwareNode node(N4C16(), {});
  node.MustRun({.name = "e", .milli_cpu = {1000, 2000}});
  for (const int cpus : {3, 4, 5, 8}) {
    node.MustRun(
        {.name = "b", .qos = kBurstable, .milli_cpu = {cpus * 1000}, .limit = cpus * 1000 + 1000});
    EXPECT_GE(node.Cpus("bc0").size(), cpus);
    node.End("bc0");
  }
}

TEST(TopologyAwareAcceptanceTest, ShrinksAndGrowsSharedSets) {
  TopologyAwareNode node(N4C16(), {});
  node.MustRun({.name = "a", .milli_cpu = {5000}});
  node.MustRun({.name = "b", .milli_cpu = {5000}});
  node.MustRun({.name = "x", .qos = kBestEffort, .milli_cpu = {0, 0}});
  EXPECT_TRUE(node.Disjoint({"ac0", "bc0", "xc0"}));
  EXPECT_TRUE(node.Disjoint({"ac0", "bc0", "xc1"}));
  node.End("ac0");
  node.End("bc0");
  node.MustRun({.name = "c", .milli_cpu = {3000, 3000, 3000, 3000}});
  node.MustRun({.name = "d", .milli_cpu = {1000}});
  EXPECT_TRUE(node.Disjoint({"cc0", "cc1", "cc2", "cc3", "dc0", "xc0"}));
  EXPECT_TRUE(node.Disjoint({"cc0", "cc1", "cc2", "cc3", "dc0", "xc1"}));
}

TEST(TopologyAwareAcceptanceTest, PlacesWithoutAffinityInTheOrderOfRoom) {
  TopologyAwareNode node(N4C16(), {});
  node.MustRun({.name = "p", .milli_cpu = {1000, 1000, 1000, 1000}});
  EXPECT_EQ(node.Pool("pc0"), "NUMA node #1");
  EXPECT_EQ(node.Pool("pc1"), "NUMA node #2");
  EXPECT_EQ(node.Pool("pc2"), "NUMA node #3");
  EXPECT_EQ(node.Pool("pc3"), "NUMA node #0");
}

TEST(TopologyAwareAcceptanceTest, FollowsShortAffinities) {
  TopologyAwareNode node(N4C16(), {});
  node.MustRun(
      {.name = "p",
       .milli_cpu = {1000, 1000, 1000, 1000},
       .annotations = {{"cri-resource-manager.intel.com/affinity", "pc0: [pc1]\npc2: [pc3]"}}});
  EXPECT_EQ(node.Pool("pc0"), "NUMA node #1");
  EXPECT_EQ(node.Pool("pc1"), "NUMA node #1");
  EXPECT_EQ(node.Pool("pc2"), "NUMA node #2");
  EXPECT_EQ(node.Pool("pc3"), "NUMA node #2");
}

TEST(TopologyAwareAcceptanceTest, FollowsShortAntiAffinities) {
  TopologyAwareNode node(N4C16(), {});
  node.MustRun({.name = "p",
                .milli_cpu = {100, 100, 100, 100, 100, 100},
                .annotations = {{"resource-policy.nri.io/affinity", "pc0: [pc3]"},
                                {"resource-policy.nri.io/anti-affinity",
                                 "pc4: [pc0, pc1, pc2]\npc5: [pc0, pc2, pc3]"}}});
  for (const char* const other : {"pc0", "pc1", "pc2"})
    EXPECT_TRUE(node.NodesDisjoint({"pc4", other})) << other;
  for (const char* const other : {"pc0", "pc2", "pc3"})
    EXPECT_TRUE(node.NodesDisjoint({"pc5", other})) << other;
}

TEST(TopologyAwareAcceptanceTest, StaysOnAvailableCpus) {
  TopologyAwareNode node(N4C16(), {.available = "4-11", .reserved = "11"});
  node.MustRun({.name = "a", .milli_cpu = {3000}});
  EXPECT_EQ(node.CpuList("ac0"), "4-6");
  EXPECT_EQ(node.Mems("ac0"), "1");
  node.MustRun({.name = "b", .milli_cpu = {980, 980}});
  EXPECT_EQ(node.CpuList("bc0"), "8-10");
  EXPECT_EQ(node.CpuList("bc1"), "8-10");
  EXPECT_EQ(node.Mems("bc0"), "2");
}

TEST(TopologyAwareAcceptanceTest, StaysOnFewAvailableCpus) {
  struct Case {
    const char* available;
    const char* first;
    const char* second;
  };
  for (const Case& c : {Case{"1-4,11", "1-3", "4"}, Case{"5-8,11", "5-7", "8"}}) {
    TopologyAwareNode node(N4C16(), {.available = c.available, .reserved = "11"});
    node.MustRun({.name = "a", .milli_cpu = {500, 500}});
    EXPECT_EQ(node.CpuList("ac0"), c.first);
    EXPECT_EQ(node.CpuList("ac1"), c.second);
    node.MustRun({.name = "b", .milli_cpu = {1000}});
    EXPECT_TRUE(node.Disjoint({"ac0", "ac1", "bc0"}));
  }
}

// The daemon's reading of a configuration's resources on n4c16.
StatusOr<PolicyCpus> Resolved(const std::string& available, const std::string& reserved) {
  const std::string text =
      fmt::format("policy: {{AvailableResources: {{CPU: '{}'}}, ReservedResources: {{CPU: '{}'}}}}",
                  available, reserved);
  const StatusOr<Config> config = ParseConfig(text, "test.yaml", ConfigChecks());
  EXPECT_TRUE(config.ok()) << config.status();
  return CpusFor(config->policy, N4C16());
}

TEST(TopologyAwareAcceptanceTest, ResourcesAreTakenAsTheConfigurationSaysThem) {
  for (const char* const reserved : {"cpuset:3,7,11,15", "11"})
    EXPECT_FALSE(Resolved("cpuset:4-13", reserved).ok()) << reserved;
  TempDir directory;
  ASSERT_TRUE(AtomicWriteFile(directory.File("cpuset.cpus"), "1-4,11\n", 0644).ok());
  const auto cgroup = Must(Resolved("cgroup:" + directory.path(), "cpuset:11"));
  EXPECT_EQ(cgroup.available.ToString(), "1-4,11");
  for (const auto& [reserved, cpus] :
       {std::pair("cpuset:10-11", "10-11"), std::pair("2250m", "4-6")}) {
    const auto resolved = Must(Resolved("cpuset:4-13", reserved));
    TopologyAwareNode node(N4C16(), {.available = resolved.available.ToString(),
                                     .reserved = resolved.reserved.ToString()});
    node.MustRun({.name = "p", .qos = kBestEffort, .milli_cpu = {0}, .name_space = "kube-system"});
    EXPECT_EQ(node.CpuList("pc0"), cpus);
  }
}

TEST(TopologyAwareAcceptanceTest, PutsSystemPodsOnReservedCpus) {
  TopologyAwareNode node(N4C16(), {.available = "4-13", .reserved = "7,11"});
  const std::string system = "kube-system";
  node.MustRun({.name = "a", .qos = kBestEffort, .milli_cpu = {0}, .name_space = system});
  node.MustRun({.name = "b", .milli_cpu = {200}, .name_space = system});
  node.MustRun({.name = "c", .milli_cpu = {1000}, .name_space = system});
  for (const char* const container : {"ac0", "bc0", "cc0"})
    EXPECT_EQ(node.CpuList(container), "7,11");
  node.MustRun({.name = "d", .milli_cpu = {2000}, .name_space = system});
  EXPECT_EQ(node.CpuList("dc0"), "4-6,8-10,12-13");
}

TEST(TopologyAwareAcceptanceTest, MixesExclusiveAndSharedCpus) {
  TopologyAwareNode node(N4C16(), {});
  node.MustRun({.name = "a", .milli_cpu = {500, 500}});
  EXPECT_EQ(node.Cpus("ac0").size(), 4);
  EXPECT_EQ(node.Cpus("ac1").size(), 4);
  EXPECT_TRUE(node.NodesDisjoint({"ac0", "ac1"}));
  node.MustRun({.name = "b", .milli_cpu = {1500, 1500}});
  for (const char* const container : {"bc0", "bc1"}) {
    EXPECT_EQ(node.Exclusive(container).size(), 1);
    EXPECT_EQ(node.Cpus(container).size(), 4);
  }
  EXPECT_TRUE(node.NodesDisjoint({"bc0", "bc1"}));
  EXPECT_EQ(node.Cpus("ac0").size(), 3);
  EXPECT_EQ(node.Cpus("ac1").size(), 3);
  node.End("bc0");
  node.End("bc1");
  EXPECT_EQ(node.Cpus("ac0").size(), 4);
  EXPECT_EQ(node.Cpus("ac1").size(), 4);
}

TEST(TopologyAwareAcceptanceTest, SharesLargeFractionsUnlessAskedNotTo) {
  TopologyAwareNode node(N4C16(), {});
  node.MustRun({.name = "a", .milli_cpu = {500, 500}});
  node.MustRun({.name = "s", .milli_cpu = {2400}});
  EXPECT_TRUE(node.Exclusive("sc0").empty());
  node.End("sc0");
  for (const char* const isolated : {"true", "false"}) {
    const StringMap annotations = Both(Annotation("prefer-shared-cpus", "false"),
                                       Annotation("prefer-isolated-cpus", isolated));
    node.MustRun({.name = "m", .milli_cpu = {2400}, .annotations = annotations});
    EXPECT_EQ(node.Exclusive("mc0").size(), 2);
    EXPECT_EQ(node.Nodes("mc0"), 1);
    EXPECT_EQ(node.Cpus("mc0").size(), 4) << "the shared part of its node as well";
    node.End("mc0");
    EXPECT_EQ(node.Cpus("ac0").size(), 4);
  }
  node.MustRun(
      {.name = "t", .milli_cpu = {1500}, .annotations = Annotation("prefer-shared-cpus", "true")});
  EXPECT_TRUE(node.Exclusive("tc0").empty());
}

TEST(TopologyAwareAcceptanceTest, UsesIsolatedCpus) {
  const StringMap yes = Annotation("prefer-isolated-cpus", "true");
  const StringMap no = Annotation("prefer-isolated-cpus", "false");
  const StringMap none;
  const auto place = [](int64_t milli_cpu, const StringMap& annotations) {
    TopologyAwareNode node(WithIsolated(N4C16(), "8-9"), {});
    node.MustRun({.name = "p", .milli_cpu = {milli_cpu}, .annotations = annotations});
    return node.Cpus("pc0");
  };
  EXPECT_THAT(place(1000, yes).ToString(), AnyOf("8", "9"));
  EXPECT_THAT(place(1000, none).ToString(), AnyOf("8", "9"));
  EXPECT_FALSE(place(1000, no).Intersects(Cpus("8-9")));
  EXPECT_EQ(place(2000, yes).ToString(), "8-9");
  const StringMap mixed = Both(yes, Annotation("prefer-shared-cpus", "false"));
  EXPECT_EQ(place(2500, mixed).ToString(), "8-11");
  const CpuSet fraction = place(1500, none);
  EXPECT_EQ(fraction.size(), 3);
  EXPECT_TRUE(Cpus("10-11").IsSubsetOf(fraction));
  EXPECT_EQ(fraction.CountCommon(Cpus("8-9")), 1);
  const CpuSet three = place(3000, none);
  EXPECT_EQ(three.size(), 3);
  EXPECT_EQ(N4C16().NodesOf(three).size(), 1);
  EXPECT_FALSE(three.Intersects(Cpus("8-9")));

  TopologyAwareNode node(WithIsolated(N4C16(), "8-9"), {});
  node.MustRun({.name = "p", .milli_cpu = {200, 200, 200, 200}});
  for (const char* const container : {"pc0", "pc1", "pc2", "pc3"})
    EXPECT_FALSE(node.Cpus(container).Intersects(Cpus("8-9"))) << container;
}

TEST(TopologyAwareAcceptanceTest, ARestartedContainerHasItsCpusAgain) {
  TopologyAwareNode node(N4C16(), {});
  node.MustRun({.name = "a", .milli_cpu = {1000}});
  node.MustRun({.name = "b", .milli_cpu = {1000}});
  const std::string before = node.CpuList("bc0");
  for (int i = 0; i < 3; ++i) {
    node.RunAgain("bc0");
    EXPECT_EQ(node.CpuList("bc0"), before);
  }
}

TEST(TopologyAwareAcceptanceTest, AContainerThatEndedIsInNoPool) {
  TopologyAwareNode node(N4C16(), {});
  const auto members = [&node] {
    int count = 0;
    CpuSet exclusive;
    for (const Zone& zone : node.node().policy().Zones(node.node().manager().snapshot())) {
      count += zone.containers;
      exclusive |= zone.exclusive;
    }
    return std::pair(count, exclusive.size());
  };
  node.MustRun({.name = "a", .milli_cpu = {1000}});
  EXPECT_EQ(members(), std::pair(1, 1));
  node.RunAgain("ac0");
  EXPECT_EQ(members(), std::pair(1, 1));
  node.End("ac0");
  EXPECT_EQ(members(), std::pair(0, 0));
}

TEST(TopologyAwareAcceptanceTest, HasMoreReservedNamespaces) {
  TopologyAwareNode node(
      N4C16(),
      {.available = "8-11", .reserved = "10-11", .section = "{ReservedPoolNamespaces: [foobar]}"});
  node.MustRun({.name = "a", .milli_cpu = {100}, .name_space = "kube-system"});
  node.MustRun({.name = "b", .milli_cpu = {100}, .name_space = "foobar"});
  node.MustRun({.name = "c", .milli_cpu = {100}});
  node.MustRun({.name = "d",
                .milli_cpu = {100},
                .name_space = "foobar",
                .annotations = Annotation("prefer-reserved-cpus", "false")});
  node.MustRun({.name = "e",
                .milli_cpu = {100},
                .name_space = "foobar",
                .annotations = Annotation("prefer-reserved-cpus", "true")});
  EXPECT_EQ(node.CpuList("ac0"), "10-11");
  EXPECT_EQ(node.CpuList("bc0"), "10-11");
  EXPECT_EQ(node.CpuList("cc0"), "8-9");
  EXPECT_EQ(node.CpuList("dc0"), "8-9");
  EXPECT_EQ(node.CpuList("ec0"), "10-11");
}

TEST(TopologyAwareAcceptanceTest, ReadsReservedAnnotationsByContainer) {
  TopologyAwareNode node(
      N4C16(),
      {.available = "8-11", .reserved = "10-11", .section = "{PrivilegedNamespaces: [default]}"});
  StringMap annotations = Annotation("prefer-reserved-cpus", "true");
  annotations.Set("prefer-reserved-cpus.cri-resource-manager.intel.com/container.pc1", "false");
  node.MustRun({.name = "p", .milli_cpu = {1000, 1000}, .annotations = annotations});
  EXPECT_EQ(node.CpuList("pc0"), "10-11");
  EXPECT_EQ(node.CpuList("pc1"), "8");
}

TEST(TopologyAwareAcceptanceTest, AssignsPmemNodesByDistance) {
  for (const auto& [reserved, pool, mems] :
       {std::tuple("1-3", "socket #0", "0,6"), std::tuple("0,2-3", "socket #1", "1,7"),
        std::tuple("0-1,3", "socket #2", "2,4"), std::tuple("0-2", "socket #3", "3,5")}) {
    TopologyAwareNode node(C4Pmem4(), {.reserved = reserved});
    node.MustRun({.name = "p", .milli_cpu = {500}});
    EXPECT_EQ(node.Pool("pc0"), pool);
    EXPECT_EQ(node.Mems("pc0"), mems);
  }
}

TEST(TopologyAwareAcceptanceTest, FollowsMemoryTypes) {
  const std::string key = "memory-type.cri-resource-manager.intel.com/container.pc";
  const StringMap by_container = {
      {key + "0", "dram"}, {key + "1", "pmem"}, {key + "2", "pmem,dram"}};
  const StringMap old_form = {
      {"cri-resource-manager.intel.com/memory-type", "pc0: dram\npc1: pmem\npc2: pmem,dram\n"}};
  for (const StringMap& annotations : {by_container, old_form}) {
    TopologyAwareNode node(C4Pmem4(), {});
    node.MustRun({.name = "p", .milli_cpu = {750, 750, 750, 750}, .annotations = annotations});
    EXPECT_EQ(node.Mems("pc0"), "1");
    EXPECT_EQ(node.Mems("pc1"), "4");
    EXPECT_EQ(node.Mems("pc2"), "3,5");
    EXPECT_EQ(node.Mems("pc3"), "0-7");
  }
}

TEST(TopologyAwareAcceptanceTest, GuaranteesMemory) {
  TopologyAwareNode node(C4Pmem4(), {});
  node.MustRun({.name = "a", .milli_cpu = {500}, .memory = 5 * kGiB});
  node.MustRun({.name = "b", .milli_cpu = {500}, .memory = 5 * kGiB});
  EXPECT_EQ(node.Mems("ac0"), "1,7");
  EXPECT_EQ(node.Mems("bc0"), "2,4");
  // The container needs CPUs of several sockets, so its memory may lie near to all of them.
  node.MustRun({.name = "c",
                .milli_cpu = {1900},
                .memory = 2 * kGiB,
                .annotations = Annotation("prefer-shared-cpus", "true")});
  for (const char* const container : {"ac0", "bc0", "cc0"})
    EXPECT_EQ(node.Mems(container), "0-7") << container;
}

TEST(TopologyAwareAcceptanceTest, RefusesWhatCannotBeGranted) {
  TopologyAwareNode node(N4C16(), {});
  const Status never = node.Run({.name = "a", .milli_cpu = {20000}});
  EXPECT_EQ(never.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(Message(never)), HasSubstr("needs 20 exclusive CPUs"));
  node.MustRun({.name = "b", .milli_cpu = {9000}});
  const Status full = node.Run({.name = "c", .milli_cpu = {7000}});
  EXPECT_EQ(full.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(Message(full)), HasSubstr("root: 6"));
}

}  // namespace
}  // namespace resmgr::test
