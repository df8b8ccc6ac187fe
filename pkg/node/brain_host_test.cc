// SPDX-License-Identifier: Apache-2.0
#include "pkg/node/brain_host.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/node/testing/fake_door.h"
#include "pkg/resmgr/testing/first_fit_policy.h"
#include "pkg/topology/machine_source.h"

namespace resmgr {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::IsEmpty;

class BrainHostTest : public testing::Test {
 protected:
  std::unique_ptr<test::FirstFitPolicy> FirstFit() {
    return std::make_unique<test::FirstFitPolicy>(machine_);
  }
  test::FakeDoor::Link& link() { return *door_.links().back(); }
  const test::FakeDoor::History& history() const { return *door_.history(); }

  void SetPolicy(std::unique_ptr<Policy> policy) {
    result_.reset();
    host_->SetPolicy(std::move(policy), [this](const Status& status) { result_ = status; });
  }
  void RunUntil(const std::function<bool()>& condition) {
    const auto poll = loop_.Every(milliseconds(1), [&] {
      if (condition()) loop_.Stop();
    });
    const auto late = loop_.After(std::chrono::seconds(60), [this] {
      ADD_FAILURE() << "it takes too long";
      loop_.Stop();
    });
    loop_.Run();
  }

  const Machine machine_ = *LoadMachine("synthetic:core:4 pu:1");
  EventLoop loop_;
  test::FakeDoor door_;
  std::optional<Status> result_;
  std::optional<BrainHost> host_{
      std::in_place,
      BrainHost::Options{
          .loop = loop_, .machine = machine_, .door = door_, .drain_check = milliseconds(5)}};
};

TEST_F(BrainHostTest, UnderTheNullPolicyThereIsNoBrain) {
  host_->Start(nullptr);
  EXPECT_EQ(host_->manager(), nullptr);
  EXPECT_EQ(host_->RuntimeState(), "not used");
  EXPECT_THAT(history(), IsEmpty());
}

// The other way round the runtime could tell of something that the door let pass unread.
TEST_F(BrainHostTest, RequestsAreDecidedBeforeTheRuntimeIsListed) {
  host_->Start(FirstFit());
  EXPECT_THAT(history(), ElementsAre("active 1", "connect 1"));
  EXPECT_EQ(link().attached, host_->manager());
}

TEST_F(BrainHostTest, TellsWhyTheRuntimeIsNotConnected) {
  host_->Start(FirstFit());
  EXPECT_EQ(host_->RuntimeState(), "connected");
  link().connection = Unavailable("no such socket");
  EXPECT_EQ(host_->RuntimeState(), "no such socket");
}

TEST_F(BrainHostTest, AChangeToNullDestroysTheBrainOnceItsRequestsAreOver) {
  host_->Start(FirstFit());
  link().Synchronize();
  link().requests = 1;
  SetPolicy(nullptr);
  RunUntil([this] { return result_.has_value(); });
  EXPECT_EQ(*result_, OkStatus());
  EXPECT_EQ(host_->manager(), nullptr);
  RunUntil([this] { return history().back() == "retire 1"; });
  EXPECT_THAT(history(), ElementsAre("active 1", "connect 1", "active none", "retire 1"));
  bool checked = false;
  const auto later = loop_.After(milliseconds(50), [&checked] { checked = true; });
  RunUntil([&checked] { return checked; });
  ASSERT_EQ(door_.links().size(), 1u) << "a request is under way";
  link().requests = 0;
  RunUntil([this] { return door_.links().empty(); });
  EXPECT_EQ(history().back(), "end 1");
}

TEST_F(BrainHostTest, AChangeFromNullTakesOverWhatRunsFirst) {
  door_.runtime_is_up = true;
  host_->Start(nullptr);
  SetPolicy(FirstFit());
  EXPECT_THAT(history(), ElementsAre("active 1", "connect 1"));
  EXPECT_FALSE(result_.has_value()) << "what runs is not known yet";
  link().client.AnswerList();
  RunUntil([this] { return result_.has_value(); });
  EXPECT_EQ(*result_, OkStatus());
  EXPECT_EQ(host_->manager()->policy().name(), "first-fit");
}

TEST_F(BrainHostTest, AChangeFromNullDoesNotWaitForARuntimeThatIsAway) {
  host_->Start(nullptr);
  SetPolicy(FirstFit());
  EXPECT_EQ(result_, OkStatus());
}

TEST_F(BrainHostTest, ANewBrainStopsOneThatIsRetired) {
  host_->Start(FirstFit());
  link().Synchronize();
  link().requests = 1;
  SetPolicy(nullptr);
  RunUntil([this] { return history().back() == "retire 1"; });
  test::FakeDoor::Link& former = link();
  SetPolicy(FirstFit());
  EXPECT_EQ(history().back(), "connect 2");
  link().Synchronize();
  const size_t lists = former.client.lists.size();
  former.events.connected();
  EXPECT_EQ(former.client.lists.size(), lists) << "it asks the runtime for nothing";
  former.requests = 0;
  RunUntil([this] { return history().back() == "end 1"; });
}

TEST_F(BrainHostTest, APreviewWithoutABrainMovesNothing) {
  host_->Start(nullptr);
  const auto policy = FirstFit();
  const auto moves = host_->PreviewPolicy(policy.get());
  ASSERT_EQ(moves.status(), OkStatus());
  EXPECT_THAT(*moves, IsEmpty());
}

}  // namespace
}  // namespace resmgr
