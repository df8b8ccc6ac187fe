// SPDX-License-Identifier: Apache-2.0
// The reference gives the known choices of CPUs. R1 to R9: a sequence of steps each on a machine of
// two packages with two nodes of two cores with two threads.
#include "policies/balloons/testing/reference_cpus.h"

#include <map>
#include <string>

#include <gtest/gtest.h>

#include "test/support/machines/machines.h"

namespace resmgr::test {
namespace {

class ReferenceRows : public testing::Test {
 protected:
  // The CPUs of the balloon after it got that size.
  std::string Resize(const std::string& name, int size) {
    CpuSet& own = balloons_[name];
    ReferenceWish wish = wish_;
    for (const auto& [other, cpus] : balloons_) {
      if (wish.own_load && other != name) wish.loaded |= cpus_.CoresOf(cpus);
    }
    if (size > own.size()) {
      const CpuSet more = cpus_.Grow(wish, own, idle_, size - own.size());
      own |= more;
      idle_ -= more;
    } else {
      const CpuSet fewer = cpus_.Shrink(wish, own, idle_, own.size() - size);
      own -= fewer;
      idle_ |= fewer;
    }
    return own.ToString();
  }

  Machine machine_ = MakeMachine(
      Shape{.packages = 2, .nodes = 2, .cores = 2, .threads = 2, .siblings_apart = false});
  ReferenceCpus cpus_{machine_, machine_.online()};
  CpuSet idle_ = machine_.online();
  ReferenceWish wish_;
  std::map<std::string, CpuSet> balloons_;
};

TEST_F(ReferenceRows, R1) {
  idle_ = Cpus("2-7,10-13");
  EXPECT_EQ(Resize("reserved", 1), "10");
  EXPECT_EQ(Resize("a", 1), "11");
  EXPECT_EQ(Resize("b", 1), "12");
}

TEST_F(ReferenceRows, R2) {
  EXPECT_EQ(Resize("a", 1), "0");
  EXPECT_EQ(Resize("b", 1), "1");
  EXPECT_EQ(Resize("c", 1), "2");
  EXPECT_EQ(Resize("d", 2), "4-5");
  EXPECT_EQ(Resize("e", 3), "8-10");
  EXPECT_EQ(Resize("f", 4), "12-15");
  EXPECT_EQ(idle_, Cpus("3,6-7,11"));
}

TEST_F(ReferenceRows, R3ByNumber) {
  wish_.balancing = true;
  int balloon = 0;
  for (const char* expected : {"0", "8", "4", "12", "2", "10"})
    EXPECT_EQ(Resize(std::to_string(balloon++), 1), expected);
  EXPECT_EQ(Resize("last", 2), "6-7");
}

TEST_F(ReferenceRows, R4) {
  idle_.Remove(0);
  EXPECT_EQ(Resize("a", 1), "1");
  EXPECT_EQ(Resize("a", 2), "1-2");
  EXPECT_EQ(Resize("a", 3), "1-3");
  EXPECT_EQ(Resize("a", 4), "1-4");
  EXPECT_EQ(Resize("b", 1), "5");
  EXPECT_EQ(Resize("a", 1), "2");
}

TEST_F(ReferenceRows, R5) {
  wish_.balancing = true;
  EXPECT_EQ(Resize("a", 1), "0");
  EXPECT_EQ(Resize("b", 1), "8");
  EXPECT_EQ(Resize("a", 4), "0-3");
  EXPECT_EQ(Resize("b", 4), "8-11");
  EXPECT_EQ(Resize("a", 6), "0-5");
  EXPECT_EQ(Resize("b", 6), "8-13");
  EXPECT_EQ(Resize("a", 2), "0-1");
}

TEST_F(ReferenceRows, R6) {
  wish_.balancing = true;
  wish_.spread_cores = true;
  EXPECT_EQ(Resize("a", 2), "0,2");
  EXPECT_EQ(Resize("b", 2), "8,10");
  EXPECT_EQ(Resize("a", 4), "0-3");
  wish_.balancing = false;
  EXPECT_EQ(Resize("c", 3), "4-6");
}

TEST_F(ReferenceRows, R7) {
  const CpuSet node2 = Cpus("8-11");
  ReferenceWish other;
  other.balancing = true;
  other.far = {node2};
  ReferenceWish device;
  device.balancing = true;
  device.close = {node2};
  wish_ = other;
  EXPECT_EQ(Resize("a", 1), "0");
  wish_ = device;
  EXPECT_EQ(Resize("b", 3), "8-10");
  EXPECT_EQ(Resize("c", 2), "4-5");
  wish_ = other;
  EXPECT_EQ(Resize("d", 4), "12-15");
  EXPECT_EQ(Resize("e", 4), "2-3,6-7");
}

TEST_F(ReferenceRows, R8) {
  const auto close = [&] { wish_.close = {Cpus("0-2")}, wish_.far = {}; };
  const auto far = [&] { wish_.close = {}, wish_.far = {Cpus("0-2")}; };
  close();
  EXPECT_EQ(Resize("reserved", 1), "2");
  far();
  EXPECT_EQ(Resize("a", 2), "4-5");
  EXPECT_EQ(Resize("b", 2), "6-7");
  EXPECT_EQ(Resize("default", 1), "3");
  close();
  EXPECT_EQ(Resize("reserved", 3), "0-2");
  EXPECT_EQ(Resize("reserved", 4), "0-2,8");
  EXPECT_EQ(Resize("reserved", 2), "0-1");
}

TEST_F(ReferenceRows, R9) {
  wish_.own_load = true;
  EXPECT_EQ(Resize("a", 2), "0,2");
  EXPECT_EQ(Resize("b", 2), "4,6");
  EXPECT_EQ(Resize("c", 4), "8,10,12,14");
}

// Sizes of the first choice on 2 x 2 x 2 x 2 x 2.
TEST(ReferenceCpus, PartsHaveTheKnownSizes) {
  Machine::Parts parts;
  for (int id = 0; id < 32; ++id) {
    Cpu cpu;
    cpu.id = id;
    cpu.core = id / 2;
    cpu.numa = id / 4;
    cpu.die = id / 8;
    cpu.package = id / 16;
    cpu.online = true;
    parts.cpus.push_back(cpu);
  }
  const Machine machine = MakeMachine(PartsOf(std::move(parts.cpus)));
  const ReferenceCpus cpus(machine, machine.online());
  const std::map<int, int> sizes = {{1, 1},   {2, 2},   {3, 4},  {4, 4},   {5, 8},
                                    {7, 8},   {8, 8},   {9, 16}, {15, 16}, {16, 16},
                                    {17, 32}, {31, 32}, {32, 32}};
  for (const auto& [count, size] : sizes)
    EXPECT_EQ(cpus.Part({}, {}, machine.online(), count).size(), size) << count;
}

}  // namespace
}  // namespace resmgr::test
