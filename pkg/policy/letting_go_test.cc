// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "pkg/policy/pinning.h"
#include "test/support/machines/machines.h"

namespace resmgr {
namespace {

TEST(LettingGoTest, WhatWasAskedForElseEverything) {
  const Machine machine = test::S1Ht();  // CPUs 0-7, memory node 0
  LinuxResources requested;
  EXPECT_EQ(CpusWithoutPolicy(machine, requested), machine.allowed());
  EXPECT_EQ(MemsWithoutPolicy(machine, requested), machine.node_ids());
  requested.cpuset_cpus = "5-6";
  requested.cpuset_mems = "0";
  EXPECT_EQ(CpusWithoutPolicy(machine, requested), (CpuSet{5, 6}));
  EXPECT_EQ(MemsWithoutPolicy(machine, requested), NodeSet{0});
}

TEST(LettingGoTest, WhatCannotBeHadCountsAsNotAskedFor) {
  const Machine machine = test::S1Ht();
  LinuxResources requested;
  for (const char* const list : {"", "7-8", "no list"}) {
    requested.cpuset_cpus = list;
    EXPECT_EQ(CpusWithoutPolicy(machine, requested), machine.allowed()) << list;
  }
}

TEST(LettingGoTest, MemoryThatIsNotAllowedIsNoneToHave) {
  Machine::Parts parts = test::PartsOf(test::U16TwoNodes().cpus());
  parts.nodes[1].allowed = false;
  const Machine machine = test::MakeMachine(std::move(parts));
  LinuxResources requested;
  EXPECT_EQ(MemsWithoutPolicy(machine, requested), NodeSet{0});
  requested.cpuset_mems = "1";
  EXPECT_EQ(MemsWithoutPolicy(machine, requested), NodeSet{0});
}

}  // namespace
}  // namespace resmgr
