// SPDX-License-Identifier: Apache-2.0
#include "pkg/state/record_log.h"

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/state/testing/crashing_file_system.h"
#include "pkg/sys/temp_dir.h"

namespace resmgr {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;
using testing::SizeIs;

constexpr std::string_view kDir = "/dir";

class RecordLogTest : public testing::Test {
 protected:
  RecordLog::Found Load(std::string_view label = "machine") {
    return RecordLog(files_, std::string(kDir), std::string(label)).Load();
  }

  // A log of two records, with history.
  void Write() {
    RecordLog log(files_, std::string(kDir), "machine");
    log.Load();
    ASSERT_TRUE(log.Rewrite({{"a", "1"}, {"b", "2"}}).ok());
    ASSERT_TRUE(log.Put("b", "3").ok());
    ASSERT_TRUE(log.Put("c", "4").ok());
    ASSERT_TRUE(log.Erase("a").ok());
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
  ASSERT_TRUE(log.Rewrite({{"new", "5"}}).ok());
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
  ASSERT_TRUE(log.Rewrite({{"new", "5"}}).ok());
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

TEST_F(RecordLogTest, AFileOfANewerVersionIsPutAside) {
  Write();
  files_.Content("/dir/state")[16] = 2;
  const RecordLog::Found found = Load();
  EXPECT_THAT(found.records, IsEmpty());
  EXPECT_THAT(found.complaints, ElementsAre(HasSubstr("version 2")));
  EXPECT_TRUE(files_.Exists("/dir/state.newer"));
}

TEST_F(RecordLogTest, TakesNothingAfterAFailedWriteUntilItIsRewritten) {
  RecordLog log(files_, std::string(kDir), "machine");
  ASSERT_TRUE(log.Rewrite({}).ok());
  files_.fail = [] { return ResourceExhausted("no space"); };
  EXPECT_TRUE(log.Put("a", "1").ok());
  EXPECT_EQ(log.Sync().code(), StatusCode::kResourceExhausted);
  files_.fail = nullptr;
  EXPECT_FALSE(log.writable());
  EXPECT_EQ(log.Put("b", "2").code(), StatusCode::kFailedPrecondition);
  ASSERT_TRUE(log.Rewrite({{"b", "2"}}).ok());
  EXPECT_THAT(Load().records, ElementsAre(Pair("b", "2")));
}

TEST_F(RecordLogTest, WantsToBeRewrittenWhenItIsMostlyHistory) {
  RecordLog log(files_, std::string(kDir), "machine");
  ASSERT_TRUE(log.Rewrite({}).ok());
  const std::string value(100'000, 'x');
  for (int i = 0; i < 10; ++i)
    ASSERT_TRUE(log.Put("a", value).ok());
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

// What was synced is never lost, what was not is there whole or not at all, and the order holds.
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
      bool fine = log.Rewrite({live.begin(), live.end()}).ok();
      while (fine) {
        const std::string name(1, static_cast<char>('a' + random() % 5));
        if (random() % 4 == 0) {
          live.erase(name);
          states.push_back(live);
          fine = log.Erase(name).ok();
        } else {
          live[name] = std::to_string(random() % 1000);
          states.push_back(live);
          fine = log.Put(name, live[name]).ok();
        }
        if (fine && random() % 3 == 0) {
          fine = log.Sync().ok();
          if (fine) states = {live};
        }
        if (fine && random() % 10 == 0) fine = log.Rewrite({live.begin(), live.end()}).ok();
      }
      files.Reboot();
    }
  }
}

TEST(RecordLogOnDiskTest, WritesAndReadsRealFiles) {
  const TempDir dir;
  const std::string directory = dir.File("a/b");
  {
    RecordLog log(RealFileSystem(), directory, "machine");
    EXPECT_THAT(log.Load().complaints, IsEmpty());
    ASSERT_TRUE(log.Rewrite({{"a", "1"}}).ok());
    ASSERT_TRUE(log.Put("b", std::string(100'000, 'x')).ok());
    ASSERT_TRUE(log.Sync().ok());
  }
  RecordLog log(RealFileSystem(), directory, "machine");
  EXPECT_THAT(log.Load().records, SizeIs(2));
  ASSERT_TRUE(log.Rewrite({{"a", "1"}}).ok());
  ASSERT_TRUE(RecordLog::Reset(RealFileSystem(), directory).ok());
  EXPECT_THAT(RecordLog(RealFileSystem(), directory, "machine").Load().records, IsEmpty());
}

}  // namespace
}  // namespace resmgr
