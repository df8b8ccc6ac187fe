// SPDX-License-Identifier: Apache-2.0
#include "pkg/state/open_calls.h"

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/state/testing/failing_file_systems.h"
#include "pkg/sys/temp_dir.h"

namespace resmgr {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

using Kind = OpenCalls::Kind;

const ContainerId kA("a");
const ContainerId kB("b");

class OpenCallsTest : public ::testing::Test {
 protected:
  // Opens the notes anew as after a kill, without a call of the former object.
  OpenCalls& Open() {
    calls_.emplace(files_, "/state/calls",
                   [this](std::string_view line) { reports_.emplace_back(line); });
    return *calls_;
  }

  test::CrashingFileSystem files_{1};
  std::optional<OpenCalls> calls_;
  std::vector<std::string> reports_;
};

TEST_F(OpenCallsTest, WhatBeganIsKnownAfterAKill) {
  Open().Begin(Kind::kStart, kA);
  EXPECT_TRUE(Open().Contains(Kind::kStart, kA));
  EXPECT_FALSE(calls_->Contains(Kind::kUpdate, kA));
  EXPECT_FALSE(calls_->Contains(Kind::kStart, kB));
  EXPECT_TRUE(calls_->complete());
}

// The file lies beside a socket whose path may be relative.
TEST_F(OpenCallsTest, AMereNameIsAFileAndNoDirectory) {
  const TempDir directory;
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(directory.path());
  {
    OpenCalls calls(RealFileSystem(), "notes",
                    [this](std::string_view line) { reports_.emplace_back(line); });
    calls.Begin(Kind::kStart, kA);
  }
  OpenCalls again(RealFileSystem(), "notes",
                  [this](std::string_view line) { reports_.emplace_back(line); });
  EXPECT_TRUE(again.Contains(Kind::kStart, kA));
  EXPECT_TRUE(std::filesystem::is_regular_file("notes"));
  EXPECT_THAT(reports_, IsEmpty());
  std::filesystem::current_path(before);
}

TEST_F(OpenCallsTest, WhatEndedIsOver) {
  Open().Begin(Kind::kUpdate, kA);
  calls_->Begin(Kind::kUpdate, kB);
  calls_->End(Kind::kUpdate, kA);
  EXPECT_TRUE(calls_->unwritten());
  calls_->Write();
  EXPECT_FALSE(calls_->unwritten());
  EXPECT_FALSE(Open().Contains(Kind::kUpdate, kA));
  EXPECT_TRUE(calls_->Contains(Kind::kUpdate, kB));
}

TEST_F(OpenCallsTest, AnEndIsWrittenWithTheNextBeginning) {
  Open().Begin(Kind::kUpdate, kA);
  calls_->End(Kind::kUpdate, kA);
  calls_->Begin(Kind::kUpdate, kB);
  EXPECT_FALSE(Open().Contains(Kind::kUpdate, kA));
  EXPECT_TRUE(calls_->Contains(Kind::kUpdate, kB));
}

TEST_F(OpenCallsTest, WhatIsGatheredIsOneWrite) {
  Open().Begin(Kind::kUpdate, ContainerId("first"));  // makes the file
  int writes = 0;
  files_.fail = [&writes] {
    ++writes;
    return OkStatus();
  };
  calls_->Gather();
  calls_->Begin(Kind::kUpdate, kA);
  calls_->Begin(Kind::kUpdate, kB);
  EXPECT_EQ(writes, 0);
  calls_->Write();
  EXPECT_EQ(writes, 1);
  calls_->Begin(Kind::kStart, kA);
  EXPECT_EQ(writes, 2) << "gathered no longer";
  files_.fail = nullptr;
  EXPECT_TRUE(Open().Contains(Kind::kUpdate, kA));
  EXPECT_TRUE(calls_->Contains(Kind::kUpdate, kB));
  EXPECT_TRUE(calls_->Contains(Kind::kStart, kA));
}

TEST_F(OpenCallsTest, AKillBeforeAnEndIsWrittenLeavesTheCallOpen) {
  Open().Begin(Kind::kUpdate, kA);
  calls_->End(Kind::kUpdate, kA);
  EXPECT_FALSE(calls_->Contains(Kind::kUpdate, kA));
  EXPECT_TRUE(Open().Contains(Kind::kUpdate, kA));
}

TEST_F(OpenCallsTest, NotesThatWereGatheredAreWrittenAgainAfterAnError) {
  Open().Begin(Kind::kUpdate, kA);
  files_.fail = [] { return Unavailable("no space"); };
  calls_->Gather();
  calls_->Begin(Kind::kStart, kA);
  calls_->Begin(Kind::kStart, kB);
  calls_->Write();
  EXPECT_THAT(reports_, ElementsAre(HasSubstr("no space")));
  EXPECT_THAT(Message(calls_->noted()), HasSubstr("no space"));
  files_.fail = nullptr;
  calls_->End(Kind::kUpdate, kA);
  calls_->Write();
  EXPECT_EQ(calls_->noted(), OkStatus());
  EXPECT_EQ(Open().size(), 2u);
  EXPECT_TRUE(calls_->Contains(Kind::kStart, kA));
  EXPECT_TRUE(calls_->Contains(Kind::kStart, kB));
}

TEST_F(OpenCallsTest, StaysOpenOverSeveralKills) {
  Open().Begin(Kind::kUpdate, kA);
  Open().Begin(Kind::kUpdate, kB);
  EXPECT_TRUE(Open().Contains(Kind::kUpdate, kA));
  calls_->End(Kind::kUpdate, kA);
  calls_->Write();
  EXPECT_FALSE(Open().Contains(Kind::kUpdate, kA));
  EXPECT_TRUE(calls_->Contains(Kind::kUpdate, kB));
}

TEST_F(OpenCallsTest, RetainsCallsOfExistingContainers) {
  Open().Begin(Kind::kStart, kA);
  calls_->Begin(Kind::kUpdate, kB);
  Open().Retain({kB});
  EXPECT_EQ(calls_->size(), 1u);
  EXPECT_EQ(Open().size(), 1u);
  EXPECT_TRUE(calls_->Contains(Kind::kUpdate, kB));
}

TEST_F(OpenCallsTest, IsIncompleteWithoutAFormerLife) {
  EXPECT_FALSE(Open().complete());
  EXPECT_THAT(reports_, IsEmpty());
  EXPECT_FALSE(OpenCalls().complete());
}

TEST_F(OpenCallsTest, IsIncompleteWhereTheNotesCannotBeRead) {
  Open().Begin(Kind::kStart, kA);
  files_.Content("/state/calls")[0] = '?';
  EXPECT_FALSE(Open().complete());
  EXPECT_THAT(reports_, ElementsAre(HasSubstr("the header is damaged")));
}

TEST_F(OpenCallsTest, ReadsUpToHalfANote) {
  Open().Begin(Kind::kStart, kA);
  calls_->Begin(Kind::kStart, kB);
  files_.Content("/state/calls").pop_back();
  EXPECT_TRUE(Open().Contains(Kind::kStart, kA));
  EXPECT_FALSE(calls_->Contains(Kind::kStart, kB));
  calls_->Begin(Kind::kUpdate, kB);
  EXPECT_TRUE(Open().Contains(Kind::kUpdate, kB)) << "written behind half a note";
}

TEST_F(OpenCallsTest, ForgetsHistory) {
  Open().Begin(Kind::kStart, kA);
  for (int i = 0; i < 20'000; ++i) {
    calls_->Begin(Kind::kUpdate, kB);
    calls_->End(Kind::kUpdate, kB);
  }
  calls_->Write();
  EXPECT_LT(files_.Content("/state/calls").size(), 100'000u);
  EXPECT_TRUE(Open().Contains(Kind::kStart, kA));
  EXPECT_EQ(calls_->size(), 1u);
}

TEST_F(OpenCallsTest, NotesAllAgainAfterAnError) {
  Open().Begin(Kind::kStart, kA);
  files_.fail = [] { return Unavailable("no space"); };
  calls_->Begin(Kind::kStart, kB);
  calls_->End(Kind::kStart, kA);
  EXPECT_TRUE(calls_->Contains(Kind::kStart, kB));
  EXPECT_THAT(reports_, ElementsAre(HasSubstr("no space")));
  files_.fail = nullptr;
  calls_->Begin(Kind::kUpdate, kB);
  EXPECT_TRUE(Open().Contains(Kind::kStart, kB));
  EXPECT_TRUE(calls_->Contains(Kind::kUpdate, kB));
  EXPECT_FALSE(calls_->Contains(Kind::kStart, kA));
}

// A full tmpfs takes no bytes, and lets files be removed.
TEST_F(OpenCallsTest, IsIncompleteAfterANoteThatCouldNotBeWritten) {
  Open().Begin(Kind::kStart, kA);
  files_.fail_append = [] { return Unavailable("no space"); };
  calls_->Begin(Kind::kStart, kB);
  EXPECT_FALSE(Open().complete()) << "the call about b is missing in the former notes";
  files_.fail_append = nullptr;
  calls_->Begin(Kind::kStart, kB);
  EXPECT_TRUE(Open().complete());
}

// Between any two operations, all earlier notes exist.
TEST_F(OpenCallsTest, LosesNothingWhenItIsKilledWhileItRewrites) {
  for (int operations = 0; operations < 8; ++operations) {
    Open().Begin(Kind::kStart, kA);
    Open();  // reads
    files_.CrashAfter(operations);
    calls_->End(Kind::kStart, kB);
    calls_->Begin(Kind::kStart, kB);  // rewrites
    files_.CrashAfter(-1);
    EXPECT_TRUE(Open().Contains(Kind::kStart, kA)) << "after " << operations << " operations";
    EXPECT_TRUE(calls_->complete());
  }
}

}  // namespace
}  // namespace resmgr
