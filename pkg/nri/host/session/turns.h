// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>

namespace resmgr::nri {

// Runs tasks one after the other, for example the events of one pod: a plugin that is slow to take
// a stop must not get the removal first. Each waits for the former turns; other pods do not wait.
// Loop's thread only.
class Turns {
 public:
  // A turn ends when this is let go.
  using Turn = std::shared_ptr<void>;

  Turns();
  // Drops waiting tasks.
  ~Turns();
  Turns(const Turns&) = delete;
  Turns& operator=(const Turns&) = delete;

  // Runs `begin` at once if no turn is under way, else when its turn comes.
  void Take(std::function<void(Turn)> begin);
  size_t waiting() const;

 private:
  struct State;
  static void Next(const std::shared_ptr<State>& state);

  const std::shared_ptr<State> state_;
};

}  // namespace resmgr::nri
