// SPDX-License-Identifier: Apache-2.0
#include "pkg/hooks/hook_directory.h"

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "pkg/hooks/hook_file.h"
#include "pkg/sys/temp_dir.h"
#include "test/support/status_matchers.h"

namespace resmgr::hooks {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::IsEmpty;

class HookDirectoryTest : public testing::Test {
 protected:
  void Write(const std::string& name, const std::string& text) const {
    std::ofstream(directory_.File(name)) << text;
  }
  std::vector<HookFileText> Read() const {
    auto files = ReadHookDirectory(directory_.path());
    EXPECT_THAT(files, test::IsOk());
    return files.ok() ? *std::move(files) : std::vector<HookFileText>();
  }
  static std::vector<std::string> Names(const std::vector<HookFileText>& files) {
    std::vector<std::string> names;
    for (const HookFileText& file : files)
      names.push_back(file.name);
    return names;
  }

  const TempDir directory_;
};

TEST_F(HookDirectoryTest, TakesOnlyNamesOfHookFilesInTheirOrder) {
  for (const char* name : {"b.json", "a.json", ".c.json", "djson", "e.json.tmp"})
    Write(name, name);
  const auto files = Read();
  ASSERT_THAT(Names(files), ElementsAre("a.json", "b.json"));
  EXPECT_EQ(files[0].text, StatusOr<std::string>("a.json"));
}

TEST_F(HookDirectoryTest, AnAbsentDirectoryHasNoFiles) {
  const auto files = ReadHookDirectory(directory_.File("absent"));
  ASSERT_THAT(files, test::IsOk());
  EXPECT_THAT(*files, IsEmpty());
}

TEST_F(HookDirectoryTest, FollowsTheLinksOfAConfigMap) {
  fs::create_directory(directory_.File("..1"));
  Write("..1/k.json", "text");
  fs::create_directory_symlink("..1", directory_.File("..data"));
  fs::create_symlink("..data/k.json", directory_.File("k.json"));
  fs::create_symlink("nowhere", directory_.File("gone.json"));
  const auto files = Read();
  ASSERT_THAT(Names(files), ElementsAre("k.json"));
  EXPECT_EQ(files[0].text, StatusOr<std::string>("text"));
}

// Reading a FIFO without a writer would hang; with a writer it might never end.
TEST_F(HookDirectoryTest, WhatIsNoRegularFileIsNotRead) {
  ASSERT_EQ(::mkfifo(directory_.File("fifo.json").c_str(), 0600), 0);
  fs::create_directory(directory_.File("folder.json"));
  const auto files = Read();
  ASSERT_THAT(Names(files), ElementsAre("fifo.json", "folder.json"));
  for (const HookFileText& file : files)
    EXPECT_THAT(file.text, test::Fails(StatusCode::kInvalidArgument,
                                       testing::HasSubstr("is not a regular file")));
}

TEST_F(HookDirectoryTest, FilesAreBoundedInLengthAndNumber) {
  Write("000.json", std::string(kLongestHookFile, ' '));
  Write("001.json", std::string(kLongestHookFile + 1, ' '));
  for (size_t i = 100; i < 100 + 2 * kMostHookFilesRead; ++i)
    Write(std::to_string(i) + ".json", "");
  const auto files = Read();
  ASSERT_EQ(files.size(), kMostHookFilesRead + 1);
  EXPECT_FALSE(files[kMostHookFiles - 1].beyond_limit);
  EXPECT_TRUE(files[kMostHookFiles].beyond_limit);
  EXPECT_THAT(files[kMostHookFilesRead - 1].text, test::IsOk());
  EXPECT_THAT(files.back().text, test::HasCode(StatusCode::kResourceExhausted));
  EXPECT_THAT(files[0].text, test::IsOk());
  EXPECT_THAT(files[1].text, test::HasCode(StatusCode::kInvalidArgument));
  EXPECT_EQ(files[kMostHookFiles - 1].name, "161.json");
}

}  // namespace
}  // namespace resmgr::hooks
