// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <map>

#include "pkg/resmgr/container_store.h"
#include "pkg/sys/backoff.h"
#include "pkg/sys/clock.h"

namespace resmgr {

// StartContainer calls without an answer, which the runtime may still carry out: their client went
// away, the connection was lost, or the daemon was killed. Asks for lists with growing pauses until
// each container runs or has exited. One that is still created when the limit is over counts as not
// started. Loop's thread only.
class UnresolvedStarts {
 public:
  struct Options {
    std::chrono::milliseconds first_look{50};
    std::chrono::milliseconds last_look{5'000};
    std::chrono::milliseconds limit{120'000};
  };

  // Asks the runtime for everything; Examine() follows when it is known, and then `looked`, with
  // the reason where it is not known. Never runs `looked` after the UnresolvedStarts are gone.
  using Look = std::function<void(std::function<void(const Status&)> looked)>;
  // `given_up` is told of containers past the limit.
  UnresolvedStarts(Clock& clock, ContainerStore& store, Look look,
                   std::function<void(ContainerKey)> given_up, Options options);
  UnresolvedStarts(const UnresolvedStarts&) = delete;
  UnresolvedStarts& operator=(const UnresolvedStarts&) = delete;

  // The container's state is kUnresolved from now on.
  void Add(ContainerKey key);
  bool Contains(ContainerKey key) const { return doubts_.contains(key); }
  // The runtime was asked, or something else happened to containers.
  void Examine();

 private:
  void Schedule();
  void OnTimer();
  void OnLooked(Clock::SteadyTime asked);

  Clock& clock_;
  ContainerStore& store_;
  const Look look_;
  const std::function<void(ContainerKey)> given_up_;
  const Options options_;
  struct Doubt {
    Clock::SteadyTime deadline;
    bool last_look = false;  // the runtime was asked after the deadline
  };

  std::map<ContainerKey, Doubt> doubts_;
  Backoff pauses_{options_.first_look, options_.last_look};
  EventLoop::HandlePtr timer_;
};

}  // namespace resmgr
