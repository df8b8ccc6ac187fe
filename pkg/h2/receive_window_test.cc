// SPDX-License-Identifier: Apache-2.0
#include "pkg/h2/receive_window.h"

#include <algorithm>
#include <chrono>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/support/status_matchers.h"
#include "test/support/wait.h"

namespace resmgr::h2 {
namespace {

using resmgr::test::RunFor;
using std::chrono::milliseconds;
using test::IsOk;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr auto kWhole = static_cast<size_t>(kConnectionWindow);
constexpr auto kStream = static_cast<size_t>(kStreamWindow);

class ReceiveWindowTest : public testing::Test, public ReceiveWindow::Teller {
 protected:
  ReceiveWindowTest() {
    window_.Open();
    told_.clear();
    window_.OnSettingsConfirmed();
  }

  void TellWindow(size_t count) override {
    told_.push_back(count);
    allowed_ += count;
  }
  void TellStreamWindow(int32_t size) override { stream_windows_.push_back(size); }

  // Takes `count` bytes as the window allows them.
  void Take(size_t count) {
    ASSERT_LE(count, allowed_);
    allowed_ -= count;
    ASSERT_THAT(window_.Take(static_cast<uint32_t>(count)), IsOk());
  }
  void TakeAll() {
    while (allowed_ > 0)
      Take(std::min(allowed_, kStream));
  }

  EventLoop loop_;
  FlushQueue flushes_{loop_};
  size_t allowed_ = static_cast<size_t>(kDefaultWindow);  // bytes that the peer may send
  std::vector<size_t> told_;
  std::vector<int32_t> stream_windows_;
  ReceiveWindow window_{loop_, flushes_, *this};
};

TEST_F(ReceiveWindowTest, IsOpenedWhole) {
  EXPECT_EQ(allowed_, kWhole);
  EXPECT_EQ(window_.unread(), 0);
  EXPECT_EQ(window_.stream_window(), kStreamWindow);
}

TEST_F(ReceiveWindowTest, MoreThanItIsAnError) {
  ASSERT_NO_FATAL_FAILURE(TakeAll());
  EXPECT_EQ(window_.Take(1).code(), StatusCode::kInvalidArgument);
}

TEST_F(ReceiveWindowTest, ConsumedBytesAreGivenBackInLargePieces) {
  for (size_t i = 1; i <= 4; ++i) {
    ASSERT_NO_FATAL_FAILURE(Take(kStream));
    window_.Consume(kStream);
    EXPECT_EQ(told_.size(), i / 4) << i;
  }
  EXPECT_THAT(told_, ElementsAre(kWhole / 2));
  EXPECT_EQ(window_.unread(), 0);
}

TEST_F(ReceiveWindowTest, ConsumedBytesAreGivenBackEarlyWhileLittleIsLeft) {
  ASSERT_NO_FATAL_FAILURE(TakeAll());
  window_.Consume(kStream / 2 - 1);
  EXPECT_THAT(told_, IsEmpty());
  window_.Consume(1);
  EXPECT_THAT(told_, ElementsAre(kStream / 2));
}

TEST_F(ReceiveWindowTest, BytesConsumedBeforeAreGivenBackWhenLittleIsLeft) {
  ASSERT_NO_FATAL_FAILURE(Take(kStream));
  window_.Consume(kStream);
  EXPECT_THAT(told_, IsEmpty());
  ASSERT_NO_FATAL_FAILURE(Take(kWhole - 2 * kStream + 1));
  EXPECT_THAT(told_, ElementsAre(kStream));
}

TEST_F(ReceiveWindowTest, AStallMakesRoomOnceStreamsHaveSmallWindows) {
  ASSERT_NO_FATAL_FAILURE(TakeAll());
  EXPECT_THAT(stream_windows_, IsEmpty());
  RunFor(loop_, milliseconds(60));
  EXPECT_THAT(stream_windows_, ElementsAre(kCrowdedStreamWindow));
  EXPECT_THAT(told_, IsEmpty()) << "the peer may still fill the large windows";
  window_.OnSettingsConfirmed();
  EXPECT_THAT(told_, ElementsAre(kWhole / 2));
  EXPECT_EQ(window_.unread(), kConnectionWindow);
}

TEST_F(ReceiveWindowTest, HandlersThatConsumeAreNoStall) {
  ASSERT_NO_FATAL_FAILURE(TakeAll());
  // More frequent than the watch for a stall.
  const auto consumes = loop_.Every(milliseconds(2), [this] {
    window_.Consume(kStream / 2);
    Take(allowed_);
  });
  RunFor(loop_, milliseconds(100));
  EXPECT_THAT(stream_windows_, IsEmpty());
}

TEST_F(ReceiveWindowTest, UnreadBytesAreBounded) {
  ASSERT_NO_FATAL_FAILURE(TakeAll());
  RunFor(loop_, milliseconds(60));
  window_.OnSettingsConfirmed();
  ASSERT_NO_FATAL_FAILURE(TakeAll());
  EXPECT_LE(window_.unread(), kMostUnread);
  EXPECT_GT(window_.unread(), kMostUnread - kConnectionWindow);
}

TEST_F(ReceiveWindowTest, WhatWasGrantedForACrowdIsTakenBackAfterIt) {
  ASSERT_NO_FATAL_FAILURE(TakeAll());
  RunFor(loop_, milliseconds(60));
  window_.OnSettingsConfirmed();
  ASSERT_NO_FATAL_FAILURE(TakeAll());
  const auto unread = static_cast<size_t>(window_.unread());
  window_.Consume(unread);
  EXPECT_THAT(stream_windows_, ElementsAre(kCrowdedStreamWindow, kStreamWindow));
  EXPECT_EQ(allowed_, kWhole) << "as at the beginning";
  EXPECT_EQ(window_.unread(), 0);
}

TEST_F(ReceiveWindowTest, TellsNothingOnceClosed) {
  ASSERT_NO_FATAL_FAILURE(TakeAll());
  window_.Close();
  RunFor(loop_, milliseconds(60));
  EXPECT_THAT(stream_windows_, IsEmpty());
}

}  // namespace
}  // namespace resmgr::h2
