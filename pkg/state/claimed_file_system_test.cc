// SPDX-License-Identifier: Apache-2.0
#include "pkg/state/claimed_file_system.h"

#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "pkg/sys/files.h"
#include "pkg/sys/temp_dir.h"

namespace resmgr {
namespace {

TEST(ClaimedFileSystemTest, RefusesToWriteWhatAnotherDaemonHasClaimed) {
  const TempDir dir;
  const std::string claimed = dir.File("state");
  std::optional<ClaimedFileSystem> first(std::in_place, RealFileSystem(), claimed);
  ASSERT_TRUE(first->Claim().ok());
  ASSERT_TRUE(first->Create(claimed + "/state").ok());

  ClaimedFileSystem second(RealFileSystem(), claimed);
  EXPECT_EQ(second.Claim().code(), StatusCode::kAlreadyExists);
  EXPECT_EQ(second.Create(claimed + "/state").status().code(), StatusCode::kAlreadyExists);
  EXPECT_EQ(second.Rename(claimed + "/state", claimed + "/x").code(), StatusCode::kAlreadyExists);
  EXPECT_EQ(second.Remove(claimed + "/state").code(), StatusCode::kAlreadyExists);
  EXPECT_TRUE(second.Read(claimed + "/state", 100).ok()) << "reading changes nothing";
  EXPECT_TRUE(second.Create(dir.File("elsewhere")).ok());

  first.reset();
  EXPECT_TRUE(second.Remove(claimed + "/state").ok()) << "it is free now";
  EXPECT_EQ(ClaimDirectory(claimed).status().code(), StatusCode::kAlreadyExists);
}

TEST(ClaimedFileSystemTest, ReadingClaimsTheDirectoryAndReportsOnceWhereThatFails) {
  const TempDir dir;
  const std::string claimed = dir.File("state");
  ClaimedFileSystem first(RealFileSystem(), claimed);
  EXPECT_EQ(first.Read(claimed + "/state", 100).status().code(), StatusCode::kNotFound);
  EXPECT_EQ(ClaimDirectory(claimed).status().code(), StatusCode::kAlreadyExists);

  int told = 0;
  ClaimedFileSystem second(RealFileSystem(), claimed, [&told](const Status& status) {
    EXPECT_EQ(status.code(), StatusCode::kAlreadyExists);
    ++told;
  });
  for (int i = 0; i < 2; ++i)
    EXPECT_EQ(second.Read(claimed + "/state", 100).status().code(), StatusCode::kNotFound);
  EXPECT_EQ(told, 1);
}

}  // namespace
}  // namespace resmgr
