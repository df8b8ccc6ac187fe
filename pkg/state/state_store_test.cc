// SPDX-License-Identifier: Apache-2.0
#include "pkg/state/state_store.h"

#include <atomic>
#include <chrono>
#include <filesystem>
#include <map>
#include <random>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "pkg/state/record_log.h"
#include "pkg/state/testing/failing_file_systems.h"
#include "pkg/sys/temp_dir.h"

namespace resmgr {
namespace {

constexpr std::chrono::seconds kSoon{10};

Container In(std::string pool) {
  Container container;
  container.placement.pool = std::move(pool);
  return container;
}

class StateStoreTest : public testing::Test {
 protected:
  StateStore::Report Report() {
    return [this](std::string_view) { ++reports_; };
  }
  const TempDir dir_;
  std::atomic<int> reports_ = 0;
};

TEST_F(StateStoreTest, RemembersOverRestarts) {
  {
    StateStore store(RealFileSystem(), dir_.path(), "machine", Report());
    store.Put(ContainerId("one"), In("shared"), QosClass::kBurstable);
    store.Put(ContainerId("two"), In("exclusive"), QosClass::kBurstable);
    store.Put(ContainerId("one"), In("reserved"), QosClass::kBurstable);
    store.Put(ContainerId("three"), In("gone"), QosClass::kBurstable);
    store.Erase(ContainerId("three"));
    ASSERT_TRUE(store.Flush(kSoon));
  }
  const StateStore store(RealFileSystem(), dir_.path(), "machine", Report());
  ASSERT_TRUE(store.Find(ContainerId("one")));
  EXPECT_EQ(store.Find(ContainerId("one"))->placement.pool, "reserved");
  EXPECT_EQ(store.Find(ContainerId("two"))->placement.pool, "exclusive");
  EXPECT_FALSE(store.Find(ContainerId("three")));
  EXPECT_EQ(reports_, 0);
}

TEST_F(StateStoreTest, TellsWhenWhatWasPutIsWritten) {
  std::atomic<int> told = 0;
  {
    StateStore store(RealFileSystem(), dir_.path(), "machine", Report());
    store.PutNote(StateStore::PodNote::kClaim, PodSandboxId("u1"), "text");
    store.WhenWritten([&told] { ++told; });
    ASSERT_TRUE(store.Flush(kSoon));
    EXPECT_EQ(told, 1);
    store.WhenWritten([&told] { ++told; });
    EXPECT_EQ(told, 2) << "nothing is left to be written";
  }
  const StateStore store(RealFileSystem(), dir_.path(), "machine", Report());
  EXPECT_EQ(store.FindNote(StateStore::PodNote::kClaim, PodSandboxId("u1")), "text");
}

TEST_F(StateStoreTest, TellsNothingOfADiskThatHangs) {
  test::HangingFileSystem files(RealFileSystem());
  std::atomic<int> told = 0;
  {
    StateStore store(files, dir_.path(), "machine", Report());
    files.Hang();
    store.PutNote(StateStore::PodNote::kClaim, PodSandboxId("u1"), "text");
    store.WhenWritten([&told] { ++told; });
    files.WaitHanging();
    EXPECT_FALSE(store.Close(std::chrono::milliseconds(20)));
  }
  files.ComeBack();
  files.WaitClosed();
  EXPECT_EQ(told, 0);
}

// A disk that never answers keeps neither the loop nor the end of the daemon. The hanging thread
// comes back after the store's end.
TEST_F(StateStoreTest, EndsInTimeWhenTheDiskHangs) {
  test::HangingFileSystem files(RealFileSystem());
  {
    StateStore store(files, dir_.path(), "machine", Report());
    files.Hang();
    store.Put(ContainerId("one"), In("shared"), QosClass::kBurstable);
    store.Commit();
    files.WaitHanging();
    const auto start = std::chrono::steady_clock::now();
    store.Put(ContainerId("two"), In("shared"), QosClass::kBurstable);
    store.Commit();
    EXPECT_FALSE(store.Close(std::chrono::milliseconds(50)));
    EXPECT_LT(std::chrono::steady_clock::now() - start, kSoon);
    EXPECT_EQ(reports_, 1);
  }
  files.ComeBack();
  files.WaitClosed();
  EXPECT_EQ(reports_, 1) << "a closed store reports nothing";
}

// A successor waits for the state only so long.
TEST_F(StateStoreTest, EndsWithoutWaitingForASync) {
  test::HangingFileSystem files(RealFileSystem());
  {
    StateStore store(files, dir_.path(), "machine", Report());
    store.Put(ContainerId("one"), In("shared"), QosClass::kBurstable);
    ASSERT_TRUE(store.Flush(kSoon));
    files.Hang();
    store.Put(ContainerId("two"), In("shared"), QosClass::kBurstable);
    EXPECT_TRUE(store.Close(kSoon));
  }
  files.ComeBack();
  StateStore next(RealFileSystem(), dir_.path(), "machine", Report());
  EXPECT_TRUE(next.Find(ContainerId("two")).has_value());
}

// A rewrite renames the file of before to "state.previous" and the new one to "state". Between the
// two there is no file "state".
class StateStoreRenameTest : public StateStoreTest,
                             public testing::WithParamInterface<const char*> {
 protected:
  StateStoreRenameTest() {
    StateStore store(RealFileSystem(), dir_.path(), "machine", Report());
    store.Put(ContainerId("kept"), In("shared"), QosClass::kBurstable);
    EXPECT_TRUE(store.Flush(kSoon));
  }
};

TEST_P(StateStoreRenameTest, AHungRenameStopsNoCallerAndLosesNothingWhenItEnds) {
  test::HangingFileSystem files(RealFileSystem());
  files.HangRenameTo(GetParam());
  {
    StateStore store(files, dir_.path(), "machine", Report());
    store.Put(ContainerId("new"), In("shared"), QosClass::kBurstable);
    store.Commit();
    files.WaitHanging();
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < 1000; ++i) {
      store.Put(ContainerId("late"), In(std::to_string(i)), QosClass::kBurstable);
      store.Commit();
    }
    store.Erase(ContainerId("new"));
    store.Commit();
    EXPECT_LT(std::chrono::steady_clock::now() - start, kSoon);
    EXPECT_FALSE(store.Flush(std::chrono::milliseconds(1)));
    EXPECT_TRUE(store.Find(ContainerId("kept"))) << "what it holds can be read meanwhile";
    files.ComeBack();
    ASSERT_TRUE(store.Flush(kSoon));
  }
  const StateStore store(RealFileSystem(), dir_.path(), "machine", Report());
  EXPECT_TRUE(store.Find(ContainerId("kept")));
  EXPECT_FALSE(store.Find(ContainerId("new")));
  ASSERT_TRUE(store.Find(ContainerId("late")));
  EXPECT_EQ(store.Find(ContainerId("late"))->placement.pool, "999");
}

TEST_P(StateStoreRenameTest, ADaemonThatEndsInAHungRenameKeepsWhatWasSaved) {
  test::HangingFileSystem files(RealFileSystem());
  files.HangRenameTo(GetParam());
  {
    StateStore store(files, dir_.path(), "machine", Report());
    store.Put(ContainerId("new"), In("shared"), QosClass::kBurstable);
    store.Commit();
    files.WaitHanging();
    const auto start = std::chrono::steady_clock::now();
    EXPECT_FALSE(store.Close(std::chrono::milliseconds(50)));
    EXPECT_LT(std::chrono::steady_clock::now() - start, kSoon);
  }
  EXPECT_EQ(reports_, 1) << "that the state is not saved";
  {
    const StateStore next(RealFileSystem(), dir_.path(), "machine", Report());
    EXPECT_TRUE(next.Find(ContainerId("kept"))) << "the next daemon starts while it hangs";
  }
  files.ComeBack();
  files.WaitClosed();
  const StateStore last(RealFileSystem(), dir_.path(), "machine", Report());
  EXPECT_TRUE(last.Find(ContainerId("kept")));
}

INSTANTIATE_TEST_SUITE_P(Steps, StateStoreRenameTest, testing::Values("state.previous", "state"),
                         [](const auto& step) {
                           return std::string(step.param) == "state" ? "ToState" : "ToPrevious";
                         });

// The contents of the disk come too late and are out of date.
TEST_F(StateStoreTest, StartsEmptyOnAHungDiskAndWritesWhenItAnswers) {
  {
    StateStore store(RealFileSystem(), dir_.path(), "machine", Report());
    store.Put(ContainerId("old"), In("shared"), QosClass::kBurstable);
    store.Put(ContainerId("both"), In("shared"), QosClass::kBurstable);
    ASSERT_TRUE(store.Flush(kSoon));
  }
  test::HangingFileSystem files(RealFileSystem());
  files.HangReading();
  {
    StateStore store(files, dir_.path(), "machine", Report(), dir_.File("calls"),
                     std::chrono::milliseconds(1));
    EXPECT_EQ(reports_, 1);
    EXPECT_EQ(store.size(), 0U);
    EXPECT_FALSE(store.Saved());
    store.Put(ContainerId("both"), In("exclusive"), QosClass::kBurstable);
    files.ComeBack();
    ASSERT_TRUE(store.Flush(kSoon));
    EXPECT_TRUE(store.Saved());
    EXPECT_FALSE(store.Find(ContainerId("old")));
  }
  const StateStore store(RealFileSystem(), dir_.path(), "machine", Report());
  EXPECT_EQ(store.size(), 1U);
  EXPECT_EQ(store.Find(ContainerId("both"))->placement.pool, "exclusive");
  EXPECT_EQ(reports_, 1);
}

// All records were dropped and none was added, which must be written, too.
TEST_F(StateStoreTest, DropsRecordsThatWereReadTooLate) {
  {
    StateStore store(RealFileSystem(), dir_.path(), "machine", Report());
    store.Put(ContainerId("old"), In("shared"), QosClass::kBurstable);
    ASSERT_TRUE(store.Flush(kSoon));
  }
  test::HangingFileSystem files(RealFileSystem());
  files.HangReading();
  {
    StateStore store(files, dir_.path(), "machine", Report(), dir_.File("calls"),
                     std::chrono::milliseconds(1));
    store.Retain([](std::string_view) { return false; });
    files.ComeBack();
    ASSERT_TRUE(store.Flush(kSoon));
  }
  const StateStore store(RealFileSystem(), dir_.path(), "machine", Report());
  EXPECT_EQ(store.size(), 0U);
}

TEST_F(StateStoreTest, EndsInTimeWhileItLoads) {
  // Never destroyed: the thread that is left behind uses it.
  static auto& files = *new test::HangingFileSystem(RealFileSystem());
  files.HangReading();
  {
    StateStore store(files, dir_.path(), "machine", Report(), dir_.File("calls"),
                     std::chrono::milliseconds(1));
    EXPECT_FALSE(store.Close(std::chrono::milliseconds(1)));
  }
  files.ComeBack();
}

TEST_F(StateStoreTest, EndsAtOnceWhileItWaitsForTheNextTry) {
  test::CrashingFileSystem files(1);
  StateStore store(files, "/state", "machine", Report());
  files.fail = [] { return Unavailable("no space"); };
  store.Put(ContainerId("one"), In("shared"), QosClass::kBurstable);
  EXPECT_FALSE(store.Flush(std::chrono::milliseconds(50)));
  EXPECT_TRUE(store.Close(std::chrono::milliseconds(1)));
}

TEST_F(StateStoreTest, ErasesRecordsOfRemovedContainers) {
  {
    StateStore store(RealFileSystem(), dir_.path(), "machine", Report());
    store.Put(ContainerId("one"), In("shared"), QosClass::kBurstable);
    store.Put(ContainerId("two"), In("shared"), QosClass::kBurstable);
    store.Retain([](std::string_view id) { return id == "two"; });
    ASSERT_TRUE(store.Flush(kSoon));
  }
  const StateStore store(RealFileSystem(), dir_.path(), "machine", Report());
  EXPECT_EQ(store.size(), 1u);
}

TEST_F(StateStoreTest, ReportsOnceThatItCannotWriteAndGoesOn) {
  std::atomic<bool> broken = true;
  test::CrashingFileSystem files(1);
  files.fail = [&broken] { return broken ? ResourceExhausted("no space") : OkStatus(); };
  StateStore store(files, "/dir", "machine", Report());
  const int at_start = reports_;
  store.Put(ContainerId("one"), In("shared"), QosClass::kBurstable);
  store.Put(ContainerId("two"), In("shared"), QosClass::kBurstable);
  EXPECT_FALSE(store.Flush(std::chrono::milliseconds(50)));
  const auto deadline = std::chrono::steady_clock::now() + kSoon;
  while (reports_ == at_start && std::chrono::steady_clock::now() < deadline)
    std::this_thread::yield();
  EXPECT_TRUE(store.Find(ContainerId("one")));
  EXPECT_GT(store.written().failures, 0u);
  EXPECT_EQ(store.written().writes, 0u);
  EXPECT_EQ(store.written().bytes, 0u);
  broken = false;
  EXPECT_TRUE(store.Flush(kSoon));
  EXPECT_EQ(reports_, at_start + 1);
  EXPECT_EQ(store.written().writes, 1u);
  EXPECT_GT(store.written().bytes, 0u);
  const StateStore next(files, "/dir", "machine", Report());
  EXPECT_TRUE(next.Find(ContainerId("one")));
  EXPECT_TRUE(next.Find(ContainerId("two")));
}

// Meanwhile the file is rewritten.
TEST_F(StateStoreTest, LosesNothingWhenMuchChanges) {
  const std::string reason(1000, 'x');
  std::map<std::string, std::string> expected;
  {
    StateStore store(RealFileSystem(), dir_.path(), "machine", Report());
    for (int i = 0; i < 3000; ++i) {
      const std::string id = std::to_string(i % 100);
      if (i % 7 == 0) {
        store.Erase(ContainerId(id));
        expected.erase(id);
      } else {
        expected[id] = std::to_string(i);
        Container container = In(expected[id]);
        container.placement.reason = reason;
        store.Put(ContainerId(id), container, QosClass::kBurstable);
      }
      if (i % 10 == 0) store.Commit();
      if (i % 500 == 0) {
        ASSERT_TRUE(store.Flush(kSoon));
      }
    }
    ASSERT_TRUE(store.Flush(kSoon));
  }
  EXPECT_LT(std::filesystem::file_size(dir_.File("state")), 2'000'000u);
  const StateStore store(RealFileSystem(), dir_.path(), "machine", Report());
  EXPECT_EQ(store.size(), expected.size());
  for (const auto& [id, pool] : expected) {
    ASSERT_TRUE(store.Find(ContainerId(id))) << id;
    EXPECT_EQ(store.Find(ContainerId(id))->placement.pool, pool) << id;
  }
  EXPECT_EQ(reports_, 0);
}

// Wherever the thread is in its work when the disk fails. Few runs, for it rests after a failure.
TEST(StateStorePropertyTest, WritesAllThatItHasOnceTheDiskWorksAgain) {
  constexpr uint64_t kRuns = 4;
  for (uint64_t seed = 1; seed <= kRuns; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937_64 random(seed);
    std::atomic<int> failures = 0;  // operations that are to fail
    test::CrashingFileSystem files(seed);
    files.fail = [&failures] {
      return failures > 0 && failures-- > 0 ? Unavailable("the disk failed") : OkStatus();
    };
    std::map<std::string, std::string> expected;
    for (int life = 0; life < 2; ++life) {
      StateStore store(files, "/dir", "machine", [](std::string_view) {});
      ASSERT_EQ(store.size(), expected.size());
      for (int i = 0; i < 300; ++i) {
        const std::string id(1, static_cast<char>('a' + random() % 8));
        if (random() % 3 == 0) {
          store.Erase(ContainerId(id));
          expected.erase(id);
        } else {
          expected[id] = std::to_string(random() % 4);
          store.Put(ContainerId(id), In(expected[id]), QosClass::kBurstable);
        }
        if (random() % 4 == 0) store.Commit();
        if (i == 100) {
          ASSERT_TRUE(store.Flush(kSoon));
          // Fails an append, or the rewriting that follows it as well.
          failures = 1 + static_cast<int>(seed % 2);
        }
      }
      ASSERT_TRUE(store.Flush(kSoon));
      for (const auto& [id, pool] : expected)
        ASSERT_EQ(store.Find(ContainerId(id)).value_or(SavedContainer()).placement.pool, pool)
            << id;
      const StateStore reader(files, "/dir", "machine", [](std::string_view) {});
      ASSERT_EQ(reader.size(), expected.size());
      for (const auto& [id, pool] : expected)
        ASSERT_EQ(reader.Find(ContainerId(id)).value_or(SavedContainer()).placement.pool, pool)
            << id;
    }
  }
}

TEST_F(StateStoreTest, ARecordThatIsTooLongBlocksNoOther) {
  {
    StateStore store(RealFileSystem(), dir_.path(), "machine", Report());
    store.Put(ContainerId(std::string(kMaxEntryName + 1, 'x')), In("shared"), QosClass::kBurstable);
    store.Put(ContainerId("long"), In(std::string(kMaxEntryValue, 'x')), QosClass::kBurstable);
    store.Put(ContainerId("short"), In("shared"), QosClass::kBurstable);
    ASSERT_TRUE(store.Flush(kSoon));
    EXPECT_EQ(reports_, 2);
  }
  const StateStore store(RealFileSystem(), dir_.path(), "machine", Report());
  EXPECT_EQ(store.size(), 1u);
  EXPECT_TRUE(store.Find(ContainerId("short")));
}

TEST_F(StateStoreTest, SkipsRecordsThatItCannotRead) {
  {
    RecordLog log(RealFileSystem(), dir_.path(), "machine");
    std::string good;
    EncodeSaved(In("shared"), QosClass::kBurstable, good);
    std::string entries;
    AppendEntry(EntryKind::kPut, "bad", "{", entries);
    AppendEntry(EntryKind::kPut, "good", good, entries);
    ASSERT_TRUE(log.Rewrite(entries).ok());
  }
  const StateStore store(RealFileSystem(), dir_.path(), "machine", Report());
  EXPECT_EQ(store.size(), 1u);
  EXPECT_EQ(reports_, 1);
}

}  // namespace
}  // namespace resmgr
