// SPDX-License-Identifier: Apache-2.0
#include "test/e2e/cpu_history.h"

#include <chrono>
#include <mutex>

#include <gtest/gtest.h>

#include "test/support/containerd/child_process.h"

namespace resmgr::test {
namespace {

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
