// SPDX-License-Identifier: Apache-2.0
#include "pkg/sys/container_cgroup.h"

#include <filesystem>
#include <string>

#include <gtest/gtest.h>

#include "pkg/sys/temp_dir.h"

namespace resmgr {
namespace {

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
