// SPDX-License-Identifier: Apache-2.0
#include "pkg/sys/cgroups.h"

#include <filesystem>
#include <string>

#include <gtest/gtest.h>
#include <linux/magic.h>
#include <sys/vfs.h>

#include "pkg/sys/temp_dir.h"

namespace resmgr {
namespace {

TEST(CgroupsTest, OtherFileSystemsAreNotUnifiedCgroups) {
  EXPECT_FALSE(IsUnifiedMount("/proc"));
  EXPECT_FALSE(IsUnifiedMount("/no/such/directory"));
}

TEST(CgroupsTest, TheNodeIsSeenAsItIs) {
  struct statfs status {};
  const bool known = ::statfs("/sys/fs/cgroup", &status) == 0;
  EXPECT_EQ(HasUnifiedCgroups(), known && status.f_type == CGROUP2_SUPER_MAGIC);
}

TEST(SlicePathTest, NamesAllSlicesAbove) {
  EXPECT_EQ(SlicePath("a.slice"), "a.slice");
  EXPECT_EQ(SlicePath("a-b-c.slice"), "a.slice/a-b.slice/a-b-c.slice");
  EXPECT_EQ(SlicePath("/kubepods/burstable/pod1"), "/kubepods/burstable/pod1");
  EXPECT_EQ(SlicePath(""), "");
  EXPECT_EQ(SlicePath("-.slice"), "-.slice") << "the root of all slices";
}

// The path of a slice with many dashes is as long as the square of its name.
TEST(SlicePathTest, ASliceWhosePathWouldBeTooLongStaysAsItIs) {
  std::string slice;
  for (int i = 0; i < 4096; ++i)
    slice += "a-";
  slice += "a.slice";
  EXPECT_TRUE(SlicePath(slice) == slice) << SlicePath(slice).size() << " bytes";
}

TEST(ContainerCgroupTest, PathsHaveNoEmptyParts) {
  const TempDir mount;
  const std::string pod = mount.path() + "/kubepods/podu";
  std::filesystem::create_directories(pod + "/id");
  for (const char* const parent : {"/kubepods/podu", "kubepods/podu", "//kubepods//podu/"})
    EXPECT_EQ(FindContainerCgroup(mount.path(), "", parent, "id").value_or(""), pod + "/id")
        << parent;
}

TEST(ContainerCgroupTest, SlicesAreInEachOther) {
  const TempDir mount;
  const std::string scope = mount.path() + "/kubepods.slice/kubepods-podu.slice/cri-id.scope";
  std::filesystem::create_directories(scope);
  EXPECT_EQ(FindContainerCgroup(mount.path(), "", "kubepods-podu.slice", "id").value_or(""), scope);
}

}  // namespace
}  // namespace resmgr
