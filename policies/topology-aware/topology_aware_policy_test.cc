// SPDX-License-Identifier: Apache-2.0
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "policies/topology-aware/testing/topology_node.h"

namespace resmgr {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

using enum QosClass;
constexpr int64_t kGiB = int64_t{1} << 30;

using Node = test::TopologyNode;
using test::N4C16;

ContainerKey AddBurstable(Node& node, int64_t request, int64_t limit) {
  const ContainerKey key = node.Add("burst", kBurstable, request);
  node.ContainerOf(key).requirements.cpu_limit = MilliCpu{limit};
  return key;
}

TEST(TopologyAwarePolicyTest, NeedsCpusToShare) {
  const Machine regular = test::MakeMachine(test::Shape{.cores = 2});
  Machine::Parts parts = test::PartsOf(regular);
  for (Cpu& cpu : parts.cpus)
    cpu.isolated = true;
  const Machine machine = test::MakeMachine(std::move(parts));
  const auto code = [&machine](const CpuSet& reserved) {
    return TopologyAwarePolicy::Create(
               {.machine = machine, .available = test::Cpus("0-1"), .reserved = reserved})
        .status()
        .code();
  };
  EXPECT_EQ(code({}), StatusCode::kInvalidArgument);
  EXPECT_EQ(code({0}), StatusCode::kOk) << "a reserved CPU can be shared";
}

// As under the other policies, all share the reserved CPUs, and no container has one alone.
TEST(TopologyAwarePolicyTest, WhereAllCpusAreReservedContainersShareThem) {
  Node node(test::MakeMachine(test::Shape{.cores = 1}));
  const ContainerKey system = node.Add("system", kBurstable, 100);
  node.snapshot().PodOf(system).namespace_name = "kube-system";
  EXPECT_TRUE(node.Place(system).ok());
  const ContainerKey web = node.Run("web", kBurstable, 100);
  const ContainerKey idle = node.Run("idle", kBestEffort, 0);
  const ContainerKey part = node.Run("part", kGuaranteed, 200);
  for (const ContainerKey key : {system, web, idle, part}) {
    EXPECT_EQ(node.PlacementOf(key).cpus, CpuSet{0});
    EXPECT_THAT(node.PlacementOf(key).exclusive, IsEmpty());
  }
  const Status refused = node.Place(node.Add("whole", kGuaranteed, 1000)).status();
  EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(Message(refused)), HasSubstr("this node can grant no more than 0"));
}

TEST(TopologyAwarePolicyTest, ExclusiveContainersRunWithoutQuota) {
  Node node(N4C16());
  const ContainerKey whole = node.Run("whole", kGuaranteed, 2000);
  EXPECT_EQ(node.PlacementOf(whole).cpu_quota, -1);
  EXPECT_EQ(node.PlacementOf(whole).cpu_shares, std::nullopt)
      << "what the kubelet asked for is right";
  const ContainerKey mixed = node.Run("mixed", kGuaranteed, 1500);
  EXPECT_EQ(node.PlacementOf(mixed).cpu_quota, std::nullopt);
  EXPECT_EQ(node.PlacementOf(mixed).cpu_shares, 512);
  const ContainerKey shared = node.Run("shared", kGuaranteed, 500);
  EXPECT_EQ(node.PlacementOf(shared).cpu_quota, std::nullopt);
  Node keeping(N4C16(), "0", "{CPUQuota: keep}");
  EXPECT_EQ(keeping.PlacementOf(keeping.Run("whole", kGuaranteed, 2000)).cpu_quota, std::nullopt);
}

TEST(TopologyAwarePolicyTest, VeryLargeContainersKeepTheQuotaThatTellsTheirSize) {
  Node node(test::MakeMachine({.packages = 8, .cores = 64, .threads = 2}));
  EXPECT_EQ(node.PlacementOf(node.Run("255", kGuaranteed, 255'000)).cpu_quota, -1);
  EXPECT_EQ(node.PlacementOf(node.Run("256", kGuaranteed, 256'000)).cpu_quota, std::nullopt);
  const ContainerKey unknown = node.Add("unknown", kGuaranteed, 256'000);
  node.ContainerOf(unknown).requested.cpu_shares = 262'144;
  ASSERT_TRUE(node.Place(unknown).ok());
  EXPECT_THAT(node.PlacementOf(unknown).reason, HasSubstr("the most that CPU shares tell"));
}

TEST(TopologyAwarePolicyTest, BurstsGetAPoolForTheirLimit) {
  Node node(N4C16());
  for (const auto& [limit, pool] : {std::pair(3000, "NUMA node #1"), std::pair(6000, "socket #1"),
                                    std::pair(12000, "root"), std::pair(80000, "root")}) {
    const ContainerKey key = AddBurstable(node, 1000, limit);
    ASSERT_TRUE(node.Place(key).ok());
    EXPECT_EQ(node.PlacementOf(key).pool, pool) << limit;
    node.Remove(key);
  }
}

TEST(TopologyAwarePolicyTest, UnlimitedBurstsGetTheConfiguredLevel) {
  for (const auto& [level, pool] :
       {std::pair("system", "root"), std::pair("package", "socket #1"),
        std::pair("die", "socket #1"), std::pair("numa", "NUMA node #1"),
        std::pair("l3cache", "NUMA node #1")}) {
    Node node(N4C16(), "0", fmt::format("{{UnlimitedBurstable: {}}}", level));
    const ContainerKey key = AddBurstable(node, 100, 0);
    ASSERT_TRUE(node.Place(key).ok());
    EXPECT_EQ(node.PlacementOf(key).pool, pool) << level;
  }
  Node node(N4C16());
  const ContainerKey key = AddBurstable(node, 100, 0);
  node.Annotate(key, "unlimited-burstable", "numa");
  ASSERT_TRUE(node.Place(key).ok());
  EXPECT_EQ(node.PlacementOf(key).pool, "NUMA node #1");
}

TEST(TopologyAwarePolicyTest, FollowsDevices) {
  Node node(N4C16());
  const ContainerKey key = node.Add("near", kGuaranteed, 1000);
  node.ContainerOf(key).hints = {{"device /dev/sda", {}, NodeSet{3}}};
  ASSERT_TRUE(node.Place(key).ok());
  EXPECT_EQ(node.PlacementOf(key).pool, "NUMA node #3");
  EXPECT_THAT(node.PlacementOf(key).reason, HasSubstr("devices"));
  const ContainerKey off = node.Add("off", kGuaranteed, 1000);
  node.ContainerOf(off).hints = {{"device /dev/sda", {}, NodeSet{3}}};
  node.Annotate(off, "topologyhints", "none");
  ASSERT_TRUE(node.Place(off).ok());
  EXPECT_EQ(node.PlacementOf(off).pool, "NUMA node #1");
}

TEST(TopologyAwarePolicyTest, StrictHintsRefuseWhereThereIsNoRoom) {
  Node node(N4C16());
  for (const bool strict : {false, true}) {
    const ContainerKey key = node.Add("near", kGuaranteed, 1000);
    node.ContainerOf(key).hints = {{"device /dev/sda", {}, NodeSet{1}},
                                   {"device /dev/sdb", test::Cpus("12-15"), {}}};
    node.Annotate(key, "strict.topologyhints", strict ? "true" : "false");
    ASSERT_TRUE(node.Place(key).ok()) << "the root is near to both";
    EXPECT_EQ(node.PlacementOf(key).pool, "root");
  }
  const ContainerKey key = node.Add("nowhere", kGuaranteed, 500);
  node.ContainerOf(key).hints = {{"device /dev/sda", test::Cpus("500"), {}}};
  node.Annotate(key, "strict.topologyhints", "true");
  const Status status = node.Place(key).status();
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(Message(status)),
              HasSubstr("no pool is near to all its devices and volumes"));
}

TEST(TopologyAwarePolicyTest, PicksCpusByHints) {
  Node node(test::MakeMachine({.packages = 1, .l3s = 1, .cores = 8}));
  const ContainerKey key = node.Add("near", kGuaranteed, 2000);
  node.ContainerOf(key).hints = {{"device /dev/sda", test::Cpus("5-6"), {}}};
  node.Annotate(key, "pick-resources-by-hints", "true");
  ASSERT_TRUE(node.Place(key).ok());
  EXPECT_EQ(node.CpusOf(key), "5-6");
}

TEST(TopologyAwarePolicyTest, HidesHyperthreads) {
  Node node(N4C16());
  const ContainerKey shared = node.Run("shared", kBestEffort, 0);
  const ContainerKey key = node.Add("single", kGuaranteed, 3000);
  node.Annotate(key, "hide-hyperthreads", "true");
  ASSERT_TRUE(node.Place(key).ok());
  EXPECT_EQ(node.CpusOf(key), "8,10");
  const ContainerKey other = node.Run("other", kGuaranteed, 2000);
  EXPECT_FALSE(node.PlacementOf(other).cpus->Intersects(test::Cpus("8-11")))
      << "siblings are not given away";
  node.ChangeSection("");
  EXPECT_THAT(node.Reconcile().changes, IsEmpty());
  EXPECT_FALSE(node.PlacementOf(shared).cpus->Intersects(test::Cpus("8-11")));

  const ContainerKey half = node.Add("half", kGuaranteed, 500);
  node.Annotate(half, "hide-hyperthreads", "true");
  ASSERT_TRUE(node.Place(half).ok());
  for (const int cpu : *node.PlacementOf(half).cpus)
    EXPECT_TRUE(cpu % 2 == 0 || cpu == 1) << cpu;
}

// Cores are {c,c+8}.
TEST(TopologyAwarePolicyTest, HidesHyperthreadsBesideThreadsThatAreOffline) {
  Node node(test::MakeMachine(
      {.packages = 1, .l3s = 1, .cores = 8, .threads = 2, .siblings_apart = true}));
  const auto run = [&node](std::string_view name) {
    const ContainerKey key = node.Add(name, kGuaranteed, 2000);
    node.Annotate(key, "hide-hyperthreads", "true");
    EXPECT_TRUE(node.Place(key).ok()) << name;
    return node.PlacementOf(key).cpus.value_or(CpuSet());
  };
  const ContainerKey key = node.Add("c", kGuaranteed, 2000);
  node.Annotate(key, "hide-hyperthreads", "true");
  ASSERT_TRUE(node.Place(key).ok());
  const CpuSet seen = *node.PlacementOf(key).cpus;
  ASSERT_EQ(seen.size(), 1);
  node.SetOffline({seen.First() + 8});
  EXPECT_TRUE(seen.IsSubsetOf(*node.PlacementOf(key).cpus)) << node.CpusOf(key);
  EXPECT_EQ(run("beside").size(), 1);
  // Simultaneous multithreading is switched off.
  node.SetOffline(test::Cpus("8-15"));
  EXPECT_TRUE(seen.IsSubsetOf(*node.PlacementOf(key).cpus)) << node.CpusOf(key);
  EXPECT_EQ(run("later").size(), 2) << "a CPU is a core";
}

// Node 0 has as many isolated CPUs as node 1, but no two of one core.
TEST(TopologyAwarePolicyTest, HidesHyperthreadsWhereWholeIsolatedCoresAre) {
  for (const int64_t request : {1000, 2000}) {
    Node node(test::WithIsolated(test::M80(), "2-3,12,52"));
    const ContainerKey key = node.Add("c", kGuaranteed, request);
    node.Annotate(key, "hide-hyperthreads", "true");
    node.Annotate(key, "prefer-isolated-cpus", "true");
    ASSERT_TRUE(node.Place(key).ok());
    EXPECT_EQ(node.CpusOf(key), "12") << request;
  }
}

TEST(TopologyAwarePolicyTest, PrefersCoresOfThePriority) {
  Node node(test::Hybrid(), "");
  for (const auto& [priority, cpus] : {std::pair("high", "0-1"), std::pair("low", "4-5")}) {
    const ContainerKey key = node.Add("c", kGuaranteed, 2000);
    node.Annotate(key, "prefer-cpu-priority", priority);
    ASSERT_TRUE(node.Place(key).ok());
    EXPECT_EQ(node.CpusOf(key), cpus);
  }
}

TEST(TopologyAwarePolicyTest, RequiresIsolatedCpusWhenThePodDoes) {
  Node node(N4C16());
  const ContainerKey key = node.Add("c", kGuaranteed, 1000);
  node.Annotate(key, "require-isolated-cpus", "true");
  const Status status = node.Place(key).status();
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(std::string(Message(status)), HasSubstr("isolated"));
}

TEST(TopologyAwarePolicyTest, PreservesWhatAPodWantsToKeep) {
  Node node(N4C16(), "0", "{privilegedNamespaces: ['*']}");
  const ContainerKey key = node.Add("c", kGuaranteed, 2000);
  node.Annotate(key, "cpu.preserve", "true");
  node.Annotate(key, "memory.preserve", "true");
  ASSERT_TRUE(node.Place(key).ok());
  EXPECT_FALSE(node.PlacementOf(key).cpus.has_value());
  EXPECT_FALSE(node.PlacementOf(key).mems.has_value());
  EXPECT_THAT(node.PlacementOf(key).reason, HasSubstr("exclusive CPUs of others"));
  EXPECT_THAT(node.policy().Unheeded(node.snapshot().PodOf(key), node.ContainerOf(key)), IsEmpty());
}

TEST(TopologyAwarePolicyTest, OnlyPodsOfPrivilegedNamespacesAreTakenOutOfItsRules) {
  Node node(N4C16());
  const ContainerKey plain = node.Run("plain", kGuaranteed, 2000);
  const std::string mems = node.PlacementOf(plain).mems->ToString();
  node.Remove(plain);
  for (const std::string domain : {"cri-resource-manager.intel.com", "resource-policy.nri.io"}) {
    const ContainerKey key = node.Add("tenant", kGuaranteed, 2000);
    StringMap& annotations = node.snapshot().PodOf(key).annotations;
    for (const char* const name : {"cpu.preserve.", "memory.preserve.", "prefer-reserved-cpus."})
      annotations.Set(name + domain + "/container.tenant", "true");
    ASSERT_TRUE(node.Place(key).ok());
    // The container is placed as without the annotation.
    EXPECT_EQ(node.PlacementOf(key).exclusive.size(), 2) << domain;
    EXPECT_EQ(node.PlacementOf(key).mems->ToString(), mems);
    for (const char* const name : {"cpu.preserve", "memory.preserve", "prefer-reserved-cpus"}) {
      const std::string why = fmt::format(
          "annotation {} ignored: namespace {} is not in "
          "policy.topology-aware.PrivilegedNamespaces",
          name, node.snapshot().PodOf(key).namespace_name);
      EXPECT_THAT(node.PlacementOf(key).reason, HasSubstr(why));
      EXPECT_THAT(node.policy().Unheeded(node.snapshot().PodOf(key), node.ContainerOf(key)),
                  Contains(why));
    }
    node.Remove(key);
  }
  const ContainerKey system = node.Add("system", kGuaranteed, 2000);
  node.snapshot().PodOf(system).namespace_name = "kube-system";
  node.Annotate(system, "cpu.preserve", "true");
  ASSERT_TRUE(node.Place(system).ok());
  EXPECT_FALSE(node.PlacementOf(system).cpus.has_value());
  // "false" takes nothing from other containers.
  const ContainerKey away = node.Add("away", kGuaranteed, 2000);
  node.Annotate(away, "prefer-reserved-cpus", "false");
  node.Annotate(away, "cpu.preserve", "false");
  ASSERT_TRUE(node.Place(away).ok());
  EXPECT_THAT(node.policy().Unheeded(node.snapshot().PodOf(away), node.ContainerOf(away)),
              IsEmpty());
}

TEST(TopologyAwarePolicyTest, ARestartMovesNobodyWhomPrivilegesConcern) {
  Node node(N4C16(), "0-1", "{PrivilegedNamespaces: [trusted]}");
  std::vector<ContainerKey> keys;
  for (const char* const name_space : {"trusted", "tenant"}) {
    for (const char* const name : {"cpu.preserve", "memory.preserve", "prefer-reserved-cpus"}) {
      keys.push_back(node.Add(name, kGuaranteed, 1000));
      node.snapshot().PodOf(keys.back()).namespace_name = name_space;
      node.Annotate(keys.back(), name, "true");
      ASSERT_TRUE(node.Place(keys.back()).ok());
    }
  }
  EXPECT_EQ(node.CpusOf(keys[2]), "0-1");
  EXPECT_EQ(node.PlacementOf(keys[5]).exclusive.size(), 1);
  node.ChangeSection("{PrivilegedNamespaces: [trusted]}");
  EXPECT_THAT(node.Reconcile().changes, IsEmpty());
}

TEST(TopologyAwarePolicyTest, LeavesAloneWhatIsNotPinned) {
  Node no_cpus(N4C16(), "0", "{PinCPU: false}");
  const ContainerKey a = no_cpus.Run("a", kGuaranteed, 2000);
  EXPECT_FALSE(no_cpus.PlacementOf(a).cpus.has_value());
  EXPECT_TRUE(no_cpus.PlacementOf(a).exclusive.empty());
  EXPECT_EQ(no_cpus.PlacementOf(a).mems->ToString(), "1");
  Node no_memory(N4C16(), "0", "{PinMemory: false}");
  const ContainerKey b = no_memory.Run("b", kGuaranteed, 2000);
  EXPECT_EQ(no_memory.CpusOf(b), "4-5");
  EXPECT_FALSE(no_memory.PlacementOf(b).mems.has_value());
}

TEST(TopologyAwarePolicyTest, OverbooksSharedCpusRatherThanRefusing) {
  Node node(N4C16());
  for (int i = 0; i < 4; ++i)
    node.Run("c", kBurstable, 3900);
  const ContainerKey key = node.Run("late", kBurstable, 3900);
  EXPECT_EQ(node.PlacementOf(key).pool, "root");
  EXPECT_THAT(node.PlacementOf(key).reason, HasSubstr("more is asked for"));
}

TEST(TopologyAwarePolicyTest, EndlessRequestsDoNotAddUpToNothing) {
  Node node(N4C16(), "0", "{PrivilegedNamespaces: ['*']}");
  for (int i = 0; i < 3; ++i) {
    const ContainerKey key = node.Add("huge", kGuaranteed, 0);
    Requirements& needs = node.ContainerOf(key).requirements;
    needs.cpu_request.value = needs.memory_request.value = std::numeric_limits<int64_t>::max();
    node.Annotate(key, "prefer-reserved-cpus", "true");
    EXPECT_TRUE(node.Place(key).ok());
  }
  for (const Zone& zone : node.policy().Zones(node.snapshot()))
    EXPECT_GE(zone.memory_used.value, 0) << zone.name;
  const ContainerKey next = node.Add("next", kGuaranteed, 500);
  node.ContainerOf(next).requirements.memory_request.value = 1;
  EXPECT_THAT(std::string(Message(node.Place(next).status())),
              HasSubstr("but only 0 of 64 GiB are free"));
}

TEST(TopologyAwarePolicyTest, SharedSetsFollowExclusiveGrants) {
  Node node(N4C16());
  const ContainerKey shared = node.Run("shared", kGuaranteed, 500);
  ASSERT_EQ(node.CpusOf(shared), "4-7");
  // Takes all other CPUs: the shared container keeps one of its node.
  const ContainerKey large = node.Run("large", kGuaranteed, 14000);
  EXPECT_EQ(node.PlacementOf(shared).cpus->size(), 1);
  EXPECT_TRUE(node.PlacementOf(shared).cpus->IsSubsetOf(test::Cpus("4-7")));
  node.Remove(large);
  EXPECT_EQ(node.CpusOf(shared), "4-7");
}

TEST(TopologyAwarePolicyTest, ANewAttemptIsWhereTheFormerOneWas) {
  Node node(N4C16());
  const ContainerKey first = node.Run("c", kGuaranteed, 2000);
  node.Run("d", kGuaranteed, 2000);
  const Container former = node.ContainerOf(first);
  node.snapshot().Remove(first);
  const ContainerKey second = node.Add("c", kGuaranteed, 2000);
  ASSERT_TRUE(node.Place(second, &former).ok());
  EXPECT_EQ(node.CpusOf(second), former.placement.cpus->ToString());
  EXPECT_THAT(node.PlacementOf(second).reason, HasSubstr("where it was before"));
}

TEST(TopologyAwarePolicyTest, WhatIsLeftOfTheFormerCpusDoesNotSplitANewAttempt) {
  Node node(test::S1Ht());
  const ContainerKey first = node.Run("main", kGuaranteed, 2000);
  ASSERT_EQ(node.CpusOf(first), "1,5");
  const Container former = node.ContainerOf(first);
  node.Remove(first);
  node.Run("beside the reserved one", kGuaranteed, 1000);
  ASSERT_EQ(node.CpusOf(node.Run("other", kGuaranteed, 1000)), "1");
  const ContainerKey second = node.Add("main", kGuaranteed, 2000);
  ASSERT_TRUE(node.Place(second, &former).ok());
  EXPECT_EQ(node.CpusOf(second), "2,6");
}

// Isolated CPUs 5-6 and 9-14.
Machine PartlyIsolated() {
  return test::WithIsolated(test::U16TwoNodes(), "5-6,9-14");
}

TEST(TopologyAwarePolicyTest, ANewAttemptMayHaveOrdinaryAndIsolatedCpusAgain) {
  Node node(PartlyIsolated());
  const ContainerKey first = node.Run("c", kGuaranteed, 4000);
  ASSERT_EQ(node.CpusOf(first), "1-4");
  Container former = node.ContainerOf(first);
  node.Remove(first);
  former.placement.cpus = test::Cpus("8-11");
  former.placement.exclusive = test::Cpus("8-11");
  former.placement.pool = "NUMA node #1";
  const ContainerKey second = node.Add("c", kGuaranteed, 4000);
  ASSERT_TRUE(node.Place(second, &former).ok());
  EXPECT_TRUE(node.PlacementOf(second).cpus->IsSubsetOf(test::Cpus("8-15"))) << node.CpusOf(second);
  EXPECT_THAT(node.PlacementOf(second).reason, HasSubstr("where it was before"));
}

TEST(TopologyAwarePolicyTest, WhatNeverFitsIsNotRefusedForWantOfRoom) {
  Node node(test::S1Ht());
  node.Run("other", kGuaranteed, 1000);
  const auto refusal = [&node](ContainerKey key) {
    const Status status = node.Place(key).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << status;
    return std::string(Message(status));
  };
  EXPECT_EQ(refusal(node.Add("large", kGuaranteed, 8000)),
            "needs 8 exclusive CPUs, but this node can grant no more than 7");
  const ContainerKey fraction = node.Add("fraction", kGuaranteed, 7200);
  node.Annotate(fraction, "prefer-shared-cpus", "false");
  EXPECT_EQ(refusal(fraction),
            "needs 7 exclusive CPUs and 200m of shared ones, but this node can grant no more than "
            "7000m");
  const ContainerKey isolated = node.Add("isolated", kGuaranteed, 1000);
  node.Annotate(isolated, "require-isolated-cpus", "true");
  EXPECT_EQ(refusal(isolated),
            "needs 1 exclusive isolated CPU, but this node can grant no more than 0");
  const ContainerKey memory = node.Add("memory", kGuaranteed, 1000);
  node.ContainerOf(memory).requirements.memory_request.value = 4096 * kGiB;
  EXPECT_THAT(refusal(memory), HasSubstr("needs 4 TiB of memory, but this node has no more than "));
}

TEST(TopologyAwarePolicyTest, AConfigurationChangeKeepsWhatIsLegal) {
  Node node(N4C16());
  const ContainerKey mixed = node.Run("mixed", kGuaranteed, 1500);
  node.Run("whole", kGuaranteed, 2000);
  const ContainerKey shared = node.Run("shared", kGuaranteed, 500);
  ASSERT_EQ(node.PlacementOf(shared).pool, "NUMA node #3");
  for (const char* const section :
       {"{ColocatePods: true, UnlimitedBurstable: numa, PreferIsolatedCPUs: false}",
        "{PreferSharedCPUs: true}", "{CPUQuota: lift, DefaultCPUPriority: high}"}) {
    node.ChangeSection(section);
    EXPECT_THAT(node.Reconcile().changes, IsEmpty()) << section;
  }
  EXPECT_EQ(node.PlacementOf(mixed).exclusive.size(), 1);
  node.ChangeSection("{PinCPU: false}");
  node.Reconcile();
  EXPECT_FALSE(node.PlacementOf(mixed).cpus.has_value());
  EXPECT_TRUE(node.PlacementOf(mixed).exclusive.empty());
  node.ChangeSection("");
  node.Reconcile();
  EXPECT_EQ(node.PlacementOf(mixed).exclusive.size(), 1);
  EXPECT_EQ(node.PlacementOf(shared).pool, "NUMA node #3");
  EXPECT_TRUE(node.PlacementOf(shared).cpus.has_value());
}

TEST(TopologyAwarePolicyTest, TakesOverFromAnotherPolicy) {
  Node node(N4C16());
  const ContainerKey own = node.Add("own", kGuaranteed, 2000);
  const ContainerKey shared = node.Add("shared", kBurstable, 500);
  const ContainerKey free = node.Add("free", kBestEffort, 0);
  node.ContainerOf(own).placement.cpus = test::Cpus("6-7");
  node.ContainerOf(own).placement.exclusive = test::Cpus("6-7");
  node.ContainerOf(own).placement.pool = "exclusive";
  node.ContainerOf(shared).placement.cpus = test::Cpus("0-5,8-15");
  node.ContainerOf(shared).placement.pool = "shared";
  node.Reconcile();
  EXPECT_EQ(node.PlacementOf(own).exclusive.ToString(), "6-7");
  EXPECT_EQ(node.PlacementOf(own).pool, "NUMA node #1");
  EXPECT_FALSE(node.PlacementOf(shared).cpus->Contains(0)) << "it was on a reserved CPU";
  EXPECT_THAT(node.PlacementOf(free).cpus->size(), testing::Ge(1));
  EXPECT_THAT(node.Reconcile().changes, IsEmpty());
}

TEST(TopologyAwarePolicyTest, ContainersThatExistShareForWantOfRoom) {
  Node node(test::MakeMachine({.cores = 4}));
  for (int i = 0; i < 3; ++i)
    node.Add(fmt::format("c{}", i), kGuaranteed, 2000);
  node.Reconcile();
  int shared = 0;
  node.snapshot().ForEachContainer([&](const Pod&, const Container& container) {
    if (container.placement.reason.starts_with("shared for want of room")) ++shared;
  });
  EXPECT_EQ(shared, 2);
}

TEST(TopologyAwarePolicyTest, RebalancesSharedContainersOnly) {
  Node node(N4C16());
  std::vector<ContainerKey> keys;
  keys.reserve(4);
  for (int i = 0; i < 4; ++i)
    keys.push_back(node.Run("full", kBurstable, 3000));
  const ContainerKey wide = node.Add("wide", kBurstable, 2500);
  ASSERT_TRUE(node.Place(wide).ok());
  ASSERT_EQ(node.PlacementOf(wide).pool, "root");
  EXPECT_THAT(node.Rebalance().changes, IsEmpty()) << "there is no better place";
  node.Remove(keys[1]);
  const Plan plan = node.Rebalance();
  EXPECT_NE(plan.Find(wide), nullptr);
  EXPECT_EQ(plan.changes.size(), 1u);
  EXPECT_THAT(node.PlacementOf(wide).pool, HasSubstr("NUMA node"));
  EXPECT_THAT(node.Rebalance().changes, IsEmpty());
}

TEST(TopologyAwarePolicyTest, RebalancesExclusiveContainersThatAllowIt) {
  for (const bool allowed : {false, true}) {
    Node node(N4C16());
    std::vector<ContainerKey> keys;
    keys.reserve(4);
    for (int i = 0; i < 4; ++i)
      keys.push_back(node.Run("c", kGuaranteed, 2000));
    const ContainerKey spread = node.Add("spread", kGuaranteed, 3000);
    if (allowed) node.Annotate(spread, "allow-rebalance", "true");
    ASSERT_TRUE(node.Place(spread).ok());
    ASSERT_THAT(node.PlacementOf(spread).pool, HasSubstr("socket"));
    for (const ContainerKey key : keys)
      node.Remove(key);
    node.Rebalance();
    EXPECT_EQ(node.PlacementOf(spread).pool.starts_with("NUMA node"), allowed);
    EXPECT_EQ(node.PlacementOf(spread).exclusive.size(), 3);
  }
}

TEST(TopologyAwarePolicyTest, RebalanceNarrowsMemory) {
  Node node(N4C16());
  const auto run = [&node](int64_t gibibytes) {
    const ContainerKey key = node.Add("c", kGuaranteed, 100);
    node.ContainerOf(key).requirements.memory_request.value = gibibytes * kGiB;
    EXPECT_TRUE(node.Place(key).ok());
    return key;
  };
  const ContainerKey small = run(10);
  ASSERT_EQ(node.PlacementOf(small).mems->ToString(), "1");
  const ContainerKey large = run(40);
  EXPECT_EQ(node.PlacementOf(small).mems->ToString(), "0-3");
  node.Remove(large);
  EXPECT_EQ(node.PlacementOf(small).mems->ToString(), "0-3") << "nothing moves by itself";
  node.Rebalance();
  EXPECT_EQ(node.PlacementOf(small).mems->ToString(), "1");
}

TEST(TopologyAwarePolicyTest, ExplainsItsChoice) {
  Node node(N4C16());
  const ContainerKey key = node.Run("c", kGuaranteed, 2000);
  EXPECT_THAT(node.PlacementOf(key).reason, HasSubstr("NUMA node #1 before NUMA node #2"));
  const std::vector<std::string> lines = node.policy().Explain(key);
  ASSERT_GE(lines.size(), 4u);
  EXPECT_THAT(lines[0], HasSubstr("NUMA node #1"));
  EXPECT_THAT(lines, Contains(HasSubstr("socket #1: behind NUMA node #1 by")));
  EXPECT_THAT(node.policy().Explain(ContainerKey{99}), IsEmpty());
}

TEST(TopologyAwarePolicyTest, TheConsideredPlacesAreATableInPlainWords) {
  Node node(N4C16());
  const ContainerKey key = node.Run("c", kGuaranteed, 2000);
  const std::vector<ConsideredPlace> places = node.policy().Considered(key);
  ASSERT_EQ(places.size(), node.policy().Explain(key).size());
  EXPECT_EQ(places[0].name, "NUMA node #1");
  EXPECT_EQ(places[0].verdict, "taken: the best");
  EXPECT_EQ(places[0].free, MilliCpu{4000}) << "before it took two of them";
  EXPECT_TRUE(places[0].free_memory.has_value());
  EXPECT_EQ(places[0].near_devices, 100);
  EXPECT_EQ(places[0].affinity, std::nullopt);
  EXPECT_THAT(places[1].verdict, HasSubstr("NUMA node #1 was better: "));
  for (const ConsideredPlace& place : places)
    EXPECT_THAT(place.verdict, testing::Not(HasSubstr("the lower number")));
  EXPECT_TRUE(node.policy().Considered(ContainerKey{99}).empty());
  node.Run("later", kGuaranteed, 2000);
  EXPECT_EQ(node.policy().Considered(key)[0].free, places[0].free) << "not of the present";
  EXPECT_EQ(node.policy().Considered(key)[0].free_memory, places[0].free_memory);
}

TEST(TopologyAwarePolicyTest, ExplainsThatAContainerFitsNowhere) {
  Node node(N4C16());
  const ContainerKey key = node.Run("c", kBurstable, 40000);
  ASSERT_EQ(node.PlacementOf(key).pool, "root");
  const std::vector<ConsideredPlace> places = node.policy().Considered(key);
  ASSERT_GE(places.size(), 4u);
  EXPECT_EQ(places[0].name, "root");
  EXPECT_THAT(places[0].verdict, HasSubstr("taken: no pool has room"));
  EXPECT_EQ(places[1].verdict, "no room");
  EXPECT_THAT(node.policy().Explain(key)[0], HasSubstr("root: no pool has room"));
  EXPECT_THAT(node.policy().Explain(key)[1], HasSubstr(": no room"));
}

TEST(TopologyAwarePolicyTest, TellsWhichOptionWouldLetARefusedResizeIn) {
  Node node(N4C16(), "0", "{Alignment: numa}");
  const ContainerKey key = node.Run("c", kGuaranteed, 4000);
  ASSERT_FALSE(node.Resize(key, 14000).ok());
  node.ContainerOf(key).requirements.cpu_request = MilliCpu{14000};
  EXPECT_THAT(
      node.policy().WaysIn(node.snapshot(), node.snapshot().PodOf(key), node.ContainerOf(key)),
      ElementsAre("policy.topology-aware.Alignment: prefer"));
}

TEST(TopologyAwarePolicyTest, TellsWhichOptionWouldLetARefusedContainerIn) {
  Node node(N4C16(), "0", "{Alignment: numa}");
  const ContainerKey split = node.Add("split", kGuaranteed, 6000);
  const auto ways = [&node](ContainerKey key) {
    return node.policy().WaysIn(node.snapshot(), node.snapshot().PodOf(key), node.ContainerOf(key));
  };
  EXPECT_THAT(ways(split), testing::ElementsAre("policy.topology-aware.Alignment: prefer"));
  const ContainerKey large = node.Add("large", kGuaranteed, 16'000);
  EXPECT_THAT(ways(large), IsEmpty()) << "only a smaller request helps";
  const ContainerKey isolated = node.Add("isolated", kGuaranteed, 2000);
  StringMap& annotations = node.snapshot().PodOf(isolated).annotations;
  annotations.Set("require-isolated-cpus.cri-resource-manager.intel.com/pod", "true");
  EXPECT_THAT(ways(isolated),
              testing::ElementsAre("the annotation require-isolated-cpus.cri-resource-manager"
                                   ".intel.com/pod: \"false\""));
}

// A container of one CPU prefers isolated CPUs by default, also where the machine has none.
TEST(TopologyAwarePolicyTest, TheReasonTellsOfIsolatedCpusWhereThereAreSome) {
  Node node(N4C16(), "0");
  std::string reasons;
  for (const char* const name : {"a", "b", "c", "d"}) {
    const ContainerKey key = node.Add(name, kGuaranteed, 1000);
    ASSERT_TRUE(node.Place(key).ok());
    reasons += node.PlacementOf(key).reason + '\n';
    for (const std::string& line : node.policy().Explain(key))
      reasons += line + '\n';
    for (const ConsideredPlace& place : node.policy().Considered(key))
      reasons += place.verdict + '\n';
  }
  EXPECT_THAT(reasons, HasSubstr("more CPUs that can be granted to one container"));
  EXPECT_THAT(reasons, testing::Not(HasSubstr("isolated")));
}

TEST(TopologyAwarePolicyTest, TheReasonHasTheAlignmentThatAnAnnotationChose) {
  Node node(N4C16());
  const auto reason = [&node](const std::string& name, const char* value) {
    const ContainerKey key = node.Add(name, kGuaranteed, 1000);
    node.Annotate(key, "alignment", value);
    EXPECT_TRUE(node.Place(key).ok());
    return node.PlacementOf(key).reason;
  };
  EXPECT_THAT(reason("numa", "numa"), HasSubstr(" (alignment numa by its annotation)"));
  EXPECT_THAT(reason("wrong", "node"),
              HasSubstr("unknown value \"node\": use prefer, numa, l3 or package"));
}

TEST(TopologyAwarePolicyTest, UnreadableAnnotationsAreNoted) {
  Node node(N4C16());
  const ContainerKey key = node.Add("c", kGuaranteed, 1000);
  node.Annotate(key, "memory-type", "tape");
  node.snapshot().PodOf(key).annotations.Set("resource-policy.nri.io/affinity", "[");
  ASSERT_TRUE(node.Place(key).ok());
  EXPECT_THAT(node.PlacementOf(key).reason, HasSubstr("memory-type ignored"));
  EXPECT_THAT(node.PlacementOf(key).reason, HasSubstr("affinities ignored"));
}

TEST(TopologyAwarePolicyTest, ShowsItsPools) {
  Node node(N4C16());
  node.Run("own", kGuaranteed, 2000);
  node.Run("shared", kGuaranteed, 500);
  const std::vector<Zone> zones = node.policy().Zones(node.snapshot());
  ASSERT_EQ(zones.size(), 8u);
  EXPECT_EQ(zones[0].name, "root");
  EXPECT_EQ(zones[0].exclusive.ToString(), "4-5");
  EXPECT_EQ(zones[0].memory_capacity.value, 64 * kGiB);
  for (const Zone& zone : zones) {
    if (zone.name != "NUMA node #1") continue;
    EXPECT_EQ(zone.parent, "socket #0");
    EXPECT_EQ(zone.kind, "numa");
    EXPECT_EQ(zone.shared.ToString(), "6-7");
    EXPECT_EQ(zone.containers, 1);
  }
  EXPECT_EQ(zones.back().name, "reserved");
  EXPECT_EQ(zones.back().parent, "NUMA node #0");
}

}  // namespace
}  // namespace resmgr
