// SPDX-License-Identifier: Apache-2.0
#include "pkg/classes/host_files.h"

#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "pkg/sys/temp_dir.h"

namespace resmgr {
namespace {

// While a partition isolates CPUs 2-3, the kernel shows the mask of unbound work without them.
TEST(HostFilesTest, TheMaskOfUnboundWorkIsTheWrittenOne) {
  const TempDir root;
  const std::string directory = "sys/devices/virtual/workqueue/";
  const std::string mask = directory + "cpumask";
  std::filesystem::create_directories(root.File(directory));
  RealHostFiles files(root.path(), [](std::string_view) {});
  EXPECT_EQ(files.Read(mask).status().code(), StatusCode::kNotFound);
  std::ofstream(root.File(mask)) << "f3\n";
  EXPECT_EQ(files.Read(mask).value(), "f3\n") << "before Linux 6.9";
  std::ofstream(root.File(directory + "cpumask_requested")) << "ff\n";
  EXPECT_EQ(files.Read(mask).value(), "ff\n");
  EXPECT_EQ(files.Write(mask, "0f"), 0);
  EXPECT_EQ(std::ifstream(root.File(mask)).get(), '0') << "the other file cannot be written";
}

}  // namespace
}  // namespace resmgr
