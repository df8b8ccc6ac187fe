// SPDX-License-Identifier: Apache-2.0
#include "pkg/usage/interrupts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace resmgr {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;
using testing::SizeIs;

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
}

}  // namespace
}  // namespace resmgr
