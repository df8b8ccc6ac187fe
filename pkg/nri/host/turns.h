// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>

namespace resmgr::nri {

// Lets one thing after the other happen, as the events of one pod: a plugin that is slow to hear of
// a stop must not hear of the removal first. Each waits for the turns before it; those of other
// pods do not wait. Loop's thread only.
class Turns {
 public:
  // A turn is over when this is let go.
  using Turn = std::shared_ptr<void>;

  Turns();
  // What still waits is dropped.
  ~Turns();
  Turns(const Turns&) = delete;
  Turns& operator=(const Turns&) = delete;

  // Runs `begin` at once where no turn is under way, else when it is its turn.
  void Take(std::function<void(Turn)> begin);
  size_t waiting() const;

 private:
  struct State;
  static void Next(const std::shared_ptr<State>& state);

  const std::shared_ptr<State> state_;
};

}  // namespace resmgr::nri
