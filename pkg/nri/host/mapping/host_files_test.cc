// SPDX-License-Identifier: Apache-2.0
#include "pkg/nri/host/mapping/host_files.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "pkg/sys/files.h"
#include "pkg/sys/temp_dir.h"

namespace resmgr::nri {
namespace {

std::string PathOf(const WantedDevice& device) {
  return FindDevices({device})[0].path;
}

// Every Linux has /dev/null, the character device 1:3.
TEST(HostFilesTest, FindsADeviceByItsNumbers) {
  const WantedDevice null{.container_path = "/dev/null", .major = 1, .minor = 3};
  EXPECT_EQ(PathOf(null), "/dev/null");
  EXPECT_EQ(FindDevices({null})[0].mode, 0666U);
}

TEST(HostFilesTest, FindsADeviceThatHasAnotherNameOnTheNode) {
  EXPECT_EQ(PathOf({.container_path = "/dev/other-null", .major = 1, .minor = 3}), "/dev/null");
}

TEST(HostFilesTest, AnotherDeviceOfThatNameIsNotTaken) {
  // No driver has the major number 4095.
  EXPECT_EQ(PathOf({.container_path = "/dev/null", .major = 4095, .minor = 3}), "");
  EXPECT_EQ(PathOf({.container_path = "/dev/null", .block = true, .major = 1, .minor = 3}), "");
  EXPECT_EQ(PathOf({.container_path = "/", .major = 0, .minor = 0}), "");
}

// Every Linux has a mount below "/": /proc.
TEST(HostFilesTest, FindsWhatIsMountedBelowAPath) {
  const TempDir directory;
  ASSERT_EQ(::symlink("/", directory.File("link").c_str()), 0);
  const auto found = FindHostFiles({.mounts = {{.host_path = "/"},
                                               {.host_path = directory.File("link")},
                                               {.host_path = directory.path()},
                                               {.host_path = directory.File("none")}}},
                                   "/none");
  ASSERT_TRUE(found.ok()) << Describe(found.status());
  ASSERT_EQ(found->below.size(), 4U);
  EXPECT_NE(found->below[0], "");
  EXPECT_EQ(found->below[1], found->below[0]);
  EXPECT_EQ(found->below[2], "");
  EXPECT_EQ(found->below[3], "");
}

// Runtimes resolve these in another way than the kernel, or not at all.
TEST(HostFilesTest, WhereAPathLeadsIsNotKnownOfThese) {
  const TempDir directory;
  ASSERT_EQ(::symlink(directory.File("loop").c_str(), directory.File("loop").c_str()), 0);
  ASSERT_EQ(::symlink("/proc", directory.File("link").c_str()), 0);
  for (const std::string& path :
       {std::string("/none/.."), std::string("relative"), directory.File("loop"),
        directory.File("link") + "/..", std::string("/dev/null/x")}) {
    const auto found = FindHostFiles({.mounts = {{.host_path = path}}}, "/none");
    ASSERT_TRUE(found.ok()) << Describe(found.status());
    EXPECT_EQ(found->below[0], path) << "it may have something below it";
  }
  for (const std::string& path : {std::string("//"), std::string("/proc/../"), std::string("/.")}) {
    const auto found = FindHostFiles({.mounts = {{.host_path = path}}}, "/none");
    ASSERT_TRUE(found.ok()) << Describe(found.status());
    EXPECT_THAT(found->below[0], testing::MatchesRegex("/.+")) << path;
  }
}

TEST(HostFilesTest, WritesASeccompPolicyForTheRuntime) {
  const TempDir directory;
  const std::string path = directory.path() + "/profiles/c1.json";

  const auto found = FindHostFiles({.seccomp_policy = "{}"}, path);

  ASSERT_TRUE(found.ok()) << Describe(found.status());
  EXPECT_EQ(found->seccomp_profile, path);
  EXPECT_EQ(*ReadFile(path, 10), "{}");
  EXPECT_FALSE(FindHostFiles({.seccomp_policy = "{}"}, "/none/of/it").ok());
  EXPECT_EQ(FindHostFiles({}, "/none/of/it")->seccomp_profile, "");
}

}  // namespace
}  // namespace resmgr::nri
