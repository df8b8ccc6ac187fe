// SPDX-License-Identifier: Apache-2.0
#include "pkg/classes/cpu_mask.h"

#include <string>

#include <gtest/gtest.h>

namespace resmgr {
namespace {

TEST(CpuMaskTest, ReadsWhatKernelsWrite) {
  const auto cpus = [](std::string_view mask) { return ParseCpuMask(mask).value().ToString(); };
  EXPECT_EQ(cpus("0000,00003003\n"), "0-1,12-13");
  EXPECT_EQ(cpus("f"), "0-3");
  EXPECT_EQ(cpus("ffff,ffffffff"), "0-47");
  EXPECT_EQ(cpus("1,00000000,00000000"), "64");
  EXPECT_EQ(cpus("0"), "");
  for (const char* const wrong : {"", ",", "g", "f,,f", "123456789", "0x1", "f f"})
    EXPECT_FALSE(ParseCpuMask(wrong).ok()) << wrong;
  EXPECT_FALSE(ParseCpuMask(std::string(size_t{9} * 300, 'f')).ok());
  std::string beyond = "1";
  for (int group = 0; group < CpuSet::kBits / 32; ++group)
    beyond += ",00000000";
  EXPECT_FALSE(ParseCpuMask(beyond).ok());
}

// CRI-O's test cases, each with the number of digits of its mask.
TEST(CpuMaskTest, WritesAsManyDigitsAsThereWere) {
  const auto cleared = [](std::string_view mask, const CpuSet& cpus) {
    return FormatCpuMask(ParseCpuMask(mask).value() - cpus, mask);
  };
  EXPECT_EQ(cleared("0000,00003003", {0}), "0000,00003002");
  EXPECT_EQ(cleared("ffff,ffffffff", CpuSet::Parse("4-13").value()), "ffff,ffffc00f");
  EXPECT_EQ(cleared("fff", {9}), "dff");
  EXPECT_EQ(FormatCpuMask(ParseCpuMask("0000,00003003").value() | CpuSet{4}, "0000,00003003"),
            "0000,00003013");
  EXPECT_EQ(cleared("ffffff", {2, 3}), "fffff3");
  EXPECT_EQ(FormatCpuMask({33}, "f"), "2,00000000");
  EXPECT_EQ(FormatCpuMask({}, "ff"), "00");
  EXPECT_EQ(FormatCpuMask({CpuSet::kMaxId}, "").size(), CpuSet::kBits / 4 + CpuSet::kBits / 32 - 1);
}

}  // namespace
}  // namespace resmgr
