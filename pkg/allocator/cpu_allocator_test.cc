// SPDX-License-Identifier: Apache-2.0
#include "pkg/allocator/cpu_allocator.h"

#include <array>
#include <ctime>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/allocator/free_cpus.h"
#include "pkg/allocator/testing/reference_allocator.h"
#include "test/support/machines/machines.h"
#include "test/support/status_matchers.h"

namespace resmgr {
namespace {

using test::Cpus;
using test::Must;
using test::TextOf;
using testing::ElementsAre;

// One request: the free part of the machine ("all" of it, or a list), and the expected result.
struct Case {
  std::string_view free;
  int count = 0;
  std::string_view expected;
};

CpuSet FreeOf(const Machine& machine, std::string_view free) {
  return free == "all" ? machine.online() : Cpus(free);
}

void ExpectPacked(const Machine& machine, const CpuAllocatorOptions& options,
                  const std::vector<Case>& cases) {
  for (const Case& c : cases) {
    EXPECT_EQ(TextOf(TakePacked(machine, FreeOf(machine, c.free), c.count, options)),
              Cpus(c.expected).ToString())
        << c.count << " of " << c.free;
  }
}

void ExpectDistributed(const Machine& machine, int group, const std::vector<Case>& cases) {
  for (const Case& c : cases) {
    EXPECT_EQ(TextOf(TakeDistributed(machine, FreeOf(machine, c.free), c.count, group)),
              Cpus(c.expected).ToString())
        << c.count << " of " << c.free << " in groups of " << group;
  }
}

constexpr CpuAllocatorOptions kByUncore = {.prefer_align_by_uncore = true};
constexpr CpuAllocatorOptions kSpread = {.spread_across_cores = true};

TEST(TakePackedTest, CoresOfFourThreadsAreNotDividedNeedlessly) {
  ExpectPacked(test::Q288(), {},
               {{"2-7", 3, "4-6"},      // not 2-3 and 4; core 4-7 is idle
                {"2-7", 2, "2-3"},      // from the core with the fewest free CPUs
                {"1-3,4-7", 3, "1-3"},  // the tightest core
                {"2-3,5-7,9-11", 5, "2-3,5-7"},
                {"3,6-7,9-11,13-15", 6, "9-11,13-15"},
                {"2-3,4-7", 6, "2-7"}});
}

// The cases of the kubelet's tests, by machine; see test/support/machines/machines.h.

TEST(TakePackedTest, OnePackageWithSiblings) {
  ExpectPacked(test::S1Ht(), {},
               {{"all", 0, ""},
                {"all", 1, "0"},
                {"1,3,5-7", 1, "6"},
                {"all", 2, "0,4"},
                {"all", 8, "0-7"},
                {"0-3,6", 2, "2,6"},
                {"3-7", 5, "3-7"},
                {"3-7", 1, "4"},
                {"3-7", 2, "3,7"},
                {"3-7", 3, "3-4,7"}});
}

TEST(TakePackedTest, TwoPackagesWithSiblings) {
  ExpectPacked(test::S2Ht(), {},
               {{"all", 6, "0,2,4,6,8,10"},
                {"all", 8, "0-2,4,6-8,10"},
                {"1-5,7-11", 1, "2"},
                {"1-11", 1, "6"},
                {"1-11", 2, "2,8"},
                {"1-11", 4, "2,4,8,10"},
                {"1-11", 7, "1,3,5-7,9,11"}});
}

TEST(TakePackedTest, TwoPackagesWithoutSiblings) {
  ExpectPacked(test::S2NoHt(), {}, {{"all", 4, "0-3"}, {"1-7", 4, "4-7"}, {"1-7", 3, "1-3"}});
}

TEST(TakePackedTest, SeveralNodesPerPackage) {
  ExpectPacked(test::M80(), {},
               {{"all", 40, "0-19,40-59"},
                {"all", 20, "0-9,40-49"},
                {"10-39,50-79", 20, "10-19,50-59"},
                {"all", 60, "0-29,40-69"},
                {"1-39,41-79", 60, "10-39,50-79"},
                {"all", 64, "0-31,40-71"}});
}

TEST(TakePackedTest, SeveralPackagesPerNode) {
  ExpectPacked(test::F80(), {},
               {{"all", 40, "0-19,40-59"},
                {"all", 20, "0-9,40-49"},
                {"all", 60, "0-29,40-69"},
                // A whole node does not fit; the fuller node's free package comes first.
                {"1-39,41-79", 20, "10-19,50-59"}});
}

TEST(TakePackedTest, FourThreadsPerCore) {
  ExpectPacked(test::Q288(), {},
               {{"all", 72, "0-71"},
                {"all", 76, "0-75"},
                {"1-287", 4, "4-7"},
                {"1-287", 3, "1-3"},
                {"1-287", 76, "4-7,72-143"}});
}

TEST(TakePackedTest, AlignsByUncoreWithoutSiblings) {
  ExpectPacked(test::U16(), kByUncore,
               {{"1-15", 10, "1-2,4-11"},
                {"all", 4, "0-3"},
                {"2-15", 6, "2-7"},
                {"8-15", 4, "8-11"},
                {"all", 3, "0-2"}});
  ExpectPacked(test::U16TwoNodes(), kByUncore, {{"3-8,12", 2, "4-5"}});
}

TEST(TakePackedTest, AlignsByUncoreWithSiblings) {
  ExpectPacked(test::U16Smt(), kByUncore,
               {{"2-7,10-15", 6, "4-6,12-14"},
                {"1-7,9-15", 10, "1,4-7,9,12-15"},
                // An odd need leaves one thread of the last core.
                {"1-7,9-15", 5, "1-3,9-10"}});
}

TEST(TakePackedTest, UncoreOverTheWholeMachine) {
  ExpectPacked(test::S2Ht(), kByUncore, {{"1-5,7-11", 1, "1"}});
}

TEST(TakePackedTest, UncoreWithoutL3IsThePackage) {
  Machine::Parts parts = test::PartsOf(test::S2NoHt().cpus());
  for (Cpu& cpu : parts.cpus)
    cpu.l3 = -1;
  ExpectPacked(test::MakeMachine(std::move(parts)), kByUncore,
               {{"1-2,4-7", 2, "1-2"}, {"3-7", 3, "4-6"}});
}

TEST(TakePackedTest, SpreadsOverCores) {
  ExpectPacked(test::S1Ht(), kSpread, {{"all", 3, "0-2"}});
  ExpectPacked(test::S2Ht(), kSpread,
               {{"all", 2, "0,2"},
                {"all", 3, "0,2,4"},
                {"all", 6, "0,2,4,6,8,10"},
                {"all", 8, "0-4,6,8,10"}});
  ExpectPacked(test::S2NoHt(), kSpread, {{"all", 2, "0-1"}});
  ExpectPacked(test::M80(), kSpread, {{"all", 8, "0-7"}});
}

TEST(TakePackedTest, NeverHandsOutTheBusyThreadOfACore) {
  // The kubelet divides 8 CPUs by 6 cores, calls a core whole when one thread is free, and then
  // takes both.
  ExpectPacked(
      test::Hybrid(), {},
      {{"0,2-7", 2, "4-5"}, {"0,2-3", 2, "2-3"}, {"0,2-7", 5, "4-7,0"}, {"0,2", 2, "0,2"}});
}

TEST(TakePackedTest, ACoreWithAnOfflineSiblingIsWholeAlone) {
  Machine::Parts parts = test::PartsOf(test::S1Ht().cpus());
  parts.cpus[5].online = false;
  ExpectPacked(test::MakeMachine(std::move(parts)), {},
               {{"0-4,6-7", 1, "1"}, {"0-4,6-7", 2, "0-1"}, {"0-4,6-7", 3, "0-1,4"}});
}

TEST(TakePackedTest, RefusesMoreThanThereIs) {
  const StatusOr<CpuSet> taken = TakePacked(test::S1Ht(), Cpus("0,2,4,6"), 5, {});
  EXPECT_EQ(taken.status().code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(Message(taken.status()),
            "not enough cpus available to satisfy request: requested=5, available=4");
  EXPECT_EQ(TakePacked(test::S1Ht(), Cpus("0"), -1, {}).status().code(),
            StatusCode::kInvalidArgument);
}

TEST(TakePackedTest, CpusThatAreNotOnlineAreNotAvailable) {
  EXPECT_EQ(TextOf(TakePacked(test::S1Ht(), Cpus("7-100"), 1, {})), "7");
  EXPECT_EQ(TakePacked(test::S1Ht(), Cpus("7-100"), 2, {}).status().code(),
            StatusCode::kResourceExhausted);
}

TEST(TakePackedTest, CpusWithoutANodeAreUsable) {
  Machine::Parts parts = test::PartsOf(test::S2NoHt().cpus());
  for (int id = 4; id < 8; ++id)
    parts.cpus[static_cast<size_t>(id)].numa = -1;
  const Machine machine = test::MakeMachine(std::move(parts));
  ExpectPacked(machine, {}, {{"all", 8, "0-7"}, {"all", 5, "0,4-7"}});
  ExpectDistributed(machine, 1, {{"all", 6, "0-2,4-6"}});
}

TEST(TakeDistributedTest, EvenlyOverTheFewestNodes) {
  ExpectDistributed(test::S2Ht(), 1, {{"all", 8, "0-3,6-9"}, {"1-5,7-11", 1, "1"}});
  ExpectDistributed(
      test::M80(), 1,
      {{"all", 0, ""},
       {"all", 64, "0-7,10-17,20-27,30-37,40-47,50-57,60-67,70-77"},
       {"all", 48, "0-7,10-17,20-27,40-47,50-57,60-67"},
       {"1-29,32-39,41-69,72-79", 48, "1-8,10-17,20-27,41-48,50-57,60-67"},
       {"2-29,31-39,42-69,71-79", 48, "10-17,20-27,31-38,50-57,60-67,71-78"},
       {"0-2,10-12,20-22,30-32,40-41,50-51,60-61,70-71", 16,
        "0-1,10-11,20-21,30-31,40-41,50-51,60-61,70-71"},
       {"all", 26, "0-6,10-16,40-45,50-55"},
       {"all", 62, "0-7,10-17,20-27,30-37,40-47,50-57,60-66,70-76"},
       {"0-8,10-18,20-39,40-48,50-58,60-79", 62, "0-7,10-17,20-27,30-37,40-46,50-56,60-67,70-77"},
       {"0-3,10-13,20-23,30-36,40-43,50-53,60-63,70-76", 34,
        "0-3,10-13,20-23,30-34,40-43,50-53,60-63,70-74"}});
}

TEST(TakeDistributedTest, InWholeCores) {
  ExpectDistributed(test::S2Ht(), 2, {{"1-5,7-11", 1, "2"}});
  ExpectDistributed(
      test::M80(), 2,
      {{"all", 26, "0-6,10-15,40-46,50-55"},
       {"all", 62, "0-7,10-17,20-27,30-36,40-47,50-57,60-67,70-76"},
       {"0-8,10-18,20-39,40-48,50-58,60-79", 62, "0-7,10-16,20-27,30-37,40-47,50-56,60-67,70-77"}});
}

TEST(TakeDistributedTest, ALiveMachineInUse) {
  ExpectDistributed(
      test::L256(), 1,
      {{"0,128,30,31,158,159,43-47,171-175,62,63,190,191,75-79,203-207,94,96,222,223,101-111,"
        "229-239,126,127,254,255",
        28, "43-47,75-79,96,101-105,171-174,203-206,229-232"}});
}

TEST(TakeDistributedTest, LargeRequestsTakeTheFirstNodes) {
  // The kubelet's list of candidates overwrites itself here and gives other nodes.
  ExpectDistributed(
      test::L256(), 1,
      {{"all", 128, "0-63,128-191"}, {"all", 192, "0-95,128-223"}, {"all", 224, "0-111,128-239"}});
}

TEST(TakeDistributedTest, LeftoversSmallerThanAGroupEnd) {
  // Two CPUs from each of the four nodes leave three on each, of which only two make a group: two
  // nodes have the six CPUs that are missing, but not three groups. The kubelet never came back.
  ExpectDistributed(test::M80(), 2,
                    {{"0-4,10-14,20-24,30-34", 14, "0-3,10-13,20-23,30-31"},
                     {"0-2,10-12,20-22,30-32", 12, "0-2,10-12,20-22,30-32"}});
}

TEST(TakeDistributedTest, RefusesImpossibleArguments) {
  EXPECT_EQ(TakeDistributed(test::S1Ht(), Cpus("0-3"), 2, 0).status().code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(TakeDistributed(test::S1Ht(), Cpus("0-3"), -2, 1).status().code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(TakeDistributed(test::S1Ht(), Cpus("0-3"), 5, 1).status().code(),
            StatusCode::kResourceExhausted);
}

// 64 nodes, and on node n are 1 + n % 16 CPUs free: far too many combinations to look at.
class ManyNodesTest : public testing::Test {
 protected:
  ManyNodesTest() {
    for (const NumaNode& node : machine_.nodes()) {
      int left = 1 + node.id % 16;
      for (const int cpu : node.cpus) {
        if (left-- > 0) uneven_.Add(cpu);
      }
    }
  }

  const Machine machine_ =
      test::MakeMachine(test::Shape{.packages = 8, .nodes = 8, .cores = 8, .threads = 2});
  CpuSet uneven_;
};

TEST_F(ManyNodesTest, TakeNoTime) {
  // Processor time: the machine may be busy.
  const std::clock_t start = std::clock();
  for (const int count : {3, 17, 64, 100, 256}) {
    const CpuSet taken = Must(TakeDistributed(machine_, uneven_, count, 1));
    EXPECT_EQ(taken.size(), count);
    const CpuSet of_idle = Must(TakeDistributed(machine_, machine_.online(), count, 1));
    EXPECT_EQ(of_idle.size(), count);
  }
  EXPECT_LT(std::clock() - start, 2 * CLOCKS_PER_SEC);
}

TEST_F(ManyNodesTest, GiveFromTheNodesWithTheMostFreeCpus) {
  // Seven nodes are needed: the four with 16 free CPUs and three of those with 15.
  const CpuSet taken = Must(TakeDistributed(machine_, uneven_, 100, 1));
  const NodeSet nodes = machine_.NodesOf(taken);
  EXPECT_EQ(nodes.size(), 7);
  EXPECT_TRUE((NodeSet{15, 31, 47, 63}).IsSubsetOf(nodes)) << nodes.ToString();
  for (const int node : nodes)
    EXPECT_GE(machine_.FindNode(node)->cpus.CountCommon(taken), 14) << "node " << node;
}

TEST(AllocateCpusTest, TakesPreferredOnesFirst) {
  const Machine machine = test::S2Ht();
  const CpuSet node1 = machine.FindNode(1)->cpus;
  EXPECT_EQ(TextOf(AllocateCpus(machine, machine.online(), node1, 2, {})), "1,7");
  EXPECT_EQ(TextOf(AllocateCpus(machine, machine.online(), node1, 8, {})), "0-1,3,5-7,9,11");
  EXPECT_EQ(TextOf(AllocateCpus(machine, machine.online(), CpuSet(), 2, {})), "0,6");
  const CpuSet node0 = machine.FindNode(0)->cpus;
  EXPECT_EQ(TextOf(AllocateCpus(machine, machine.online(), node0, 2, {})), "0,6");
  EXPECT_EQ(TextOf(AllocateCpus(machine, machine.online(), node0, 8, {})), "0-2,4,6-8,10");
}

TEST(AllocateCpusTest, PreferredOnesThatAreTakenDoNotCount) {
  const Machine machine = test::S2Ht();
  EXPECT_EQ(TextOf(AllocateCpus(machine, Cpus("0,2,6,8"), Cpus("1,7,2"), 2, {})), "2,8");
}

TEST(AllocateCpusTest, RefusalNamesTheWholeRequest) {
  const StatusOr<CpuSet> taken = AllocateCpus(test::S2Ht(), Cpus("0-3"), Cpus("0-1"), 6, {});
  EXPECT_EQ(Message(taken.status()),
            "not enough cpus available to satisfy request: requested=6, available=4");
}

TEST(AllocateCpusTest, DistributesWhenAsked) {
  const CpuAllocatorOptions options = {.distribute_across_numa = true, .group_size = 2};
  EXPECT_EQ(TextOf(AllocateCpus(test::M80(), test::M80().online(), CpuSet(), 26, options)),
            "0-6,10-15,40-46,50-55");
}

// Cases of the kubelet's tests that need a machine or a view of their own, and the kubelet's
// meaning of align-by-socket.

// A Xeon Phi in four clusters with Linux' numbers, hwloc's example KNL.SNC4.H50: the first threads
// of the cores of each package.
constexpr std::array<std::string_view, 4> kPhiCores = {
    "0-2,9-10,50,57-58,71-72,79-80,87-88,95-96,103-104",
    "3-4,11-12,51-52,59-60,65-66,73-74,81-82,89-90,97-98",
    "5-6,53-54,61-62,67-68,75-76,83-84,91-92,99-100,105-106",
    "7-8,37,55-56,63-64,69-70,77-78,85-86,93-94,101-102,107"};

std::array<int, 4> PhiThreads(int first) {
  if (first == 0) return {0, 109, 169, 229};
  if (first == 37) return {37, 108, 168, 228};
  if (first <= 12) return {first, first + 12, first + 24, first + 37};
  return {first, first + 60, first + 120, first + 180};
}

Machine Phi() {
  std::vector<Cpu> cpus;
  for (int package = 0; package < 4; ++package) {
    for (const int core : Cpus(kPhiCores[static_cast<size_t>(package)])) {
      for (const int id : PhiThreads(core)) {
        Cpu cpu;
        cpu.id = id;
        cpu.core = core;
        cpu.l3 = package;
        cpu.numa = package;
        cpu.package = package;
        cpu.online = true;
        cpus.push_back(cpu);
      }
    }
  }
  return test::MakeMachine(test::PartsOf(std::move(cpus)));
}

TEST(KubeletVectorsTest, ThePhiHas288Cpus) {
  const Machine phi = Phi();
  EXPECT_EQ(phi.online(), Cpus("0-287"));
  EXPECT_EQ(phi.cores().size(), 72u);
  EXPECT_EQ(phi.packages()[0].ToString(),
            "0-2,9-10,13-14,21-22,25-26,33-34,38-39,46-47,50,57-58,71-72,79-80,87-88,95-96,103-104,"
            "109-110,117-118,131-132,139-140,147-148,155-156,163-164,169-170,177-178,191-192,"
            "199-200,207-208,215-216,223-224,229-230,237-238,251-252,259-260,267-268,275-276,"
            "283-284");
}

TEST(KubeletVectorsTest, ThePhiSpreadsOverCores) {
  const Machine phi = Phi();
  EXPECT_EQ(TextOf(TakePacked(phi, phi.online(), 12, {.spread_across_cores = true})),
            "0-2,9-10,13-14,21-22,25-26,33");
}

TEST(KubeletVectorsTest, ThePhiGivesWholePackagesFirst) {
  const Machine phi = Phi();
  // Six CPUs of the other packages are busy: only package 0 is whole.
  const CpuSet one_whole = phi.online() - Cpus("3,11,4,5,6,7");
  EXPECT_EQ(TextOf(TakePacked(phi, one_whole, 72, {})), phi.packages()[0].ToString());
  // A whole package, and a whole core of the fullest other one.
  const CpuSet busy_first = phi.online() - phi.packages()[0] - Cpus("7");
  const CpuSet taken = Must(TakePacked(phi, busy_first, 76, {}));
  EXPECT_TRUE(phi.packages()[1].IsSubsetOf(taken));
  EXPECT_EQ(phi.WithSiblings(taken), taken);
  EXPECT_EQ(taken.CountCommon(phi.packages()[3]), 4) << "where less is free";
}

TEST(KubeletVectorsTest, ThePhiGivesWholeCoresFromSeveralPackages) {
  const Machine phi = Phi();
  // No package is whole, and 18 cores of the first three are not.
  const CpuSet free = phi.online() - phi.packages()[3] -
                      Cpus("1,25,13,38,2,9,11,35,23,48,12,51,53,173,113,233,54,61");
  const CpuSet taken = Must(TakePacked(phi, free, 72, {}));
  EXPECT_EQ(phi.WithSiblings(taken), taken);
  EXPECT_EQ(taken, test::ReferencePacked(phi, free, 72, false, false));
  EXPECT_EQ(TakePacked(phi, Cpus("7,8,37,55"), 5, {}).status().code(),
            StatusCode::kResourceExhausted);
}

std::vector<int> WholeCores(const Machine& machine, std::string_view free) {
  std::vector<int> whole;
  for (const int core : FreeCpus(machine, Cpus(free)).CoresInOrder()) {
    const CpuSet& cpus = machine.cores()[static_cast<size_t>(core)];
    if (cpus.IsSubsetOf(Cpus(free))) whole.push_back(cpus.First());
  }
  return whole;
}

std::vector<int> CpusInOrder(const Machine& machine, std::string_view free) {
  std::vector<int> order;
  for (const int core : FreeCpus(machine, Cpus(free)).CoresInOrder()) {
    for (const int cpu : machine.cores()[static_cast<size_t>(core)] & Cpus(free))
      order.push_back(cpu);
  }
  return order;
}

TEST(KubeletVectorsTest, FreeCoresComePackageByPackage) {
  EXPECT_THAT(WholeCores(test::S2Ht(), "0-11"), ElementsAre(0, 2, 4, 1, 3, 5));
  EXPECT_THAT(WholeCores(test::S2Ht(), "1-11"), ElementsAre(2, 4, 1, 3, 5));
}

TEST(KubeletVectorsTest, FreeCpusComeFromTheFullestPlaces) {
  EXPECT_THAT(CpusInOrder(test::S1Ht(), "3-7"), ElementsAre(4, 5, 6, 3, 7));
  EXPECT_THAT(CpusInOrder(test::S2Ht(), "1-11"), ElementsAre(6, 2, 8, 4, 10, 1, 7, 3, 9, 5, 11));
}

TEST(KubeletVectorsTest, FreePackagesAndNodesComeFullestFirst) {
  const Machine machine = test::M80();
  EXPECT_THAT(FreeCpus(machine, machine.online()).PackagesInOrder(), ElementsAre(0, 1));
  EXPECT_THAT(FreeCpus(machine, Cpus("0-38,40-79")).PackagesInOrder(), ElementsAre(1, 0));
  EXPECT_THAT(FreeCpus(machine, machine.online()).NodesInOrder(), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(FreeCpus(machine, Cpus("0-19,21-79")).NodesInOrder(), ElementsAre(2, 3, 0, 1));
  EXPECT_THAT(FreeCpus(test::F80(), Cpus("0-38,40-79")).PackagesInOrder(), ElementsAre(3, 2, 0, 1));
  EXPECT_THAT(FreeCpus(machine, CpuSet()).PackagesInOrder(), ElementsAre());
}

TEST(AlignByPackageTest, DoesNotCrossPackagesWhileOneSuffices) {
  const Machine machine = test::M80();
  // Twelve CPUs of package 0 are free, and nearly all of package 1.
  const CpuSet free = Cpus("0-5,40-45,20-39,60-78");
  EXPECT_EQ(TextOf(TakePacked(machine, free, 24, {})), "0-1,20-29,40-41,60-69")
      << "a whole node, and the rest where least is free";
  EXPECT_EQ(TextOf(AllocateCpus(machine, free, {}, 24, {.align_by_package = true})), "20-31,60-71");
  EXPECT_EQ(TextOf(AllocateCpus(machine, free, {}, 4, {.align_by_package = true})), "0-1,40-41")
      << "the package with the fewest free CPUs that suffice";
}

TEST(AlignByPackageTest, TakesFromAsFewPackagesAsPossible) {
  const Machine machine = test::MakeMachine({.packages = 4, .cores = 4, .threads = 1});
  const CpuSet free = Cpus("0-1,4-7,8-10,12");
  EXPECT_EQ(TextOf(AllocateCpus(machine, free, {}, 6, {.align_by_package = true})), "4-9");
  EXPECT_EQ(TextOf(AllocateCpus(machine, free, {}, 10, {.align_by_package = true})),
            free.ToString());
  EXPECT_EQ(AllocateCpus(machine, free, {}, 11, {.align_by_package = true}).status().code(),
            StatusCode::kResourceExhausted);
}

TEST(AlignByPackageTest, DistributesInsideThePackage) {
  const Machine machine = test::M80();
  const CpuSet free = machine.online() - Cpus("0-4,40-44");
  // 24 CPUs need two nodes; the even rest would take one of each package.
  const CpuSet taken = Must(AllocateCpus(
      machine, free, {}, 24, {.distribute_across_numa = true, .align_by_package = true}));
  EXPECT_EQ(taken.CountCommon(machine.packages()[1]), 0) << taken.ToString();
  EXPECT_EQ(taken.size(), 24);
}

std::vector<std::vector<int>> AllSelections(const std::vector<int>& sizes, int pick) {
  std::vector<std::vector<int>> all;
  ForEachSelection(sizes, pick, [&all](const std::vector<int>& counts) {
    all.push_back(counts);
    return true;
  });
  return all;
}

TEST(SelectionsTest, FirstClassesComeFirst) {
  EXPECT_THAT(AllSelections({2, 1, 2}, 2),
              ElementsAre(ElementsAre(2, 0, 0), ElementsAre(1, 1, 0), ElementsAre(1, 0, 1),
                          ElementsAre(0, 1, 1), ElementsAre(0, 0, 2)));
}

TEST(SelectionsTest, EqualThingsGiveOneSelection) {
  EXPECT_THAT(AllSelections({64}, 30), ElementsAre(ElementsAre(30)));
}

TEST(SelectionsTest, PickingMoreThanThereIsGivesNone) {
  EXPECT_TRUE(AllSelections({1, 1}, 3).empty());
  EXPECT_EQ(CountSelections({1, 1}, 3, 100), 0);
}

TEST(SelectionsTest, CountsWhatItVisits) {
  const std::vector<std::vector<int>> classes = {{1, 1, 1, 1, 1, 1, 1, 1}, {3, 1, 4}, {2, 2}, {5}};
  for (const std::vector<int>& sizes : classes) {
    for (int pick = 0; pick <= 5; ++pick) {
      EXPECT_EQ(CountSelections(sizes, pick, 1000),
                static_cast<int64_t>(AllSelections(sizes, pick).size()));
    }
  }
}

TEST(SelectionsTest, CountStopsAtTheLimit) {
  EXPECT_EQ(CountSelections(std::vector<int>(64, 1), 32, 5000), 5000);
}

TEST(SelectionsTest, VisitorMayStop) {
  int visits = 0;
  ForEachSelection({1, 1, 1}, 1, [&visits](const std::vector<int>&) { return ++visits < 2; });
  EXPECT_EQ(visits, 2);
}

}  // namespace
}  // namespace resmgr
