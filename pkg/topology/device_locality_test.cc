// SPDX-License-Identifier: Apache-2.0
#include "pkg/topology/device_locality.h"

#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "pkg/sys/files.h"
#include "pkg/sys/temp_dir.h"

namespace resmgr {
namespace {

namespace fs = std::filesystem;

// A sysfs in a temporary directory, and device nodes that exist by name only.
class DeviceLocalityTest : public testing::Test {
 protected:
  void Write(const std::string& file, const std::string& text) {
    fs::create_directories(Path(file).parent_path());
    std::ofstream(Path(file)) << text << '\n';
  }
  void Link(const std::string& link, const std::string& target) {
    fs::create_directories(Path(link).parent_path());
    fs::create_directories(Path(target));
    fs::create_directory_symlink(Path(target), Path(link));
  }
  fs::path Path(const std::string& file) const { return fs::path(dir_.path()) / file; }

  DeviceLocality Locator() const {
    const auto number = [this](const std::string& path) -> StatusOr<DeviceNumber> {
      const auto found = numbers_.find(path);
      if (found == numbers_.end()) return NotFound("{}", path);
      return found->second;
    };
    return DeviceLocality({.sysfs = dir_.path(), .node_number = number, .holder_number = number});
  }

  void AddDisk() {
    Write("devices/pci0/0000:01/numa_node", "1");
    Write("devices/pci0/0000:01/local_cpulist", "4-7,12-15");
    Link("dev/block/259:0", "devices/pci0/0000:01/nvme/nvme0n1");
    numbers_["/dev/nvme0n1"] = {true, 259, 0};
  }

  const TempDir dir_;
  std::map<std::string, DeviceNumber> numbers_;
};

TEST_F(DeviceLocalityTest, FindsTheNodeAboveADevice) {
  AddDisk();
  const auto locality = Locator().OfDevice("/dev/nvme0n1");
  ASSERT_TRUE(locality.has_value());
  EXPECT_EQ(locality->nodes.ToString(), "1");
  EXPECT_EQ(locality->cpus.ToString(), "4-7,12-15");
}

TEST_F(DeviceLocalityTest, FindsTheDeviceBelowAMount) {
  AddDisk();
  numbers_["/data"] = {true, 259, 0};
  EXPECT_EQ(Locator().OfHostPath("/data"), Locator().OfDevice("/dev/nvme0n1"));
  EXPECT_EQ(Locator().OfHostPath("/proc"), std::nullopt);
}

TEST_F(DeviceLocalityTest, KnowsThatADeviceWithoutNodeSaysNothing) {
  Write("devices/virtual/zero/numa_node", "-1");
  Write("devices/virtual/zero/local_cpulist", "0-15");
  Link("dev/char/1:5", "devices/virtual/zero");
  numbers_["/dev/zero"] = {false, 1, 5};
  EXPECT_EQ(Locator().OfDevice("/dev/zero"), std::nullopt);
}

TEST_F(DeviceLocalityTest, JoinsTheDevicesThatADeviceIsMadeOf) {
  AddDisk();
  Write("devices/pci1/numa_node", "3");
  fs::create_directories(Path("devices/pci1/sda"));
  Link("dev/block/253:0", "devices/virtual/block/dm-0");
  Link("devices/virtual/block/dm-0/slaves/nvme0n1", "devices/pci0/0000:01/nvme/nvme0n1");
  Link("devices/virtual/block/dm-0/slaves/sda", "devices/pci1/sda");
  numbers_["/dev/dm-0"] = {true, 253, 0};
  const auto locality = Locator().OfDevice("/dev/dm-0");
  ASSERT_TRUE(locality.has_value());
  EXPECT_EQ(locality->nodes.ToString(), "1,3");
}

TEST_F(DeviceLocalityTest, APartitionIsWhereThePartsOfItsDeviceAre) {
  AddDisk();
  Link("dev/block/259:7", "devices/virtual/block/md0/md0p1");
  Link("devices/virtual/block/md0/slaves/nvme0n1", "devices/pci0/0000:01/nvme/nvme0n1");
  numbers_["/dev/md0p1"] = {true, 259, 7};
  const auto locality = Locator().OfDevice("/dev/md0p1");
  ASSERT_TRUE(locality.has_value());
  EXPECT_EQ(locality->nodes.ToString(), "1");
}

TEST_F(DeviceLocalityTest, EndsAtDevicesThatContainThemselves) {
  Link("dev/block/253:0", "devices/virtual/block/dm-0");
  Link("devices/virtual/block/dm-0/slaves/dm-0", "devices/virtual/block/dm-0");
  numbers_["/dev/dm-0"] = {true, 253, 0};
  EXPECT_EQ(Locator().OfDevice("/dev/dm-0"), std::nullopt);
}

TEST_F(DeviceLocalityTest, FollowsVfioGroups) {
  Write("devices/pci0/0000:02/numa_node", "0");
  Link("kernel/iommu_groups/12/devices/0000:02", "devices/pci0/0000:02");
  const auto locality = Locator().OfDevice("/dev/vfio/12");
  ASSERT_TRUE(locality.has_value());
  EXPECT_EQ(locality->nodes.ToString(), "0");
  EXPECT_TRUE(locality->cpus.empty());
  EXPECT_EQ(Locator().OfDevice("/dev/vfio/../12"), std::nullopt);
}

TEST_F(DeviceLocalityTest, IgnoresUnreadableFiles) {
  Write("devices/odd/numa_node", "none of your business");
  Link("dev/char/10:1", "devices/odd");
  numbers_["/dev/odd"] = {false, 10, 1};
  EXPECT_EQ(Locator().OfDevice("/dev/odd"), std::nullopt);
  EXPECT_EQ(Locator().OfDevice("/dev/missing"), std::nullopt);
}

TEST_F(DeviceLocalityTest, RealDevicesHaveNumbers) {
  const StatusOr<DeviceNumber> null = DeviceLocality::NodeNumber("/dev/null");
  ASSERT_TRUE(null.ok()) << null.status();
  EXPECT_FALSE(null->block);
  EXPECT_EQ(null->major, 1u);
  EXPECT_EQ(null->minor, 3u);
  EXPECT_FALSE(DeviceLocality::NodeNumber(dir_.path()).ok());
  EXPECT_FALSE(DeviceLocality::NodeNumber("/dev/../dev/null").ok());
  EXPECT_FALSE(DeviceLocality::NodeNumber("/proc/self/fd/0").ok()) << "not in /dev";
}

TEST_F(DeviceLocalityTest, ProcIsOnNoDevice) {
  EXPECT_FALSE(DeviceLocality::HolderNumbers()("/proc").ok());
  EXPECT_FALSE(DeviceLocality::HolderNumbers()("relative").ok());
}

// The device number, as stat(2) would return it; stat(2) is not called.
TEST_F(DeviceLocalityTest, HolderIsTheDeviceBehindALink) {
  fs::create_directories(Path("real/data"));
  fs::create_directory_symlink("real/../real", Path("relative"));
  fs::create_directory_symlink(Path("relative"), Path("absolute"));
  fs::create_directory_symlink("loop", Path("loop"));
  struct stat info {};
  ASSERT_EQ(::stat(Path("real").c_str(), &info), 0);
  const auto number = DeviceLocality::HolderNumbers();
  for (const char* path : {"real/data", "absolute/data", "absolute/missing"}) {
    const auto found = number(Path(path));
    ASSERT_EQ(found.ok(), major(info.st_dev) != 0) << path;
    if (!found.ok()) continue;
    EXPECT_EQ(found->major, major(info.st_dev));
    EXPECT_EQ(found->minor, minor(info.st_dev));
  }
  EXPECT_FALSE(number(Path("loop")).ok());
}

TEST(MountTellsLocalityTest, LeavesOutWhatEveryContainerHas) {
  EXPECT_TRUE(MountTellsLocality("/data", "/mnt/data", false));
  EXPECT_FALSE(MountTellsLocality("/data", "/mnt/data", true));
  EXPECT_FALSE(MountTellsLocality("/etc/hosts", "/var/lib/kubelet/pods/u/etc-hosts", false));
  EXPECT_FALSE(MountTellsLocality("/usr/lib/x", "/usr/lib/x", false));
  for (const char* const path : {"/etc/x", "/lib", "/lib/x", "/lib64", "/lib32/x", "/libx32",
                                 "/usr/lib", "/usr/lib64/x", "/usr/libexec/x"})
    EXPECT_FALSE(MountTellsLocality(path, "/mnt/data", false)) << path;
  for (const char* const path : {"/library", "/library/x", "/libvirt", "/lib6", "/usr/library",
                                 "/usr/libexec2", "/etcetera"})
    EXPECT_TRUE(MountTellsLocality(path, "/mnt/data", false)) << path;
  EXPECT_FALSE(MountTellsLocality("/dev/termination-log", "/var/lib/kubelet/x", false));
  EXPECT_FALSE(MountTellsLocality(
      "/config", "/var/lib/kubelet/pods/u/volumes/kubernetes.io~configmap/c", false));
  EXPECT_TRUE(MountTellsLocality("/data", "/mnt/kubernetes.io~secret-recipes/a", false));
  EXPECT_TRUE(MountTellsLocality("/data", "/mnt/not-kubernetes.io~projected", false));
}

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
