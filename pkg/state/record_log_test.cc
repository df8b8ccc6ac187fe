// SPDX-License-Identifier: Apache-2.0
#include "pkg/state/record_log.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "pkg/state/file_system.h"
#include "pkg/state/testing/failing_file_systems.h"
#include "pkg/sys/files.h"
#include "pkg/sys/temp_dir.h"
#include "test/support/status_matchers.h"

namespace resmgr {
namespace {

using test::Fails;
using testing::_;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::Pair;
using testing::SizeIs;
using testing::StartsWith;

constexpr std::string_view kDir = "/dir";

std::string PutOf(std::string_view name, std::string_view value) {
  std::string entry;
  AppendEntry(EntryKind::kPut, name, value, entry);
  return entry;
}

std::string EraseOf(std::string_view name) {
  std::string entry;
  AppendEntry(EntryKind::kErase, name, "", entry);
  return entry;
}

std::string PutsOf(const RecordLog::Records& records) {
  std::string entries;
  for (const auto& [name, value] : records)
    entries += PutOf(name, value);
  return entries;
}

class RecordLogTest : public testing::Test {
 protected:
  RecordLog::Found Load(std::string_view label = "machine") {
    return RecordLog(files_, std::string(kDir), std::string(label)).Load();
  }

  // A log of two records, with history.
  void Write() {
    RecordLog log(files_, std::string(kDir), "machine");
    log.Load();
    ASSERT_TRUE(log.Rewrite(PutsOf({{"a", "1"}, {"b", "2"}})).ok());
    ASSERT_TRUE(log.Append(PutOf("b", "3")).ok());
    ASSERT_TRUE(log.Append(PutOf("c", "4") + EraseOf("a")).ok());
    ASSERT_TRUE(log.Sync().ok());
  }

  test::CrashingFileSystem files_{1};
};

TEST_F(RecordLogTest, NothingIsFoundWhereNothingWas) {
  const RecordLog::Found found = Load();
  EXPECT_THAT(found.records, IsEmpty());
  EXPECT_THAT(found.complaints, IsEmpty());
}

TEST_F(RecordLogTest, TheLastEntryOfANameCounts) {
  Write();
  const RecordLog::Found found = Load();
  EXPECT_THAT(found.records, ElementsAre(Pair("b", "3"), Pair("c", "4")));
  EXPECT_THAT(found.complaints, IsEmpty());
}

TEST_F(RecordLogTest, KeepsThePreviousFileWhenItRewrites) {
  Write();
  RecordLog log(files_, std::string(kDir), "machine");
  log.Load();
  ASSERT_TRUE(log.Rewrite(PutOf("new", "5")).ok());
  EXPECT_THAT(Load().records, ElementsAre(Pair("new", "5")));
  ASSERT_TRUE(files_.Remove("/dir/state").ok());
  EXPECT_THAT(Load().records, ElementsAre(Pair("b", "3"), Pair("c", "4")));
}

TEST_F(RecordLogTest, TakesWhatStandsBeforeTheDamage) {
  Write();
  std::string& content = files_.Content("/dir/state");
  content[content.size() - 1] ^= 1;
  const RecordLog::Found found = Load();
  EXPECT_THAT(found.records, ElementsAre(Pair("a", "1"), Pair("b", "3"), Pair("c", "4")));
  EXPECT_THAT(found.complaints, ElementsAre(HasSubstr("cannot be read")));
}

TEST_F(RecordLogTest, WithoutAHeaderThePreviousFileCounts) {
  Write();
  RecordLog log(files_, std::string(kDir), "machine");
  log.Load();
  ASSERT_TRUE(log.Rewrite(PutOf("new", "5")).ok());
  files_.Content("/dir/state")[0] ^= 1;
  const RecordLog::Found found = Load();
  EXPECT_THAT(found.records, ElementsAre(Pair("b", "3"), Pair("c", "4")));
  EXPECT_THAT(found.complaints, ElementsAre(HasSubstr("not a state file")));
}

TEST_F(RecordLogTest, AnEmptyFileIsNotFatal) {
  Write();
  files_.Content("/dir/state").clear();
  EXPECT_THAT(Load().complaints, SizeIs(1));
}

TEST_F(RecordLogTest, RecordsOfAnotherMachineAreNotTaken) {
  Write();
  const RecordLog::Found found = Load("another");
  EXPECT_THAT(found.records, IsEmpty());
  EXPECT_THAT(found.complaints, ElementsAre(HasSubstr("another machine")));
}

TEST_F(RecordLogTest, RecordsOfTheSameHardwareAreTakenWhicheverCpusWereOnline) {
  const auto records_of = [this](const StateLabel& label) {
    return RecordLog(files_, std::string(kDir), label).Load().records;
  };
  RecordLog log(files_, std::string(kDir), StateLabel("all online", "hardware"));
  ASSERT_TRUE(log.Rewrite(PutOf("a", "1")).ok());
  EXPECT_THAT(records_of({"one offline", "hardware"}), ElementsAre(Pair("a", "1")));
  EXPECT_THAT(records_of({"all online"}), ElementsAre(Pair("a", "1")));
  EXPECT_THAT(records_of({"one offline"}), IsEmpty());
  EXPECT_THAT(records_of({"one offline", "other hardware"}), IsEmpty());
}

TEST_F(RecordLogTest, RecordsAreTakenAfterCpusWereAdded) {
  RecordLog log(files_, std::string(kDir), StateLabel("before", "hardware", "0-3 0"));
  ASSERT_TRUE(log.Rewrite(PutOf("a", "1")).ok());
  const StateLabel after("after", "other hardware", "0-7 0-1");
  EXPECT_THAT(RecordLog(files_, std::string(kDir), after).Load().records,
              ElementsAre(Pair("a", "1")));
}

TEST_F(RecordLogTest, AFileOfANewerVersionIsPutAside) {
  Write();
  files_.Content("/dir/state")[16] = kLogVersion + 1;
  const RecordLog::Found found = Load();
  EXPECT_THAT(found.records, IsEmpty());
  EXPECT_THAT(found.complaints, ElementsAre(HasSubstr("version 3")));
  EXPECT_TRUE(files_.Exists("/dir/state.newer"));
}

TEST_F(RecordLogTest, TakesNothingAfterAFailedWriteUntilItIsRewritten) {
  RecordLog log(files_, std::string(kDir), "machine");
  ASSERT_TRUE(log.Rewrite("").ok());
  files_.fail = [] { return ResourceExhausted("no space"); };
  EXPECT_EQ(log.Append(PutOf("a", "1")).code(), StatusCode::kResourceExhausted);
  files_.fail = nullptr;
  EXPECT_FALSE(log.writable());
  EXPECT_EQ(log.Append(PutOf("b", "2")).code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(log.Sync().code(), StatusCode::kFailedPrecondition);
  ASSERT_TRUE(log.Rewrite(PutOf("b", "2")).ok());
  EXPECT_THAT(Load().records, ElementsAre(Pair("b", "2")));
}

TEST_F(RecordLogTest, WantsToBeRewrittenWhenItIsMostlyHistory) {
  RecordLog log(files_, std::string(kDir), "machine");
  ASSERT_TRUE(log.Rewrite("").ok());
  const std::string value(100'000, 'x');
  for (int i = 0; i < 10; ++i)
    ASSERT_TRUE(log.Append(PutOf("a", value)).ok());
  EXPECT_TRUE(log.WantsRewrite(value.size()));
  EXPECT_FALSE(log.WantsRewrite(5 * value.size()));
}

TEST_F(RecordLogTest, AnyByteMayBeWrong) {
  Write();
  const std::string whole = files_.Content("/dir/state");
  for (size_t at = 0; at < whole.size(); ++at) {
    std::string& content = files_.Content("/dir/state");
    content = whole;
    content[at] ^= 0x40;
    const RecordLog::Found found = Load();
    EXPECT_THAT(found.complaints, testing::Not(IsEmpty())) << "byte " << at;
    if (!files_.Exists("/dir/state")) {
      ASSERT_TRUE(files_.Rename("/dir/state.newer", "/dir/state").ok());
    }
  }
}

TEST_F(RecordLogTest, AnyLengthMayBeLeft) {
  Write();
  const std::string whole = files_.Content("/dir/state");
  for (size_t size = 0; size < whole.size(); ++size) {
    files_.Content("/dir/state") = whole.substr(0, size);
    EXPECT_LE(Load().records.size(), 3u) << "size " << size;
  }
}

// Synced entries are never lost, other entries exist whole or not at all, and the order holds.
TEST(RecordLogPropertyTest, PowerFailsAtAnyOperation) {
  constexpr int kRuns = 400;
  for (uint64_t seed = 1; seed <= kRuns; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937_64 random(seed);
    test::CrashingFileSystem files(seed);
    std::vector<RecordLog::Records> states = {{}};  // every state since the last sync
    for (int life = 0; life < 4; ++life) {
      RecordLog log(files, "/dir", "machine");
      const RecordLog::Found found = log.Load();
      ASSERT_NE(std::find(states.begin(), states.end(), found.records), states.end())
          << "life " << life;
      RecordLog::Records live = found.records;
      states = {live};
      files.CrashAfter(static_cast<int>(random() % 60));
      bool fine = log.Rewrite(PutsOf(live)).ok();
      while (fine) {
        const std::string name(1, static_cast<char>('a' + random() % 5));
        if (random() % 4 == 0) {
          live.erase(name);
          states.push_back(live);
          fine = log.Append(EraseOf(name)).ok();
        } else {
          live[name] = std::to_string(random() % 1000);
          states.push_back(live);
          fine = log.Append(PutOf(name, live[name])).ok();
        }
        if (fine && random() % 3 == 0) {
          fine = log.Sync().ok();
          if (fine) states = {live};
        }
        if (fine && random() % 10 == 0) fine = log.Rewrite(PutsOf(live)).ok();
      }
      files.Reboot();
    }
  }
}

TEST_F(RecordLogTest, NothingIsWrittenThatCouldNotBeReadAgain) {
  RecordLog log(files_, std::string(kDir), "machine");
  log.Load();
  const std::string much(RecordLog::kMaxFile - (size_t{1} << 20), 'x');
  ASSERT_TRUE(log.Rewrite(much).ok());
  EXPECT_TRUE(log.WantsRewrite(much.size() / 4));
  EXPECT_FALSE(log.WantsRewrite(much.size()));
  EXPECT_THAT(log.Append(std::string(size_t{2} << 20, 'x')),
              Fails(StatusCode::kResourceExhausted, _));
  EXPECT_FALSE(log.writable());
  EXPECT_THAT(log.Rewrite(much + much), Fails(StatusCode::kResourceExhausted, _));
  EXPECT_FALSE(log.writable());
  EXPECT_TRUE(log.Rewrite(PutOf("a", "1")).ok());
}

// A state that is too long, or is not a regular file, is not read and does not block new states.
TEST(RecordLogOnDiskTest, AStateThatCannotBeReadIsPutAside) {
  namespace fs = std::filesystem;
  const TempDir dir;
  const std::string directory = dir.File("a");
  const std::string state = directory + "/state";
  const auto spoil = [&](int how) {
    fs::remove_all(state);
    if (how == 0) std::ofstream(state).close(), fs::resize_file(state, uintmax_t{8} << 30);
    if (how == 1) ASSERT_EQ(::mkfifo(state.c_str(), 0600), 0);
    if (how == 2) fs::create_directories(state + "/in-it");
  };
  for (int how = 0; how < 3; ++how) {
    SCOPED_TRACE(how);
    fs::remove_all(directory);
    {
      RecordLog log(RealFileSystem(), directory, "machine");
      log.Load();
      ASSERT_TRUE(log.Rewrite(PutOf("a", "1")).ok());
      ASSERT_TRUE(log.Rewrite(PutOf("a", "2")).ok());
    }
    spoil(how);
    RecordLog log(RealFileSystem(), directory, "machine");
    const RecordLog::Found found = log.Load();
    // The records of state.previous are found.
    EXPECT_THAT(found.records, ElementsAre(Pair("a", "1")));
    ASSERT_THAT(found.complaints, SizeIs(1));
    EXPECT_THAT(found.complaints[0], HasSubstr(how == 0 ? "more than" : "not a regular file"));
    EXPECT_THAT(found.complaints[0], HasSubstr("it is now " + state + ".unusable"));
    EXPECT_TRUE(fs::exists(state + ".unusable"));
    EXPECT_TRUE(log.Rewrite(PutOf("a", "3")).ok());
    EXPECT_THAT(RecordLog(RealFileSystem(), directory, "machine").Load().records,
                ElementsAre(Pair("a", "3")));
  }
}

TEST(RecordLogOnDiskTest, WritesAndReadsRealFiles) {
  const TempDir dir;
  const std::string directory = dir.File("a/b");
  {
    RecordLog log(RealFileSystem(), directory, "machine");
    EXPECT_THAT(log.Load().complaints, IsEmpty());
    ASSERT_TRUE(log.Rewrite(PutOf("a", "1")).ok());
    ASSERT_TRUE(log.Append(PutOf("b", std::string(100'000, 'x'))).ok());
    ASSERT_TRUE(log.Sync().ok());
  }
  RecordLog log(RealFileSystem(), directory, "machine");
  EXPECT_THAT(log.Load().records, SizeIs(2));
  ASSERT_TRUE(log.Rewrite(PutOf("a", "1")).ok());
  ASSERT_TRUE(RecordLog::Reset(RealFileSystem(), directory).ok());
  EXPECT_THAT(RecordLog(RealFileSystem(), directory, "machine").Load().records, IsEmpty());
}

const std::string kName(64, 'c');

TEST(LogEntryTest, IsReadBackAsItWasBuilt) {
  std::string text = "before";
  for (const size_t size :
       std::initializer_list<size_t>{0, 1, 15, 16, 17, 130, 240, 241, 1000, 100'000}) {
    const size_t begin = BeginEntry(EntryKind::kPut, kName, text);
    text.append(size, 'v');
    EndEntry(begin, text);
    AppendEntry(EntryKind::kErase, "x", "", text);
    std::string_view rest = std::string_view(text).substr(begin);
    EntryView entry;
    ASSERT_TRUE(TakeEntry(rest, entry)) << size;
    EXPECT_EQ(entry.kind, EntryKind::kPut);
    EXPECT_EQ(entry.name, kName);
    EXPECT_EQ(entry.value, std::string(size, 'v'));
    ASSERT_TRUE(TakeEntry(rest, entry)) << size;
    EXPECT_EQ(entry.kind, EntryKind::kErase);
    EXPECT_EQ(entry.name, "x");
    EXPECT_EQ(entry.value, "");
    EXPECT_TRUE(rest.empty());
  }
}

TEST(LogEntryTest, AnyBitMayBeWrong) {
  std::string text;
  AppendEntry(EntryKind::kPut, kName, std::string(200, 'v'), text);
  for (size_t bit = 0; bit < 8 * text.size(); ++bit) {
    std::string damaged = text;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ 1 << bit % 8);
    std::string_view rest = damaged;
    EntryView entry;
    EXPECT_FALSE(TakeEntry(rest, entry)) << "bit " << bit;
    EXPECT_EQ(rest, damaged);
  }
}

// Some file systems leave zeros behind the last bytes that were synced.
TEST(LogEntryTest, ZerosAreNoEntry) {
  for (size_t size = 0; size < 300; ++size) {
    const std::string zeros(size, '\0');
    std::string_view rest = zeros;
    EntryView entry;
    EXPECT_FALSE(TakeEntry(rest, entry)) << size;
  }
}

// The file outlives the program that wrote it.
TEST(LogEntryTest, IsTheSameInEveryBuild) {
  std::string text;
  AppendEntry(EntryKind::kPut, "name", "value", text);
  EXPECT_EQ(NumberAt(text.data()), 0x6375c508u);
}

TEST(RecordTest, IsFoundByItsName) {
  std::string text;
  AppendEntry(EntryKind::kPut, kName, "value", text);
  const Record record(text);
  EXPECT_EQ(record.entry(), text);
  EXPECT_EQ(record.name(), kName);
  EXPECT_EQ(record.value(), "value");
  EXPECT_EQ(Record::Hash()(record), Record::Hash()(std::string_view(kName)));
  EXPECT_TRUE(Record::Equal()(record, std::string_view(kName)));
  EXPECT_FALSE(Record::Equal()(record, "other"));
}

TEST(FileSystemTest, ADirectoryThatCannotBeMadeHasTheKernelsReason) {
  // The kernel lets no process make directories there, whatever its user is.
  const Status status = RealFileSystem().MakeDirectory("/sys/kernel/resmgr-test");
  EXPECT_THAT(Message(status), StartsWith("cannot make directory /sys/kernel/resmgr-test: "));
  EXPECT_THAT(Message(status), Not(HasSubstr("No such file or directory")));
}

TEST(ClaimedFileSystemTest, RefusesToWriteWhatAnotherDaemonHasClaimed) {
  const TempDir dir;
  const std::string claimed = dir.File("state");
  std::optional<ClaimedFileSystem> first(std::in_place, RealFileSystem(), claimed);
  ASSERT_TRUE(first->Claim().ok());
  ASSERT_TRUE(first->Create(claimed + "/state").ok());

  ClaimedFileSystem second(RealFileSystem(), claimed);
  EXPECT_EQ(second.Claim().code(), StatusCode::kAlreadyExists);
  EXPECT_EQ(second.Create(claimed + "/state").status().code(), StatusCode::kAlreadyExists);
  EXPECT_EQ(second.Rename(claimed + "/state", claimed + "/x").code(), StatusCode::kAlreadyExists);
  EXPECT_EQ(second.Remove(claimed + "/state").code(), StatusCode::kAlreadyExists);
  EXPECT_TRUE(second.Read(claimed + "/state", 100).ok()) << "reading changes nothing";
  EXPECT_TRUE(second.Create(dir.File("elsewhere")).ok());

  first.reset();
  EXPECT_TRUE(second.Remove(claimed + "/state").ok()) << "it is free now";
  EXPECT_EQ(ClaimDirectory(claimed).status().code(), StatusCode::kAlreadyExists);
}

TEST(ClaimedFileSystemTest, ReadingClaimsTheDirectoryAndReportsOnceWhereThatFails) {
  const TempDir dir;
  const std::string claimed = dir.File("state");
  ClaimedFileSystem first(RealFileSystem(), claimed);
  EXPECT_EQ(first.Read(claimed + "/state", 100).status().code(), StatusCode::kNotFound);
  EXPECT_EQ(ClaimDirectory(claimed).status().code(), StatusCode::kAlreadyExists);

  int told = 0;
  ClaimedFileSystem second(RealFileSystem(), claimed, [&told](const Status& status) {
    EXPECT_EQ(status.code(), StatusCode::kAlreadyExists);
    ++told;
  });
  for (int i = 0; i < 2; ++i)
    EXPECT_EQ(second.Read(claimed + "/state", 100).status().code(), StatusCode::kNotFound);
  EXPECT_EQ(told, 1);
}

}  // namespace
}  // namespace resmgr
