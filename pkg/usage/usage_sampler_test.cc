// SPDX-License-Identifier: Apache-2.0
#include "pkg/usage/usage_sampler.h"

#include <condition_variable>
#include <mutex>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/sys/clock.h"
#include "pkg/sys/temp_dir.h"

namespace resmgr {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;
using testing::SizeIs;

// The other thread's work, scripted by the test. Outlives a sampler whose sample hangs.
struct FakeTaker {
  UsageSampler::Figures Take(bool first) {
    std::unique_lock lock(mutex);
    ++samples;
    firsts += first ? 1 : 0;
    in_hand->Set("/proc/stat");
    changed.wait(lock, [this] { return !hangs; });
    auto figures = std::make_shared<UsageFigures>();
    figures->complete = !first;
    figures->cost = cost;
    figures->at = std::chrono::steady_clock::time_point(seconds(samples));
    return figures;
  }
  void Hang(bool now) {
    const std::lock_guard lock(mutex);
    hangs = now;
    changed.notify_all();
  }
  int Samples() {
    const std::lock_guard lock(mutex);
    return samples;
  }

  const std::shared_ptr<FileInHand> in_hand = std::make_shared<FileInHand>();
  std::mutex mutex;
  std::condition_variable changed;
  int samples = 0;
  int firsts = 0;
  bool hangs = false;
  std::chrono::nanoseconds cost{1000};
};

class UsageSamplerTest : public testing::Test {
 protected:
  UsageSamplerTest() { Make(); }
  ~UsageSamplerTest() override { taker_->Hang(false); }

  void Make() {
    sampler_.emplace(UsageSampler::Options{
        .loop = loop_,
        .clock = clock_,
        .subjects = [] { return std::vector<UsageSubject>(); },
        .told = [this](const UsageFigures&) { ++told_; },
        .lost = [this] { ++lost_; },
        .take = [taker = taker_](const auto&, bool first) { return taker->Take(first); },
        .in_hand = taker_->in_hand});
  }
  // Runs the loop until it is so.
  void RunUntil(const std::function<bool()>& so) {
    const auto late = loop_.After(seconds(60), [this] {
      ADD_FAILURE() << "it takes too long";
      loop_.Stop();
    });
    const auto look = loop_.Every(milliseconds(1), [&] {
      if (so()) loop_.Stop();
    });
    loop_.Run();
  }
  void Look() {
    sampler_->Look([this](const StatusOr<UsageSampler::Figures>& figures) {
      ++answers_;
      answer_ = figures.status();
    });
  }

  EventLoop loop_;
  ManualClock clock_;
  const std::shared_ptr<FakeTaker> taker_ = std::make_shared<FakeTaker>();
  std::optional<UsageSampler> sampler_;
  int told_ = 0;
  int lost_ = 0;
  int answers_ = 0;
  Status answer_;
};

TEST_F(UsageSamplerTest, SamplesNothingWhileNobodyLooks) {
  clock_.Advance(std::chrono::hours(1));
  EXPECT_EQ(taker_->Samples(), 0);
  EXPECT_EQ(clock_.timers(), 0U);
}

TEST_F(UsageSamplerTest, AnswersAfterTwoSamplesAndGoesOnAsLongAsSomebodyLooks) {
  Look();
  RunUntil([&] { return taker_->Samples() == 1 && clock_.NextWait() == seconds(1); });
  EXPECT_EQ(answers_, 0);
  clock_.RunNext();
  RunUntil([&] { return answers_ == 1; });
  EXPECT_TRUE(answer_.ok()) << answer_;
  EXPECT_EQ(clock_.NextWait(), seconds(10));
  Look();
  EXPECT_EQ(answers_, 2) << "at once";
  EXPECT_EQ(taker_->Samples(), 2);
  for (int i = 1; i <= 3; ++i) {
    clock_.RunNext();
    if (i < 3) RunUntil([&] { return told_ == 1 + i; });
  }
  EXPECT_EQ(taker_->Samples(), 4) << "no client has looked for 30 s";
  EXPECT_EQ(clock_.timers(), 0U);
  Look();
  RunUntil([&] { return taker_->Samples() == 5; });
  EXPECT_EQ(answers_, 2) << "old figures are no answer";
}

TEST_F(UsageSamplerTest, AMonitorThatAsksEachTwoMinutesKeepsItGoing) {
  sampler_->Touch();
  RunUntil([&] { return clock_.NextWait() == seconds(1); });
  clock_.RunNext();
  RunUntil([&] { return told_ == 1; });
  Look();  // does not shorten that
  for (int i = 2; i <= 15; ++i) {
    clock_.RunNext();
    RunUntil([&] { return told_ == i; });
  }
  EXPECT_EQ(clock_.timers(), 1U) << "1 + 140 s";
  clock_.RunNext();
  EXPECT_EQ(taker_->Samples(), 16);
  EXPECT_EQ(clock_.timers(), 0U) << "151 s";
}

TEST_F(UsageSamplerTest, MetricsWantSamplesAlways) {
  sampler_->SetAlways(true);
  RunUntil([&] { return clock_.NextWait() == seconds(1); });
  clock_.RunNext();
  RunUntil([&] { return told_ == 1; });
  for (int i = 2; i < 12; ++i) {
    clock_.RunNext();
    RunUntil([&] { return told_ == i; });
  }
  EXPECT_EQ(taker_->firsts, 1);
}

TEST_F(UsageSamplerTest, AnExpensiveSampleIsFollowedByALongerPause) {
  taker_->cost = milliseconds(40);
  sampler_->SetAlways(true);
  RunUntil([&] { return clock_.NextWait() == seconds(1); });
  clock_.RunNext();
  RunUntil([&] { return told_ == 1; });
  EXPECT_EQ(clock_.NextWait(), seconds(20)) << "0.2 % of a CPU";
  taker_->cost = seconds(10);
  clock_.RunNext();
  RunUntil([&] { return told_ == 2; });
  EXPECT_EQ(clock_.NextWait(), seconds(60));
  sampler_->Configure({.interval = seconds(2)});
  EXPECT_EQ(clock_.NextWait(), seconds(12));
}

TEST_F(UsageSamplerTest, AThreadThatHangsIsNamedAndTheDaemonGoesOn) {
  sampler_->SetAlways(true);
  RunUntil([&] { return clock_.NextWait() == seconds(1); });
  clock_.RunNext();
  RunUntil([&] { return told_ == 1; });
  taker_->Hang(true);
  clock_.RunNext();
  Look();
  EXPECT_EQ(answers_, 1) << "the figures before are not old yet";
  RunUntil([&] { return taker_->Samples() == 3; });
  clock_.Advance(seconds(5));
  ASSERT_THAT(sampler_->problems(), SizeIs(1));
  EXPECT_EQ(sampler_->problems()[0].kind, "state");
  EXPECT_EQ(lost_, 1) << "metrics show what was before no more";
  EXPECT_THAT(sampler_->problems()[0].message, HasSubstr("reading /proc/stat hangs"));
  Look();
  EXPECT_EQ(answers_, 2) << "at once";
  EXPECT_THAT(Message(answer_), HasSubstr("reading /proc/stat hangs"));
  clock_.Advance(std::chrono::hours(1));
  EXPECT_EQ(taker_->Samples(), 3) << "no further thread";

  taker_->Hang(false);
  RunUntil([&] { return sampler_->problems().empty(); });
  clock_.RunNext();
  RunUntil([&] { return taker_->Samples() == 4 && clock_.NextWait() == seconds(1); });
  EXPECT_EQ(taker_->firsts, 2) << "what was read before the hang does not count";
}

TEST_F(UsageSamplerTest, ClientsThatWaitAreBounded) {
  taker_->Hang(true);
  for (int i = 0; i < 64; ++i)
    Look();
  EXPECT_EQ(answers_, 0);
  Look();
  EXPECT_EQ(answers_, 1);
  EXPECT_EQ(answer_.code(), StatusCode::kResourceExhausted);
  clock_.Advance(seconds(5));
  EXPECT_EQ(answers_, 65);
}

TEST_F(UsageSamplerTest, ASampleMayOutliveIt) {
  taker_->Hang(true);
  Look();
  RunUntil([&] { return taker_->Samples() == 1; });
  sampler_.reset();
  taker_->Hang(false);
  EXPECT_EQ(answers_, 0);
}

TEST(TakeFromTest, ComparesEachSampleWithTheFormerOne) {
  const TempDir root;
  const UsageSampler::Take take = TakeFrom(root.path(), std::make_shared<FileInHand>());
  root.Put("proc/stat", "cpu0 0 0 0 100 0 0 0 0\n");
  EXPECT_FALSE(take({}, true)->complete);
  root.Put("proc/stat", "cpu0 50 0 0 150 0 0 0 0\n");
  const auto figures = take({}, false);
  EXPECT_TRUE(figures->complete);
  EXPECT_DOUBLE_EQ(figures->cpus.at(0).busy_percent, 50);
  EXPECT_FALSE(take({}, true)->complete);
}

}  // namespace
}  // namespace resmgr
