// SPDX-License-Identifier: Apache-2.0
#include "pkg/cpufile/cpu_file_text.h"

#include <set>
#include <string>

#include <gtest/gtest.h>

namespace resmgr {
namespace {

TEST(CpuFileTextTest, SaysWhatIsExclusiveAndWhatIsShared) {
  EXPECT_EQ(CpuFileText(CpuSet{0, 3, 4, 5}, CpuSet{4, 5}, NodeSet{0, 1}),
            "CPUS=0,3-5\nEXCLUSIVE_CPUS=4-5\nSHARED_CPUS=0,3\nMEMORY_NODES=0-1\n");
  EXPECT_EQ(CpuFileText(CpuSet{}, CpuSet{}, NodeSet{}),
            "CPUS=\nEXCLUSIVE_CPUS=\nSHARED_CPUS=\nMEMORY_NODES=\n");
}

TEST(CpuFileTextTest, NoTwoContainersHaveTheSameDirectory) {
  std::set<std::string> names;
  const std::string texts[] = {"a", "A", "a_1", "a.1", "..", "/", "%5F", "_", "a%", "a-b", "1", ""};
  size_t containers = 0;
  for (const std::string& sandbox : texts) {
    for (const std::string& container : texts) {
      for (const uint32_t attempt : {0U, 1U, 11U, ~0U}) {
        const std::string name = CpuFileDirectoryName(sandbox, container, attempt);
        EXPECT_EQ(name.find_first_of("/."), std::string::npos) << name;
        EXPECT_TRUE(name.starts_with(CpuFileDirectoryPrefix(sandbox))) << name;
        EXPECT_TRUE(name.ends_with(CpuFileDirectorySuffix(container, attempt))) << name;
        names.insert(name);
        ++containers;
      }
    }
  }
  EXPECT_EQ(names.size(), containers);
}

TEST(CpuFileTextTest, KubernetesNamesAreReadableAndFit) {
  EXPECT_EQ(CpuFileDirectoryName("0123abcd", "app-1", 2), "0123abcd_app-1_2");
  const std::string sandbox(64, 'f');
  EXPECT_EQ(CpuFileDirectoryName(sandbox, std::string(63, 'x'), ~0U).size(), 64 + 63 + 12U);
  EXPECT_EQ(CpuFileDirectoryName(sandbox, std::string(188, 'x'), 1).size(), 255U);
  EXPECT_EQ(CpuFileDirectoryName(sandbox, std::string(189, 'x'), 1), "");
  EXPECT_EQ(CpuFileDirectoryName(sandbox, std::string(70, '/'), 1), "");
  EXPECT_EQ(CpuFileDirectoryName(sandbox, std::string(size_t{16} << 20, '/'), 1), "");
}

}  // namespace
}  // namespace resmgr
