// SPDX-License-Identifier: Apache-2.0
#include "pkg/usage/kernel_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace resmgr {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;
using testing::SizeIs;

TEST(KernelTextTest, ReadsCpuStatOfBothVersions) {
  const CpuStat v2 = ParseCpuStat(
      "usage_usec 1500\nuser_usec 1000\nsystem_usec 500\nnr_periods 7\nnr_throttled 2\n"
      "throttled_usec 30\nnr_bursts 0\nburst_usec 0\n");
  EXPECT_EQ(v2.usage_ns, 1'500'000U);
  EXPECT_EQ(v2.periods, 7U);
  EXPECT_EQ(v2.throttled, 2U);
  EXPECT_EQ(v2.throttled_ns, 30'000U);
  const CpuStat v1 = ParseCpuStat("nr_periods 7\nnr_throttled 2\nthrottled_time 30\n");
  EXPECT_EQ(v1.usage_ns, std::nullopt);
  EXPECT_EQ(v1.throttled_ns, 30U);
}

TEST(KernelTextTest, ReadsPressure) {
  const auto pressure = ParsePressure(
      "some avg10=12.50 avg60=3.07 avg300=1.00 total=123\nfull avg10=99.00 avg60=9.00 "
      "avg300=0.00 total=1\n");
  ASSERT_TRUE(pressure);
  EXPECT_DOUBLE_EQ(pressure->some10, 12.5);
  EXPECT_DOUBLE_EQ(pressure->some60, 3.07);
  for (const char* const text :
       {"", "some", "full avg10=1 avg60=1", "some avg10=nan avg60=1", "some avg10=1 avg60=101",
        "some avg10=-1 avg60=1", "some avg10=1x avg60=1", "some avg10=inf avg60=1"})
    EXPECT_FALSE(ParsePressure(text)) << text;
}

TEST(KernelTextTest, ReadsEventsOfBothVersions) {
  const MemoryEvents v2 = ParseMemoryEvents("low 0\nhigh 4\nmax 3\noom 2\noom_kill 1\n");
  EXPECT_EQ(v2.high, 4U);
  EXPECT_EQ(v2.oom, 2U);
  EXPECT_EQ(v2.oom_kills, 1U);
  const MemoryEvents v1 = ParseMemoryEvents("oom_kill_disable 0\nunder_oom 0\noom_kill 5\n");
  EXPECT_EQ(v1.high, std::nullopt);
  EXPECT_EQ(v1.oom, std::nullopt);
  EXPECT_EQ(v1.oom_kills, 5U);
}

TEST(KernelTextTest, ReadsEachCpuOfProcStat) {
  const auto cpus = ParseProcStat(
      "cpu  1 2 3 4 5 6 7 8 9 10\ncpu0 10 1 20 30 5 6 7 8 9 10\ncpu12 1 0 0 0 0 0 0 0\n"
      "cpu13 1 2 3\ncpu-1 1 2 3 4 5 6 7 8\ncpu99999 1 2 3 4 5 6 7 8\nintr 5 6 7\ncpu3 1 2 3 4 5 6");
  ASSERT_EQ(cpus.size(), 2U) << "neither the sum nor what is cut off";
  EXPECT_EQ(cpus.at(0).user, 11U);
  EXPECT_EQ(cpus.at(0).system, 20U);
  EXPECT_EQ(cpus.at(0).idle, 35U);
  EXPECT_EQ(cpus.at(0).irq, 6U);
  EXPECT_EQ(cpus.at(0).softirq, 7U);
  EXPECT_EQ(cpus.at(0).steal, 8U);
  EXPECT_EQ(cpus.at(12).user, 1U);
}

TEST(KernelTextTest, ReadsNodes) {
  NodeCounters node;
  ParseNodeMeminfo("\nNode 0 MemTotal:       1024 kB\nNode 0 MemFree:  512 kB\nNode 0 X: 7 kB\n",
                   node);
  ParseNodeNumastat("numa_hit 9\nlocal_node 8\nother_node 1\n", node);
  EXPECT_EQ(node.total_bytes, 1024 * 1024);
  EXPECT_EQ(node.free_bytes, 512 * 1024);
  EXPECT_EQ(node.local_pages, 8U);
  EXPECT_EQ(node.other_pages, 1U);
}

TEST(KernelTextTest, NumbersThatAreNoneAreNotKnown) {
  EXPECT_EQ(ParseCount("12\n"), 12U);
  for (const char* const text : {"", "\n", "x", "-1", "1 2", "99999999999999999999"})
    EXPECT_EQ(ParseCount(text), std::nullopt) << text;
  EXPECT_EQ(ParseCpuStat("usage_usec 18446744073709551615\n").usage_ns, std::nullopt)
      << "more nanoseconds than there are numbers";
  EXPECT_THAT(ParseProcStat("cpu0 18446744073709551615 1 1 1 1 1 1 1\n"), IsEmpty());
}

// CPU 2 is offline.
constexpr std::string_view kText =
    "            CPU0       CPU1       CPU3\n"
    "   0:         39          0          0  IR-IO-APIC    2-edge      timer\n"
    "  24:          0       1200          7  IR-PCI-MSI 327680-edge      nvme0q3\n"
    " LOC:       1000       2000       3000   Local timer interrupts\n"
    " ERR:          0\n"
    " MIS:          0\n";

TEST(InterruptsTest, AreReadForTheseCpus) {
  const InterruptCounts counts = ParseInterrupts(kText, {1, 2, 3});
  ASSERT_THAT(counts, SizeIs(2));
  EXPECT_THAT(counts.at(1), ElementsAre(Pair("24 (nvme0q3)", 1200), Pair("LOC", 2000)));
  EXPECT_THAT(counts.at(3), ElementsAre(Pair("24 (nvme0q3)", 7), Pair("LOC", 3000)));
  EXPECT_THAT(ParseInterrupts(kText, {}), IsEmpty());
}

TEST(InterruptsTest, TheTopOneCameMostOftenInBetween) {
  const InterruptCounts before = {{1, {{"24 (nvme0q3)", 100}, {"LOC", 5000}}}};
  const InterruptCounts now = {{1, {{"24 (nvme0q3)", 900}, {"25 (new)", 300}, {"LOC", 5100}}}};
  const TopInterrupt top = TopOf(before, now, 1);
  EXPECT_EQ(top.name, "24 (nvme0q3)");
  EXPECT_EQ(top.count, 800U);
  EXPECT_EQ(top.number(), "24");
  EXPECT_EQ(TopOf({}, now, 1).name, "") << "since the start of the machine is no rate";
  EXPECT_EQ(TopOf(now, before, 1).name, "");
  EXPECT_EQ(TopInterrupt{.name = "LOC"}.number(), "");
}

TEST(InterruptsTest, WhatIsNoSuchTextHasNone) {
  for (const std::string_view text :
       {"", "\n", "CPU0\n", "CPU0 CPU1\n 1: 5\n", "CPU99999999999\n 1: 5\n", "x\n 1: 5\n",
        "CPU0\n 1: -5\n", "CPU0\n 1 5\n", "CPU0\n :\n"})
    EXPECT_THAT(ParseInterrupts(text, {0, 1}), IsEmpty()) << text;
  EXPECT_THAT(ParseInterrupts("CPU0\n7: 5 \x1b[2J", {0}).at(0), SizeIs(1));
  // The counts of all CPUs together fill the columns of a machine with one.
  EXPECT_THAT(ParseInterrupts("CPU0\nERR: 5\nMIS: 6\n", {0}), IsEmpty());
}

}  // namespace
}  // namespace resmgr
