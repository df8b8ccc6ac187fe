// SPDX-License-Identifier: Apache-2.0
#include "pkg/nri/host/session/turns.h"

#include <utility>

namespace resmgr::nri {

struct Turns::State {
  std::deque<std::function<void(Turn)>> waiting;
  bool busy = false;
  bool running = false;  // Next is running
};

Turns::Turns() : state_(std::make_shared<State>()) {}

Turns::~Turns() {
  // The dropped functions may own anything.
  const auto dropped = std::exchange(state_->waiting, {});
}

void Turns::Take(std::function<void(Turn)> begin) {
  state_->waiting.push_back(std::move(begin));
  Next(state_);
}

size_t Turns::waiting() const {
  return state_->waiting.size();
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

}  // namespace resmgr::nri
