// SPDX-License-Identifier: Apache-2.0
#include "test/support/hanging_disk/hanging_disk.h"

#include <filesystem>
#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/sys/files.h"
#include "pkg/sys/temp_dir.h"
#include "test/support/containerd/child_process.h"
#include "test/support/status_matchers.h"

namespace resmgr::test {
namespace {

using std::chrono::seconds;

class HangingDiskTest : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directory(Path("disk"));
    if (!disk_.MountOn(Path("disk"))) GTEST_SKIP() << "cannot mount FUSE file systems here";
  }
  std::string Path(const std::string& name) const { return directory_.File(name); }

  const TempDir directory_;
  HangingDisk disk_;
};

TEST_F(HangingDiskTest, KeepsFiles) {
  std::filesystem::create_directories(Path("disk/a/b"));
  const std::string large(300'000, 'x');
  ASSERT_THAT(AtomicWriteFile(Path("disk/a/b/file"), large, 0600), IsOk());
  EXPECT_EQ(ReadFile(Path("disk/a/b/file"), large.size()).value_or(""), large);
  EXPECT_EQ(disk_.Content("a/b/file"), large);
  EXPECT_EQ(disk_.Content("a/b/file.tmp"), std::nullopt);
  std::filesystem::remove(Path("disk/a/b/file"));
  EXPECT_FALSE(std::filesystem::exists(Path("disk/a/b/file")));
}

TEST_F(HangingDiskTest, ListsDirectoriesAndRemovesThemWhole) {
  std::filesystem::create_directories(Path("disk/a/b"));
  ASSERT_THAT(AtomicWriteFile(Path("disk/a/one"), "1", 0600), IsOk());
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(Path("disk/a")))
    names.insert(entry.path().filename().string());
  EXPECT_EQ(names, (std::set<std::string>{"b", "one"}));
  EXPECT_EQ(std::filesystem::remove_all(Path("disk/a")), 3U);
  EXPECT_FALSE(std::filesystem::exists(Path("disk/a")));
}

TEST_F(HangingDiskTest, HangsUntilItAnswersAndLetsThoseGoThatAreKilled) {
  disk_.Hang();
  const auto start = [this](const std::string& name) {
    return ChildProcess::Start({"touch", Path("disk/" + name)}, Path("log"));
  };
  auto killed = Must(start("killed"));
  ASSERT_TRUE(disk_.WaitForCall(seconds(20)));
  EXPECT_TRUE(killed->Running());
  killed->Signal(9);
  EXPECT_THAT(killed->Wait(seconds(20)), IsOk());

  const auto patient = Must(start("patient"));
  ASSERT_TRUE(disk_.WaitForCall(seconds(20)));
  EXPECT_TRUE(patient->Running());
  disk_.Answer();
  EXPECT_EQ(patient->Wait(seconds(20)).value_or(-1), 0);
  EXPECT_EQ(disk_.Content("patient"), "");
}

}  // namespace
}  // namespace resmgr::test
