// SPDX-License-Identifier: Apache-2.0
#include "pkg/usage/use_averages.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/policy/testing/test_snapshot.h"
#include "test/support/seed.h"

namespace resmgr {
namespace {

using std::chrono::seconds;
using testing::DoubleNear;
using testing::Optional;

class UseAveragesTest : public testing::Test {
 protected:
  UseAveragesTest() {
    Container& container = snapshot_.Add("web", QosClass::kBurstable, 500);
    container.id = ContainerId("web");
    container.state = ContainerState::kRunning;
    key_ = container.key;
  }
  UsageFigures Next(double cpus, std::optional<double> waited, seconds length = seconds(10)) {
    UsageFigures figures{.until = std::chrono::system_clock::time_point(now_ + length),
                         .from = std::chrono::steady_clock::time_point(now_),
                         .at = std::chrono::steady_clock::time_point(now_ + length),
                         .complete = true};
    figures.containers.push_back(
        {.subject = {.id = "web"}, .cpu_used = cpus, .waited_percent = waited});
    now_ += length;
    return figures;
  }
  const policy::ContainerUse* Use() {
    use_ = averages_.Of(snapshot_);
    return use_.Find(key_);
  }

  test::TestSnapshot snapshot_;
  ContainerKey key_{};
  UseAverages averages_;
  policy::MeasuredUse use_;
  seconds now_{1000};
};

TEST_F(UseAveragesTest, TheFirstSamplesCountAlike) {
  averages_.Add(Next(1, 10));
  averages_.Add(Next(2, 30));
  averages_.Add(Next(3, 20));
  ASSERT_NE(Use(), nullptr);
  EXPECT_THAT(Use()->cpus, DoubleNear(2, 1e-9));
  EXPECT_THAT(Use()->pressure, Optional(DoubleNear(20, 1e-9)));
  EXPECT_EQ(use_.over, seconds(30));
}

TEST_F(UseAveragesTest, OldSamplesFade) {
  for (int i = 0; i < 6; ++i)
    averages_.Add(Next(4, 0));
  for (int i = 0; i < 60; ++i)
    averages_.Add(Next(1, 50));
  EXPECT_THAT(Use()->cpus, DoubleNear(1, 0.01));
  EXPECT_THAT(Use()->pressure, Optional(DoubleNear(50, 0.01)));
  EXPECT_EQ(use_.over, UseAverages::kReach);
  averages_.Add(Next(3, 50, seconds(300)));
  EXPECT_THAT(Use()->cpus, DoubleNear(3, 0.01)) << "longer than all that counts";
}

TEST_F(UseAveragesTest, AGapBeginsAnew) {
  averages_.Add(Next(4, 0));
  now_ += seconds(60);
  averages_.Add(Next(1, 0));
  EXPECT_EQ(Use()->cpus, 1);
  EXPECT_EQ(averages_.elapsed(), seconds(10));
}

TEST_F(UseAveragesTest, SamplesOfBeforeDoNotCount) {
  averages_.Add(Next(4, 0));
  averages_.BeginAt(std::chrono::steady_clock::time_point(now_ + seconds(3)));
  averages_.Add(Next(4, 0));
  EXPECT_EQ(Use(), nullptr);
  averages_.Add(Next(1, 0));
  EXPECT_EQ(Use()->cpus, 1);
}

TEST_F(UseAveragesTest, WaitingForAQuotaIsNoPressure) {
  UsageFigures figures = Next(1, 80);
  figures.containers[0].throttled_percent = 50;
  averages_.Add(figures);
  EXPECT_EQ(Use()->pressure, std::nullopt);
}

TEST_F(UseAveragesTest, CountersThatBeganAnewAndContainersThatEndedAreLeftOut) {
  averages_.Add(Next(1, 0));
  UsageFigures figures = Next(0, 0);
  figures.containers[0].cpu_used.reset();
  averages_.Add(figures);
  EXPECT_EQ(Use()->cpus, 1);
  figures = Next(64, 0);
  figures.containers[0].reset = true;
  averages_.Add(figures);
  EXPECT_EQ(Use()->cpus, 1);
  figures = Next(0, 0);
  figures.containers.clear();
  averages_.Add(figures);
  EXPECT_EQ(Use(), nullptr);
  averages_.Clear();
  EXPECT_EQ(averages_.elapsed().count(), 0);
}

// An average lies between the samples.
TEST_F(UseAveragesTest, AveragesAreWithinTheSamples) {
  const uint64_t seed = test::SeedOr(7);
  SCOPED_TRACE(test::Repeat(seed));
  std::mt19937_64 random(seed);
  double least = 1e9;
  double most = 0;
  for (int i = 0; i < 500; ++i) {
    const double cpus = static_cast<double>(random() % 8000) / 1000;
    least = std::min(least, cpus);
    most = std::max(most, cpus);
    averages_.Add(Next(cpus, 0, seconds(1 + random() % 100)));
    ASSERT_GE(Use()->cpus, least - 1e-9);
    ASSERT_LE(Use()->cpus, most + 1e-9);
  }
}

// A container that is restarted in place, a daemon that is restarted, in any order: no figure
// exceeds the real use, none spans a restart of the daemon, and averages begin anew.
TEST_F(UseAveragesTest, RestartsOfContainersAndDaemonsInventNoUse) {
  const uint64_t seed = test::SeedOr(11);
  SCOPED_TRACE(test::Repeat(seed));
  std::mt19937_64 random(seed);
  uint64_t counter = uint64_t{1} << 60;
  std::optional<UsageCounters> before;
  double most = 0;
  for (int i = 0; i < 2000; ++i) {
    const seconds length(1 + random() % 30);
    const uint64_t used_ns = random() % 8'000'000'000 * static_cast<uint64_t>(length.count());
    const bool container_restarts = random() % 10 == 0;
    const uint64_t lost_ns = container_restarts ? random() % (used_ns + 1) : 0;
    counter = container_restarts ? used_ns - lost_ns : counter + used_ns;
    now_ += length;
    UsageCounters now{.at = std::chrono::steady_clock::time_point(now_),
                      .wall = std::chrono::system_clock::time_point(now_)};
    now.containers["web"] = {.read_at = now.at, .cpu = {.usage_ns = counter}};
    const bool daemon_restarts = random() % 20 == 0;
    if (daemon_restarts) {
      before.reset();
      averages_.Clear();
      most = 0;
    }
    const UsageFigures figures = ComputeUsage(before ? &*before : nullptr, now, {{.id = "web"}});
    averages_.Add(figures);
    const double rate = static_cast<double>(used_ns) / 1e9 / static_cast<double>(length.count());
    ASSERT_EQ(figures.containers.size(), 1U);
    const std::optional<double>& told = figures.containers[0].cpu_used;
    ASSERT_EQ(told.has_value(), before.has_value());
    if (told) {
      ASSERT_GE(*told, 0);
      // A counter that began anew and has passed its former value is not noticed, but it was small.
      ASSERT_LE(*told, rate + 1e-6);
      most = std::max(most, rate);
      if (Use() != nullptr) ASSERT_LE(Use()->cpus, most + 1e-6);
    } else {
      ASSERT_EQ(Use(), nullptr);
    }
    before = std::move(now);
  }
}

}  // namespace
}  // namespace resmgr
