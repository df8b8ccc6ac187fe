// SPDX-License-Identifier: Apache-2.0
#include "pkg/config/cpu_files_config.h"

#include <string>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/config/config.h"

namespace resmgr {
namespace {

using testing::HasSubstr;

class CpuFilesConfigTest : public testing::Test {
 protected:
  static StatusOr<CpuFilesConfig> Read(std::string_view text) {
    RESMGR_ASSIGN_OR_RETURN(const Config config, ParseConfig(text, "f", {}));
    return config.cpu_files;
  }
  static std::string ErrorOf(std::string_view text) {
    return std::string(Message(Read(text).status()));
  }
};

TEST_F(CpuFilesConfigTest, ReadsEveryKey) {
  const CpuFilesConfig expected{.containers = CpuFilesConfig::Containers::kAnnotated,
                                .mount_path = "/etc/cpus"};
  EXPECT_EQ(Read("cpuFiles: {Containers: annotated, MountPath: /etc/cpus}").value(), expected);
  EXPECT_EQ(Read("cpuFiles: {Containers: all}").value().containers,
            CpuFilesConfig::Containers::kAll);
  for (const std::string_view text : {"", "cpuFiles:", "cpuFiles: {Containers: none}"})
    EXPECT_EQ(Read(text).value(), CpuFilesConfig()) << text;
}

TEST_F(CpuFilesConfigTest, MistakesHaveTheirPlace) {
  EXPECT_EQ(ErrorOf("cpuFiles: {Containers: annotatd}"),
            "f:1: cpuFiles.Containers: \"annotatd\" is not one of none, annotated, all; did you "
            "mean annotated?");
  EXPECT_EQ(ErrorOf("cpuFiles:\n  Mountpat: /a"),
            "f:2: cpuFiles.Mountpat: unknown key; did you mean MountPath?");
  for (const char* const wrong :
       {"''", "cpus", "/", "/run/", "/run//cpus", "/run/../cpus", "/run/./cpus"}) {
    EXPECT_THAT(ErrorOf(fmt::format("cpuFiles: {{MountPath: {}}}", wrong)),
                HasSubstr("is not an absolute path of a directory"))
        << wrong;
  }
  EXPECT_THAT(ErrorOf("cpuFiles: {MountPath: /a:b}"), HasSubstr("a character that mounts"));
  EXPECT_THAT(ErrorOf("cpuFiles: {MountPath: \"/a,b\"}"), HasSubstr("a character that mounts"));
  for (const char* const kernels : {"/dev", "/proc/cpus", "/sys/fs/cgroup"}) {
    EXPECT_THAT(ErrorOf(fmt::format("cpuFiles: {{MountPath: {}}}", kernels)),
                HasSubstr("the kernel's own files"))
        << kernels;
  }
  EXPECT_TRUE(Read("cpuFiles: {MountPath: /devices}").ok());
}

}  // namespace
}  // namespace resmgr
