// SPDX-License-Identifier: Apache-2.0
#include "pkg/nri/host/host_files.h"

#include <string>

#include <gtest/gtest.h>

#include "pkg/sys/files.h"
#include "pkg/sys/temp_dir.h"

namespace resmgr::nri {
namespace {

// Every Linux has /dev/null, the character device 1:3.
TEST(HostFilesTest, FindsADeviceByItsNumbers) {
  const WantedDevice null{.container_path = "/dev/null", .major = 1, .minor = 3};
  EXPECT_EQ(FindDevice(null), "/dev/null");
}

TEST(HostFilesTest, AnotherDeviceOfThatNameIsNotTaken) {
  // No driver has the major number 4095.
  EXPECT_EQ(FindDevice({.container_path = "/dev/null", .major = 4095, .minor = 3}), "");
  EXPECT_EQ(FindDevice({.container_path = "/dev/null", .block = true, .major = 1, .minor = 3}), "");
  EXPECT_EQ(FindDevice({.container_path = "/", .major = 0, .minor = 0}), "");
}

TEST(HostFilesTest, WritesASeccompPolicyForTheRuntime) {
  const TempDir directory;
  const std::string path = directory.path() + "/profiles/c1.json";

  const auto found = FindHostFiles({.devices = {}, .seccomp_policy = "{}"}, path);

  ASSERT_TRUE(found.ok()) << Describe(found.status());
  EXPECT_EQ(found->seccomp_profile, path);
  EXPECT_EQ(*ReadFile(path, 10), "{}");
  EXPECT_FALSE(FindHostFiles({.devices = {}, .seccomp_policy = "{}"}, "/none/of/it").ok());
  EXPECT_EQ(FindHostFiles({}, "/none/of/it")->seccomp_profile, "");
}

}  // namespace
}  // namespace resmgr::nri
