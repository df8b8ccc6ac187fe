// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "pkg/base/failure_policy.h"
#include "pkg/base/status.h"
#include "pkg/resmgr/container_store.h"
#include "pkg/resmgr/pusher.h"
#include "pkg/sys/event_loop.h"

namespace resmgr {

// Holds a StartContainer back while the container would run with another one on exclusive CPUs: it
// may start when its own placement is in force, no running container may still be on its exclusive
// CPUs, and none still has CPUs exclusively that are to be shared with it. A
// container that the policy does not pin never leaves, so no start waits for it. Waits
// are re-examined after each update that took effect. After a timeout they end with a refusal, or
// the container is started anyway, as the failure policy says. All on the loop's thread.
class StartGate {
 public:
  using Go = std::function<void(Status)>;
  // Destroying it withdraws the wait.
  class Wait {
   public:
    Wait(std::weak_ptr<StartGate*> gate, uint64_t number);
    ~Wait();
    Wait(const Wait&) = delete;
    Wait& operator=(const Wait&) = delete;

   private:
    std::weak_ptr<StartGate*> gate_;
    uint64_t number_;
  };

  struct Options {
    std::chrono::milliseconds timeout{};
    FailurePolicy on_timeout = FailurePolicy::kFail;
    // Told of each start that goes on although `reason` is in its way.
    std::function<void(ContainerKey key, const std::string& reason)> let_through{};
    // Reports a container that is not pinned while others have exclusive CPUs; may report it more
    // than once.
    std::function<void(ContainerKey key)> unpinned{};
  };
  StartGate(EventLoop& loop, ContainerStore& store, const Pusher& pusher, Options options);
  StartGate(const StartGate&) = delete;
  StartGate& operator=(const StartGate&) = delete;

  // Runs `go` with OK at once, and returns nullptr, when nothing is in the way; else later, with OK
  // or with FailedPrecondition naming what was in the way until the timeout. The container counts
  // as starting before `go` runs with OK.
  std::unique_ptr<Wait> Admit(ContainerKey key, Go go);

  // Something changed that waits may depend on.
  void Examine();
  // `changed` alone changed: only waits that it kept back are looked at.
  void Examine(ContainerKey changed);
  // Holds for the waits of now, too.
  void SetOnTimeout(FailurePolicy policy) { options_.on_timeout = policy; }
  // Ends all waits, whatever the failure policy says.
  void RefuseAll(const Status& status);

  size_t waiting() const { return waits_.size(); }

 private:
  struct Obstacle {
    ContainerKey key{};
    std::string text;
  };
  struct Waiting {
    ContainerKey key{};
    ContainerKey obstacle{};
    Go go;
    EventLoop::HandlePtr timeout;
  };

  std::optional<Obstacle> FindObstacle(ContainerKey key) const;
  Obstacle OwnPlacement(const ContainerRecord& record) const;
  Obstacle Neighbour(const ContainerRecord& record, std::string_view what,
                     const CpuSet& cpus) const;
  void ExamineOne(uint64_t number);
  std::string TimeoutReason(const Obstacle& obstacle) const;
  void OnTimeout(uint64_t number);
  void Finish(uint64_t number, const Status& status);

  EventLoop& loop_;
  ContainerStore& store_;
  const Pusher& pusher_;
  Options options_;
  std::map<uint64_t, Waiting> waits_;
  uint64_t last_number_ = 0;
  std::shared_ptr<StartGate*> self_;
};

}  // namespace resmgr
