// SPDX-License-Identifier: Apache-2.0
// Random lives of pods and containers at a runtime, with calls that pass, events and lists that are
// late, lost or doubled: at rest every view has the runtime's objects.
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "pkg/runtime/testing/inventory_test_fixture.h"
#include "test/support/seed.h"

namespace resmgr::test {
namespace {

class World {
 public:
  explicit World(uint64_t seed) : random_(seed) { first_.Attach(); }

  void Step() {
    clock_.Advance(std::chrono::milliseconds(0));
    switch (Draw(17)) {
      case 0:
      case 1:
        return CreatePod();
      case 2:
      case 3:
      case 4:
        return CreateContainer();
      case 5:
      case 6:
        return EndContainer();
      case 7:
        return EndPod();
      case 8:
        return DeliverEvent();
      case 9:
        return runtime_.FreezeList();
      case 10:
      case 11:
        return runtime_.AnswerList();
      case 12:
        return runtime_.AnswerQuestion();
      case 13:
        return LookUp();
      case 14:
        return Restart();
      case 15:
        return Connect();
      default:
        return Second();
    }
  }

  // Brings the node to rest: all events arrive, the connection stands, and all questions are
  // answered.
  void Rest() {
    runtime_.failure = OkStatus();
    EndOthersList();
    while (!events_.empty())
      DeliverEvent();
    // Lists everything, as after a connect, so that unnoticed changes are found.
    inventory_.Refresh();
    for (int i = 0; i < 100 && (runtime_.lists() + runtime_.questions() > 0 || i < 2); ++i) {
      runtime_.AnswerQuestion();
      runtime_.AnswerList();
      clock_.Advance(Inventory::kRetry);
    }
    ASSERT_EQ(runtime_.lists() + runtime_.questions(), 0u);
    EXPECT_EQ(first_.All(), runtime_.All());
    if (second_) {
      EXPECT_EQ(second_->All(), runtime_.All());
    }
    EXPECT_EQ(inventory_.pods().size() + inventory_.containers().size(), runtime_.All().size());
  }

 private:
  // The part of a call's outcome that a stage sees.
  enum class Seen { kAll, kUnclear, kNothing };

  size_t Draw(size_t below) { return random_() % below; }
  Seen DrawSeen() {
    const size_t drawn = Draw(8);
    return drawn == 0 ? Seen::kUnclear : drawn == 1 ? Seen::kNothing : Seen::kAll;
  }
  template <typename Set>
  std::string Any(const Set& ids) {
    return ids.empty() ? "none" : *std::next(ids.begin(), static_cast<long>(Draw(ids.size())));
  }
  // Another client's call is not seen; only an event or a list reports it.
  void Tell(Operation operation, const std::string& id, Seen seen) {
    TestRequest request(operation, id);
    if (seen == Seen::kNothing) return inventory_.Refresh();
    inventory_.TakeOutcome(request, {.known = seen == Seen::kAll});
  }
  void CreatePod() {
    const std::string id = "pod" + std::to_string(++made_);
    runtime_.HavePod(id);
    pods_.push_back(id);
    const Seen seen = DrawSeen();
    Tell(Operation::kRunPodSandbox, id, seen);
    if (seen != Seen::kAll) return;
    first_.AddPod(id);
    if (second_) second_->AddPod(id);
  }
  void CreateContainer() {
    if (pods_.empty()) return;
    const std::string id = "container" + std::to_string(++made_);
    const std::string pod = Any(pods_);
    runtime_.HaveContainer(id, pod);
    containers_.push_back(id);
    const Seen seen = DrawSeen();
    Tell(Operation::kCreateContainer, id, seen);
    if (seen != Seen::kAll) return;
    first_.AddContainer(id, pod);
    if (second_) second_->AddContainer(id, pod);
    // The pod may not be known: it was created by another client.
    if (first_.FindPod(pod) == nullptr) inventory_.Refresh();
  }
  void EndContainer() {
    if (containers_.empty()) return;
    const std::string id = Any(containers_);
    std::erase(containers_, id);
    runtime_.RemoveContainer(id);
    events_.push_back({.kind = ContainerEvent::Kind::kDeleted, .id = id});
    if (Draw(2) == 0) Tell(Operation::kRemoveContainer, id, DrawSeen());
  }
  void EndPod() {
    if (pods_.empty()) return;
    const std::string id = Any(pods_);
    std::erase(pods_, id);
    runtime_.RemovePod(id);
    events_.push_back({.kind = ContainerEvent::Kind::kStopped, .id = id});
    events_.push_back({.kind = ContainerEvent::Kind::kDeleted, .id = id});
    if (Draw(2) == 0) Tell(Operation::kRemovePodSandbox, id, DrawSeen());
  }
  // Delivers events in any order.
  void DeliverEvent() {
    if (events_.empty()) return;
    const auto event = events_.begin() + static_cast<long>(Draw(events_.size()));
    inventory_.OnEvent(*event);
    events_.erase(event);
  }
  void LookUp() {
    if (containers_.empty()) return;
    first_.LookUp(ContainerId(Any(containers_)), [](const auto&) {});
  }
  // The runtime goes away, or comes back without objects that it lost meanwhile, which no event
  // reports.
  void Restart() {
    if (!runtime_.failure.ok()) {
      runtime_.failure = OkStatus();
      return inventory_.Refresh();
    }
    runtime_.failure = Unavailable("restarting");
    events_.clear();
    clock_.Advance(Inventory::kRetry);
  }
  // Another user of the runtime lists after a connect, maybe long.
  void Connect() {
    if (others_list_) return EndOthersList();
    inventory_.RefreshSoon();
    others_list_ = inventory_.TakeOthersList();
    if (others_list_) listed_ = runtime_.Now();
  }
  void EndOthersList() {
    if (!others_list_) return;
    const auto take = std::exchange(others_list_, nullptr);
    const size_t drawn = Draw(3);
    if (drawn == 0) return;
    drawn == 1 ? take(Unavailable("lost")) : take(listed_);
  }
  void Second() {
    if (second_) return second_.reset();
    second_.emplace(inventory_);
    second_->Attach();
  }

  std::mt19937_64 random_;
  ManualClock clock_;
  ListedRuntime runtime_;
  Inventory inventory_{clock_, runtime_};
  NamedView first_{inventory_};
  std::optional<NamedView> second_;
  std::vector<std::string> pods_;
  std::vector<std::string> containers_;
  std::vector<ContainerEvent> events_;
  RuntimeAccess::Done<RuntimeAccess::Everything> others_list_;
  RuntimeAccess::Everything listed_;
  int made_ = 0;
};

TEST(InventoryPropertyTest, AtRestEveryViewHasWhatTheRuntimeHas) {
  const uint64_t first = SeedOr(37);
  for (uint64_t seed = first; seed < first + 300; ++seed) {
    SCOPED_TRACE(Repeat(seed));
    World world(seed);
    for (int rest = 0; rest < 5; ++rest) {
      for (int step = 0; step < 60; ++step)
        world.Step();
      world.Rest();
      if (testing::Test::HasFailure()) return;
    }
  }
}

}  // namespace
}  // namespace resmgr::test
