// SPDX-License-Identifier: Apache-2.0
#include "pkg/resmgr/keeper.h"

#include <chrono>
#include <string>

#include <gtest/gtest.h>

#include "pkg/sys/temp_dir.h"

namespace resmgr {
namespace {

constexpr std::chrono::seconds kSoon{10};

class KeeperTest : public ::testing::Test {
 protected:
  KeeperTest() {
    Pod pod;
    pod.id = PodSandboxId("pod");
    pod_ = &containers_.PutPod(pod);
  }

  ContainerRecord& Add(const std::string& id, int64_t shares) {
    ContainerRecord& record = containers_.Add(*pod_, id);
    ContainerId container_id(id);
    containers_.SetId(record, container_id);
    record.container.state = ContainerState::kCreated;
    record.container.requested.cpu_shares = shares;
    return record;
  }
  // Of the state as it is on the disk now; -1 where there is nothing.
  int64_t SavedShares(const std::string& id) const {
    const StateStore reader(RealFileSystem(), dir_.path(), "machine", [](std::string_view) {});
    const auto saved = reader.Find(ContainerId(id));
    return saved ? saved->requested.cpu_shares.value_or(0) : -1;
  }

  const TempDir dir_;
  EventLoop loop_;
  ContainerStore containers_;
  PodRecord* pod_ = nullptr;
  StateStore state_{RealFileSystem(), dir_.path(), "machine", [](std::string_view) {}};
  Keeper keeper_{loop_, &state_, containers_};
};

TEST_F(KeeperTest, SavesTheLastValueByItself) {
  ContainerRecord& record = Add("a", 2);
  keeper_.Keep(record);
  record.container.requested.cpu_shares = 1024;
  keeper_.Keep(record);
  EXPECT_EQ(state_.size(), 0u) << "it may change again";
  const auto stop = loop_.Every(std::chrono::milliseconds(1), [this] {
    if (state_.size() > 0) loop_.Stop();
  });
  loop_.Run();
  ASSERT_TRUE(state_.Flush(kSoon));
  EXPECT_EQ(SavedShares("a"), 1024);
}

TEST_F(KeeperTest, FlushingBringsWhatIsGathered) {
  keeper_.Keep(Add("a", 2));
  ASSERT_TRUE(state_.Flush(kSoon));
  EXPECT_EQ(SavedShares("a"), 2);
}

TEST_F(KeeperTest, WhatEndsAtOnceIsNeverSaved) {
  ContainerRecord& record = Add("a", 2);
  keeper_.Keep(record);
  record.container.state = ContainerState::kExited;
  keeper_.Forget(record.container.id);
  containers_.Erase(record.container.key);
  keeper_.Keep(Add("b", 3));
  ASSERT_TRUE(state_.Flush(kSoon));
  EXPECT_EQ(SavedShares("a"), -1);
  EXPECT_EQ(SavedShares("b"), 3);
}

TEST_F(KeeperTest, WhatWasSavedAndEndsIsForgotten) {
  ContainerRecord& record = Add("a", 2);
  keeper_.Keep(record);
  ASSERT_TRUE(state_.Flush(kSoon));
  record.container.state = ContainerState::kExited;
  keeper_.Forget(record.container.id);
  ASSERT_TRUE(state_.Flush(kSoon));
  EXPECT_EQ(SavedShares("a"), -1);
}

// The runtime may refuse the update: then it has after a restart what it had before.
TEST_F(KeeperTest, ValuesBeforeAnUpdateAreSavedAndThoseOfTheUpdateWhenItIsOver) {
  ContainerRecord& record = Add("a", 2);
  keeper_.Keep(record);
  keeper_.BeforeUpdate(record);
  record.container.requested.cpu_shares = 1024;
  record.updates.emplace_back();
  keeper_.Keep(record);
  ASSERT_TRUE(state_.Flush(kSoon));
  EXPECT_EQ(SavedShares("a"), 2);
  record.updates.clear();
  keeper_.Keep(record);
  ASSERT_TRUE(state_.Flush(kSoon));
  EXPECT_EQ(SavedShares("a"), 1024);
}

TEST_F(KeeperTest, WithoutAStateNothingIsKept) {
  Keeper without(loop_, nullptr, containers_);
  ContainerRecord& record = Add("a", 2);
  without.Keep(record);
  without.Forget(record.container.id);
  without.ForgetTheRest();
  EXPECT_FALSE(without.Find(record.container.id));
}

}  // namespace
}  // namespace resmgr
