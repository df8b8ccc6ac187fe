// SPDX-License-Identifier: Apache-2.0
// Row N11 for many nodes, on a clock of the test's own: each has the agent's writer of its
// NodeResourceTopology, and the scheduler the plugin's over-reserve cache of it. Pods come and go
// on all of them at random times.
#include <algorithm>
#include <chrono>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/testing/topology_views.h"
#include "agent/topology_writer.h"
#include "pkg/base/json.h"
#include "pkg/sys/clock.h"
#include "test/support/sanitizer.h"
#include "test/support/scheduler_model/over_reserve_cache.h"
#include "test/support/scheduler_model/topology_samples.h"
#include "test/support/seed.h"

namespace resmgr::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr int kNodes = kSanitized ? 20 : 200;
constexpr int kPodsOfNode = 20;
constexpr int kCpusOfZone = 8;
constexpr seconds kResync{5};       // cacheResyncPeriodSeconds
constexpr milliseconds kRow{1000};  // of the row, beside the period
// A daemon gathers changes for so long (SchedulerWatch).
constexpr milliseconds kGather{200};
constexpr milliseconds kAnswer{20};

PodView PodOfCpus(int cpus) {
  return SamplePod(PodQos::kGuaranteed, {SampleApp({{"cpu", std::to_string(cpus)}})});
}

// An API server with one object: the one that was applied last.
class ObjectTransport : public agent::HttpTransport {
 public:
  explicit ObjectTransport(Clock& timers) : timers_(timers) {}

  std::unique_ptr<Call> Send(agent::HttpRequest request, Data /*data*/, Done done) override {
    auto handle = std::make_unique<Handle>();
    handle->timer =
        timers_.After(kAnswer, [this, body = std::move(request.body), done = std::move(done)] {
          object = ParseJson(body).value_or(nlohmann::json());
          done(agent::HttpReply{.status = 200, .body = "{}", .retry_after = {}});
        });
    return handle;
  }

  nlohmann::json object;

 private:
  struct Handle : Call {
    EventLoop::HandlePtr timer;
  };

  Clock& timers_;
};

// A node of one zone, its agent, and the scheduler's cache of it.
class CachedNode {
 public:
  CachedNode(ManualClock& timers, int number)
      : timers_(timers),
        random_(SeedOr(11) + static_cast<uint64_t>(number)),
        transport_(timers),
        writer_(transport_, timers, "n", {.spread = seconds(1)}, random_()) {
    writer_.NodeSeen({{"metadata", {{"name", "n"}, {"uid", "uid"}}}});
    Tell();
  }

  // The first object is written.
  void StartScheduler() {
    ASSERT_TRUE(transport_.object.is_object());
    cache_ = std::make_unique<OverReserveCache>(transport_.object, ResourcesOf({{"cpu", "64"}}));
    look_ = timers_.After(Some(kResync), [this] { Look(); });
    next_ = timers_.After(Some(seconds(60)), [this] { Come(); });
  }
  bool done() const { return pods_ == kPodsOfNode && next_ == nullptr; }
  milliseconds longest() const { return longest_; }

 private:
  milliseconds Some(milliseconds most) {
    return milliseconds(std::uniform_int_distribution<int64_t>(1, most.count())(random_));
  }
  PodKey Key() const { return {"default", fmt::format("pod{}", pods_)}; }

  // The daemon makes a view of the node as it is.
  void Tell() {
    agent::ShowTopologyRequest view;
    view.set_refuses(true);
    agent::AddAmount(agent::AddZone(view, {10}), "cpu", kCpusOfZone, kCpusOfZone,
                     kCpusOfZone - running_);
    if (running_ > 0) agent::AddPod(view, "default", Key().second);
    EXPECT_EQ(writer_.Show(std::move(view)), OkStatus());
  }
  void Changed() {
    changed_ = timers_.Steady();
    // A pod that asks for more than there is marks the node as dirty, so that it is looked at.
    static_cast<void>(cache_->Filter(PodOfCpus(kCpusOfZone + 1)));
    due_ = true;
    report_ = timers_.After(kGather, [this] { Tell(); });
  }
  void Come() {
    const int cpus = static_cast<int>(Some(milliseconds(kCpusOfZone)).count());
    ASSERT_EQ(cache_->Filter(PodOfCpus(cpus)).verdict, FilterVerdict::kPasses);
    ++pods_;
    running_ = cpus;
    cache_->Reserve(Key(), PodOfCpus(cpus));
    cache_->PodSeen(Key(), PodOfCpus(cpus), PodPhase::kRunning);
    Changed();
    next_ = timers_.After(Pause(), [this] { End(); });
  }
  void End() {
    ExpectInOrder();
    running_ = 0;
    cache_->PodGone(Key());
    Changed();
    next_ = timers_.After(Pause(), [this] {
      ExpectInOrder();
      next_ = nullptr;
      if (pods_ < kPodsOfNode) Come();
    });
  }
  // Longer than the row allows.
  milliseconds Pause() { return kRow + kResync + Some(seconds(30)); }

  void Look() {
    cache_->ObjectSeen(transport_.object);
    cache_->Resync();
    if (due_ && !cache_->dirty()) {
      due_ = false;
      longest_ = std::max(longest_, std::chrono::ceil<milliseconds>(timers_.Steady() - changed_));
      EXPECT_EQ(cache_->FingerprintOfObject(), cache_->Fingerprint());
      EXPECT_EQ(cache_->Topology().zones.at(0).available.at("cpu"),
                ExactQuantity(kCpusOfZone - running_))
          << "the object and its fingerprint are of one moment";
    }
    look_ = timers_.After(kResync, [this] { Look(); });
  }
  void ExpectInOrder() const { EXPECT_FALSE(due_) << "pod " << pods_; }

  ManualClock& timers_;
  std::mt19937_64 random_;
  ObjectTransport transport_;
  agent::TopologyWriter writer_;
  std::unique_ptr<OverReserveCache> cache_;
  int pods_ = 0;     // ever
  int running_ = 0;  // CPUs of the pod that runs
  bool due_ = false;
  Clock::SteadyTime changed_{};
  milliseconds longest_{};
  EventLoop::HandlePtr look_;
  EventLoop::HandlePtr next_;
  EventLoop::HandlePtr report_;
};

TEST(OverReserveTest, N11CachesOfAllNodesAreInOrderASecondAndAPeriodAfterEachPod) {
  SCOPED_TRACE(Repeat(SeedOr(11)));
  ManualClock timers;
  std::vector<std::unique_ptr<CachedNode>> nodes;
  nodes.reserve(kNodes);
  for (int node = 0; node < kNodes; ++node)
    nodes.push_back(std::make_unique<CachedNode>(timers, node));
  timers.Advance(seconds(2));
  for (const auto& node : nodes)
    node->StartScheduler();
  timers.Advance(seconds(kPodsOfNode * 2 * 40 + 100));
  milliseconds longest{};
  for (const auto& node : nodes) {
    EXPECT_TRUE(node->done());
    longest = std::max(longest, node->longest());
  }
  fmt::print("{} nodes, {} pods each: a cache is in order after {} ms at most\n", kNodes,
             kPodsOfNode, longest.count());
  EXPECT_LE(longest, kRow + kResync);
  EXPECT_GT(longest, kResync) << "hardly anything was measured";
}

}  // namespace
}  // namespace resmgr::test
