// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>

#include "pkg/sys/event_loop.h"
#include "pkg/sys/lifetime.h"

namespace resmgr::nri {

// Runs tasks one after the other, for example the events of one pod: a plugin that is slow to take
// a stop must not get the removal first. Each waits for the former turns; other pods do not wait.
// Loop's thread only.
class Turns {
 public:
  // A turn ends when its last copy is released.
  using Turn = std::shared_ptr<void>;

  Turns();
  // Drops waiting tasks.
  ~Turns();
  Turns(const Turns&) = delete;
  Turns& operator=(const Turns&) = delete;

  // Runs `begin` at once if no turn is under way, else when its turn comes.
  void Take(std::function<void(Turn)> begin);

 private:
  struct State;
  static void Next(const std::shared_ptr<State>& state);

  const std::shared_ptr<State> state_;
};

// Carries out the requests of several peers, a few at a time and each peer in turn, so that a peer
// with many requests delays neither the others nor the loop. Loop's thread only.
class FairTurns {
 public:
  struct Options {
    size_t at_once = 16;                     // tasks under way
    std::chrono::microseconds slice{3'000};  // for tasks that begin in one turn of the loop
  };
  // Held while a task is under way; letting it go ends the task. May outlive this object.
  using Running = std::shared_ptr<void>;
  using Begin = std::function<void(Running running)>;

  FairTurns(EventLoop& loop, Options options);
  FairTurns(const FairTurns&) = delete;
  FairTurns& operator=(const FairTurns&) = delete;

  // Runs `begin` at once if there is room, else in the peer's turn.
  void Add(const void* peer, Begin begin);
  // Drops all waiting tasks of the peer.
  void Drop(const void* peer);

 private:
  void Next();

  EventLoop& loop_;
  const Options options_;
  std::map<const void*, std::deque<Begin>> waiting_;
  std::deque<const void*> order_;  // peers with waiting tasks, each once
  size_t running_ = 0;
  bool beginning_ = false;
  std::chrono::steady_clock::duration spent_{0};  // in this turn of the loop
  EventLoop::HandlePtr next_turn_;
  Lifetime lifetime_;
};

}  // namespace resmgr::nri
