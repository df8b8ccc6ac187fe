// SPDX-License-Identifier: Apache-2.0
// Many pods that come, change and go on containerd: no shared container is ever on an exclusive
// CPU, the relay does not grow, and nothing is left.
//
// RESMGR_E2E_LIFECYCLES: how many pods for each policy, 12 unless given. RESMGR_SEED: other lives;
// printed.
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <deque>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "pkg/base/parse.h"
#include "test/e2e/node_fixture.h"
#include "test/e2e/pod_life.h"
#include "test/support/seed.h"

namespace resmgr::test {
namespace {

constexpr size_t kLives = 4;  // side by side
constexpr uint64_t kPodsOfEach = 12;
constexpr int64_t kMostGrowthKib = 3072;

uint64_t Pods() {
  const char* const given = std::getenv("RESMGR_E2E_LIFECYCLES");
  return given == nullptr ? kPodsOfEach : ParseUint(given).value_or(kPodsOfEach);
}

class PodLifecyclesTest : public NodeTest, public ::testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override {
    const bool topology_aware = std::string_view(GetParam()) == "topology-aware";
    Open({.policy = GetParam(), .reserved = topology_aware ? "" : "cpuset:0"});
    seed_ = SeedOr(1);
    for (size_t i = 0; i < kLives; ++i)
      lives_.emplace_back(node(), fmt::format("pod{}", i), seed_ * kLives + i);
  }

  uint64_t PodsSoFar() const {
    uint64_t pods = 0;
    for (const PodLife& life : lives_)
      pods += static_cast<uint64_t>(life.pods());
    return pods;
  }

  void LiveUntil(uint64_t pods) {
    std::atomic<bool> enough = false;
    std::vector<std::thread> threads;
    std::vector<Status> results(kLives);
    std::atomic<size_t> failed = 0;
    for (size_t i = 0; i < kLives; ++i) {
      threads.emplace_back([&, i] {
        results[i] = lives_[i].Live(enough);
        if (!results[i].ok()) ++failed;
      });
    }
    while (PodsSoFar() < pods && failed == 0)
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    enough = true;
    for (std::thread& thread : threads)
      thread.join();
    for (const Status& result : results)
      EXPECT_TRUE(result.ok()) << Describe(result);
  }

  int64_t RelayKib() {
    std::ifstream file(fmt::format("/proc/{}/status", node().relay().process().pid()));
    for (std::string word; file >> word;) {
      int64_t value = 0;
      if (word == "VmRSS:" && file >> value) return value;
    }
    return 0;
  }

  uint64_t seed_ = 0;
  std::deque<PodLife> lives_;
};

TEST_P(PodLifecyclesTest, LeaveNothing) {
  SCOPED_TRACE(Repeat(seed_));
  const uint64_t pods = Pods();
  LiveUntil(pods / 4);
  const int64_t early = RelayKib();
  LiveUntil(pods);
  const int64_t late = RelayKib();
  int calls = 0;
  for (PodLife& life : lives_) {
    const Status ended = life.End();
    EXPECT_TRUE(ended.ok()) << Describe(ended);
    calls += life.calls();
  }
  std::printf(
      "RESMGR_SEED=%ju: %ju pods, %d calls, %jd KiB after a quarter of them, %jd KiB after all\n",
      static_cast<uintmax_t>(seed_), static_cast<uintmax_t>(PodsSoFar()), calls,
      static_cast<intmax_t>(early), static_cast<intmax_t>(late));
  EXPECT_GE(PodsSoFar(), pods);
  EXPECT_GT(early, 0);
  EXPECT_LT(late - early, kMostGrowthKib);
  const auto containers = Ok(node().Ctl("containers"));
  EXPECT_THAT(nlohmann::json::parse(containers), ::testing::IsEmpty());
}

std::string NameOfPodsPolicy(const ::testing::TestParamInfo<PodLifecyclesTest::ParamType>& policy) {
  std::string name(policy.param);
  std::erase(name, '-');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Containerd, PodLifecyclesTest, ::testing::Values("topology-aware"),
                         NameOfPodsPolicy);
INSTANTIATE_TEST_SUITE_P(Long, PodLifecyclesTest, ::testing::Values("static", "static-plus"),
                         NameOfPodsPolicy);

}  // namespace
}  // namespace resmgr::test
