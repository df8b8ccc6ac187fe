// SPDX-License-Identifier: Apache-2.0
#include "pkg/runtime/inventory.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/runtime/testing/inventory_test_fixture.h"
#include "test/support/status_matchers.h"

namespace resmgr::test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

class InventoryTest : public testing::Test {
 protected:
  // Attaches the view; the runtime has nothing.
  void AttachToNothing() {
    view_.Attach();
    Turn();
    runtime_.AnswerList();
    ASSERT_TRUE(inventory_.ready());
  }
  // Runs the tasks that were put off to the next turn of the loop.
  void Turn() { clock_.Advance(std::chrono::milliseconds(0)); }
  void AddPod(const std::string& id) {
    runtime_.HavePod(id);
    view_.AddPod(id);
  }
  void AddContainer(const std::string& id, const std::string& pod) {
    runtime_.HaveContainer(id, pod);
    view_.AddContainer(id, pod);
  }
  void Refresh() {
    inventory_.Refresh();
    runtime_.AnswerList();
  }

  ManualClock clock_;
  ListedRuntime runtime_;
  Inventory inventory_{clock_, runtime_};
  NamedView view_{inventory_};
};

TEST_F(InventoryTest, AListTellsTheViewWhatTheRuntimeHas) {
  runtime_.HavePod("p");
  runtime_.HaveContainer("c", "p");
  runtime_.HaveContainer("orphan", "unknown");
  view_.Attach();
  Turn();
  EXPECT_FALSE(inventory_.ready());
  runtime_.AnswerList();
  EXPECT_TRUE(inventory_.ready());
  EXPECT_THAT(view_.All(), UnorderedElementsAre("p", "c"));
}

TEST_F(InventoryTest, WithoutAViewItAsksNothingAndHoldsNothing) {
  inventory_.Refresh();
  inventory_.SetValues(ContainerId("c"), {.cpu_shares = 2});
  (void)inventory_.AddPod(PodSandboxId("p"));
  EXPECT_EQ(runtime_.lists(), 0u);
  EXPECT_THAT(inventory_.pods(), IsEmpty());

  AttachToNothing();
  AddPod("p");
  view_.Detach();
  EXPECT_THAT(inventory_.pods(), IsEmpty());
  EXPECT_FALSE(inventory_.ready());
  EXPECT_EQ(clock_.timers(), 0u);
}

// The view's slot may be that of another view.
TEST_F(InventoryTest, AViewThatIsNotAttachedHasNoData) {
  NamedView other(inventory_);
  AttachToNothing();
  AddPod("p");
  AddContainer("c", "p");
  EXPECT_THAT(other.All(), IsEmpty());
  EXPECT_EQ(other.FindPod("p"), nullptr);
  other.Attach();
  Turn();
  runtime_.AnswerList();
  EXPECT_THAT(other.All(), UnorderedElementsAre("p", "c"));
  view_.Detach();
  const auto of_other = other.FindPod("p");
  NamedView third(inventory_);
  third.Attach();
  EXPECT_THAT(view_.All(), IsEmpty()) << "the third view has its slot";
  AddPod("q");
  EXPECT_THAT(view_.All(), IsEmpty());
  EXPECT_EQ(third.FindPod("q"), nullptr) << "only its own data";
  EXPECT_EQ(other.FindPod("p"), of_other);
}

// The list's answer may be older than the present knowledge.
TEST_F(InventoryTest, AListForAViewThatIsGoneAddsNothing) {
  runtime_.HavePod("p");
  view_.Attach();
  Turn();
  view_.Detach();
  runtime_.AnswerList();
  EXPECT_THAT(inventory_.pods(), IsEmpty());
  EXPECT_FALSE(inventory_.ready());
}

TEST_F(InventoryTest, EachViewHasItsOwnData) {
  AttachToNothing();
  AddPod("p");
  NamedView second(inventory_);
  second.Attach();
  Turn();
  EXPECT_THAT(second.All(), IsEmpty());
  runtime_.AnswerList();
  EXPECT_THAT(second.All(), ElementsAre("p"));
  EXPECT_NE(second.FindPod("p"), view_.FindPod("p"));
  view_.Detach();
  EXPECT_THAT(second.All(), ElementsAre("p"));
  second.Detach();
}

TEST_F(InventoryTest, AsksUntilTheRuntimeAnswers) {
  runtime_.failure = Unavailable("not there");
  std::vector<StatusCode> ended;
  view_.Attach();
  Turn();
  inventory_.AfterRefresh([&](const Status& status) { ended.push_back(status.code()); });
  runtime_.AnswerList();
  EXPECT_THAT(ended, IsEmpty()) << "the list had begun before the question";
  clock_.Advance(Inventory::kRetry);
  runtime_.AnswerList();
  EXPECT_THAT(ended, ElementsAre(StatusCode::kUnavailable));
  EXPECT_FALSE(inventory_.ready());
  // A question that comes meanwhile waits for the next list.
  inventory_.AfterRefresh([&](const Status& status) { ended.push_back(status.code()); });
  EXPECT_EQ(runtime_.lists(), 0u);
  runtime_.failure = OkStatus();
  clock_.Advance(Inventory::kRetry);
  runtime_.AnswerList();
  EXPECT_TRUE(inventory_.ready());
  EXPECT_THAT(ended, ElementsAre(StatusCode::kUnavailable, StatusCode::kOk));
}

TEST_F(InventoryTest, AListThatMayMissSomethingIsFollowedByOneMore) {
  view_.Attach();
  Turn();
  inventory_.Refresh();
  inventory_.Refresh();
  EXPECT_EQ(runtime_.lists(), 1u);
  runtime_.AnswerList();
  EXPECT_EQ(runtime_.lists(), 1u);
  runtime_.AnswerList();
  EXPECT_EQ(runtime_.lists(), 0u);
}

// Both learn of the connect, and the other user lists first.
TEST_F(InventoryTest, TheListOfAnotherUserServesAsWell) {
  AttachToNothing();
  runtime_.HavePod("p");
  inventory_.RefreshSoon();
  auto take = inventory_.TakeOthersList();
  ASSERT_TRUE(take);
  EXPECT_FALSE(inventory_.TakeOthersList()) << "one is enough";
  Turn();
  view_.AddPod("created");
  EXPECT_EQ(runtime_.lists(), 0u);
  take(runtime_.Now());
  take = nullptr;
  Turn();
  EXPECT_EQ(runtime_.lists(), 0u);
  EXPECT_THAT(view_.All(), UnorderedElementsAre("p", "created"));
}

TEST_F(InventoryTest, WhereTheOtherUsersListFailsItListsItself) {
  view_.Attach();
  auto take = inventory_.TakeOthersList();
  int ready = 0;
  inventory_.WhenReady([&ready] { ++ready; });
  // The connection is given up.
  take = nullptr;
  Turn();
  EXPECT_EQ(runtime_.lists(), 0u);
  clock_.Advance(Inventory::kRetry);
  EXPECT_EQ(ready, 0);
  runtime_.AnswerList();
  EXPECT_EQ(ready, 1);

  inventory_.RefreshSoon();
  take = inventory_.TakeOthersList();
  // This may have happened after the list.
  inventory_.Refresh();
  take(Unavailable("lost"));
  clock_.Advance(Inventory::kRetry);
  EXPECT_EQ(runtime_.lists(), 1u);
}

TEST_F(InventoryTest, AListUnderWayServesAViewThatComesUnlessSomethingHappened) {
  view_.Attach();
  Turn();
  NamedView second(inventory_);
  second.Attach();
  Turn();
  runtime_.AnswerList();
  EXPECT_EQ(runtime_.lists(), 0u);
  inventory_.Refresh();
  AddPod("p");
  NamedView third(inventory_);
  second.Detach();
  third.Attach();
  runtime_.FreezeList();
  runtime_.AnswerList();
  EXPECT_EQ(runtime_.lists(), 1u);
}

TEST_F(InventoryTest, AListDropsWhatIsGone) {
  AttachToNothing();
  AddPod("kept");
  AddPod("gone");
  AddContainer("old", "kept");
  AddContainer("lost", "gone");
  runtime_.RemoveContainer("old");
  runtime_.RemovePod("gone");
  Refresh();
  EXPECT_THAT(view_.All(), ElementsAre("kept"));
  EXPECT_THAT(view_.gone, ElementsAre("lost", "old", "gone"));
}

TEST_F(InventoryTest, WhatHappensDuringAListIsNotUndoneByIt) {
  AttachToNothing();
  AddPod("removed");
  inventory_.Refresh();
  // The answer is as old as the question.
  runtime_.FreezeList();
  AddPod("created");
  AddContainer("c", "created");
  inventory_.Remove(PodSandboxId("removed"));
  runtime_.AnswerList();
  EXPECT_THAT(view_.All(), UnorderedElementsAre("created", "c"));
  // The next list does not know the removals during the former one.
  Refresh();
  EXPECT_THAT(view_.All(), UnorderedElementsAre("created", "c", "removed"));
}

TEST_F(InventoryTest, ARuntimeThatIsAwayKeepsItsObjects) {
  AttachToNothing();
  AddPod("p");
  AddContainer("c", "p");
  runtime_.RemoveContainer("c");
  runtime_.RemovePod("p");
  runtime_.unlisted = {"p", "c", "never-heard-of"};
  Refresh();
  EXPECT_THAT(view_.All(), UnorderedElementsAre("p", "c"));
}

TEST_F(InventoryTest, APodTakesItsContainersWithIt) {
  AttachToNothing();
  AddPod("p");
  AddPod("q");
  AddContainer("c", "p");
  AddContainer("d", "q");
  inventory_.Remove(PodSandboxId("p"));
  EXPECT_THAT(view_.All(), UnorderedElementsAre("q", "d"));
  EXPECT_THAT(view_.gone, ElementsAre("p"));
}

TEST_F(InventoryTest, EventsTellTheEnd) {
  AttachToNothing();
  AddPod("p");
  AddContainer("c", "p");
  inventory_.OnEvent({.kind = ContainerEvent::Kind::kStopped, .id = "c"});
  inventory_.OnEvent({.kind = ContainerEvent::Kind::kDeleted, .id = ""});
  inventory_.OnEvent({.kind = ContainerEvent::Kind::kDeleted, .id = "unknown"});
  EXPECT_THAT(view_.stopped, ElementsAre("c"));
  EXPECT_THAT(view_.All(), UnorderedElementsAre("p", "c"));
  inventory_.OnEvent({.kind = ContainerEvent::Kind::kDeleted, .id = "c"});
  EXPECT_THAT(view_.All(), ElementsAre("p"));
  inventory_.OnEvent({.kind = ContainerEvent::Kind::kDeleted, .id = "p"});
  EXPECT_THAT(view_.All(), IsEmpty());
}

TEST_F(InventoryTest, CallsThatPassTellTheEnd) {
  constexpr int kNotFound = 5;
  constexpr int kInternal = 13;
  AttachToNothing();
  AddPod("pod");
  for (const std::string id : {"c1", "c2", "c3"})
    AddContainer(id, "pod");
  const auto end = [this](Operation operation, const std::string& id, int code) {
    TestRequest request(operation, id);
    inventory_.TakeOutcome(request, {.code = code});
  };
  end(Operation::kStopContainer, "c1", 0);
  end(Operation::kRemoveContainer, "c1", kInternal);
  end(Operation::kStartContainer, "c1", kNotFound);
  EXPECT_THAT(view_.gone, IsEmpty());
  end(Operation::kRemoveContainer, "c1", 0);
  end(Operation::kStopContainer, "c2", kNotFound);
  EXPECT_THAT(view_.gone, ElementsAre("c1", "c2"));
  end(Operation::kStopPodSandbox, "pod", 0);
  EXPECT_THAT(view_.All(), UnorderedElementsAre("pod", "c3"));
  // Runtimes accept the beginning of an id.
  end(Operation::kRemovePodSandbox, "po", 0);
  EXPECT_THAT(view_.All(), IsEmpty());
  EXPECT_EQ(runtime_.lists(), 0u);
}

TEST_F(InventoryTest, AnUnclearOutcomeListsEverything) {
  AttachToNothing();
  TestRequest request(Operation::kUpdateContainerResources, "c");
  inventory_.TakeOutcome(request, {.known = false});
  Turn();
  EXPECT_EQ(runtime_.lists(), 1u);
}

// Two stages report the same outcome, as those of hook servers and NRI plugins do.
TEST_F(InventoryTest, TwoReportsOfAnUnclearOutcomeListOnce) {
  AttachToNothing();
  TestRequest request(Operation::kUpdateContainerResources, "c");
  inventory_.TakeOutcome(request, {.known = false});
  inventory_.TakeOutcome(request, {.known = false});
  inventory_.AfterRefresh([](const Status&) {});
  Turn();
  EXPECT_EQ(runtime_.lists(), 1u);
  runtime_.AnswerList();
  EXPECT_EQ(runtime_.lists(), 0u);
}

// Clients may write any id, so the number of noted removals during a question is bounded.
TEST_F(InventoryTest, AnAnswerWithVeryManyRemovalsMeanwhileIsAFailure) {
  AttachToNothing();
  AddPod("p");
  inventory_.Refresh();
  runtime_.FreezeList();
  std::optional<StatusOr<std::shared_ptr<std::string>>> found;
  view_.LookUp(PodSandboxId("p"), [&](auto pod) { found.emplace(std::move(pod)); });
  for (size_t i = 0; i < Inventory::kMostRemovals; ++i)
    inventory_.Remove(ContainerId("unknown" + std::to_string(i)));
  inventory_.Remove(PodSandboxId("p"));
  runtime_.AnswerList();
  runtime_.AnswerQuestion();
  EXPECT_THAT(view_.All(), IsEmpty());
  ASSERT_TRUE(found);
  EXPECT_EQ(found->status().code(), StatusCode::kUnavailable);
  runtime_.RemovePod("p");
  clock_.Advance(Inventory::kRetry);
  ASSERT_EQ(runtime_.lists(), 1u);
  runtime_.AnswerList();
  clock_.Advance(Inventory::kRetry);
  EXPECT_EQ(runtime_.lists(), 0u);
}

TEST_F(InventoryTest, IdsThatNoRuntimeHasAreNotNoted) {
  AttachToNothing();
  inventory_.Refresh();
  for (size_t i = 0; i <= Inventory::kMostRemovals; ++i)
    inventory_.Remove(ContainerId(std::string(Inventory::kLongestId, 'x') + std::to_string(i)));
  runtime_.AnswerList();
  clock_.Advance(Inventory::kRetry);
  EXPECT_EQ(runtime_.lists(), 0u);
}

TEST_F(InventoryTest, FindsByAnUnambiguousBeginningOnly) {
  AttachToNothing();
  AddPod("abc1");
  AddPod("abc2");
  EXPECT_EQ(view_.FindPod("abc1"), view_.FindPod("abc1"));
  EXPECT_NE(view_.FindPod("abc1"), nullptr);
  EXPECT_EQ(view_.FindPod("abc"), nullptr);
  EXPECT_EQ(view_.FindPod(""), nullptr);
  EXPECT_EQ(view_.FindPod("x"), nullptr);
}

TEST_F(InventoryTest, ASearchWaitsForTheFirstList) {
  runtime_.HavePod("p");
  view_.Attach();
  Turn();
  std::optional<StatusOr<std::shared_ptr<std::string>>> found;
  view_.LookUp(PodSandboxId("p"), [&](auto pod) { found.emplace(std::move(pod)); });
  EXPECT_EQ(runtime_.questions(), 0u);
  runtime_.AnswerList();
  ASSERT_TRUE(found && found->ok());
  EXPECT_EQ(***found, "p");
}

TEST_F(InventoryTest, ASearchAsksForAContainerAndThenForItsPod) {
  AttachToNothing();
  runtime_.HavePod("p");
  runtime_.HaveContainer("c", "p");
  std::optional<StatusOr<std::shared_ptr<std::string>>> found;
  view_.LookUp(ContainerId("c"), [&](auto container) { found.emplace(std::move(container)); });
  EXPECT_FALSE(found);
  runtime_.AnswerQuestion();
  EXPECT_FALSE(found);
  runtime_.AnswerQuestion();
  ASSERT_TRUE(found && found->ok());
  EXPECT_EQ(**found, view_.FindContainer("c"));
  EXPECT_THAT(view_.All(), UnorderedElementsAre("p", "c"));
  view_.LookUp(ContainerId("d"), [&](auto container) { found.emplace(std::move(container)); });
  runtime_.AnswerQuestion();
  EXPECT_EQ(found->status().code(), StatusCode::kNotFound);
}

// The container's facts were right at the time of the answer.
TEST_F(InventoryTest, AnAnswerIsAsOldAsItsQuestion) {
  AttachToNothing();
  runtime_.HavePod("p");
  runtime_.HaveContainer("c", "p");
  StatusCode found = StatusCode::kOk;
  const auto look_up = [&] {
    view_.LookUp(ContainerId("c"),
                 [&](const auto& container) { found = container.status().code(); });
    runtime_.AnswerQuestion();
  };
  look_up();
  inventory_.OnEvent({.kind = ContainerEvent::Kind::kDeleted, .id = "c"});
  runtime_.AnswerQuestion();
  EXPECT_EQ(found, StatusCode::kNotFound);
  look_up();
  EXPECT_EQ(found, StatusCode::kOk) << "the removal is older than the question";
  // A list that is newer than the question.
  inventory_.Remove(PodSandboxId("p"));
  look_up();
  runtime_.RemoveContainer("c");
  inventory_.Refresh();
  runtime_.AnswerQuestion();
  EXPECT_THAT(view_.All(), UnorderedElementsAre("p", "c"));
  runtime_.AnswerList();
  EXPECT_THAT(view_.All(), ElementsAre("p"));
}

TEST_F(InventoryTest, NothingIsToldAfterTheEndOfAView) {
  AttachToNothing();
  std::optional<NamedView> late(std::in_place, inventory_);
  late->Attach();
  Turn();
  late->LookUp(ContainerId("c"), [](const auto&) { ADD_FAILURE(); });
  late->AfterRefresh([](const auto&) { ADD_FAILURE(); });
  late.reset();
  runtime_.AnswerQuestion();
  runtime_.AnswerList();
  runtime_.AnswerList();
}

TEST_F(InventoryTest, AnInventoryThatGrowsIsComparedWithTheRuntime) {
  AttachToNothing();
  for (size_t i = 0; i <= Inventory::kLeastGrowth; ++i)
    view_.AddPod("p" + std::to_string(i));
  ASSERT_EQ(runtime_.lists(), 1u);
  runtime_.AnswerList();
  EXPECT_THAT(view_.All(), IsEmpty());
}

TEST_F(InventoryTest, HoldsOnlyWhatExists) {
  AttachToNothing();
  AddPod("p");
  for (int i = 0; i < 10'000; ++i) {
    const std::string id = "c" + std::to_string(i);
    view_.AddContainer(id, "p");
    inventory_.Remove(ContainerId(id));
  }
  EXPECT_EQ(inventory_.pods().size() + inventory_.containers().size(), 1u);
  EXPECT_EQ(runtime_.lists(), 0u);
}

}  // namespace
}  // namespace resmgr::test
