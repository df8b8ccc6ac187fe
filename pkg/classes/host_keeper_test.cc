// SPDX-License-Identifier: Apache-2.0
#include "pkg/classes/host_keeper.h"

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pkg/classes/class_journal.h"
#include "pkg/classes/host_files.h"
#include "pkg/classes/partition_steps.h"
#include "pkg/classes/testing/keeper_fixture.h"
#include "pkg/sys/files.h"
#include "pkg/sys/temp_dir.h"
#include "test/support/sanitizer.h"
#include "test/support/seed.h"
#include "test/support/status_matchers.h"

namespace resmgr {
namespace {

namespace fs = std::filesystem;
using test::IsOk;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const char* const kAffinity = "proc/irq/1/smp_affinity";
const char* const kLatency = "sys/devices/system/cpu/cpu1/power/pm_qos_resume_latency_us";

class HostKeeperTest : public test::KeeperTest {
 protected:
  HostKeeperTest() {
    before_ = {{kAffinity, "ff\n"}, {kLatency, "0\n"}};
    files_.tree = before_;
  }
  HostOutcome KeepOne(const std::string& path, const std::string& text) {
    return keeper_->Keep({{path, text}}).outcomes[path];
  }
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

TEST_F(HostKeeperTest, BlockLimitsThatTheRuntimeSetOnCgroupV1EndWithTheClass) {
  const std::map<std::string, std::pair<std::string, std::string>> limits = {
      {"c/blkio.throttle.read_bps_device", {"7:7 1000", "7:7 0"}},
      {"c/blkio.throttle.write_bps_device", {"7:7 1000", "7:7 0"}},
      {"c/blkio.throttle.read_iops_device", {"7:7 1000", "7:7 0"}},
      {"c/blkio.throttle.write_iops_device", {"7:7 1000", "7:7 0"}},
      {"c/blkio.bfq.weight_device", {"7:7 200", "7:7 default"}},
      {"c/blkio.bfq.weight", {"200", "100\n"}}};
  std::vector<HostValue> values;
  for (const auto& [path, texts] : limits) {
    files_.tree[path] = texts.first + "\n";
    values.push_back(keeper_->LimitOf(path, texts.first));
  }
  keeper_->Keep(values);
  EXPECT_THAT(files_.written, IsEmpty());
  EXPECT_THAT(keeper_->Keep({}).not_given_back, IsEmpty());
  for (const auto& [path, texts] : limits)
    EXPECT_EQ(files_.tree.at(path), texts.second) << path;
}

// The kernel answers EBUSY for files of a clock none of whose CPUs is online.
TEST_F(HostKeeperTest, FilesOfACpuThatIsOfflineWaitUntilItIsBack) {
  const std::string clock = "sys/devices/system/cpu/cpu3/cpufreq/scaling_max_freq";
  const std::string online = "sys/devices/system/cpu/online";
  files_.tree[clock] = "3000\n";
  files_.tree[online] = "0-7\n";
  for (const bool reads : {false, true}) {
    KeepOne(clock, "2000");
    if (!reads) files_.unreadable = {clock};
    files_.refuses[clock] = EBUSY;
    EXPECT_THAT(keeper_->Keep({}).not_given_back, ElementsAre(testing::Key(clock)));
    files_.tree[online] = "0-2,4-7\n";
    EXPECT_THAT(keeper_->Keep({}).not_given_back, IsEmpty());
    EXPECT_TRUE(keeper_->Holds(clock));
    Start();
    files_.unreadable.clear();
    files_.refuses.clear();
    files_.tree[online] = "0-7\n";
    keeper_->Keep({});
    EXPECT_EQ(files_.tree[clock], "3000\n");
    EXPECT_FALSE(keeper_->Holds(clock));
  }
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
  const auto work = [&] {
    keeper_->Keep(wanted_);
    keeper_->Keep({{.path = kGroup, .text = "there"}});
  };
  test::KillBetweenSteps(files_, work, [&](int steps) {
    Start();
    keeper_->Keep({});
    EXPECT_EQ(files_.tree, tree_) << steps;
  });
}

// Stopped before each operation on a file of the host, in several changes one after the other.
TEST_F(HostKeeperTest, AKillBetweenAnyTwoStepsLosesNothing) {
  const std::vector<std::vector<HostValue>> works = {{{kAffinity, "f3"}, {kLatency, "10"}},
                                                     {{kAffinity, "e3"}},
                                                     {{kAffinity, "f7"}, {kLatency, "n/a"}},
                                                     {}};
  const auto work = [&] {
    for (const std::vector<HostValue>& one : works)
      keeper_->Keep(one);
  };
  test::KillBetweenSteps(files_, work, [&](int steps) {
    Start();
    EXPECT_THAT(keeper_->Keep({}).not_given_back, IsEmpty());
    EXPECT_EQ(files_.tree, before_) << steps;
    EXPECT_THAT(journal_->entries(), IsEmpty());
  });
}

// Processes that are killed at any instant while they change a tree of files, and the next ones.

constexpr int kFiles = 12;
constexpr int kGroups = 4;
constexpr int kPartitions = 4;
constexpr int kKills = test::kSanitized ? 200 : 500;

class KillTest : public testing::Test {
 protected:
  KillTest() {
    for (int i = 0; i < kFiles; ++i) {
      const std::string path = PathOf(i);
      before_[path] = fmt::format("{}\n", i);
    }
    for (int i = 0; i < kPartitions; ++i) {
      before_[CpusetOf(i, "exclusive")] = fmt::format("{}\n", 10 + i);
      before_[CpusetOf(i, "partition")] = "member\n";
    }
    for (const auto& [path, text] : before_)
      directory_.Put("root/" + path, text);
    fs::create_directories(Root() + "sys/fs/resctrl");
  }
  static std::string GroupOf(int i) { return fmt::format("sys/fs/resctrl/cri-resmgr.{}", i); }
  // Paths of files, of which some are given back before others.
  static std::string PathOf(int i) {
    if (i % 3 == 1) return fmt::format("sys/cpu{}/cpufreq/scaling_min_freq", i);
    if (i % 3 == 2) return fmt::format("sys/cpu{}/cpufreq/scaling_max_freq", i - 1);
    return fmt::format("sys/cpu{}/latency", i);
  }
  static std::string CpusetOf(int i, std::string_view file) {
    return fmt::format("sys/fs/cgroup/pod{}/cpuset.cpus.{}", i, file);
  }
  std::string Root() const { return directory_.path() + "/root/"; }
  std::map<std::string, std::string> Tree() const {
    std::map<std::string, std::string> tree;
    for (const auto& [path, text] : before_)
      tree[path] = ReadFile(Root() + path, 1 << 10).value_or("?");
    for (int i = 0; i < kGroups; ++i)
      if (fs::exists(Root() + GroupOf(i))) tree[GroupOf(i)] = "there";
    return tree;
  }
  static std::vector<HostValue> SomeValues(std::minstd_rand& random) {
    std::vector<HostValue> values;
    for (int i = 0; i < kFiles; ++i) {
      if (random() % 2 == 0) values.push_back({PathOf(i), fmt::format("{}", 1000 + random() % 5)});
    }
    for (int i = 0; i < kGroups; ++i) {
      if (random() % 2 == 0)
        values.push_back({.path = GroupOf(i) + "/.",
                          .text = std::string(HostFiles::kThere),
                          .together = "groups"});
    }
    // The partitions exchange their CPUs, which takes several steps.
    for (int i = 0; i < kPartitions; ++i) {
      if (random() % 4 == 0) continue;
      const int cpu = static_cast<int>(random() % 2) == 0 ? i : kPartitions - 1 - i;
      values.push_back({CpusetOf(i, "exclusive"), fmt::format("{}", cpu)});
      values.push_back({CpusetOf(i, "partition"), "isolated"});
    }
    return values;
  }
  // Never returns.
  [[noreturn]] void ChangeForever(unsigned seed) const {
    std::minstd_rand random(seed);
    RealHostFiles files(Root(), [](std::string_view) {});
    ClassJournal journal(directory_.path() + "/classes", "");
    HostKeeper keeper(files, journal);
    for (;;)
      KeepInSteps(SomeValues(random), keeper);
  }

  const TempDir directory_;
  std::map<std::string, std::string> before_;
};

TEST_F(KillTest, TheNextProcessGivesEverythingBack) {
  const uint64_t seed = test::SeedOr(42);
  SCOPED_TRACE(test::Repeat(seed));
  std::minstd_rand random(static_cast<unsigned>(seed));
  for (int kill_number = 0; kill_number < kKills; ++kill_number) {
    const auto child_seed = static_cast<unsigned>(random());
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) ChangeForever(child_seed);
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 8'000));
    ::kill(child, SIGKILL);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << status;

    RealHostFiles files(Root(), [](std::string_view) {});
    ClassJournal journal(directory_.path() + "/classes", "");
    ASSERT_TRUE(journal.Open().ok());
    ASSERT_EQ(journal.damage(), "");
    // After every second kill the test goes on with the same state.
    if (kill_number % 2 == 1) continue;
    HostKeeper keeper(files, journal);
    const HostKeeper::Result result = keeper.Keep({});
    EXPECT_TRUE(result.not_given_back.empty());
    EXPECT_TRUE(result.notes.empty()) << result.notes[0];
    ASSERT_EQ(Tree(), before_) << "kill " << kill_number;
  }
}

class ClassJournalTest : public testing::Test {
 protected:
  std::string Text() const { return ReadFile(path_ + "/journal", 1 << 20).value(); }
  void Write(std::string_view text) const { directory_.Put("classes/journal", text); }

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

// A reboot does not change files of the disk, such as irqbalance's environment file.
TEST_F(ClassJournalTest, ValuesOnTheDiskOutliveTheBoot) {
  const ClassJournal::Entries on_disk = {{"etc/default/irqbalance", {"1", "2", "1"}}};
  ClassJournal::Entries all = on_disk;
  all["run/irqbalance/irqbalance5.sock"] = all["sys/a"] = all["proc/b"] = {"1", "2", "1"};
  EXPECT_EQ(ParseJournal(JournalText(all, "boot"), "another").value(), on_disk);
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
  directory_.Put("classes", "a file in place of the directory");
  ClassJournal journal(path_, "boot");
  EXPECT_FALSE(journal.Save(entries_).ok());
  EXPECT_THAT(journal.entries(), IsEmpty());
}

}  // namespace
}  // namespace resmgr
