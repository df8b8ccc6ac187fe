// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "pkg/allocator/cpu_allocator.h"
#include "pkg/allocator/testing/reference_allocator.h"
#include "test/support/machines/machines.h"
#include "test/support/seed.h"
#include "test/support/status_matchers.h"

namespace resmgr {
namespace {

using test::Must;

// Generates machines and free sets; a seed determines the run.
class Generator {
 public:
  explicit Generator(uint64_t seed) : random_(seed) {}

  int Number(int first, int last) {
    return std::uniform_int_distribution<int>(first, last)(random_);
  }
  bool OneIn(int chance) { return Number(1, chance) == 1; }

  // Packages in nodes or nodes in packages, cores of unequal size, offline CPUs, scattered numbers.
  Machine NextMachine() {
    const int nodes = Number(1, 5);
    const int packages = OneIn(2) ? std::max(1, nodes / 2) : nodes * Number(1, 2);
    const int groups = std::max(nodes, packages);
    const int threads = 1 << Number(0, 2);
    const bool uneven = OneIn(3);
    const bool with_l3 = !OneIn(5);
    std::vector<Cpu> cpus;
    int core = 0;
    for (int group = 0; group < groups; ++group) {
      const int cores = uneven ? Number(1, 6) : 4;
      for (int i = 0; i < cores; ++i, ++core) {
        const int size = uneven && OneIn(3) ? 1 : threads;
        for (int thread = 0; thread < size; ++thread) {
          Cpu cpu;
          cpu.core = core;
          cpu.numa = group * nodes / groups;
          cpu.package = group * packages / groups;
          cpu.l3 = with_l3 ? group * 8 + i / 2 : -1;
          cpu.online = !(uneven && OneIn(12));
          cpus.push_back(cpu);
        }
      }
    }
    cpus.front().online = true;
    std::vector<int> ids(cpus.size());
    std::iota(ids.begin(), ids.end(), 0);
    if (OneIn(2)) std::shuffle(ids.begin(), ids.end(), random_);
    for (size_t i = 0; i < cpus.size(); ++i)
      cpus[i].id = ids[i];
    return test::MakeMachine(test::PartsOf(std::move(cpus)));
  }

  // Free CPUs, from nearly none to nearly all; sometimes whole cores, as an allocator leaves them.
  CpuSet NextFree(const Machine& machine) {
    const int percent = Number(5, 100);
    CpuSet free;
    for (const CpuSet& core : machine.cores()) {
      if (Number(1, 100) <= percent) free |= core;
    }
    if (OneIn(2)) {
      for (const int cpu : machine.online()) {
        if (OneIn(6)) free.Remove(cpu);
      }
    }
    return free;
  }

 private:
  std::mt19937 random_;
};

TEST(AllocatorPropertyTest, PackedAgreesWithTheReference) {
  const uint64_t seed = test::SeedOr(1);
  SCOPED_TRACE(test::Repeat(seed));
  Generator generator(seed);
  for (int round = 0; round < 300; ++round) {
    const Machine machine = generator.NextMachine();
    for (int i = 0; i < 12; ++i) {
      const CpuSet free = generator.NextFree(machine);
      const int count = generator.Number(0, free.size());
      const CpuAllocatorOptions options = {.prefer_align_by_uncore = generator.OneIn(2),
                                           .spread_across_cores = generator.OneIn(3)};
      const CpuSet taken = Must(TakePacked(machine, free, count, options));
      const CpuSet expected = test::ReferencePacked(
          machine, free, count, options.prefer_align_by_uncore, options.spread_across_cores);
      ASSERT_EQ(taken.ToString(), expected.ToString())
          << "round " << round << ": " << count << " of " << free.ToString();
    }
  }
}

TEST(AllocatorPropertyTest, DistributedAgreesWithTheReference) {
  const uint64_t seed = test::SeedOr(1);
  SCOPED_TRACE(test::Repeat(seed));
  Generator generator(seed);
  for (int round = 0; round < 200; ++round) {
    const Machine machine = generator.NextMachine();
    for (int i = 0; i < 8; ++i) {
      const CpuSet free = generator.NextFree(machine);
      const int group = generator.Number(1, 3);
      int count = generator.Number(0, free.size());
      if (!generator.OneIn(4)) count -= count % group;
      const CpuSet taken = Must(TakeDistributed(machine, free, count, group));
      ASSERT_EQ(taken.ToString(),
                test::ReferenceDistributed(machine, free, count, group).ToString())
          << "round " << round << ": " << count << " of " << free.ToString() << " in groups of "
          << group;
    }
  }
}

TEST(AllocatorPropertyTest, EveryModeAgreesWithTheReference) {
  const uint64_t seed = test::SeedOr(1);
  SCOPED_TRACE(test::Repeat(seed));
  Generator generator(seed);
  for (int round = 0; round < 1000; ++round) {
    const Machine machine = generator.NextMachine();
    const CpuSet free = generator.NextFree(machine);
    const CpuSet preferred = generator.OneIn(2) ? generator.NextFree(machine) : CpuSet();
    const int count = generator.Number(0, free.size());
    const CpuAllocatorOptions options = {.prefer_align_by_uncore = generator.OneIn(3),
                                         .spread_across_cores = generator.OneIn(3),
                                         .distribute_across_numa = generator.OneIn(2),
                                         .align_by_package = generator.OneIn(2),
                                         .group_size = generator.Number(1, 2)};
    const auto reference = [&](const CpuSet& from, int part) {
      const CpuSet near =
          options.align_by_package ? test::ReferenceInFewestPackages(machine, from, part) : from;
      return options.distribute_across_numa
                 ? test::ReferenceDistributed(machine, near, part, options.group_size)
                 : test::ReferencePacked(machine, near, part, options.prefer_align_by_uncore,
                                         options.spread_across_cores);
    };
    const int first = std::min(count, free.CountCommon(preferred));
    CpuSet expected = first == 0 ? CpuSet() : reference(free & preferred, first);
    if (count > first) expected |= reference(free - expected, count - first);
    const CpuSet taken = Must(AllocateCpus(machine, free, preferred, count, options));
    ASSERT_EQ(taken.ToString(), expected.ToString())
        << "round " << round << ": " << count << " of " << free.ToString();
  }
}

TEST(AllocatorPropertyTest, TakesExactlyWhatWasAskedFromWhatIsFree) {
  const uint64_t seed = test::SeedOr(1);
  SCOPED_TRACE(test::Repeat(seed));
  Generator generator(seed);
  for (int round = 0; round < 2000; ++round) {
    const Machine machine = generator.NextMachine();
    const CpuSet free = generator.NextFree(machine);
    const CpuSet preferred = generator.NextFree(machine);
    const int count = generator.Number(0, machine.online().size());
    const CpuAllocatorOptions options = {.prefer_align_by_uncore = generator.OneIn(2),
                                         .spread_across_cores = generator.OneIn(2),
                                         .distribute_across_numa = generator.OneIn(2),
                                         .align_by_package = generator.OneIn(2),
                                         .group_size = generator.Number(1, 4)};
    const StatusOr<CpuSet> taken = AllocateCpus(machine, free, preferred, count, options);
    const StatusOr<CpuSet> again = AllocateCpus(machine, free, preferred, count, options);
    SCOPED_TRACE(testing::Message() << "round " << round);
    if (count > free.size()) {
      ASSERT_EQ(taken.status().code(), StatusCode::kResourceExhausted);
      continue;
    }
    ASSERT_TRUE(taken.ok()) << Describe(taken.status());
    ASSERT_EQ(taken->size(), count);
    ASSERT_TRUE(taken->IsSubsetOf(free));
    ASSERT_EQ(*taken, *again);
    ASSERT_EQ(taken->CountCommon(preferred), std::min(count, free.CountCommon(preferred)));
  }
}

TEST(AllocatorPropertyTest, KeepsCoresWholeWhereThatIsPossible) {
  const uint64_t seed = test::SeedOr(1);
  SCOPED_TRACE(test::Repeat(seed));
  Generator generator(seed);
  for (int round = 0; round < 500; ++round) {
    const int threads = 1 << generator.Number(0, 2);
    const Machine machine = test::MakeMachine(test::Shape{.packages = generator.Number(1, 2),
                                                          .nodes = generator.Number(1, 3),
                                                          .cores = generator.Number(1, 8),
                                                          .threads = threads,
                                                          .siblings_apart = generator.OneIn(2)});
    CpuSet free;
    for (const CpuSet& core : machine.cores()) {
      if (!generator.OneIn(3)) free |= core;
    }
    const int count = generator.Number(0, free.size() / threads) * threads;
    const CpuSet taken = Must(TakePacked(machine, free, count, {}));
    ASSERT_EQ(machine.WithSiblings(taken), taken) << "round " << round;
  }
}

// The remainder that does not fill a core is in one core whenever one has room for it.
TEST(AllocatorPropertyTest, SplitsNoRestThatACoreCanHold) {
  const uint64_t seed = test::SeedOr(1);
  SCOPED_TRACE(test::Repeat(seed));
  Generator generator(seed);
  for (int round = 0; round < 500; ++round) {
    const int threads = 1 << generator.Number(1, 3);
    const Machine machine = test::MakeMachine(test::Shape{.packages = generator.Number(1, 2),
                                                          .nodes = generator.Number(1, 3),
                                                          .cores = generator.Number(1, 8),
                                                          .threads = threads,
                                                          .siblings_apart = generator.OneIn(2)});
    const CpuSet free = generator.NextFree(machine);
    const int count = generator.Number(0, std::min(free.size(), threads - 1));
    const CpuSet taken = Must(TakePacked(machine, free, count, {}));
    int used = 0;
    int most_free = 0;
    for (const CpuSet& core : machine.cores()) {
      if (core.Intersects(taken)) ++used;
      most_free = std::max(most_free, core.CountCommon(free));
    }
    if (most_free >= count) {
      ASSERT_LE(used, 1) << "round " << round << ": " << count << " of " << free.ToString();
    }
  }
}

TEST(AllocatorPropertyTest, TakingAndGivingBackChangesNothing) {
  const uint64_t seed = test::SeedOr(1);
  SCOPED_TRACE(test::Repeat(seed));
  Generator generator(seed);
  for (int round = 0; round < 200; ++round) {
    const Machine machine = generator.NextMachine();
    CpuSet free = machine.online();
    std::vector<CpuSet> grants;
    while (!free.empty()) {
      const int count = generator.Number(1, free.size());
      const CpuSet taken = Must(TakePacked(machine, free, count, {}));
      ASSERT_TRUE(taken.IsSubsetOf(free));
      free -= taken;
      grants.push_back(taken);
    }
    for (const CpuSet& grant : grants) {
      ASSERT_FALSE(grant.Intersects(free));
      free |= grant;
    }
    ASSERT_EQ(free, machine.online());
  }
}

}  // namespace
}  // namespace resmgr
