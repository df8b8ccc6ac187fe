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
#include <vector>

#include "pkg/base/failure_policy.h"
#include "pkg/base/status.h"
#include "pkg/resmgr/admission.h"
#include "pkg/resmgr/container_store.h"
#include "pkg/resmgr/pusher.h"
#include "pkg/sys/clock.h"
#include "pkg/sys/lifetime.h"

namespace resmgr {

// Holds a StartContainer back while the container would share exclusive CPUs with another one. A
// start may go on when its own placement is in force, no running container may still be on its
// exclusive CPUs, and no container still has CPUs exclusively that are to be shared with it. A
// container that the policy does not pin never leaves its CPUs, so no start waits for it. Waits are
// examined again after each update that took effect. After a timeout they end with a refusal, or
// the container is started anyway, as the failure policy says.
//
// A stuck container delays starts by one timeout in all: from the first refusal of its update, or
// from the first start that waits for it. After that it is overdue until it has moved. A start that
// waits for it then ends as the failure policy says, and so does the first start that meets it
// later; all others go on. All on the loop's thread.
class StartGate {
 public:
  using Go = std::function<void(Status)>;
  struct Options {
    std::chrono::milliseconds timeout{};
    FailurePolicy on_timeout = FailurePolicy::kFail;
    // Called for each start that goes on although something is in its way: "as StartFailurePolicy
    // says: container ...".
    std::function<void(ContainerKey key, const std::string& reason)> let_through{};
    // Reports an unpinned container that may run on exclusive CPUs of others; may be called more
    // than once for it.
    std::function<void(ContainerKey key)> unpinned{};
    // A wait was withdrawn before it ended.
    std::function<void(ContainerKey key)> withdrawn{};
    // CPUs that only this container and others of its pod may use.
    std::function<CpuSet(ContainerKey key)> of_pod{};
  };
  StartGate(Clock& clock, ContainerStore& store, Pusher& pusher, Options options);
  StartGate(const StartGate&) = delete;
  StartGate& operator=(const StartGate&) = delete;

  // Runs `go` with OK at once, and returns nullptr, if nothing is in the way; else later, with OK
  // or with FailedPrecondition that names the obstacle at the timeout. If only overdue containers
  // are in the way, the decision is made at once, too. The container counts as starting before `go`
  // runs with OK.
  std::unique_ptr<StartWait> Admit(ContainerKey key, Go go);

  // Something changed that waits may depend on. With `changed`, only this container did: examines
  // its own start and the starts that wait for it.
  void Examine(std::optional<ContainerKey> changed = std::nullopt);
  // Also applies to starts that wait already.
  void SetOnTimeout(FailurePolicy policy) { options_.on_timeout = policy; }
  // Ends all waits, whatever the failure policy says.
  void RefuseAll(const Status& status);

  bool Waits(ContainerKey key) const;

 private:
  using Time = Clock::SteadyTime;
  struct Obstacle {
    enum class Kind { kOwnPlacement, kOnExclusiveCpus, kKeepsCpus };
    Kind kind = Kind::kOwnPlacement;
    ContainerKey key{};
    CpuSet cpus{};
  };
  struct Obstacles {
    std::optional<Obstacle> blocks;  // the first one that is not overdue
    std::vector<Obstacle> overdue;   // the overdue obstacles found before it
  };
  struct Waiting {
    ContainerKey key{};
    ContainerKey obstacle{};
    Go go;
    Time deadline{};
    EventLoop::HandlePtr timer;
  };

  // Calls `visit` for each obstacle until it returns false.
  using Visit = std::function<bool(const Obstacle& obstacle)>;
  void VisitObstacles(ContainerKey key, const Visit& visit) const;
  Obstacles Look(ContainerKey key) const;
  bool IsOverdue(ContainerKey key) const;
  void SetTimer(uint64_t number, Waiting& wait);
  void Withdraw(uint64_t number);
  void ExamineOne(uint64_t number);
  void OnTimer(uint64_t number);
  // The result of a start that does not wait any longer. `in_the_way`: the obstacles that are left,
  // which may be none.
  Status End(ContainerKey key, const std::vector<Obstacle>& in_the_way, bool timed_out);
  std::string Reason(const std::vector<Obstacle>& in_the_way, bool timed_out) const;
  std::string Describe(const Obstacle& obstacle) const;
  void Finish(uint64_t number, const Status& status);

  Clock& clock_;
  ContainerStore& store_;
  Pusher& pusher_;
  Options options_;
  std::map<uint64_t, Waiting> waits_;
  uint64_t last_number_ = 0;
  Lifetime lifetime_;  // a StartWait may outlive the gate
};

}  // namespace resmgr
