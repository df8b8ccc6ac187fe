// SPDX-License-Identifier: Apache-2.0
#include "pkg/sys/event_loop.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include <uv.h>

namespace resmgr {
namespace {

// The loop's own bookkeeping cannot go on after such an error: it is a bug of the caller (an fd
// watched twice, a closed fd, a signal that does not exist) or the kernel is out of memory.
void Require(int uv_result, const char* what) {
  if (uv_result == 0) return;
  std::fprintf(stderr, "event loop: %s: %s\n", what, uv_strerror(uv_result));
  std::abort();
}

class SourceHandle;

// One event source as libuv sees it. It lives longer than the handle that the user holds: libuv
// lets go of its memory only in the close callback, at the end of the loop's turn. That is also
// what makes it safe to destroy a handle from within its own callback.
struct Source {
  uv_any_handle uv;
  SourceHandle* owner = nullptr;
  int events = 0;
  std::function<void(int)> on_events;
  EventLoop::Task task;
};

Source* SourceOf(const uv_handle_t& handle) {
  return static_cast<Source*>(handle.data);
}

void Close(Source* source) {
  source->owner = nullptr;
  uv_close(&source->uv.handle, [](uv_handle_t* handle) { delete SourceOf(*handle); });
}

class SourceHandle : public EventLoop::Handle {
 public:
  explicit SourceHandle(Source* source) : source_(source) { source->owner = this; }
  ~SourceHandle() override {
    if (source_ != nullptr) Close(source_);
  }
  SourceHandle(const SourceHandle&) = delete;
  SourceHandle& operator=(const SourceHandle&) = delete;

  // The loop is going away before this handle.
  void Detach() { source_ = nullptr; }
  Source* source() const { return source_; }

 private:
  Source* source_;
};

int ToUv(int events) {
  return ((events & EventLoop::kReadable) != 0 ? UV_READABLE : 0) |
         ((events & EventLoop::kWritable) != 0 ? UV_WRITABLE : 0);
}

void OnPoll(uv_poll_t* poll, int status, int uv_events);

void StartPoll(Source& source) {
  if (source.events == 0) {
    Require(uv_poll_stop(&source.uv.poll), "pausing a watch");
  } else {
    Require(uv_poll_start(&source.uv.poll, ToUv(source.events), OnPoll), "starting a watch");
  }
}

void OnPoll(uv_poll_t* poll, int status, int uv_events) {
  auto* source = static_cast<Source*>(poll->data);
  int events = 0;
  if (status < 0) {
    // libuv stops a watch whose socket has an error; ours are level-triggered.
    StartPoll(*source);
    events = EventLoop::kReadable | EventLoop::kWritable;
  } else {
    if ((uv_events & UV_READABLE) != 0) events |= EventLoop::kReadable;
    if ((uv_events & UV_WRITABLE) != 0) events |= EventLoop::kWritable;
  }
  source->on_events(events);
}

}  // namespace

class EventLoop::Impl {
 public:
  Impl();
  ~Impl();
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  void Run();
  void Stop();
  void Post(Task task);
  uv_loop_t* uv() { return &loop_; }
  // Outside Run nobody keeps libuv's clock up to date.
  void RefreshTime();
  HandlePtr Timer(std::chrono::milliseconds delay, std::chrono::milliseconds period, Task task);

 private:
  void RunPosted();

  uv_loop_t loop_;
  // Other threads wake the loop through an eventfd. A post of the loop's own thread needs no system
  // call: while the idle handle is active, the loop does not sleep.
  uv_async_t wake_;
  uv_idle_t own_posts_;
  bool running_ = false;
  // The batch of posts being run, kept for its capacity.
  std::vector<Task> batch_;

  // What other threads touch.
  std::mutex mutex_;
  std::vector<Task> posted_;
  bool stop_requested_ = false;
  std::thread::id thread_;
};

EventLoop::Impl::Impl() {
  Require(uv_loop_init(&loop_), "creating it");
  wake_.data = this;
  Require(uv_async_init(&loop_, &wake_,
                        [](uv_async_t* wake) { static_cast<Impl*>(wake->data)->RunPosted(); }),
          "creating its wake-up");
  own_posts_.data = this;
  Require(uv_idle_init(&loop_, &own_posts_), "creating its idle handle");
}

EventLoop::Impl::~Impl() {
  // A task may own handles of this loop.
  posted_.clear();
  batch_.clear();
  // Without data: neither of these two belongs to a source.
  wake_.data = nullptr;
  own_posts_.data = nullptr;
  uv_walk(
      &loop_,
      [](uv_handle_t* handle, void*) {
        if (uv_is_closing(handle) != 0) return;
        Source* source = SourceOf(*handle);
        if (source == nullptr) {
          uv_close(handle, nullptr);
          return;
        }
        source->owner->Detach();
        Close(source);
      },
      nullptr);
  Require(uv_run(&loop_, UV_RUN_DEFAULT), "closing its handles");
  Require(uv_loop_close(&loop_), "closing it");
}

void EventLoop::Impl::Run() {
  const auto enter = [this](bool running) {
    running_ = running;
    const std::lock_guard lock(mutex_);
    thread_ = running ? std::this_thread::get_id() : std::thread::id();
  };
  enter(true);
  uv_run(&loop_, UV_RUN_DEFAULT);
  enter(false);
}

void EventLoop::Impl::Stop() {
  const std::lock_guard lock(mutex_);
  if (thread_ == std::this_thread::get_id()) {
    uv_stop(&loop_);
    return;
  }
  stop_requested_ = true;
  uv_async_send(&wake_);
}

void EventLoop::Impl::Post(Task task) {
  const std::lock_guard lock(mutex_);
  posted_.push_back(std::move(task));
  if (posted_.size() > 1) return;
  if (thread_ == std::this_thread::get_id()) {
    uv_idle_start(&own_posts_,
                  [](uv_idle_t* idle) { static_cast<Impl*>(idle->data)->RunPosted(); });
  } else {
    uv_async_send(&wake_);
  }
}

void EventLoop::Impl::RunPosted() {
  uv_idle_stop(&own_posts_);
  {
    const std::lock_guard lock(mutex_);
    // Tasks that these tasks post run in the loop's next turn, so that sockets get theirs.
    batch_.swap(posted_);
    if (std::exchange(stop_requested_, false)) uv_stop(&loop_);
  }
  for (Task& task : batch_) {
    std::exchange(task, nullptr)();
  }
  batch_.clear();
}

void EventLoop::Impl::RefreshTime() {
  if (!running_) uv_update_time(&loop_);
}

EventLoop::HandlePtr EventLoop::Impl::Timer(std::chrono::milliseconds delay,
                                            std::chrono::milliseconds period, Task task) {
  auto* source = new Source{};
  source->task = std::move(task);
  Require(uv_timer_init(&loop_, &source->uv.timer), "creating a timer");
  source->uv.handle.data = source;
  auto handle = std::make_unique<SourceHandle>(source);
  RefreshTime();
  const auto count = [](std::chrono::milliseconds time) {
    return static_cast<uint64_t>(std::max<int64_t>(time.count(), 0));
  };
  const uv_timer_cb fire = [](uv_timer_t* timer) { static_cast<Source*>(timer->data)->task(); };
  Require(uv_timer_start(&source->uv.timer, fire, count(delay), count(period)), "starting a timer");
  return handle;
}

EventLoop::EventLoop() : impl_(std::make_unique<Impl>()) {}

EventLoop::~EventLoop() = default;

void EventLoop::Run() {
  impl_->Run();
}

void EventLoop::Stop() {
  impl_->Stop();
}

void EventLoop::Post(Task task) {
  impl_->Post(std::move(task));
}

EventLoop::Clock::time_point EventLoop::Now() const {
  // Both clocks count from the same start: libuv's, too, is the monotonic one of the kernel.
  impl_->RefreshTime();
  return Clock::time_point(std::chrono::milliseconds(uv_now(impl_->uv())));
}

EventLoop::HandlePtr EventLoop::Watch(int fd, int events, std::function<void(int)> callback) {
  auto* source = new Source{};
  source->on_events = std::move(callback);
  source->events = events;
  Require(uv_poll_init(impl_->uv(), &source->uv.poll, fd), "watching an fd");
  source->uv.handle.data = source;
  auto handle = std::make_unique<SourceHandle>(source);
  if (events != 0) StartPoll(*source);
  return handle;
}

void EventLoop::SetEvents(Handle& watch, int events) {
  Source* source = static_cast<SourceHandle&>(watch).source();
  if (source == nullptr || source->events == events) return;
  source->events = events;
  StartPoll(*source);
}

EventLoop::HandlePtr EventLoop::After(std::chrono::milliseconds delay, Task task) {
  return impl_->Timer(delay, std::chrono::milliseconds::zero(), std::move(task));
}

EventLoop::HandlePtr EventLoop::Every(std::chrono::milliseconds period, Task task) {
  // For libuv a period of zero means once.
  period = std::max(period, std::chrono::milliseconds(1));
  return impl_->Timer(period, period, std::move(task));
}

EventLoop::HandlePtr EventLoop::OnSignal(int signal, Task task) {
  auto* source = new Source{};
  source->task = std::move(task);
  Require(uv_signal_init(impl_->uv(), &source->uv.signal), "creating a signal watch");
  source->uv.handle.data = source;
  auto handle = std::make_unique<SourceHandle>(source);
  const uv_signal_cb fire = [](uv_signal_t* watch, int) {
    static_cast<Source*>(watch->data)->task();
  };
  Require(uv_signal_start(&source->uv.signal, fire, signal), "starting a signal watch");
  return handle;
}

}  // namespace resmgr
