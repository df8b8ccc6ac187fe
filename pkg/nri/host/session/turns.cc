// SPDX-License-Identifier: Apache-2.0
#include "pkg/nri/host/session/turns.h"

#include <utility>

namespace resmgr::nri {

struct Turns::State {
  std::deque<std::function<void(Turn)>> waiting;
  bool busy = false;
  bool running = false;  // a call of Next is under way
};

Turns::Turns() : state_(std::make_shared<State>()) {}

Turns::~Turns() {
  // Destroyed last: the dropped functions may own any object.
  const auto dropped = std::exchange(state_->waiting, {});
}

void Turns::Take(std::function<void(Turn)> begin) {
  state_->waiting.push_back(std::move(begin));
  Next(state_);
}

// A loop, so that many short turns in a row do not grow the stack.
void Turns::Next(const std::shared_ptr<State>& state) {
  if (std::exchange(state->running, true)) return;
  while (!state->busy && !state->waiting.empty()) {
    const std::function<void(Turn)> begin = std::move(state->waiting.front());
    state->waiting.pop_front();
    state->busy = true;
    begin(Turn(nullptr, [weak = std::weak_ptr<State>(state)](std::nullptr_t) {
      const std::shared_ptr<State> alive = weak.lock();
      if (alive == nullptr) return;
      alive->busy = false;
      Next(alive);
    }));
  }
  state->running = false;
}

FairTurns::FairTurns(EventLoop& loop, Options options) : loop_(loop), options_(options) {}

void FairTurns::Add(const void* peer, Begin begin) {
  std::deque<Begin>& own = waiting_[peer];
  if (own.empty()) order_.push_back(peer);
  own.push_back(std::move(begin));
  Next();
}

void FairTurns::Drop(const void* peer) {
  const auto found = waiting_.find(peer);
  if (found == waiting_.end()) return;
  const std::deque<Begin> dropped = std::move(found->second);
  waiting_.erase(found);
  std::erase(order_, peer);
}

void FairTurns::Next() {
  if (std::exchange(beginning_, true)) return;
  const std::weak_ptr<void> alive = lifetime_.token();
  while (!order_.empty() && running_ < options_.at_once && spent_ < options_.slice) {
    const void* const peer = order_.front();
    order_.pop_front();
    const auto own = waiting_.find(peer);
    const Begin begin = std::move(own->second.front());
    own->second.pop_front();
    if (own->second.empty()) {
      waiting_.erase(own);
    } else {
      order_.push_back(peer);
    }
    ++running_;
    const auto start = std::chrono::steady_clock::now();
    begin(Running(nullptr, [this, alive](std::nullptr_t) {
      if (alive.expired()) return;
      --running_;
      Next();
    }));
    if (alive.expired()) return;
    spent_ += std::chrono::steady_clock::now() - start;
  }
  beginning_ = false;
  if (spent_.count() == 0 || next_turn_ != nullptr) return;
  next_turn_ = loop_.After(std::chrono::milliseconds(0), [this] {
    const EventLoop::HandlePtr over = std::move(next_turn_);
    spent_ = std::chrono::steady_clock::duration(0);
    Next();
  });
}

}  // namespace resmgr::nri
