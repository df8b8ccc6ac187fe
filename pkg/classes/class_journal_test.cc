// SPDX-License-Identifier: Apache-2.0
#include "pkg/classes/class_journal.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/sys/files.h"
#include "pkg/sys/temp_dir.h"
#include "test/support/status_matchers.h"

namespace resmgr {
namespace {

namespace fs = std::filesystem;
using test::IsOk;
using testing::HasSubstr;
using testing::IsEmpty;

class ClassJournalTest : public testing::Test {
 protected:
  std::string Text() const { return ReadFile(path_ + "/journal", 1 << 20).value(); }
  void Write(std::string_view text) const {
    fs::create_directories(path_);
    std::ofstream(path_ + "/journal", std::ios::binary) << text;
  }

  const TempDir directory_;
  const std::string path_ = directory_.path() + "/classes";
  const ClassJournal::Entries entries_ = {
      {"proc/irq/1/smp_affinity", {"ff\n", "f3", "ff\n"}},
      {"sys/devices/system/cpu/cpu1/power/pm_qos_resume_latency_us", {"0\n", "n/a", "10"}}};
};

TEST_F(ClassJournalTest, TheNextProcessFindsWhatWasSaved) {
  {
    ClassJournal journal(path_, "boot");
    EXPECT_THAT(journal.Open(), IsOk());
    EXPECT_THAT(journal.entries(), IsEmpty());
    EXPECT_FALSE(fs::exists(path_)) << "nothing to keep";
    EXPECT_THAT(journal.Save(entries_), IsOk());
    ClassJournal other(path_, "boot");
    EXPECT_EQ(other.Open().code(), StatusCode::kAlreadyExists);
  }
  ClassJournal next(path_, "boot");
  EXPECT_THAT(next.Open(), IsOk());
  EXPECT_EQ(next.entries(), entries_);
  EXPECT_EQ(next.damage(), "");
}

TEST_F(ClassJournalTest, ValuesOfAnEarlierBootHaveEndedWithIt) {
  {
    ClassJournal journal(path_, "boot");
    EXPECT_THAT(journal.Save(entries_), IsOk());
  }
  ClassJournal next(path_, "another");
  EXPECT_THAT(next.Open(), IsOk());
  EXPECT_THAT(next.entries(), IsEmpty());
  EXPECT_EQ(next.damage(), "");
}

TEST_F(ClassJournalTest, AnUnknownBootMayBeTheSame) {
  EXPECT_EQ(ParseJournal(JournalText(entries_, "boot"), "").value(), entries_);
  EXPECT_EQ(ParseJournal(JournalText(entries_, ""), "boot").value(), entries_);
}

TEST_F(ClassJournalTest, WhatIsCutOffOrChangedAnywhereIsPutAside) {
  const std::string text = JournalText(entries_, "boot");
  for (size_t size = 0; size < text.size(); ++size) {
    EXPECT_FALSE(ParseJournal(text.substr(0, size), "boot").ok()) << size;
    std::string changed = text;
    changed[size] = static_cast<char>(changed[size] ^ 1);
    EXPECT_FALSE(ParseJournal(changed, "boot").ok()) << size;
  }
  Write(text.substr(0, text.size() - 1));
  ClassJournal journal(path_, "boot");
  EXPECT_THAT(journal.Open(), IsOk());
  EXPECT_THAT(journal.entries(), IsEmpty());
  EXPECT_THAT(journal.damage(), HasSubstr("is not given back"));
  EXPECT_TRUE(fs::exists(path_ + "/journal.damaged"));
  EXPECT_THAT(journal.Save(entries_), IsOk());
}

TEST_F(ClassJournalTest, OfANewerVersionNothingIsTouched) {
  const std::string text = "cri-resmgr classes 2 whatever\n{}";
  Write(text);
  ClassJournal journal(path_, "boot");
  EXPECT_EQ(journal.Open().code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(journal.Save(entries_).code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(Text(), text);
}

TEST_F(ClassJournalTest, PathsDoNotLeadOutOfTheHost) {
  for (const char* const path : {"/etc/passwd", "../x", "sys/../../x", "", "sys//x"}) {
    const std::string text = JournalText({{path, {"1", "2", "1"}}}, "boot");
    EXPECT_EQ(ParseJournal(text, "boot").status().code(), StatusCode::kInvalidArgument) << path;
  }
}

TEST_F(ClassJournalTest, ADiskThatIsFullChangesNothing) {
  std::ofstream(path_) << "a file in place of the directory";
  ClassJournal journal(path_, "boot");
  EXPECT_FALSE(journal.Save(entries_).ok());
  EXPECT_THAT(journal.entries(), IsEmpty());
}

}  // namespace
}  // namespace resmgr
