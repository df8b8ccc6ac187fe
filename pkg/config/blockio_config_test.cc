// SPDX-License-Identifier: Apache-2.0
#include "pkg/config/blockio_config.h"

#include <string>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/config/yaml_reader.h"

namespace resmgr {
namespace {

using testing::HasSubstr;

class BlockioConfigTest : public testing::Test {
 protected:
  static StatusOr<BlockioConfig> Read(std::string_view text) {
    RESMGR_ASSIGN_OR_RETURN(const ConfigNode node, ParseYaml(text, "f"));
    ConfigSection section(node, "classes");
    BlockioConfig config;
    DescribeBlockio(section, config);
    RESMGR_RETURN_IF_ERROR(section.Finish());
    return config;
  }
  // The error of a class with this item.
  static std::string ErrorOf(std::string_view item) {
    return std::string(
        Message(Read(fmt::format("blockio: {{Classes: {{slow: [{{{}}}]}}}}", item)).status()));
  }
};

TEST_F(BlockioConfigTest, ReadsTheSchemaOfGoresctrl) {
  const BlockioConfig config = Read(
                                   "blockio:\n"
                                   "  Classes:\n"
                                   "    slow:\n"
                                   "      - Weight: 80\n"
                                   "      - Devices: [/dev/loop7, '/dev/disk/by-id/*SSD*']\n"
                                   "        ThrottleReadBps: 50M\n"
                                   "        ThrottleWriteBps: 1Gi\n"
                                   "        ThrottleReadIOPS: 10k\n"
                                   "        ThrottleWriteIOPS: 0\n"
                                   "        Weight: 10\n"
                                   "    none:\n")
                                   .value();
  const BlockioConfig::Classes expected = {{"none", {}},
                                           {"slow",
                                            {{.weight = 80},
                                             {.devices = {"/dev/loop7", "/dev/disk/by-id/*SSD*"},
                                              .read_bps = 50'000'000,
                                              .write_bps = uint64_t{1} << 30,
                                              .read_iops = 10'000,
                                              .write_iops = 0,
                                              .weight = 10}}}};
  EXPECT_EQ(config.classes, expected);
  EXPECT_EQ(config.assign, BlockioConfig::Assign::kAuto);
  EXPECT_EQ(Read("blockio: {Assign: runtime}")->assign, BlockioConfig::Assign::kRuntime);
  EXPECT_FALSE(Read("")->any());
}

// The rows of reference/classes.md 2.
TEST_F(BlockioConfigTest, MistakesHaveTheirPlace) {
  EXPECT_EQ(ErrorOf("Weight: 5"),
            "f:1: classes.blockio.Classes.slow[0].Weight: 5 is smaller than minimum 10");
  EXPECT_THAT(ErrorOf("Weight: 2000"), HasSubstr("bigger than maximum 1000"));
  EXPECT_THAT(ErrorOf("Devices: [/dev/sda], ThrottleReadBps: 5x"), HasSubstr("syntax error"));
  EXPECT_THAT(ErrorOf("Devices: [/dev/sda], ThrottleReadBps: -1"), HasSubstr("syntax error"));
  EXPECT_THAT(ErrorOf("ThrottleReadBps: 1M"), HasSubstr("slow[0].Devices: is missing"));
  EXPECT_THAT(ErrorOf("Devices: [sda], Weight: 10"), HasSubstr("\"sda\" is no glob of paths"));
  EXPECT_THAT(ErrorOf("Devices: ['/dev/sd[a'], Weight: 10"), HasSubstr("is no glob of paths"));
  EXPECT_THAT(ErrorOf("Devices: [/dev/../etc], Weight: 10"), HasSubstr("is no glob of paths"));
  EXPECT_THAT(ErrorOf("ThrottleReadBPS: 1"), HasSubstr("Devices: is missing")) << "in any case";
  EXPECT_THAT(ErrorOf("Speed: 1"), HasSubstr("slow[0].Speed: unknown key"));
  const auto status = Read("blockio: {Classes: {slow: {Weight: 10}}}").status();
  EXPECT_THAT(std::string(Message(status)), HasSubstr("slow: must be a list, not a map"));
}

TEST_F(BlockioConfigTest, WhatIsShownIsReadAgain) {
  BlockioConfig config =
      Read(
          "blockio: {Assign: runtime, Classes: {a: [{Devices: ['/dev/sd*'], ThrottleReadBps: 5k},"
          " {Weight: 20}], b: []}}")
          .value();
  std::vector<ConfigKey> keys;
  ConfigSection writer(keys);
  DescribeBlockio(writer, config);
  const ConfigNode shown = ValuesOf(keys);
  ConfigSection reader(shown, "classes");
  BlockioConfig again;
  DescribeBlockio(reader, again);
  ASSERT_TRUE(reader.Finish().ok());
  EXPECT_EQ(again, config);
}

}  // namespace
}  // namespace resmgr
