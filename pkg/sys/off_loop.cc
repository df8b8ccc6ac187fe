// SPDX-License-Identifier: Apache-2.0
#include "pkg/sys/off_loop.h"

#include <condition_variable>
#include <mutex>
#include <system_error>
#include <utility>

#include "pkg/sys/thread.h"

namespace resmgr {

struct OffLoop::State {
  explicit State(EventLoop& the_loop) : loop(&the_loop) {}

  // Runs on the thread: does `work`, then waiting work until there is none.
  static void Run(const std::shared_ptr<State>& state, Work work);

  std::mutex mutex;
  std::condition_variable idle;
  // Null when the OffLoop has ended, so results are dropped. Changed on the loop's thread only.
  EventLoop* loop;
  Work next;
  bool busy = false;
  int returned = 0;  // posted tasks that have yet to run on the loop
};

void OffLoop::State::Run(const std::shared_ptr<State>& state, Work work) {
  while (work) {
    EventLoop::Task task = work();
    work = nullptr;
    const std::lock_guard lock(state->mutex);
    if (state->loop != nullptr && task) {
      ++state->returned;
      state->loop->Post([state, task = std::move(task)] {
        {
          const std::lock_guard lock_of_loop(state->mutex);
          --state->returned;
        }
        if (state->loop != nullptr) task();
      });
    }
    work = std::exchange(state->next, nullptr);
    state->busy = work != nullptr;
    if (!state->busy) state->idle.notify_all();
  }
}

OffLoop::OffLoop(EventLoop& loop, std::string name, std::chrono::milliseconds patience)
    : name_(std::move(name)), patience_(patience), state_(std::make_shared<State>(loop)) {}

OffLoop::~OffLoop() {
  std::unique_lock lock(state_->mutex);
  state_->idle.wait_for(lock, patience_, [this] { return !state_->busy; });
  state_->next = nullptr;
  state_->loop = nullptr;
}

Status OffLoop::Run(Work work) {
  {
    const std::lock_guard lock(state_->mutex);
    if (std::exchange(state_->busy, true)) {
      state_->next = std::move(work);
      return OkStatus();
    }
  }
  try {
    StartThread(name_.c_str(), [state = state_, work = std::move(work)]() mutable {
      State::Run(state, std::move(work));
    }).detach();
  } catch (const std::system_error& error) {
    const std::lock_guard lock(state_->mutex);
    state_->busy = false;
    return Unavailable("no thread can be made: {}", error.code().message());
  }
  return OkStatus();
}

bool OffLoop::working() const {
  const std::lock_guard lock(state_->mutex);
  return state_->busy;
}

bool OffLoop::busy() const {
  const std::lock_guard lock(state_->mutex);
  return state_->busy || state_->returned > 0;
}

}  // namespace resmgr
