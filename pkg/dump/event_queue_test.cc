// SPDX-License-Identifier: Apache-2.0
#include "pkg/dump/event_queue.h"

#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace resmgr::dump {
namespace {

using ::testing::ElementsAre;
using Kind = Event::Kind;

constexpr EventQueue::Limits kRoomy{1000, size_t{1} << 20};

Event Make(Kind kind, uint64_t call, size_t bytes = 0, bool record = false) {
  auto plan = std::make_shared<MethodPlan>();
  plan->record = record;
  Event event;
  event.kind = kind;
  event.call = call;
  event.plan = std::move(plan);
  event.payload = Payload(std::string(bytes, 'x'));
  return event;
}

TEST(EventQueueTest, KeepsTheOrder) {
  EventQueue queue(kRoomy);
  queue.Push(Make(Kind::kRequest, 1));
  queue.Push(Make(Kind::kRequest, 2));
  queue.Push(Make(Kind::kEnd, 1));
  EXPECT_EQ(queue.TryPop()->call, 1);
  EXPECT_EQ(queue.TryPop()->call, 2);
  EXPECT_EQ(queue.TryPop()->kind, Kind::kEnd);
  EXPECT_FALSE(queue.TryPop().has_value());
}

TEST(EventQueueTest, LosesTheWholeRestOfACall) {
  EventQueue queue({2, size_t{1} << 20});
  queue.Push(Make(Kind::kRequest, 1));
  queue.Push(Make(Kind::kRequest, 2));
  queue.Push(Make(Kind::kReply, 1));  // lost
  EXPECT_EQ(queue.TryPop()->call, 1);
  queue.Push(Make(Kind::kEnd, 1));      // belongs to a call that lost something
  queue.Push(Make(Kind::kRequest, 3));  // fits again, after kLost
  EXPECT_EQ(queue.TryPop()->call, 2);
  const auto lost = queue.TryPop();
  ASSERT_TRUE(lost.has_value());
  EXPECT_EQ(lost->kind, Kind::kLost);
  EXPECT_EQ(lost->lost_calls, 1);
  EXPECT_EQ(queue.TryPop()->call, 3);
  queue.Push(Make(Kind::kRequest, 1));  // a new call with the same id
  EXPECT_EQ(queue.TryPop()->call, 1);
}

TEST(EventQueueTest, ForgetsALostCallOfWhichNothingFollows) {
  EventQueue queue({0, size_t{1} << 20});
  Event counted = Make(Kind::kRequest, 1);
  auto plan = std::make_shared<MethodPlan>();
  plan->target = Target::kCount;
  counted.plan = plan;
  EXPECT_FALSE(queue.Push(std::move(counted)));
  EXPECT_EQ(queue.TryPop()->kind, Kind::kLost);
  // Its end was never reported, so the next event with this id is lost anew.
  EXPECT_FALSE(queue.Push(Make(Kind::kRequest, 1)));
}

TEST(EventQueueTest, MessagesThatAreNotCompleteCountInItsLimit) {
  EventQueue queue({1000, 20'000});
  EXPECT_TRUE(queue.Reserve(6'000));
  EXPECT_FALSE(queue.Reserve(6'000)) << "half of it is for whole messages";
  EXPECT_FALSE(queue.Push(Make(Kind::kRequest, 1, 15'000)));
  queue.Push(Make(Kind::kEnd, 1));
  queue.Release(6'000);
  EXPECT_TRUE(queue.Push(Make(Kind::kRequest, 2, 15'000)));
  EXPECT_FALSE(queue.Reserve(6'000));
  EXPECT_TRUE(queue.Lose(Make(Kind::kRequest, 3)));
  EXPECT_FALSE(queue.Lose(Make(Kind::kReply, 3))) << "told once";
}

TEST(EventQueueTest, BoundsBytes) {
  EventQueue queue({1000, 10'000});
  queue.Push(Make(Kind::kRequest, 1, 6'000));
  queue.Push(Make(Kind::kRequest, 2, 6'000));
  queue.Push(Make(Kind::kRequest, 3, 100));
  EXPECT_EQ(queue.TryPop()->call, 1);
  EXPECT_EQ(queue.TryPop()->kind, Kind::kLost);
  EXPECT_EQ(queue.TryPop()->call, 3);
  queue.Push(Make(Kind::kRequest, 4, 8'000));
  EXPECT_EQ(queue.TryPop()->call, 4);
}

TEST(EventQueueTest, CountsLossesWhenNothingFollows) {
  EventQueue queue({0, 0});
  for (uint64_t call = 1; call <= 7; ++call) {
    queue.Push(Make(Kind::kRequest, call));
    queue.Push(Make(Kind::kEnd, call));
  }
  EXPECT_EQ(queue.Pop()->lost_calls, 7);
  EXPECT_FALSE(queue.TryPop().has_value());
}

TEST(EventQueueTest, NamesRecordedCallsWhoseRequestIsKnown) {
  EventQueue queue({2, size_t{1} << 20});
  queue.Push(Make(Kind::kRequest, 1, 0, true));
  queue.Push(Make(Kind::kRequest, 2));
  queue.Push(Make(Kind::kEnd, 1, 0, true));
  queue.Push(Make(Kind::kEnd, 2));
  queue.Push(Make(Kind::kRequest, 3, 0, true));
  queue.TryPop();
  queue.TryPop();
  EXPECT_THAT(queue.TryPop()->cut_calls, ElementsAre(1));
}

TEST(EventQueueTest, SettingsAlwaysFindRoom) {
  EventQueue queue({0, 0});
  queue.PushSettings(Make(Kind::kSettings, 0));
  EXPECT_EQ(queue.TryPop()->kind, Kind::kSettings);
}

TEST(EventQueueTest, PopEndsOnceClosedAndEmpty) {
  EventQueue queue(kRoomy);
  queue.Push(Make(Kind::kRequest, 1));
  std::vector<uint64_t> calls;
  std::thread consumer([&] {
    while (const auto event = queue.Pop())
      calls.push_back(event->call);
    queue.Finish();
  });
  queue.Push(Make(Kind::kRequest, 2));
  queue.Close();
  queue.Push(Make(Kind::kRequest, 3));
  EXPECT_TRUE(queue.WaitFinished(std::chrono::seconds(30)));
  consumer.join();
  EXPECT_THAT(calls, ElementsAre(1, 2));
}

TEST(EventQueueTest, AbandonForgetsWhatIsQueued) {
  EventQueue queue(kRoomy);
  queue.Push(Make(Kind::kRequest, 1));
  queue.Abandon();
  EXPECT_FALSE(queue.Pop().has_value());
  EXPECT_FALSE(queue.WaitFinished(std::chrono::milliseconds(0)));
}

TEST(EventQueueTest, OfSettingsTheLatestStay) {
  EventQueue queue(kRoomy);
  queue.Push(Make(Kind::kRequest, 1));
  for (uint64_t i = 0; i < 1000; ++i)
    queue.PushSettings(Make(Kind::kSettings, i));
  EXPECT_EQ(queue.TryPop()->kind, Kind::kRequest);
  for (uint64_t i = 1000 - EventQueue::kMaxSettings; i < 1000; ++i)
    EXPECT_EQ(queue.TryPop()->call, i);
  EXPECT_FALSE(queue.TryPop().has_value());
}

}  // namespace
}  // namespace resmgr::dump
