// SPDX-License-Identifier: Apache-2.0
#include "pkg/dump/output_file.h"

#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pkg/dump/testing/full_after.h"
#include "pkg/sys/temp_dir.h"

namespace resmgr::dump {
namespace {

using testing::HasSubstr;

class OutputFileTest : public testing::Test {
 protected:
  std::string PathOf(const std::string& name) const { return directory_.File(name); }

  // Another user's file, which must not be changed.
  std::string Precious() const {
    std::string path = PathOf("precious");
    std::ofstream(path) << "precious";
    return path;
  }
  static std::string TextOf(const std::string& path) {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  }

  // The refusal, which must be the same from both: callers rely on the probe.
  static std::string Refusal(const OutputPlace& place) {
    const Status probed = ProbePlace(place);
    const Status created = OutputFile::Create(place).status();
    EXPECT_EQ(Message(probed), Message(created));
    EXPECT_EQ(created.code(), StatusCode::kInvalidArgument);
    return std::string(Message(created));
  }

  TempDir directory_;
};

TEST_F(OutputFileTest, NeitherFollowsLinksNorEmptiesWhatHasAnotherName) {
  const std::string precious = Precious();
  std::filesystem::create_symlink(precious, PathOf("soft"));
  std::filesystem::create_hard_link(precious, PathOf("hard"));
  std::filesystem::create_symlink(PathOf("new"), PathOf("dangling"));
  EXPECT_THAT(Refusal({.path = PathOf("soft")}), HasSubstr("symbolic link"));
  EXPECT_THAT(Refusal({.path = PathOf("hard")}), HasSubstr("hard link"));
  EXPECT_THAT(Refusal({.path = PathOf("dangling")}), HasSubstr("symbolic link"));
  EXPECT_EQ(TextOf(precious), "precious");
  EXPECT_FALSE(std::filesystem::exists(PathOf("new")));
}

// As logrotate's copytruncate does.
TEST_F(OutputFileTest, GoesOnAtTheBeginningWhereTheFileWasEmptied) {
  const auto file = OutputFile::Create({.path = PathOf("dump")});
  ASSERT_TRUE(file.ok());
  (*file)->Append("before\n");
  ASSERT_TRUE((*file)->Flush().ok());
  std::filesystem::resize_file(PathOf("dump"), 0);
  (*file)->Append("after\n");
  ASSERT_TRUE((*file)->Flush().ok());
  EXPECT_EQ(TextOf(PathOf("dump")), "after\n");
}

// The kernel writes what a full disk has room for, which ends in the middle of a line.
TEST_F(OutputFileTest, LinesInFrontOfAFullDiskAreWhole) {
  const auto file = OutputFile::Create({.path = PathOf("f")}, std::chrono::milliseconds(0));
  ASSERT_TRUE(file.ok());
  const auto line = [](char c) { return std::string(399, c) + '\n'; };
  std::vector<size_t> written;
  (*file)->TellWritten([&written](size_t bytes) { written.push_back(bytes); });
  (*file)->Append(line('a') + line('b') + line('c'));
  {
    const FullAfter full(1000);
    EXPECT_FALSE((*file)->Flush().ok());
  }
  EXPECT_TRUE((*file)->failing());
  EXPECT_EQ(TextOf(PathOf("f")), line('a') + line('b'));
  (*file)->Append(line('d'));
  EXPECT_TRUE((*file)->Flush().ok());
  EXPECT_EQ(TextOf(PathOf("f")), line('a') + line('b') + line('d'));
  EXPECT_THAT(written, testing::ElementsAre(800, 400)) << "the bytes of whole lines";
}

TEST_F(OutputFileTest, TakesNoPipesDevicesAndDirectories) {
  ASSERT_EQ(::mkfifo(PathOf("pipe").c_str(), 0600), 0);
  EXPECT_THAT(Refusal({.path = PathOf("pipe")}), HasSubstr("not a regular file"));
  EXPECT_THAT(Refusal({.path = "/dev/null"}), HasSubstr("not a regular file"));
  EXPECT_THAT(Refusal({.path = directory_.path()}), HasSubstr("a directory"));
  EXPECT_THAT(Refusal({.path = PathOf("no/such")}), HasSubstr("No such file"));
}

TEST_F(OutputFileTest, TakesNoFileOfAnotherUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a file away";
  const std::string precious = Precious();
  ASSERT_EQ(::chown(precious.c_str(), 12345, 12345), 0);
  EXPECT_THAT(Refusal({.path = precious}), HasSubstr("another user"));
  EXPECT_EQ(TextOf(precious), "precious");
}

TEST_F(OutputFileTest, StaysInItsDirectory) {
  const std::string precious = Precious();
  const std::string dumps = PathOf("dumps");
  for (const std::string& path :
       {precious, dumps, dumps + "/", dumps + "/.", dumps + "/..", dumps + "/../precious",
        dumps + "/sub/file", std::string("relative"), dumps + "2/file"}) {
    EXPECT_THAT(Refusal({.path = path, .directory = dumps}), HasSubstr("-dump-dir")) << path;
  }
  EXPECT_EQ(TextOf(precious), "precious");
  EXPECT_FALSE(std::filesystem::exists(dumps));
}

TEST_F(OutputFileTest, MakesItsDirectoryOnDemand) {
  const std::string dumps = PathOf("dumps");
  for (const std::string& directory : {dumps, dumps + "/", PathOf("x/../dumps")}) {
    const OutputPlace place{.path = dumps + "/a", .directory = directory};
    std::filesystem::remove_all(dumps);
    EXPECT_TRUE(ProbePlace(place).ok()) << Message(ProbePlace(place));
    EXPECT_FALSE(std::filesystem::exists(dumps));
    ASSERT_TRUE(OutputFile::Create(place).ok());
    EXPECT_EQ(std::filesystem::status(dumps).permissions(), std::filesystem::perms::owner_all);
  }
}

}  // namespace
}  // namespace resmgr::dump
