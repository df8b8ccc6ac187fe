// SPDX-License-Identifier: Apache-2.0
#include "pkg/classes/blockio_devices.h"

#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "pkg/base/status.h"
#include "pkg/sys/temp_dir.h"

namespace resmgr {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class BlockDevicesTest : public testing::Test {
 protected:
  BlockDevicesTest() {
    for (const char* const directory : {"dev", "dev/disk", "dev/disk/by-id"})
      ::mkdir(fmt::format("{}/{}", root_.path(), directory).c_str(), 0700);
    for (const char* const file : {"dev/sda", "dev/sdb", "dev/.hidden"})
      std::ofstream(fmt::format("{}/{}", root_.path(), file)).put('x');
  }
  std::vector<std::string> Paths(std::string_view glob) const {
    std::vector<std::string> paths;
    for (const FoundDevice& device : HostBlockDevices(root_.path() + "/").Find(glob))
      paths.push_back(device.path);
    return paths;
  }

  TempDir root_;
};

TEST_F(BlockDevicesTest, AGlobMatchesNamesOfOneDirectory) {
  EXPECT_THAT(Paths("/dev/sd*"), ElementsAre("/dev/sda", "/dev/sdb"));
  EXPECT_THAT(Paths("/dev/*"), ElementsAre("/dev/disk", "/dev/sda", "/dev/sdb"));
  EXPECT_THAT(Paths("/d?v/sd[b-z]"), ElementsAre("/dev/sdb"));
  EXPECT_THAT(Paths("//dev//sda"), ElementsAre("/dev/sda"));
  EXPECT_THAT(Paths("/dev/nvme*"), IsEmpty());
  EXPECT_THAT(Paths("/nowhere/*/x"), IsEmpty());
}

TEST_F(BlockDevicesTest, ALinkIsWhereItLeads) {
  ASSERT_EQ(::symlink("../../sda", (root_.path() + "/dev/disk/by-id/ata-SSD_1").c_str()), 0);
  ASSERT_EQ(::symlink("nowhere", (root_.path() + "/dev/disk/by-id/ata-SSD_2").c_str()), 0);
  EXPECT_THAT(Paths("/dev/disk/by-id/*SSD*"), ElementsAre("/dev/disk/by-id/ata-SSD_1"));
}

TEST_F(BlockDevicesTest, OnlyBlockDevicesHaveNumbers) {
  EXPECT_FALSE(HostBlockDevices(root_.path()).Find("/dev/sda").at(0).is_block);
  const std::string disk = root_.path() + "/dev/loop7";
  if (::mknod(disk.c_str(), S_IFBLK | 0600, makedev(7, 7)) != 0)
    GTEST_SKIP() << "no right to make device files";
  const FoundDevice expected{.path = "/dev/loop7", .is_block = true, .number = {7, 7}};
  EXPECT_THAT(HostBlockDevices(root_.path()).Find("/dev/loop?"), ElementsAre(expected));
}

}  // namespace
}  // namespace resmgr
