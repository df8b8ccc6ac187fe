// SPDX-License-Identifier: Apache-2.0
#include "test/e2e/placement_watch.h"

#include <chrono>
#include <mutex>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/support/containerd/child_process.h"

namespace resmgr::test {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class PlacementWatchTest : public ::testing::Test {
 protected:
  void Set(const std::string& id, std::optional<CpuSet> cpus) {
    const std::lock_guard lock(mutex_);
    cpus_[id] = cpus;
  }

  std::vector<std::string> LookAgain() {
    watch_.LookAgain();
    return watch_.violations();
  }

 private:
  std::mutex mutex_;
  std::map<std::string, std::optional<CpuSet>> cpus_;

 protected:
  PlacementWatch watch_{[this](const std::string& id) {
    const std::lock_guard lock(mutex_);
    return cpus_[id];
  }};
};

TEST_F(PlacementWatchTest, IsContentWithDisjointSets) {
  watch_.Add("s", "shared", /*exclusive=*/false);
  watch_.Add("a", "first", /*exclusive=*/true);
  watch_.Add("b", "second", /*exclusive=*/true);
  Set("s", CpuSet{0, 1});
  Set("a", CpuSet{2});
  Set("b", CpuSet{3});
  EXPECT_THAT(LookAgain(), IsEmpty());
}

TEST_F(PlacementWatchTest, FindsASharedContainerOnAnExclusiveCpu) {
  watch_.Add("s", "shared", /*exclusive=*/false);
  watch_.Add("a", "first", /*exclusive=*/true);
  Set("s", CpuSet{0, 1});
  Set("a", CpuSet{1});
  EXPECT_THAT(LookAgain(), Not(IsEmpty()));
  EXPECT_THAT(LookAgain(), Each(HasSubstr("shared container shared on 0-1 while exclusive first")));
}

TEST_F(PlacementWatchTest, AllowsOverlapWhileEitherDoesNotRun) {
  watch_.Add("s", "shared", /*exclusive=*/false);
  watch_.Add("a", "first", /*exclusive=*/true);
  Set("s", CpuSet{0, 1});
  Set("a", std::nullopt);
  EXPECT_THAT(LookAgain(), IsEmpty());
  Set("s", std::nullopt);
  watch_.LookAgain();
  Set("a", CpuSet{1});
  EXPECT_THAT(LookAgain(), IsEmpty());
}

TEST_F(PlacementWatchTest, ForgetsRemovedContainers) {
  watch_.Add("s", "shared", /*exclusive=*/false);
  watch_.Add("a", "first", /*exclusive=*/true);
  watch_.Remove("a");
  Set("s", CpuSet{0, 1});
  Set("a", CpuSet{1});
  EXPECT_THAT(LookAgain(), IsEmpty());
}

TEST(CpuHistoryTest, KeepsEachChangeAndWhenItWas) {
  std::mutex mutex;
  std::optional<CpuSet> cpus;
  CpuHistory history([&](const std::string& id) -> std::optional<CpuSet> {
    const std::lock_guard lock(mutex);
    return id == "web" ? cpus : CpuSet{7};
  });
  const auto become = [&](const std::optional<CpuSet>& now, const std::string& history_then) {
    {
      const std::lock_guard lock(mutex);
      cpus = now;
    }
    const Status seen = WaitUntil("it is seen", std::chrono::seconds(20),
                                  [&] { return history.Describe("web") == history_then; });
    EXPECT_TRUE(seen.ok()) << history.Describe("web");
  };
  history.Add("web");
  history.Add("other");
  become(std::nullopt, "none");
  become(CpuSet{0, 1}, "none, 0-1");
  const auto before = CpuHistory::Clock::now();
  become(CpuSet{0}, "none, 0-1, 0");
  const CpuHistory::Change last = history.ChangesOf("web").back();
  EXPECT_LE(last.after, last.before);
  EXPECT_GE(last.before, before);
  EXPECT_LE(last.before, CpuHistory::Clock::now());
  EXPECT_EQ(history.Describe("other"), "7");
  history.Remove("web");
  EXPECT_TRUE(history.ChangesOf("web").empty());
}

}  // namespace
}  // namespace resmgr::test
