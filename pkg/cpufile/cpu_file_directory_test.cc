// SPDX-License-Identifier: Apache-2.0
#include "pkg/cpufile/cpu_file_directory.h"

#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pkg/sys/files.h"
#include "pkg/sys/temp_dir.h"
#include "test/support/status_matchers.h"

namespace resmgr {
namespace {

namespace fs = std::filesystem;
using test::Fails;
using test::HasCode;
using test::IsOk;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

class CpuFileDirectoryTest : public testing::Test {
 protected:
  std::string FileOf(const std::string& name) const { return path_ + "/" + name + "/cpus.env"; }
  std::string Read(const std::string& name) const {
    return ReadFile(FileOf(name), 1000).value_or("no file");
  }
  static unsigned ModeOf(const std::string& path) {
    struct stat found {};
    return ::stat(path.c_str(), &found) == 0 ? found.st_mode & 07777U : 0;
  }

  const TempDir temp_;
  const std::string path_ = temp_.File("run/cpus");
  CpuFileDirectory directory_{path_};
};

TEST_F(CpuFileDirectoryTest, MakesReplacesAndRemoves) {
  EXPECT_THAT(directory_.List().value(), IsEmpty()) << "nothing is made to be listed";
  EXPECT_FALSE(fs::exists(path_));
  ASSERT_THAT(directory_.Make("a_b_0", "CPUS=1\n"), IsOk());
  EXPECT_EQ(Read("a_b_0"), "CPUS=1\n");
  ASSERT_THAT(directory_.Make("a_b_1", "CPUS=2\n"), IsOk());
  ASSERT_THAT(directory_.Replace("a_b_0", "CPUS=1-3\n"), IsOk());
  EXPECT_EQ(Read("a_b_0"), "CPUS=1-3\n");
  ASSERT_THAT(directory_.Make("a_b_0", "CPUS=7\n"), IsOk()) << "one of before may be there";
  EXPECT_EQ(Read("a_b_0"), "CPUS=7\n");
  EXPECT_THAT(directory_.List().value(), UnorderedElementsAre("a_b_0", "a_b_1"));
  ASSERT_THAT(directory_.Remove("a_b_0"), IsOk());
  ASSERT_THAT(directory_.Remove("a_b_0"), IsOk());
  EXPECT_THAT(directory_.List().value(), UnorderedElementsAre("a_b_1"));
  EXPECT_THAT(directory_.Replace("a_b_0", "x"), HasCode(StatusCode::kNotFound));
}

TEST_F(CpuFileDirectoryTest, EveryUserOfAContainerMayReadWhateverTheUmaskIs) {
  const mode_t former = ::umask(0077);
  const Status made = directory_.Make("a", "CPUS=1\n");
  ::umask(former);
  ASSERT_THAT(made, IsOk());
  EXPECT_EQ(ModeOf(path_), 0711U);
  EXPECT_EQ(ModeOf(path_ + "/a"), 0755U);
  EXPECT_EQ(ModeOf(FileOf("a")), 0644U);
}

// A mount of the directory follows its files; one of a file would keep the former one.
TEST_F(CpuFileDirectoryTest, ADirectoryKeepsItsIdentityAndAReaderASingleText) {
  ASSERT_THAT(directory_.Make("a", "CPUS=1\n"), IsOk());
  struct stat before {};
  struct stat after {};
  ASSERT_EQ(::stat((path_ + "/a").c_str(), &before), 0);
  std::ifstream open(FileOf("a"));
  ASSERT_THAT(directory_.Replace("a", "CPUS=1-200\n"), IsOk());
  ASSERT_EQ(::stat((path_ + "/a").c_str(), &after), 0);
  EXPECT_EQ(before.st_ino, after.st_ino);
  std::string line;
  std::getline(open, line);
  EXPECT_EQ(line, "CPUS=1") << "the file that was open";
  EXPECT_EQ(Read("a"), "CPUS=1-200\n");
}

TEST_F(CpuFileDirectoryTest, WhatAKillLeftBehindIsWrittenOverAndRemoved) {
  ASSERT_THAT(directory_.Make("a", "CPUS=1\n"), IsOk());
  std::ofstream(path_ + "/a/.cpus.env.tmp") << "half";
  ASSERT_THAT(directory_.Replace("a", "CPUS=2\n"), IsOk());
  EXPECT_FALSE(fs::exists(path_ + "/a/.cpus.env.tmp"));
  std::ofstream(path_ + "/a/.cpus.env.tmp") << "half";
  ASSERT_THAT(directory_.Remove("a"), IsOk());
  EXPECT_FALSE(fs::exists(path_ + "/a"));
}

TEST_F(CpuFileDirectoryTest, NoLinkIsFollowed) {
  const std::string victim = temp_.File("victim");
  fs::create_directory(victim);
  std::ofstream(victim + "/cpus.env") << "theirs";
  ASSERT_THAT(directory_.Make("a", "CPUS=1\n"), IsOk());
  fs::create_directory_symlink(victim, path_ + "/b");
  EXPECT_THAT(directory_.Make("b", "CPUS=1\n"), HasCode(StatusCode::kNotFound));
  EXPECT_THAT(directory_.Replace("b", "CPUS=1\n"), HasCode(StatusCode::kNotFound));
  ASSERT_THAT(directory_.Remove("b"), IsOk());
  EXPECT_TRUE(fs::is_symlink(path_ + "/b")) << "no directory of ours";
  fs::create_symlink(victim + "/cpus.env", path_ + "/a/.cpus.env.tmp");
  EXPECT_FALSE(directory_.Replace("a", "CPUS=2\n").ok());
  EXPECT_EQ(ReadFile(victim + "/cpus.env", 100).value(), "theirs");
  ASSERT_THAT(directory_.Replace("a", "CPUS=3\n"), IsOk()) << "the link is removed by the failure";

  fs::create_directory_symlink(path_, temp_.File("link"));
  EXPECT_THAT(CpuFileDirectory(temp_.File("link")).Make("a", "x"), HasCode(StatusCode::kNotFound));
}

TEST_F(CpuFileDirectoryTest, ADirectoryThatOthersMayWriteIsNotUsed) {
  fs::create_directories(path_);
  ::chmod(path_.c_str(), 0777);
  EXPECT_THAT(directory_.Make("a", "x"),
              Fails(StatusCode::kFailedPrecondition, HasSubstr("other users may write there")));
  EXPECT_THAT(directory_.List(), HasCode(StatusCode::kFailedPrecondition));
  ::chmod(path_.c_str(), 0755);
  EXPECT_THAT(directory_.Make("a", "x"), IsOk());
  if (::geteuid() != 0) return;
  const std::string other = temp_.File("other");
  fs::create_directory(other);
  ASSERT_EQ(::chown(other.c_str(), 12345, 0), 0);
  EXPECT_THAT(CpuFileDirectory(other).Make("a", "x"),
              Fails(StatusCode::kFailedPrecondition, HasSubstr("belongs to user 12345")));
}

TEST_F(CpuFileDirectoryTest, OneProcessHasIt) {
  ASSERT_THAT(directory_.Make("a", "CPUS=1\n"), IsOk());
  CpuFileDirectory other(path_);
  EXPECT_THAT(other.Make("b", "x"), HasCode(StatusCode::kAlreadyExists));
  EXPECT_THAT(other.List(), HasCode(StatusCode::kAlreadyExists));
  directory_ = CpuFileDirectory(temp_.File("elsewhere"));
  EXPECT_THAT(other.Make("b", "x"), IsOk());
}

TEST_F(CpuFileDirectoryTest, OneThatWasRemovedIsMadeAnew) {
  ASSERT_THAT(directory_.Make("a", "CPUS=1\n"), IsOk());
  fs::remove_all(path_);
  EXPECT_THAT(directory_.Replace("a", "CPUS=2\n"), HasCode(StatusCode::kNotFound));
  ASSERT_THAT(directory_.Make("b", "CPUS=3\n"), IsOk());
  EXPECT_EQ(Read("b"), "CPUS=3\n");
}

TEST_F(CpuFileDirectoryTest, WhatIsInTheWayIsNamed) {
  std::ofstream(temp_.File("run")) << "a file";
  EXPECT_THAT(directory_.Make("a", "x"),
              Fails(StatusCode::kNotFound, HasSubstr("the parent of " + path_)));
  ASSERT_TRUE(fs::remove(temp_.File("run")));
  ASSERT_THAT(directory_.Make("a", "CPUS=1\n"), IsOk());
  fs::create_directory(path_ + "/a/.cpus.env.tmp");
  EXPECT_THAT(directory_.Replace("a", "x"),
              Fails(StatusCode::kInvalidArgument, HasSubstr(path_ + "/a/cpus.env")));
  EXPECT_EQ(Read("a"), "CPUS=1\n");
}

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
