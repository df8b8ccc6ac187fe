// SPDX-License-Identifier: Apache-2.0
#include "pkg/sys/replace_file.h"

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <string>

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "pkg/sys/files.h"
#include "pkg/sys/temp_dir.h"

namespace resmgr {
namespace {

// As on a full disk, no file of this process can grow beyond a number of bytes.
class FullDisk {
 public:
  explicit FullDisk(rlim_t most) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{.rlim_cur = most, .rlim_max = before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FullDisk() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    (void)std::signal(SIGXFSZ, handler_);
  }
  FullDisk(const FullDisk&) = delete;
  FullDisk& operator=(const FullDisk&) = delete;

 private:
  void (*handler_)(int);
  rlimit before_{};
};

class ReplaceFileTest : public testing::Test {
 protected:
  std::string Text(const std::string& path) { return ReadFile(path, 1000).value_or("missing"); }
  // A file beside it would have a name that is too long, so it is written in place.
  std::string InPlace() const { return directory_.File(std::string(250, 'i')); }
  size_t Files() const {
    size_t files = 0;
    for ([[maybe_unused]] const auto& entry :
         std::filesystem::directory_iterator(directory_.path()))
      ++files;
    return files;
  }

  const TempDir directory_;
  const std::string path_ = directory_.File("irqbalance");
};

TEST_F(ReplaceFileTest, AFileHasItsFormerContentAfterAnError) {
  for (const std::string& path : {path_, InPlace()}) {
    ASSERT_TRUE(AtomicWriteFile(path, "0123456789", 0644).ok());
    for (const rlim_t most : {0U, 5U, 12U}) {
      const FullDisk full(most);
      EXPECT_EQ(ReplaceFile(path, "a text of twenty-two b"), EFBIG);
      EXPECT_EQ(Text(path), "0123456789") << path << " " << most;
    }
  }
  EXPECT_EQ(Files(), 2U);
}

TEST_F(ReplaceFileTest, ANewTextMayBeShorterOrLonger) {
  for (const std::string& path : {path_, InPlace()}) {
    ASSERT_TRUE(AtomicWriteFile(path, "0123456789", 0644).ok());
    for (const char* const text : {"short", "", "a much longer text"}) {
      EXPECT_EQ(ReplaceFile(path, text), 0);
      EXPECT_EQ(Text(path), text);
    }
  }
  EXPECT_EQ(Files(), 2U);
}

TEST_F(ReplaceFileTest, ModeAndLinksStay) {
  ASSERT_TRUE(AtomicWriteFile(path_, "before", 0640).ok());
  const std::string link = directory_.File("link");
  std::filesystem::create_symlink("irqbalance", link);
  ASSERT_TRUE(AtomicWriteFile(path_ + ".cri-resmgr", "of a kill", 0600).ok());
  EXPECT_EQ(ReplaceFile(link, "after"), 0);
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  EXPECT_EQ(Text(path_), "after");
  struct stat found {};
  ASSERT_EQ(::stat(path_.c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 07777U, 0640U);
  EXPECT_EQ(Files(), 2U);
}

TEST_F(ReplaceFileTest, OnlyARegularFileThatExistsIsReplaced) {
  EXPECT_EQ(ReplaceFile(path_, "text"), ENOENT);
  EXPECT_EQ(ReplaceFile(directory_.path(), "text"), EINVAL);
  EXPECT_EQ(Files(), 0U);
}

}  // namespace
}  // namespace resmgr
