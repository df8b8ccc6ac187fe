// SPDX-License-Identifier: Apache-2.0
#include "pkg/classes/blockio_limits.h"

#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/classes/device_lines.h"
#include "pkg/classes/testing/fake_block_devices.h"
#include "pkg/classes/testing/fake_host_files.h"
#include "pkg/kube/glob.h"

namespace resmgr {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class BlockioLimitsTest : public testing::Test {
 protected:
  BlockioLimitsTest() {
    devices_.Add("/dev/loop7", 7, 7);
    devices_.Add("/dev/sda", 8, 0);
    devices_.Add("/dev/sda1", 8, 1);
    devices_.Add("/dev/sdb", 8, 16);
    devices_.all["/dev/null"] = {.path = "/dev/null"};
    files_.tree["sys/dev/block/8:1/partition"] = "1\n";
    files_.tree["sys/dev/block/8:1/../dev"] = "8:0\n";
    files_.tree["sys/dev/block/8:0/queue/scheduler"] = "none mq-deadline [bfq]\n";
    files_.tree["sys/dev/block/8:16/queue/scheduler"] = "[none] mq-deadline\n";
  }
  BlockioLimits Resolve(const std::vector<BlockioItem>& items) {
    return ResolveBlockio(items, devices_, files_);
  }

  test::FakeBlockDevices devices_;
  test::FakeHostFiles files_;
};

// The rows of reference/classes.md 2.
TEST_F(BlockioLimitsTest, AWeightIsThatOfAllDevices) {
  EXPECT_THAT(UnifiedFiles(Resolve({{.weight = 80}})),
              ElementsAre(BlockioFile{"io.weight", "default 708"},
                          BlockioFile{"io.bfq.weight", "default 80"}));
  EXPECT_EQ(UnifiedWeight(10), 1);
  EXPECT_EQ(UnifiedWeight(100), 910);
  EXPECT_EQ(UnifiedWeight(1000), 10'000);
}

TEST_F(BlockioLimitsTest, ThrottlesAreThoseOfTheDevice) {
  const BlockioLimits limits =
      Resolve({{.devices = {"/dev/loop7"}, .read_bps = 50'000'000, .write_iops = 5'000}});
  EXPECT_THAT(
      UnifiedFiles(limits),
      ElementsAre(BlockioFile{"io.max", "7:7 rbps=50000000 wbps=max riops=max wiops=5000"}));
  EXPECT_THAT(LegacyFiles(limits),
              ElementsAre(BlockioFile{"blkio.throttle.read_bps_device", "7:7 50000000"},
                          BlockioFile{"blkio.throttle.write_iops_device", "7:7 5000"}));
  EXPECT_THAT(limits.notes, IsEmpty());
}

TEST_F(BlockioLimitsTest, ALaterItemWinsValueByValue) {
  const BlockioLimits limits =
      Resolve({{.devices = {"/dev/loop7"}, .read_bps = 50'000'000, .write_iops = 5'000},
               {.devices = {"/dev/loop*"}, .read_bps = 100'000'000}});
  EXPECT_EQ(UnifiedFiles(limits).at(0).text, "7:7 rbps=100000000 wbps=max riops=max wiops=5000");
  EXPECT_THAT(UnifiedFiles(Resolve({{.devices = {"/dev/loop7"}, .read_bps = 5},
                                    {.devices = {"/dev/loop7"}, .read_bps = 0}})),
              ElementsAre(BlockioFile{"io.max", ""}))
      << "0 takes a limit away";
}

TEST_F(BlockioLimitsTest, APartitionIsItsDisk) {
  const BlockioLimits limits = Resolve({{.devices = {"/dev/sda1"}, .read_bps = 5}});
  EXPECT_EQ(UnifiedFiles(limits).at(0).text, "8:0 rbps=5 wbps=max riops=max wiops=max");
  EXPECT_THAT(limits.notes,
              ElementsAre("/dev/sda1 is a partition: the limits are those of its whole disk 8:0"));
}

TEST_F(BlockioLimitsTest, WhatHasNoEffectIsNoted) {
  EXPECT_THAT(
      Resolve({{.devices = {"/dev/nvme*", "/dev/null"}, .read_bps = 5}}).notes,
      ElementsAre("no block device matches /dev/nvme*", "no block device matches /dev/null"));
  const BlockioLimits weights = Resolve({{.devices = {"/dev/sda", "/dev/sdb"}, .weight = 100}});
  EXPECT_THAT(weights.notes, ElementsAre(HasSubstr("8:16: with the scheduler none a weight")));
  EXPECT_THAT(UnifiedFiles(weights),
              ElementsAre(BlockioFile{"io.bfq.weight", "default 100\n8:0 100"}));
  std::vector<BlockioItem> many;
  for (int i = 0; i < 100; ++i)
    many.push_back({.devices = {fmt::format("/dev/x{}", i)}, .read_bps = 1});
  const BlockioLimits noted = Resolve(many);
  EXPECT_EQ(noted.notes.size(), BlockioLimits::kMostNotes);
  EXPECT_EQ(noted.notes.back(), "93 more such notes");
}

// The kernel answers "Operation not supported" for a disk whose scheduler or io.cost is another.
TEST_F(BlockioLimitsTest, AWeightIsInTheFileThatTheDiskKnows) {
  const std::vector<BlockioItem> items = {{.weight = 10},
                                          {.devices = {"/dev/sda", "/dev/sdb"}, .weight = 100}};
  files_.tree["sys/fs/cgroup/io.cost.qos"] =
      "8:0 enable=0 ctrl=auto\n8:16 enable=1 ctrl=auto\n8:160 enable=1 ctrl=auto\n";
  const BlockioLimits weights = Resolve(items);
  EXPECT_THAT(weights.notes, IsEmpty());
  EXPECT_THAT(UnifiedFiles(weights),
              ElementsAre(BlockioFile{"io.weight", "default 1\n8:16 910"},
                          BlockioFile{"io.bfq.weight", "default 10\n8:0 100"}));
  EXPECT_THAT(LegacyFiles(weights), ElementsAre(BlockioFile{"blkio.bfq.weight", "10"},
                                                BlockioFile{"blkio.bfq.weight_device", "8:0 100"}));
  files_.tree["sys/fs/cgroup/io.cost.qos"] = "";
  EXPECT_THAT(UnifiedFiles(Resolve(items)),
              ElementsAre(BlockioFile{"io.weight", "default 1"},
                          BlockioFile{"io.bfq.weight", "default 10\n8:0 100"}));
}

TEST_F(BlockioLimitsTest, ADeviceThatIsPluggedInLaterCountsTheNextTime) {
  const std::vector<BlockioItem> items = {{.devices = {"/dev/nvme*n1"}, .read_bps = 5}};
  EXPECT_THAT(UnifiedFiles(Resolve(items)), IsEmpty());
  devices_.Add("/dev/nvme0n1", 259, 0);
  EXPECT_EQ(UnifiedFiles(Resolve(items)).at(0).text, "259:0 rbps=5 wbps=max riops=max wiops=max");
}

// For any items, the texts have the form in which they are read back, and each device has the value
// of the last item that sets it.
TEST_F(BlockioLimitsTest, PropertyTheLastItemOfEachDeviceCounts) {
  std::mt19937 random(7);
  const std::vector<std::string> globs = {"/dev/loop7", "/dev/sd*", "/dev/sda1", "/dev/sdb",
                                          "/dev/*"};
  for (int round = 0; round < 300; ++round) {
    std::vector<BlockioItem> items(random() % 5);
    std::map<std::string, uint64_t> expected;
    for (BlockioItem& item : items) {
      item.devices = {globs[random() % globs.size()]};
      if (random() % 3 != 0) item.read_bps = random() % 4;
      if (!item.read_bps) item.weight = 10 + static_cast<int64_t>(random() % 991);
      for (const auto& [path, device] : devices_.all) {
        if (!device.is_block || !item.read_bps || !MatchesGlob(item.devices[0], path)) continue;
        expected[path == "/dev/sda1" ? "/dev/sda" : path] = *item.read_bps;
      }
    }
    const BlockioLimits limits = Resolve(items);
    for (const auto& [path, value] : expected)
      EXPECT_EQ(limits.devices.at(devices_.all.at(path).number).read_bps, value) << path;
    for (const auto& files : {UnifiedFiles(limits), LegacyFiles(limits)})
      for (const BlockioFile& file : files)
        EXPECT_EQ(NormalDeviceLines("c/" + file.name, file.text), file.text) << file.name;
  }
}

}  // namespace
}  // namespace resmgr
