// SPDX-License-Identifier: Apache-2.0
#include "pkg/topology/mount_table.h"

#include <string>

#include <gtest/gtest.h>

#include "pkg/sys/files.h"

namespace resmgr {
namespace {

constexpr char kTable[] =
    "22 1 259:2 / / rw,relatime shared:1 - ext4 /dev/nvme0n1p2 rw\n"
    "30 22 8:17 / /var/lib/kubelet rw - xfs /dev/sdb1 rw\n"
    "31 30 0:52 / /var/lib/kubelet/pods/u/volumes/kubernetes.io~nfs/data rw - nfs4 server:/x rw\n"
    "not a mount\n"
    "32 22 0:5 / /dev rw,nosuid shared:2 - devtmpfs udev rw\n"
    "33 22 8:33 /sub /mnt/with\\040space rw - ext4 /dev/sdc1 rw\n"
    "40 22 8:49 / /mnt/below/deep rw - ext4 /dev/sdd1 rw\n"
    "41 22 8:65 / /mnt/below rw - ext4 /dev/sde1 rw\n"
    "50 22 8:81 / /mnt/twice rw - ext4 /dev/sdf1 rw\n"
    "51 50 8:97 / /mnt/twice rw - ext4 /dev/sdg1 rw\n";

unsigned MinorOf(const std::string& path) {
  const MountTable table(kTable);
  const MountTable::Mount* const mount = table.Find(path);
  return mount == nullptr ? 0 : mount->minor;
}

TEST(MountTableTest, TheLongestMountPointHoldsAPath) {
  EXPECT_EQ(MinorOf("/"), 2u);
  EXPECT_EQ(MinorOf("/data"), 2u);
  EXPECT_EQ(MinorOf("/var/lib/kubelet"), 17u);
  EXPECT_EQ(MinorOf("/var/lib/kubelet/pods/u/x"), 17u);
  EXPECT_EQ(MinorOf("/var/lib/kubelet2"), 2u);
  EXPECT_EQ(MinorOf("/mnt/with space/x"), 33u);
  const MountTable table(kTable);
  const auto* const nfs =
      table.Find("/var/lib/kubelet/pods/u/volumes/kubernetes.io~nfs/data/deep/in/it");
  ASSERT_NE(nfs, nullptr);
  EXPECT_EQ(nfs->major, 0u);
  EXPECT_EQ(nfs->type, "nfs4");
}

// 40 was mounted before 41 came upon the directory above it.
TEST(MountTableTest, AMountHidesWhatWasMountedBelowItBefore) {
  EXPECT_EQ(MinorOf("/mnt/below/deep/x"), 65u);
}

TEST(MountTableTest, OfMountsUponEachOtherTheLastOneCounts) {
  EXPECT_EQ(MinorOf("/mnt/twice/x"), 97u);
}

TEST(MountTableTest, NothingHoldsWhatNoMountDoes) {
  EXPECT_EQ(MountTable("").Find("/x"), nullptr);
  EXPECT_EQ(MountTable("22 1 8:1 / /only rw - ext4 x rw\n").Find("/x"), nullptr);
  EXPECT_EQ(MountTable(kTable).Find("relative"), nullptr);
}

TEST(MountTableTest, ARecursiveBindMountBringsWhatIsMountedBelow) {
  const MountTable table(kTable);
  const auto below = [&table](std::string_view path) {
    const MountTable::Mount* const mount = table.FindBelow(path);
    return mount == nullptr ? "" : mount->point;
  };
  EXPECT_EQ(below("/"), "/var/lib/kubelet");
  EXPECT_EQ(below("/var/lib"), "/var/lib/kubelet");
  EXPECT_EQ(below("/var/lib/kubelet/pods/u"),
            "/var/lib/kubelet/pods/u/volumes/kubernetes.io~nfs/data");
  EXPECT_EQ(below("/var/lib/kubelet/pods/u/volumes/kubernetes.io~nfs/data"), "");
  EXPECT_EQ(below("/var/lib/kubelet2"), "");
  EXPECT_EQ(below("/mnt/below"), "") << "it hides the one that is further below";
  EXPECT_EQ(below("/mnt/twice"), "");
  EXPECT_EQ(below("/de"), "");
  EXPECT_TRUE(table.HasType("nfs4"));
  EXPECT_FALSE(table.HasType("resctrl"));
}

TEST(MountTableTest, ReadsTheKernels) {
  const auto text = ReadFile("/proc/self/mountinfo", size_t{16} << 20);
  ASSERT_TRUE(text.ok());
  const MountTable table(*text);
  const MountTable::Mount* const proc = table.Find("/proc/self");
  ASSERT_NE(proc, nullptr);
  EXPECT_EQ(proc->type, "proc");
}

}  // namespace
}  // namespace resmgr
