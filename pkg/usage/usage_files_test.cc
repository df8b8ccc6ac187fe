// SPDX-License-Identifier: Apache-2.0
#include "pkg/usage/usage_files.h"

#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/sys/temp_dir.h"

namespace resmgr {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Optional;
using testing::SizeIs;

class UsageFilesTest : public testing::Test {
 protected:
  std::string Path(const std::string& name) const { return dir_.path() + "/" + name; }

  const TempDir dir_;
  UsageFiles files_{std::make_shared<FileInHand>()};
};

TEST_F(UsageFilesTest, AbsentFilesAreNoError) {
  std::ofstream(Path("file")) << "7\n";
  EXPECT_THAT(files_.Read(Path("file")), Optional(std::string_view("7\n")));
  EXPECT_FALSE(files_.Read(Path("none")));
  EXPECT_FALSE(files_.Read(Path("file/below")));
  EXPECT_EQ(files_.files(), 1U);
  EXPECT_THAT(files_.TakeErrors(), IsEmpty());
}

// The read of /proc/self/mem at 0 fails with EIO, as reads of a cgroup's files may do.
TEST_F(UsageFilesTest, AReadThatFailsIsNamedAndTheNextOneIsNot) {
  EXPECT_FALSE(files_.Read("/proc/self/mem"));
  EXPECT_THAT(files_.TakeErrors(),
              ElementsAre(HasSubstr("/proc/self/mem is not read: Input/output error")));
  std::ofstream(Path("file")) << "7\n";
  EXPECT_THAT(files_.Read(Path("file")), Optional(std::string_view("7\n")));
  EXPECT_THAT(files_.TakeErrors(), IsEmpty());
}

TEST_F(UsageFilesTest, ErrorsBetweenTwoSamplesAreBounded) {
  for (int i = 0; i < 1000; ++i)
    EXPECT_FALSE(files_.Read("/proc/self/mem"));
  EXPECT_THAT(files_.TakeErrors(), SizeIs(8));
}

TEST_F(UsageFilesTest, LongFilesAreLeftOutOrCutOff) {
  std::ofstream(Path("long")) << std::string(UsageFiles::kMostBytes + 1, 'x');
  EXPECT_FALSE(files_.Read(Path("long")));
  EXPECT_THAT(files_.TakeErrors(), ElementsAre(HasSubstr("longer than")));
  EXPECT_THAT(files_.Read(Path("long"), UsageFiles::TooLong::kCutOff),
              Optional(SizeIs(UsageFiles::kMostBytes)));
  EXPECT_THAT(files_.TakeErrors(), IsEmpty());
}

}  // namespace
}  // namespace resmgr
