// SPDX-License-Identifier: Apache-2.0
#include "pkg/state/state_store.h"

#include <atomic>

#include <gtest/gtest.h>

#include "pkg/state/testing/crashing_file_system.h"
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
    store.Put(ContainerId("one"), In("shared"));
    store.Put(ContainerId("two"), In("exclusive"));
    store.Put(ContainerId("one"), In("reserved"));
    store.Put(ContainerId("three"), In("gone"));
    store.Erase(ContainerId("three"));
    ASSERT_TRUE(store.Flush(kSoon));
  }
  const StateStore store(RealFileSystem(), dir_.path(), "machine", Report());
  ASSERT_TRUE(store.Find(ContainerId("one")));
  EXPECT_EQ(store.Find(ContainerId("one"))->pool, "reserved");
  EXPECT_EQ(store.Find(ContainerId("two"))->pool, "exclusive");
  EXPECT_FALSE(store.Find(ContainerId("three")));
  EXPECT_EQ(reports_, 0);
}

TEST_F(StateStoreTest, ForgetsThoseThatAreGone) {
  {
    StateStore store(RealFileSystem(), dir_.path(), "machine", Report());
    store.Put(ContainerId("one"), In("shared"));
    store.Put(ContainerId("two"), In("shared"));
    store.Retain([](std::string_view id) { return id == "two"; });
    ASSERT_TRUE(store.Flush(kSoon));
  }
  const StateStore store(RealFileSystem(), dir_.path(), "machine", Report());
  EXPECT_EQ(store.size(), 1u);
}

TEST_F(StateStoreTest, ReportsOnceThatItCannotWriteAndGoesOn) {
  test::CrashingFileSystem files(1);
  std::atomic<bool> broken = true;
  files.fail = [&broken] { return broken ? ResourceExhausted("no space") : OkStatus(); };
  StateStore store(files, "/dir", "machine", Report());
  const int at_start = reports_;
  store.Put(ContainerId("one"), In("shared"));
  store.Put(ContainerId("two"), In("shared"));
  EXPECT_FALSE(store.Flush(std::chrono::milliseconds(50)));
  EXPECT_EQ(reports_, at_start + 1);
  EXPECT_TRUE(store.Find(ContainerId("one")));
  broken = false;
  EXPECT_TRUE(store.Flush(kSoon));
}

TEST_F(StateStoreTest, WhatIsTooLongKeepsNothingElseFromBeingSaved) {
  {
    StateStore store(RealFileSystem(), dir_.path(), "machine", Report());
    store.Put(ContainerId(std::string(RecordLog::kMaxName + 1, 'x')), In("shared"));
    store.Put(ContainerId("long"), In(std::string(RecordLog::kMaxValue, 'x')));
    store.Put(ContainerId("short"), In("shared"));
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
    EncodeSaved(In("shared"), good);
    ASSERT_TRUE(log.Rewrite({{"bad", "{"}, {"good", good}}).ok());
  }
  const StateStore store(RealFileSystem(), dir_.path(), "machine", Report());
  EXPECT_EQ(store.size(), 1u);
  EXPECT_EQ(reports_, 1);
}

}  // namespace
}  // namespace resmgr
