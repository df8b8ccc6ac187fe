// SPDX-License-Identifier: Apache-2.0
#include "pkg/classes/host_keeper.h"

#include <cerrno>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/classes/testing/fake_host_files.h"
#include "pkg/sys/files.h"
#include "pkg/sys/temp_dir.h"
#include "test/support/status_matchers.h"

namespace resmgr {
namespace {

namespace fs = std::filesystem;
using test::FakeHostFiles;
using test::IsOk;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const char* const kAffinity = "proc/irq/1/smp_affinity";
const char* const kLatency = "sys/devices/system/cpu/cpu1/power/pm_qos_resume_latency_us";

class HostKeeperTest : public testing::Test {
 protected:
  HostKeeperTest() {
    files_.tree = before_;
    Start();
  }
  // A process, after the former one has ended.
  void Start() {
    keeper_.reset();
    journal_.reset();
    journal_.emplace(directory_.path() + "/classes", "boot");
    keeper_.emplace(files_, *journal_);
  }
  HostOutcome KeepOne(const std::string& path, const std::string& text) {
    return keeper_->Keep({{path, text}}).outcomes[path];
  }

  const std::map<std::string, std::string> before_ = {{kAffinity, "ff\n"}, {kLatency, "0\n"}};
  const TempDir directory_;
  FakeHostFiles files_;
  std::optional<ClassJournal> journal_;
  std::optional<HostKeeper> keeper_;
};

TEST_F(HostKeeperTest, TheFirstValueIsOnTheDiskBeforeTheFirstWrite) {
  bool saw = false;
  files_.on_write = [&](const std::string& path, std::string_view) {
    const auto text = ReadFile(journal_->path(), 1 << 20);
    ASSERT_THAT(text.status(), IsOk());
    EXPECT_EQ(ParseJournal(*text, "boot")->at(path).first, before_.at(path));
    saw = true;
  };
  EXPECT_THAT(KeepOne(kAffinity, "f3").status, IsOk());
  EXPECT_TRUE(saw);
  EXPECT_EQ(files_.tree[kAffinity], "f3");
  EXPECT_EQ(keeper_->ReadFirst(kAffinity).value(), "ff\n");
}

TEST_F(HostKeeperTest, WhatIsWantedNoMoreIsGivenBackByteForByte) {
  keeper_->Keep({{kAffinity, "f3"}, {kLatency, "10"}});
  EXPECT_EQ(keeper_->Keep({{kAffinity, "e3"}}).outcomes.size(), 1U);
  EXPECT_EQ(files_.tree[kLatency], "0\n");
  EXPECT_EQ(files_.tree[kAffinity], "e3");
  Start();
  EXPECT_THAT(keeper_->Keep({}).not_given_back, IsEmpty());
  EXPECT_EQ(files_.tree, before_);
  EXPECT_THAT(journal_->entries(), IsEmpty());
}

TEST_F(HostKeeperTest, NothingIsWrittenTwice) {
  keeper_->Keep({{kAffinity, "f3"}});
  files_.tree[kAffinity] = "000000f3\n";  // as a kernel shows it
  files_.written.clear();
  EXPECT_THAT(KeepOne(kAffinity, "f3").status, IsOk());
  EXPECT_THAT(KeepOne(kAffinity, "f3").status, IsOk());
  EXPECT_THAT(files_.written, IsEmpty());
}

TEST_F(HostKeeperTest, WhatHasTheValueAnywayIsNotOurs) {
  EXPECT_THAT(KeepOne(kLatency, "0").status, IsOk());
  EXPECT_THAT(journal_->entries(), IsEmpty());
  EXPECT_FALSE(fs::exists(journal_->path()));
}

TEST_F(HostKeeperTest, WithoutAJournalNothingIsWritten) {
  fs::create_directories(directory_.path() + "/classes/journal.tmp/in-the-way");
  const HostKeeper::Result result = keeper_->Keep({{kAffinity, "f3"}});
  EXPECT_FALSE(result.journal.ok());
  EXPECT_FALSE(result.outcomes.at(kAffinity).status.ok());
  EXPECT_THAT(files_.written, IsEmpty());
  fs::remove_all(directory_.path() + "/classes/journal.tmp");
  EXPECT_THAT(KeepOne(kAffinity, "f3").status, IsOk()) << "it is tried again";
}

TEST_F(HostKeeperTest, OtherProgramsValuesAreWrittenOverOnlyWhileOursAreWanted) {
  KeepOne(kAffinity, "f3");
  files_.tree[kAffinity] = "1\n";
  const HostKeeper::Result again = keeper_->Keep({{kAffinity, "f3"}});
  EXPECT_THAT(again.notes, ElementsAre(HasSubstr("another program wrote 1 to")));
  EXPECT_EQ(files_.tree[kAffinity], "f3");
  files_.tree[kAffinity] = "2\n";
  EXPECT_THAT(keeper_->Keep({}).notes, ElementsAre(HasSubstr("stays at 2")));
  EXPECT_EQ(files_.tree[kAffinity], "2\n");
  EXPECT_THAT(journal_->entries(), IsEmpty());
}

TEST_F(HostKeeperTest, AnotherProgramsValueStaysIfOursDoesNotGetThere) {
  KeepOne(kAffinity, "f3");
  files_.tree[kAffinity] = "1\n";
  files_.refuses[kAffinity] = EBUSY;
  EXPECT_EQ(KeepOne(kAffinity, "f3").error, EBUSY);
  files_.refuses.clear();
  Start();
  EXPECT_THAT(keeper_->Keep({}).notes, ElementsAre(HasSubstr("stays at 1")));
  EXPECT_EQ(files_.tree[kAffinity], "1\n");
}

TEST_F(HostKeeperTest, AQuotaIsGivenBackAsTheKubeletWroteItLast) {
  const std::string quota = "sys/fs/cgroup/kubepods/podx/cpu.max";
  files_.tree[quota] = "200000 100000\n";
  KeepOne(quota, "max 100000");
  files_.tree[quota] = "300000 100000\n";  // the pod is resized
  EXPECT_THAT(KeepOne(quota, "max 100000").status, IsOk());
  EXPECT_EQ(files_.tree[quota], "max 100000");
  Start();
  keeper_->Keep({});
  EXPECT_EQ(files_.tree[quota], "300000 100000\n");
}

TEST_F(HostKeeperTest, AFightForManyFilesDoesNotFillTheLog) {
  std::vector<HostValue> values;
  for (int i = 0; i < 100; ++i) {
    values.push_back({fmt::format("proc/irq/{}/smp_affinity", i), "f3"});
    files_.tree[values.back().path] = "ff\n";
  }
  keeper_->Keep(values);
  for (const HostValue& value : values)
    files_.tree[value.path] = "1\n";
  const HostKeeper::Result result = keeper_->Keep(values);
  EXPECT_EQ(result.notes.size(), 21U);
  EXPECT_EQ(result.notes.back(), "the same for 80 more files");
}

TEST_F(HostKeeperTest, WhatTheKernelRefusesIsToldAndTriedAgain) {
  for (const int error : {ENOSPC, EINVAL, ESRCH, EBUSY, EROFS, EPERM, EIO}) {
    files_.refuses[kLatency] = error;
    const HostOutcome refused = KeepOne(kLatency, "10");
    EXPECT_EQ(refused.error, error);
    EXPECT_THAT(std::string(Message(refused.status)), HasSubstr("cannot write 10 to sys/devices"));
    EXPECT_EQ(refused.in_force, "0");
    EXPECT_THAT(journal_->entries(), IsEmpty()) << "the file is as it was";
    files_.refuses.clear();
    EXPECT_THAT(KeepOne(kLatency, "10").status, IsOk());
    EXPECT_THAT(keeper_->Keep({}).not_given_back, IsEmpty());
    EXPECT_EQ(files_.tree, before_);
  }
}

TEST_F(HostKeeperTest, AManagedInterruptIsAskedOnceForAValue) {
  for (const int error : {EPERM, EIO}) {
    Start();
    files_.refuses[kAffinity] = error;
    files_.written.clear();
    for (int i = 0; i < 3; ++i)
      EXPECT_EQ(KeepOne(kAffinity, "f3").error, error);
    EXPECT_EQ(files_.written.size(), 1U);
    EXPECT_EQ(KeepOne(kAffinity, "e3").error, error);
    EXPECT_EQ(files_.written.size(), 2U);
    EXPECT_THAT(journal_->entries(), IsEmpty());
    // The number may be another device's then.
    keeper_->Keep({});
    EXPECT_EQ(KeepOne(kAffinity, "e3").error, error);
    EXPECT_EQ(files_.written.size(), 3U);
  }
}

TEST_F(HostKeeperTest, WhatReadsOtherwiseThanWrittenIsToldAndGivenBack) {
  files_.keeps = [](std::string_view, std::string_view text) {
    return text == "33" ? std::string("40\n") : std::string(text);
  };
  const HostOutcome outcome = KeepOne(kLatency, "33");
  EXPECT_THAT(std::string(Message(outcome.status)), HasSubstr("was given 33 and reads 40"));
  EXPECT_EQ(outcome.in_force, "40");
  Start();
  EXPECT_THAT(keeper_->Keep({}).notes, IsEmpty());
  EXPECT_EQ(files_.tree, before_);
}

TEST_F(HostKeeperTest, WhatWasWrittenAndCannotBeReadStaysInTheJournal) {
  files_.on_write = [this](const std::string& path, std::string_view) {
    files_.unreadable.insert(path);
  };
  EXPECT_FALSE(KeepOne(kLatency, "10").status.ok());
  EXPECT_EQ(files_.tree[kLatency], "10");
  EXPECT_EQ(journal_->entries().at(kLatency).first, "0\n");
  Start();
  files_.on_write = nullptr;
  files_.unreadable.clear();
  EXPECT_THAT(keeper_->Keep({}).not_given_back, IsEmpty());
  EXPECT_EQ(files_.tree, before_);
}

TEST_F(HostKeeperTest, WhatCannotBeGivenBackStaysInTheJournal) {
  KeepOne(kLatency, "10");
  files_.refuses[kLatency] = EROFS;
  EXPECT_THAT(keeper_->Keep({}).not_given_back.at(kLatency), HasSubstr("cannot write 0"));
  Start();
  files_.refuses.clear();
  EXPECT_THAT(keeper_->Keep({}).not_given_back, IsEmpty());
  EXPECT_EQ(files_.tree, before_);
}

TEST_F(HostKeeperTest, WhatIsGoneIsForgotten) {
  KeepOne(kLatency, "10");
  files_.tree.erase(kLatency);
  EXPECT_EQ(KeepOne(kLatency, "10").status.code(), StatusCode::kNotFound);
  EXPECT_THAT(keeper_->Keep({}).not_given_back, IsEmpty());
  EXPECT_THAT(journal_->entries(), IsEmpty());
}

const char* const kGroup = "sys/fs/resctrl/cri-resmgr.gold/.";
const char* const kMasks = "sys/fs/resctrl/cri-resmgr.gold/schemata";
const char* const kRootMasks = "sys/fs/resctrl/schemata";

class DirectoryTest : public HostKeeperTest {
 protected:
  DirectoryTest() {
    files_.tree[kRootMasks] = "L3:0=ff\n";
    files_.tree["sys/fs/resctrl/info/last_cmd_status"] = "mask is too short\n";
    files_.on_make = [this](const std::string& directory) {
      files_.tree[directory + "/schemata"] = "L3:0=ff\n";
    };
    tree_ = files_.tree;
  }
  const std::vector<HostValue> wanted_ = {{.path = kRootMasks, .text = "L3:0=f", .together = "rdt"},
                                          {.path = kGroup, .text = "there", .together = "rdt"},
                                          {.path = kMasks, .text = "L3:0=f0", .together = "rdt"}};
  std::map<std::string, std::string> tree_;
};

TEST_F(DirectoryTest, IsMadeWithItsValuesAndRemoved) {
  HostKeeper::Result result = keeper_->Keep(wanted_);
  for (const HostValue& value : wanted_)
    EXPECT_THAT(result.outcomes[value.path].status, IsOk()) << value.path;
  EXPECT_EQ(files_.tree[kMasks], "L3:0=f0");
  EXPECT_EQ(files_.tree[kRootMasks], "L3:0=f");
  EXPECT_EQ(journal_->entries().at(kGroup).first, "");
  keeper_->Keep({});
  EXPECT_EQ(files_.tree, tree_);
  EXPECT_THAT(journal_->entries(), IsEmpty());
}

TEST_F(DirectoryTest, ARefusalGivesTheWholeSetItsFormerValuesWithTheKernelsReason) {
  for (const char* const path : {kMasks, kGroup, kRootMasks}) {
    files_.refuses = {{path, EINVAL}};
    HostKeeper::Result result = keeper_->Keep(wanted_);
    EXPECT_EQ(files_.tree, tree_) << path;
    EXPECT_THAT(journal_->entries(), IsEmpty()) << path;
    for (const HostValue& value : wanted_) {
      const HostOutcome& outcome = result.outcomes[value.path];
      if (value.path == kMasks && std::string_view(path) != kMasks) continue;
      EXPECT_THAT(std::string(Message(outcome.status)), HasSubstr("(mask is too short)"))
          << value.path;
    }
  }
}

TEST_F(DirectoryTest, AKillBetweenAnyTwoStepsLeavesNoDirectoryBehind) {
  bool finished = false;
  for (int steps = 0; !finished; ++steps) {
    ASSERT_LT(steps, 200);
    files_.lives_for = steps;
    try {
      keeper_->Keep(wanted_);
      keeper_->Keep({{.path = kGroup, .text = "there"}});
      finished = true;
    } catch (const FakeHostFiles::Killed&) {
    }
    files_.lives_for = -1;
    Start();
    keeper_->Keep({});
    EXPECT_EQ(files_.tree, tree_) << steps;
  }
}

// Stopped before each operation on a file of the host, in several changes one after the other.
TEST_F(HostKeeperTest, AKillBetweenAnyTwoStepsLosesNothing) {
  const std::vector<std::vector<HostValue>> works = {{{kAffinity, "f3"}, {kLatency, "10"}},
                                                     {{kAffinity, "e3"}},
                                                     {{kAffinity, "f7"}, {kLatency, "n/a"}},
                                                     {}};
  bool finished = false;
  for (int steps = 0; !finished; ++steps) {
    ASSERT_LT(steps, 200);
    files_.lives_for = steps;
    try {
      for (const std::vector<HostValue>& work : works)
        keeper_->Keep(work);
      finished = true;
    } catch (const FakeHostFiles::Killed&) {
    }
    files_.lives_for = -1;
    Start();
    EXPECT_THAT(keeper_->Keep({}).not_given_back, IsEmpty());
    EXPECT_EQ(files_.tree, before_) << steps;
    EXPECT_THAT(journal_->entries(), IsEmpty());
  }
}

}  // namespace
}  // namespace resmgr
