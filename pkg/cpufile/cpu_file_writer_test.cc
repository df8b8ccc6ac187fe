// SPDX-License-Identifier: Apache-2.0
#include "pkg/cpufile/cpu_file_writer.h"

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/sys/files.h"
#include "pkg/sys/temp_dir.h"
#include "test/support/status_matchers.h"
#include "test/support/wait.h"

namespace resmgr {
namespace {

namespace fs = std::filesystem;
using resmgr::test::RunUntil;
using std::chrono::milliseconds;
using test::HasCode;
using test::IsOk;
using testing::ElementsAre;
using testing::IsEmpty;

class CpuFileWriterTest : public testing::Test {
 protected:
  std::string Read(const std::string& name) const {
    return ReadFile(path_ + "/" + name + "/cpus.env", 1000).value_or("no file");
  }
  Status Make(const std::string& name, const std::string& text) {
    std::optional<Status> made;
    writer_.Make(name, text, [&made](const Status& status) { made = status; });
    RunUntil(loop_, [&made] { return made.has_value(); });
    return made.value_or(Internal("no answer"));
  }

  EventLoop loop_;
  const TempDir temp_;
  const std::string path_ = temp_.File("cpus");
  CpuFileWriter writer_{loop_, path_, {.patience = milliseconds(50), .retry = milliseconds(5)}};
};

TEST_F(CpuFileWriterTest, MakesReplacesAndRemoves) {
  ASSERT_THAT(Make("a", "1"), IsOk());
  EXPECT_EQ(Read("a"), "1");
  writer_.Replace("a", "2");
  EXPECT_EQ(writer_.behind(), 1U);
  EXPECT_TRUE(RunUntil(loop_, [this] { return writer_.behind() == 0; }));
  EXPECT_EQ(Read("a"), "2");
  writer_.Remove("a");
  EXPECT_TRUE(RunUntil(loop_, [this] { return !fs::exists(path_ + "/a"); }));
}

TEST_F(CpuFileWriterTest, OnlyWhatIsWantedLastIsWritten) {
  ASSERT_THAT(Make("a", "1"), IsOk());
  writer_.Replace("a", "2");
  writer_.Remove("a");
  writer_.Replace("a", "3");
  EXPECT_TRUE(RunUntil(loop_, [this] { return writer_.behind() == 0; }));
  EXPECT_EQ(Read("a"), "3");

  bool told = false;
  writer_.Make("b", "1", [&told](const Status&) { told = true; });
  writer_.Replace("b", "2");
  EXPECT_TRUE(RunUntil(loop_, [&told] { return told; }));
  EXPECT_EQ(Read("b"), "2") << "it is made with what is wanted then";

  writer_.Make("c", "1", [](const Status&) { FAIL() << "it was given up"; });
  writer_.Remove("c");
  writer_.Replace("a", "4");
  EXPECT_TRUE(RunUntil(loop_, [this] { return writer_.behind() == 0; }));
  EXPECT_FALSE(fs::exists(path_ + "/c"));
}

TEST_F(CpuFileWriterTest, WhatHasNoDirectoryIsNotBehind) {
  writer_.Replace("gone", "1");
  EXPECT_TRUE(RunUntil(loop_, [this] { return writer_.behind() == 0; }));
  EXPECT_FALSE(fs::exists(path_ + "/gone"));
}

TEST_F(CpuFileWriterTest, AFileThatCannotBeWrittenIsTriedAgain) {
  ASSERT_THAT(Make("a", "1"), IsOk());
  const std::string in_the_way = path_ + "/a/.cpus.env.tmp";
  fs::create_directory(in_the_way);
  writer_.Replace("a", "2");
  RunUntil(loop_, [tries = 0]() mutable { return ++tries > 30; });
  EXPECT_EQ(Read("a"), "1");
  EXPECT_EQ(writer_.behind(), 1U);
  EXPECT_TRUE(writer_.failing());
  fs::remove(in_the_way);
  EXPECT_TRUE(RunUntil(loop_, [this] { return writer_.behind() == 0; }));
  EXPECT_EQ(Read("a"), "2");
  EXPECT_FALSE(writer_.failing());
}

TEST_F(CpuFileWriterTest, OneThatCannotBeMadeIsTold) {
  fs::create_directory(path_);
  fs::permissions(path_, fs::perms::all);
  EXPECT_THAT(Make("a", "1"), HasCode(StatusCode::kFailedPrecondition));
  EXPECT_EQ(writer_.behind(), 0U);
  fs::permissions(path_, fs::perms::owner_all);
  EXPECT_THAT(Make("a", "1"), IsOk());
}

TEST_F(CpuFileWriterTest, ListsWhatThereIsOnceItCan) {
  ASSERT_THAT(Make("a", "1"), IsOk());
  std::optional<std::vector<std::string>> names;
  const auto listed = [&names](const std::vector<std::string>& found) { names = found; };
  writer_.List(listed);
  EXPECT_TRUE(RunUntil(loop_, [&names] { return names.has_value(); }));
  EXPECT_THAT(*names, ElementsAre("a"));

  // Another process, whose end is awaited.
  CpuFileWriter next(loop_, path_, {.retry = milliseconds(5)});
  names.reset();
  next.List(listed);
  RunUntil(loop_, [tries = 0]() mutable { return ++tries > 20; });
  EXPECT_EQ(names, std::nullopt);
}

TEST_F(CpuFileWriterTest, NothingIsToldAfterItsEnd) {
  bool told = false;
  {
    CpuFileWriter other(loop_, temp_.File("other"), {});
    other.Make("a", "1", [&told](const Status&) { told = true; });
  }
  RunUntil(loop_, [tries = 0]() mutable { return ++tries > 5; });
  EXPECT_FALSE(told);
}

TEST_F(CpuFileWriterTest, WithoutADirectoryThereIsNothing) {
  std::optional<std::vector<std::string>> names;
  writer_.List([&names](const std::vector<std::string>& found) { names = found; });
  EXPECT_TRUE(RunUntil(loop_, [&names] { return names.has_value(); }));
  EXPECT_THAT(*names, IsEmpty());
}

}  // namespace
}  // namespace resmgr
