// SPDX-License-Identifier: Apache-2.0
// Cases of the kubelet's tests that need a machine or a view of their own, and the kubelet's
// meaning of align-by-socket.
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/allocator/cpu_allocator.h"
#include "pkg/allocator/free_cpus.h"
#include "pkg/allocator/testing/reference_allocator.h"
#include "test/support/machines/machines.h"

namespace resmgr {
namespace {

using test::Cpus;
using test::TextOf;
using ::testing::ElementsAre;

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
  const StatusOr<CpuSet> taken = TakePacked(phi, busy_first, 76, {});
  ASSERT_TRUE(taken.ok());
  EXPECT_TRUE(phi.packages()[1].IsSubsetOf(*taken));
  EXPECT_EQ(phi.WithSiblings(*taken), *taken);
  EXPECT_EQ(taken->CountCommon(phi.packages()[3]), 4) << "where less is free";
}

TEST(KubeletVectorsTest, ThePhiGivesWholeCoresFromSeveralPackages) {
  const Machine phi = Phi();
  // No package is whole, and 18 cores of the first three are not.
  const CpuSet free = phi.online() - phi.packages()[3] -
                      Cpus("1,25,13,38,2,9,11,35,23,48,12,51,53,173,113,233,54,61");
  const StatusOr<CpuSet> taken = TakePacked(phi, free, 72, {});
  ASSERT_TRUE(taken.ok());
  EXPECT_EQ(phi.WithSiblings(*taken), *taken);
  EXPECT_EQ(*taken, test::ReferencePacked(phi, free, 72, false, false));
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
  const StatusOr<CpuSet> taken = AllocateCpus(
      machine, free, {}, 24, {.distribute_across_numa = true, .align_by_package = true});
  ASSERT_TRUE(taken.ok());
  EXPECT_EQ(taken->CountCommon(machine.packages()[1]), 0) << taken->ToString();
  EXPECT_EQ(taken->size(), 24);
}

}  // namespace
}  // namespace resmgr
