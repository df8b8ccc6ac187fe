// SPDX-License-Identifier: Apache-2.0
#include "pkg/sys/files.h"

#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pkg/sys/temp_dir.h"

namespace resmgr {
namespace {

using testing::HasSubstr;

constexpr size_t kLimit = size_t{1} << 20;

class FilesTest : public testing::Test {
 protected:
  TempDir directory_;
  const std::string path_ = directory_.File("state");
};

TEST_F(FilesTest, ReadsBackWhatWasWritten) {
  std::string data(200000, 'a');
  data[77] = '\0';
  ASSERT_TRUE(AtomicWriteFile(path_, data, 0600).ok());
  EXPECT_EQ(*ReadFile(path_, kLimit), data);
}

TEST_F(FilesTest, ReadsEmptyFile) {
  ASSERT_TRUE(AtomicWriteFile(path_, "", 0600).ok());
  EXPECT_EQ(*ReadFile(path_, 0), "");
}

TEST_F(FilesTest, LimitIsTheLargestSizeThatIsRead) {
  ASSERT_TRUE(AtomicWriteFile(path_, "12345", 0600).ok());
  EXPECT_EQ(*ReadFile(path_, 5), "12345");
  const auto too_big = ReadFile(path_, 4);
  EXPECT_EQ(too_big.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(Message(too_big.status())), HasSubstr("more than 4 bytes"));
}

TEST_F(FilesTest, EndlessFileStopsAtTheLimit) {
  EXPECT_EQ(ReadFile("/dev/zero", kLimit).status().code(), StatusCode::kInvalidArgument);
}

// A FIFO without a writer would hang, and one with a writer never ends.
TEST_F(FilesTest, WhatIsNoRegularFileIsNotRead) {
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  for (const std::string& path : {path_, directory_.path(), std::string("/dev/null")}) {
    const auto read = ReadFile(path, kLimit);
    EXPECT_EQ(read.status().code(), StatusCode::kInvalidArgument) << path;
    EXPECT_EQ(Message(read.status()), path + " is not a regular file");
  }
  ASSERT_EQ(::unlink(path_.c_str()), 0);
  std::filesystem::create_symlink("target", path_);
  std::ofstream(directory_.File("target")) << "followed";
  EXPECT_EQ(*ReadFile(path_, kLimit), "followed");
}

// Sparse files take no room on a disk, but their content would take our memory.
TEST_F(FilesTest, OfAFileThatIsTooLongNothingIsRead) {
  std::ofstream(path_).close();
  std::filesystem::resize_file(path_, uintmax_t{8} << 30);
  const auto peak_kib = [] {
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
  };
  const auto before = peak_kib();
  const auto read = ReadFile(path_, size_t{1} << 30);
  EXPECT_EQ(read.status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(Message(read.status()), path_ + " has more than 1073741824 bytes");
  EXPECT_LT(peak_kib() - before, 16 * 1024);
}

TEST_F(FilesTest, ABeginningIsReadFromAFileOfAnyLength) {
  std::ofstream(path_) << "0123456789";
  EXPECT_EQ(*ReadBeginning(path_, 4), "0123");
  EXPECT_EQ(*ReadBeginning(path_, 100), "0123456789");
  EXPECT_EQ(ReadBeginning(directory_.path(), 4).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(ReadBeginning(directory_.File("none"), 4).status().code(), StatusCode::kNotFound);
}

// The size of the kernel's files is not known before they are read.
TEST_F(FilesTest, FilesWithoutASizeAreRead) {
  EXPECT_THAT(*ReadFile("/proc/self/status", kLimit), HasSubstr("Name:"));
}

TEST_F(FilesTest, AProgramsInputMayBeAPipe) {
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  std::thread writer([this] { std::ofstream(path_) << "from a pipe"; });
  EXPECT_EQ(*ReadInput(path_, kLimit), "from a pipe");
  writer.join();
  EXPECT_EQ(ReadInput("/dev/zero", kLimit).status().code(), StatusCode::kInvalidArgument);
}

TEST_F(FilesTest, ReadErrorsNameTheFile) {
  const auto missing = ReadFile(path_, kLimit);
  EXPECT_EQ(missing.status().code(), StatusCode::kNotFound);
  EXPECT_THAT(std::string(Message(missing.status())), HasSubstr(path_));
  EXPECT_EQ(ReadFile(directory_.path(), kLimit).status().code(), StatusCode::kInvalidArgument);
}

TEST_F(FilesTest, WriteReplacesContentAndMode) {
  ASSERT_TRUE(AtomicWriteFile(path_, "old and longer", 0600).ok());
  ASSERT_TRUE(AtomicWriteFile(path_, "new", 0644).ok());
  EXPECT_EQ(*ReadFile(path_, kLimit), "new");
  struct stat found {};
  ASSERT_EQ(::stat(path_.c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 07777, 0644U);
  EXPECT_FALSE(std::filesystem::exists(path_ + ".tmp"));
}

TEST_F(FilesTest, FailedWriteKeepsTheOldFileAndNoTemporary) {
  const std::string directory_in_the_way = directory_.File("d");
  std::filesystem::create_directories(directory_in_the_way + "/x");
  const Status status = AtomicWriteFile(directory_in_the_way, "data", 0600);
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(std::string(Message(status)), HasSubstr(directory_in_the_way));
  EXPECT_TRUE(std::filesystem::exists(directory_in_the_way + "/x"));
  EXPECT_FALSE(std::filesystem::exists(directory_in_the_way + ".tmp"));
}

TEST_F(FilesTest, LeftoverTemporaryIsNotWrittenThrough) {
  const std::string victim = directory_.File("victim");
  std::ofstream(victim) << "precious";
  std::filesystem::create_symlink(victim, path_ + ".tmp");
  ASSERT_TRUE(AtomicWriteFile(path_, "data", 0600).ok());
  EXPECT_EQ(*ReadFile(victim, kLimit), "precious");
  EXPECT_EQ(*ReadFile(path_, kLimit), "data");
}

TEST_F(FilesTest, MissingDirectoryIsNotFound) {
  EXPECT_EQ(AtomicWriteFile(directory_.File("no/file"), "x", 0600).code(), StatusCode::kNotFound);
}

}  // namespace
}  // namespace resmgr
