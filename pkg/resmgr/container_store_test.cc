// SPDX-License-Identifier: Apache-2.0
#include "pkg/resmgr/container_store.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "pkg/resmgr/applied_resources.h"
#include "pkg/resmgr/brain.h"
#include "pkg/resmgr/lifecycle.h"
#include "pkg/sys/clock.h"

namespace resmgr {
namespace {

using std::chrono::seconds;
using enum LifeState;
using enum LifeEvent;

class ContainerStoreTest : public ::testing::Test {
 protected:
  ContainerStoreTest() {
    Pod pod;
    pod.id = PodSandboxId("pod");
    pod_ = &store_.PutPod(pod);
  }

  // Named by their numbers.
  std::vector<ContainerKey> AddMany(int count) {
    std::vector<ContainerKey> keys(static_cast<size_t>(count));
    std::ranges::generate(keys, [this, next = 0]() mutable { return Add(std::to_string(next++)); });
    return keys;
  }
  ContainerKey Add(const std::string& name) {
    ContainerRecord& record = store_.Add(*pod_, name);
    ContainerId id("id of " + name);
    EXPECT_TRUE(store_.SetId(record, id));
    return record.container.key;
  }
  std::string NameOf(ContainerKey key) const {
    const ContainerRecord* const record = store_.Find(key);
    return record == nullptr ? "none" : record->container.name;
  }

  ContainerStore store_;
  PodRecord* pod_;
};

// More containers than are remembered as looked for lately, asked for in all orders.
TEST_F(ContainerStoreTest, FindsEachOfManyByItsKey) {
  const std::vector<ContainerKey> keys = AddMany(300);
  for (const size_t step : {1U, 7U, 64U, 128U, 299U}) {
    for (size_t i = 0; i < keys.size(); ++i) {
      const size_t at = i * step % keys.size();
      ASSERT_EQ(NameOf(keys[at]), std::to_string(at));
      ASSERT_EQ(store_.Find(keys[at])->container.key, keys[at]);
    }
  }
}

TEST_F(ContainerStoreTest, DoesNotFindWhatIsErased) {
  const std::vector<ContainerKey> keys = AddMany(130);
  for (size_t i = 0; i < keys.size(); i += 2) {
    ASSERT_NE(store_.Find(keys[i]), nullptr);
    store_.Erase(keys[i]);
    ASSERT_EQ(store_.Find(keys[i]), nullptr);
    ASSERT_EQ(NameOf(keys[i]), "none");
  }
  for (size_t i = 1; i < keys.size(); i += 2)
    ASSERT_EQ(NameOf(keys[i]), std::to_string(i));
}

TEST_F(ContainerStoreTest, AnIdBelongsToOneContainer) {
  Add("first");
  ContainerRecord& second = store_.Add(*pod_, "second");
  ContainerId taken("id of first");
  EXPECT_FALSE(store_.SetId(second, taken));
  EXPECT_EQ(taken, ContainerId("id of first"));
  EXPECT_EQ(store_.FindById(taken)->container.name, "first");
  EXPECT_TRUE(second.container.id.empty());
}

TEST_F(ContainerStoreTest, PodsKeepTheirPlaceWhileOthersComeAndGo) {
  for (int i = 0; i < 200; ++i) {
    Pod other;
    other.id = PodSandboxId("other " + std::to_string(i));
    store_.PutPod(other);
  }
  EXPECT_EQ(store_.FindPod(PodSandboxId("pod")), pod_);
  for (int i = 0; i < 200; ++i)
    store_.ErasePod(PodSandboxId("other " + std::to_string(i)));
  EXPECT_EQ(store_.FindPod(PodSandboxId("pod")), pod_);
  EXPECT_EQ(store_.FindPod(PodSandboxId("other 7")), nullptr);
}

TEST_F(ContainerStoreTest, DoesNotFindAPodThatIsErasedHoweverLatelyItWasLookedFor) {
  Pod other;
  other.id = PodSandboxId("other");
  store_.PutPod(other);
  ASSERT_NE(store_.FindPod(other.id), nullptr);
  ASSERT_NE(store_.all().FindPod(other.id), nullptr);
  store_.ErasePod(other.id);
  EXPECT_EQ(store_.FindPod(other.id), nullptr);
  EXPECT_EQ(store_.all().FindPod(other.id), nullptr);
  other.name = "again";
  store_.PutPod(other);
  EXPECT_EQ(store_.FindPod(other.id)->pod.name, "again");
  EXPECT_EQ(store_.all().FindPod(other.id)->name, "again");
  EXPECT_EQ(store_.FindPod(PodSandboxId("pod")), pod_);
}

Container Example() {
  Container container;
  container.placement.cpus = CpuSet{1, 2, 3};
  container.placement.mems = NodeSet{0};
  container.placement.exclusive = CpuSet{1};
  container.placement.cpu_quota = -1;
  container.requested.cpu_quota = 50'000;
  container.requested.cpu_shares = 512;
  return container;
}

TEST(AppliedResourcesTest, WhatThePlacementLeavesAloneIsAsRequested) {
  const AppliedResources resources = DesiredResources(Example());
  EXPECT_EQ(resources.cpu_quota, -1);
  EXPECT_EQ(resources.cpu_shares, 512);
  EXPECT_EQ(resources.cpu_period, std::nullopt);
}

TEST(AppliedResourcesTest, IsDesiredSaysWhatComparingSays) {
  const Container container = Example();
  const std::vector<std::function<void(AppliedResources&)>> changes = {
      [](AppliedResources&) {},
      [](AppliedResources& resources) {
        resources.cpus = CpuSet{1, 2};
      },
      [](AppliedResources& resources) { resources.cpus.reset(); },
      [](AppliedResources& resources) { resources.mems.reset(); },
      [](AppliedResources& resources) { resources.mems = NodeSet{1}; },
      [](AppliedResources& resources) { resources.cpu_shares = 2; },
      [](AppliedResources& resources) { resources.cpu_shares.reset(); },
      [](AppliedResources& resources) { resources.cpu_quota = 50'000; },
      [](AppliedResources& resources) { resources.cpu_period = 100'000; },
      [](AppliedResources& resources) { resources.exclusive = CpuSet(); },
  };
  for (const auto& change : changes) {
    AppliedResources resources = DesiredResources(container);
    change(resources);
    EXPECT_EQ(IsDesired(resources, container), resources == DesiredResources(container));
  }
  EXPECT_TRUE(IsDesired(DesiredResources(container), container));
  EXPECT_FALSE(IsDesired(AppliedResources(), container));
}

using Path = std::vector<LifeEvent>;

// How a container gets into each state.
const std::map<LifeState, Path>& Paths() {
  static const auto* const kPaths = new std::map<LifeState, Path>{
      {kCreating, {}},
      {kCreated, {kCreateSucceeded}},
      {kStarting, {kCreateSucceeded, kStartSent}},
      {kUnresolved, {kCreateSucceeded, kStartSent, kStartUnanswered}},
      {kRunning, {kCreateSucceeded, kStartSent, kStartSucceeded}},
      {kExited, {kCreateSucceeded, kStartSent, kStartSucceeded, kEnded}},
      {kGone, {kCreateSucceeded, kRemoved}},
  };
  return *kPaths;
}

// Every transition that changes the state. All other events leave it as it is.
const std::map<std::pair<LifeState, LifeEvent>, LifeState>& Changes() {
  static const auto* const kChanges = new std::map<std::pair<LifeState, LifeEvent>, LifeState>{
      {{kCreating, kCreateSucceeded}, kCreated},
      {{kCreating, kCreateFailed}, kGone},
      {{kCreating, kReportedCreated}, kCreated},
      {{kCreating, kReportedRunning}, kRunning},
      {{kCreating, kEnded}, kExited},
      {{kCreating, kRemoved}, kGone},

      {{kCreated, kCreateFailed}, kGone},
      {{kCreated, kStartSent}, kStarting},
      {{kCreated, kStartSucceeded}, kRunning},
      {{kCreated, kStartUnanswered}, kUnresolved},
      {{kCreated, kReportedRunning}, kRunning},
      {{kCreated, kEnded}, kExited},
      {{kCreated, kRemoved}, kGone},

      {{kStarting, kCreateFailed}, kGone},
      {{kStarting, kStartSucceeded}, kRunning},
      {{kStarting, kStartFailed}, kCreated},
      {{kStarting, kStartUnanswered}, kUnresolved},
      {{kStarting, kReportedRunning}, kRunning},
      {{kStarting, kEnded}, kExited},
      {{kStarting, kRemoved}, kGone},

      {{kUnresolved, kCreateFailed}, kGone},
      {{kUnresolved, kStartSucceeded}, kRunning},
      {{kUnresolved, kStartExpired}, kCreated},
      {{kUnresolved, kReportedRunning}, kRunning},
      {{kUnresolved, kEnded}, kExited},
      {{kUnresolved, kRemoved}, kGone},

      {{kRunning, kCreateFailed}, kGone},
      {{kRunning, kReportedCreated}, kCreated},
      {{kRunning, kEnded}, kExited},
      {{kRunning, kRemoved}, kGone},

      {{kExited, kCreateFailed}, kGone},
      {{kExited, kReportedCreated}, kCreated},
      {{kExited, kReportedRunning}, kRunning},
      {{kExited, kRevived}, kCreated},
      {{kExited, kRemoved}, kGone},
  };
  return *kChanges;
}

const char* NameOf(LifeState state) {
  constexpr std::array kNames = {"creating", "created", "starting", "unresolved",
                                 "running",  "exited",  "gone"};
  return kNames.at(static_cast<size_t>(state));
}

const char* NameOf(LifeEvent event) {
  constexpr std::array kNames = {
      "create succeeded", "create failed", "start sent",       "start succeeded",  "start failed",
      "start unanswered", "start expired", "reported created", "reported running", "ended",
      "removed",          "started again"};
  return kNames.at(static_cast<size_t>(event));
}

struct Life {
  Container container;
  Lifecycle life;

  Life& After(const Path& events) {
    for (const LifeEvent event : events)
      life.Apply(event, container);
    return *this;
  }
};

TEST(LifecycleTest, EveryEventInEveryState) {
  for (const auto& [state, path] : Paths()) {
    for (size_t i = 0; i < kLifeEvents; ++i) {
      const auto event = static_cast<LifeEvent>(i);
      Life one;
      ASSERT_EQ(one.After(path).life.state(), state);
      const auto change = Changes().find({state, event});
      const LifeState expected = change == Changes().end() ? state : change->second;
      EXPECT_EQ(one.After({event}).life.state(), expected)
          << NameOf(state) << ", " << NameOf(event);
      EXPECT_EQ(NextState(state, event), expected) << NameOf(state) << ", " << NameOf(event);
    }
  }
  EXPECT_EQ(Paths().size(), kLifeStates);
}

// The state that policies see follows each transition.
TEST(LifecycleTest, ThePublishedStateFollows) {
  const std::map<LifeState, ContainerState> published = {
      {kCreating, ContainerState::kCreating}, {kCreated, ContainerState::kCreated},
      {kStarting, ContainerState::kCreated},  {kUnresolved, ContainerState::kCreated},
      {kRunning, ContainerState::kRunning},   {kExited, ContainerState::kExited},
      {kGone, ContainerState::kExited},
  };
  for (const auto& [state, path] : Paths()) {
    for (size_t i = 0; i < kLifeEvents; ++i) {
      Life one;
      one.After(path).After({static_cast<LifeEvent>(i)});
      EXPECT_EQ(one.container.state, published.at(one.life.state()));
    }
  }
}

// A client that gave up sends the same start again while the first one is under way.
TEST(LifecycleTest, ARefusedStartLeavesAnotherOneUnderWay) {
  Life one;
  one.After({kCreateSucceeded, kStartSent, kStartSent, kStartFailed});
  EXPECT_EQ(one.life.state(), kStarting);
  EXPECT_EQ(one.After({kStartFailed}).life.state(), kCreated);
}

TEST(LifecycleTest, AnExpiredStartLeavesAnotherOneUnderWay) {
  Life one;
  one.After({kCreateSucceeded, kStartSent, kStartUnanswered, kStartSent, kStartExpired});
  EXPECT_EQ(one.life.state(), kStarting);
}

// The container counted as exited while it was being started; the start is still under way.
TEST(LifecycleTest, AStartOfAnExitedContainerCountsWhenItIsReportedCreated) {
  Life one;
  one.After({kCreateSucceeded, kEnded, kStartSent, kReportedCreated});
  EXPECT_EQ(one.life.state(), kStarting);
}

TEST(LifecycleTest, AnEndForgetsTheStartsThatWereUnderWay) {
  Life one;
  one.After({kCreateSucceeded, kStartSent, kEnded, kReportedCreated});
  EXPECT_EQ(one.life.state(), kCreated);
}

// A runtime that restarts it reports it running, exited and running again meanwhile.
TEST(LifecycleTest, ComesBackUntilItsStartIsOver) {
  Life restarted;
  restarted.After({kCreateSucceeded, kStartSent, kStartSucceeded, kStartSent});
  EXPECT_FALSE(restarted.life.ComesBack()) << "most runtimes refuse such a start";
  restarted.life.ExpectReturn();
  EXPECT_TRUE(restarted.After({kReportedRunning}).life.ComesBack());
  EXPECT_FALSE(restarted.After({kStartSucceeded}).life.ComesBack());

  Life revived;
  revived.After({kCreateSucceeded, kStartSent, kStartSucceeded, kEnded, kRevived});
  EXPECT_TRUE(revived.life.ComesBack());
  EXPECT_TRUE(revived.After({kStartSent, kStartUnanswered}).life.ComesBack());
  EXPECT_FALSE(revived.After({kReportedRunning}).life.ComesBack());
  EXPECT_FALSE(revived.After({kEnded, kRevived, kEnded}).life.ComesBack());
}

TEST(LifecycleTest, TheCpusAreUnknownAsLongAsTheStartIsUnresolved) {
  Life one;
  one.After({kCreateSucceeded}).life.SetCpusUnknown();
  EXPECT_FALSE(one.life.MayComeUpAnywhere()) << "no start is unresolved";
  one.After({kStartUnanswered}).life.SetCpusUnknown();
  EXPECT_TRUE(one.After({kStartUnanswered, kStartFailed}).life.MayComeUpAnywhere());
  EXPECT_FALSE(one.After({kStartExpired}).life.MayComeUpAnywhere());
  EXPECT_FALSE(one.After({kStartUnanswered}).life.MayComeUpAnywhere());
}

TEST(LifecycleTest, WhatMayRun) {
  for (const auto& [state, path] : Paths()) {
    Life one;
    one.After(path);
    const bool starting = state == kStarting || state == kUnresolved;
    EXPECT_EQ(one.life.BeingStarted(), starting) << NameOf(state);
    EXPECT_EQ(one.life.MayRun(), starting || state == kRunning) << NameOf(state);
  }
}

class LookAgainTimersTest : public testing::Test {
 protected:
  ContainerRecord Record(ContainerState state) {
    ContainerRecord record(pod_);
    record.container.key = ContainerKey{1};
    record.container.state = state;
    record.container.placement.look_again_after = seconds(60);
    return record;
  }

  PodRecord pod_;
  ManualClock clock_;
  std::vector<ContainerKey> due_;
  LookAgainTimers timers_{clock_, [this](ContainerKey key) { due_.push_back(key); }};
};

TEST_F(LookAgainTimersTest, AContainerIsDueOnceAfterItsTime) {
  const ContainerRecord record = Record(ContainerState::kRunning);
  timers_.Follow(record);
  clock_.Advance(seconds(30));
  timers_.Follow(record);
  EXPECT_EQ(clock_.timers(), 1U);
  clock_.Advance(std::chrono::milliseconds(29'999));
  EXPECT_TRUE(due_.empty());
  clock_.Advance(std::chrono::milliseconds(1));
  EXPECT_EQ(due_, std::vector<ContainerKey>{ContainerKey{1}});
  clock_.Advance(seconds(3600));
  EXPECT_EQ(due_.size(), 1U);
}

TEST_F(LookAgainTimersTest, TheTimeCountsFromTheStart) {
  const struct {
    const char* what;
    seconds age;
    seconds left;
  } rows[] = {
      {"it runs", seconds(59), seconds(1)},
      {"the time has passed", seconds(3600), seconds(0)},
      {"the runtime's clock is in the future", seconds(-3600), seconds(60)},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.what);
    due_.clear();
    ContainerRecord record = Record(ContainerState::kRunning);
    record.started_at = clock_.Now() - row.age;
    timers_.Follow(record);
    EXPECT_TRUE(due_.empty()) << "never within the call";
    clock_.Advance(row.left);
    EXPECT_EQ(due_.size(), 1U);
  }
}

TEST_F(LookAgainTimersTest, TheTimerWaitsForTheStart) {
  ContainerRecord record = Record(ContainerState::kCreated);
  timers_.Follow(record);
  clock_.Advance(seconds(100));
  record.container.state = ContainerState::kRunning;
  record.started_at = clock_.Now();
  timers_.Follow(record);
  clock_.Advance(seconds(59));
  EXPECT_TRUE(due_.empty());
  clock_.Advance(seconds(1));
  EXPECT_EQ(due_.size(), 1U);
}

TEST_F(LookAgainTimersTest, ATimerEndsWithItsContainerOrPlacement) {
  timers_.Follow(Record(ContainerState::kRunning));
  timers_.Forget(ContainerKey{1});
  EXPECT_EQ(clock_.timers(), 0U);
  timers_.Follow(Record(ContainerState::kRunning));
  timers_.Follow(Record(ContainerState::kExited));
  EXPECT_EQ(clock_.timers(), 0U);
  ContainerRecord record = Record(ContainerState::kRunning);
  timers_.Follow(record);
  record.container.placement.look_again_after = seconds(0);
  timers_.Follow(record);
  clock_.Advance(seconds(100));
  EXPECT_TRUE(due_.empty());
}

}  // namespace
}  // namespace resmgr
