// SPDX-License-Identifier: Apache-2.0
#include "pkg/nri/host/session/fair_turns.h"

#include <algorithm>
#include <utility>

namespace resmgr::nri {

FairTurns::FairTurns(EventLoop& loop, Options options) : loop_(loop), options_(options) {}

FairTurns::~FairTurns() = default;

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
