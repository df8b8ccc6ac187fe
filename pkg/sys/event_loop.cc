// SPDX-License-Identifier: Apache-2.0
#include "pkg/sys/event_loop.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "pkg/sys/raw_calls.h"
#include "pkg/sys/signal_wakeup.h"
#include "pkg/sys/unique_fd.h"

namespace resmgr {
namespace {

// Ends the process if a call of the loop's bookkeeping fails: either the caller has a bug (an fd
// watched twice, a closed fd), or the kernel is out of memory.
void Require(bool success, const char* what) {
  if (success) return;
  std::fprintf(stderr, "event loop: %s: %s\n", what, std::strerror(errno));
  std::abort();
}

uint32_t ToEpoll(int events) {
  return ((events & EventLoop::kReadable) != 0 ? uint32_t{EPOLLIN} : 0) |
         ((events & EventLoop::kWritable) != 0 ? uint32_t{EPOLLOUT} : 0);
}

// Points in time of one thread, behind one timerfd. A timeout of epoll_wait would do without the
// fd, but makes the kernel set and cancel a timer with every call that passes (measured: 8 % of the
// relay's CPU); a timerfd is set when the earliest time changes.
class TimerQueue {
 public:
  using Clock = std::chrono::steady_clock;
  // A point in time and a number, which orders equal times by when they were added.
  using Key = std::pair<Clock::time_point, uint64_t>;

  TimerQueue();

  // Readable when something is due.
  int fd() const { return timer_.get(); }
  Key Add(Clock::time_point due, std::function<void()> task);
  // Does nothing if the task has run already.
  void Cancel(const Key& key) { timers_.erase(key); }
  // Runs the timers that are due, the earliest first. A timer added meanwhile waits for the next
  // time.
  void RunDue();
  // Sets the timerfd to the earliest time. To be called before a sleep.
  void Arm();

 private:
  UniqueFd timer_;
  std::map<Key, std::function<void()>> timers_;
  uint64_t next_ = 0;
  Clock::time_point armed_ = Clock::time_point::max();  // max: it is not set
};

TimerQueue::TimerQueue() : timer_(::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC)) {
  if (timer_.valid()) return;
  std::perror("creating a timerfd");
  std::abort();
}

TimerQueue::Key TimerQueue::Add(Clock::time_point due, std::function<void()> task) {
  const Key key(due, next_++);
  timers_.emplace(key, std::move(task));
  return key;
}

void TimerQueue::RunDue() {
  uint64_t expirations = 0;
  [[maybe_unused]] const ssize_t got = ::read(timer_.get(), &expirations, sizeof(expirations));
  armed_ = Clock::time_point::max();
  const Clock::time_point now = Clock::now();
  const uint64_t added_before = next_;
  while (!timers_.empty()) {
    const Key key = timers_.begin()->first;
    if (key.first > now || key.second >= added_before) return;
    auto node = timers_.extract(timers_.begin());
    node.mapped()();
  }
}

void TimerQueue::Arm() {
  const Clock::time_point earliest =
      timers_.empty() ? Clock::time_point::max() : timers_.begin()->first.first;
  if (earliest == armed_) return;
  armed_ = earliest;
  itimerspec time{};  // all zero stops it
  if (earliest != Clock::time_point::max()) {
    constexpr auto kSecond = std::chrono::nanoseconds(std::chrono::seconds(1)).count();
    const auto since = std::max<int64_t>(earliest.time_since_epoch().count(), 1);
    time.it_value = {.tv_sec = since / kSecond, .tv_nsec = since % kSecond};
  }
  if (::timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &time, nullptr) == 0) return;
  std::perror("setting a timerfd");
  std::abort();
}

}  // namespace

// One event source: a watched fd (of the caller, of a signal or of the loop itself) or a timer. It
// lives longer than the handle that the user holds, until the end of the loop's turn, so that a
// handle may be destroyed from within its own callback.
struct EventLoop::Source {
  Source* previous = nullptr;  // previous one in the loop's list
  Source* next = nullptr;
  SourceHandle* owner = nullptr;
  bool alive = true;

  int fd = -1;
  int events = 0;
  std::function<void(int)> on_events;

  std::optional<SignalWakeup> signal;
  EventLoop::Task task;
  std::optional<TimerQueue::Key> timer;
  std::chrono::milliseconds period{0};
};

class EventLoop::Impl {
 public:
  Impl();
  ~Impl();
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  void Run();
  void Stop();
  void Post(Task task);
  Clock::time_point Now();
  HandlePtr Watch(int fd, int events, std::function<void(int)> callback);
  void SetEvents(Source& source, int events);
  HandlePtr Timer(std::chrono::milliseconds delay, std::chrono::milliseconds period, Task task);
  HandlePtr OnSignal(int signal, SignalTask task);
  // Ends the source; its memory goes at the end of the turn.
  void Remove(Source& source);

 private:
  // Limit of events in one turn, enough for every socket of a node; more wait for the next turn.
  static constexpr int kMaxEvents = 64;

  HandlePtr Adopt(std::unique_ptr<Source> source);
  void Turn();
  void Dispatch(const epoll_event& event);
  void Schedule(Source& source, std::chrono::milliseconds delay);
  void WatchOwn(int fd, Source& source);
  void RunPosted();
  void Bury();

  UniqueFd epoll_;
  UniqueFd wake_;  // an eventfd: other threads posted something
  TimerQueue timers_;
  Source wake_source_;
  Source timer_source_;
  Source* sources_ = nullptr;
  std::vector<std::unique_ptr<Source>> dead_;  // sources of this turn
  std::array<epoll_event, kMaxEvents> events_{};
  std::optional<Clock::time_point> now_;  // the time of this turn, if it was asked for
  bool running_ = false;
  bool stopping_ = false;
  // The loop's own thread has posted tasks: the loop does not sleep, and no system call is needed.
  bool own_posts_ = false;
  // The batch of posts being run, kept for its capacity.
  std::vector<Task> batch_;

  // Members that other threads touch.
  std::mutex mutex_;
  std::vector<Task> posted_;
  bool stop_requested_ = false;
  std::thread::id thread_;
};

class EventLoop::SourceHandle : public Handle {
 public:
  SourceHandle(Impl* loop, Source* source) : loop_(loop), source_(source) { source->owner = this; }
  ~SourceHandle() override {
    if (loop_ != nullptr) loop_->Remove(*source_);
  }
  SourceHandle(const SourceHandle&) = delete;
  SourceHandle& operator=(const SourceHandle&) = delete;

  // The loop is going away before this handle.
  void Detach() { loop_ = nullptr; }
  void SetEvents(int events) {
    if (loop_ != nullptr) loop_->SetEvents(*source_, events);
  }

 private:
  Impl* loop_;
  Source* source_;
};

EventLoop::Impl::Impl()
    : epoll_(::epoll_create1(EPOLL_CLOEXEC)), wake_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  Require(epoll_.valid() && wake_.valid(), "creating it");
  wake_source_.on_events = [this](int) {
    uint64_t count = 0;
    [[maybe_unused]] const ssize_t got = ::read(wake_.get(), &count, sizeof(count));
    RunPosted();
  };
  WatchOwn(wake_.get(), wake_source_);
  timer_source_.on_events = [this](int) { timers_.RunDue(); };
  WatchOwn(timers_.fd(), timer_source_);
}

EventLoop::Impl::~Impl() {
  // Dropped tasks may own handles of this loop, so they are destroyed while it still exists.
  posted_.clear();
  batch_.clear();
  while (sources_ != nullptr) {
    sources_->owner->Detach();
    Remove(*sources_);
  }
  Bury();
}

void EventLoop::Impl::WatchOwn(int fd, Source& source) {
  source.fd = fd;
  SetEvents(source, kReadable);
}

EventLoop::HandlePtr EventLoop::Impl::Adopt(std::unique_ptr<Source> source) {
  Source* const added = source.release();
  added->next = sources_;
  if (sources_ != nullptr) sources_->previous = added;
  sources_ = added;
  return std::make_unique<SourceHandle>(this, added);
}

void EventLoop::Impl::Remove(Source& source) {
  source.alive = false;
  if (source.fd >= 0) SetEvents(source, 0);
  source.signal.reset();
  if (source.timer.has_value()) timers_.Cancel(*source.timer);
  (source.previous != nullptr ? source.previous->next : sources_) = source.next;
  if (source.next != nullptr) source.next->previous = source.previous;
  dead_.emplace_back(&source);
}

void EventLoop::Impl::Bury() {
  // Callbacks may own handles of this loop, whose end adds to the list.
  while (!dead_.empty()) {
    const auto dead = std::exchange(dead_, {});
  }
}

void EventLoop::Impl::Run() {
  const auto enter = [this](bool running) {
    running_ = running;
    const std::lock_guard lock(mutex_);
    thread_ = running ? std::this_thread::get_id() : std::thread::id();
  };
  enter(true);
  stopping_ = false;
  while (!stopping_) {
    Turn();
  }
  enter(false);
}

void EventLoop::Impl::Turn() {
  timers_.Arm();
  const int count = RawEpollWait(epoll_.get(), events_.data(), kMaxEvents, own_posts_ ? 0 : -1);
  Require(count >= 0 || errno == EINTR, "waiting");
  now_.reset();
  for (int i = 0; i < count; ++i) {
    Dispatch(events_[static_cast<size_t>(i)]);
  }
  if (own_posts_) RunPosted();
  Bury();
}

void EventLoop::Impl::Dispatch(const epoll_event& event) {
  Source& source = *static_cast<Source*>(event.data.ptr);
  // An earlier event of this turn may have ended or paused this source.
  if (!source.alive || source.events == 0) return;
  int events = 0;
  if ((event.events & EPOLLERR) != 0) {
    events = kReadable | kWritable;
  } else if ((event.events & EPOLLHUP) != 0) {
    events = source.events;
  } else {
    if ((event.events & EPOLLIN) != 0) events |= kReadable;
    if ((event.events & EPOLLOUT) != 0) events |= kWritable;
  }
  source.on_events(events);
}

void EventLoop::Impl::Stop() {
  {
    const std::lock_guard lock(mutex_);
    if (thread_ != std::this_thread::get_id()) {
      stop_requested_ = true;
      ::eventfd_write(wake_.get(), 1);
      return;
    }
  }
  stopping_ = true;
}

void EventLoop::Impl::Post(Task task) {
  const std::lock_guard lock(mutex_);
  posted_.push_back(std::move(task));
  if (posted_.size() > 1) return;
  if (thread_ == std::this_thread::get_id()) {
    own_posts_ = true;
  } else {
    ::eventfd_write(wake_.get(), 1);
  }
}

void EventLoop::Impl::RunPosted() {
  own_posts_ = false;
  {
    const std::lock_guard lock(mutex_);
    // Tasks posted by these tasks run in the next turn, so that sockets get their turn before.
    batch_.swap(posted_);
    if (std::exchange(stop_requested_, false)) stopping_ = true;
  }
  for (Task& task : batch_) {
    std::exchange(task, nullptr)();
  }
  batch_.clear();
}

EventLoop::Clock::time_point EventLoop::Impl::Now() {
  // Outside Run there are no turns, so a stored time would never be renewed.
  if (!running_) return Clock::now();
  if (!now_.has_value()) now_ = Clock::now();
  return *now_;
}

EventLoop::HandlePtr EventLoop::Impl::Watch(int fd, int events, std::function<void(int)> callback) {
  auto source = std::make_unique<Source>();
  source->fd = fd;
  source->on_events = std::move(callback);
  SetEvents(*source, events);
  return Adopt(std::move(source));
}

void EventLoop::Impl::SetEvents(Source& source, int events) {
  if (source.events == events) return;
  // epoll reports errors whatever events were requested, so a source that pauses must be removed.
  // If its fd was closed too early, it is removed already.
  const int change = events == 0          ? EPOLL_CTL_DEL
                     : source.events == 0 ? EPOLL_CTL_ADD
                                          : EPOLL_CTL_MOD;
  epoll_event event{ToEpoll(events), {&source}};
  source.events = events;
  const int result = ::epoll_ctl(epoll_.get(), change, source.fd, &event);
  Require(result == 0 || change == EPOLL_CTL_DEL, "watching an fd");
}

EventLoop::HandlePtr EventLoop::Impl::Timer(std::chrono::milliseconds delay,
                                            std::chrono::milliseconds period, Task task) {
  auto source = std::make_unique<Source>();
  source->task = std::move(task);
  source->period = period;
  Schedule(*source, delay);
  return Adopt(std::move(source));
}

void EventLoop::Impl::Schedule(Source& source, std::chrono::milliseconds delay) {
  // A year: outlasts any wait, overflows no sum.
  constexpr std::chrono::milliseconds kLongest = std::chrono::hours(24 * 365);
  delay = std::clamp(delay, std::chrono::milliseconds::zero(), kLongest);
  source.timer = timers_.Add(Clock::now() + delay, [this, &source] {
    if (source.period > std::chrono::milliseconds::zero()) Schedule(source, source.period);
    source.task();
  });
}

EventLoop::HandlePtr EventLoop::Impl::OnSignal(int signal, SignalTask task) {
  auto source = std::make_unique<Source>();
  source->signal.emplace(signal);
  source->on_events = [&source = *source, task = std::move(task)](int) {
    source.signal->Clear();
    task(source.signal->sender());
  };
  WatchOwn(source->signal->fd(), *source);
  return Adopt(std::move(source));
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
  return impl_->Now();
}

EventLoop::HandlePtr EventLoop::Watch(int fd, int events, std::function<void(int)> callback) {
  return impl_->Watch(fd, events, std::move(callback));
}

void EventLoop::SetEvents(Handle& watch, int events) {
  static_cast<SourceHandle&>(watch).SetEvents(events);
}

EventLoop::HandlePtr EventLoop::After(std::chrono::milliseconds delay, Task task) {
  return impl_->Timer(delay, std::chrono::milliseconds::zero(), std::move(task));
}

EventLoop::HandlePtr EventLoop::Every(std::chrono::milliseconds period, Task task) {
  // A period of zero would keep the loop busy for ever.
  period = std::max(period, std::chrono::milliseconds(1));
  return impl_->Timer(period, period, std::move(task));
}

EventLoop::HandlePtr EventLoop::OnSignal(int signal, SignalTask task) {
  return impl_->OnSignal(signal, std::move(task));
}

}  // namespace resmgr
