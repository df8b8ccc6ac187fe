// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>

#include <sys/types.h>

#include "pkg/base/status.h"

namespace resmgr {

// The one thread that makes decisions: sockets, timers and signals are events on it
// (pkg/adr/0001-event-loop.md). All functions must be called on the loop's thread (or before Run),
// except Post and Stop, which any thread may call. Watches, timers and signals are handles:
// destroying a handle stops it, even from within its own callback; what the callback captured is
// released at the end of the loop's turn. A handle may outlive the loop. Watching an fd that is
// closed or watched already is a bug that ends the process.
class EventLoop {
 public:
  using Clock = std::chrono::steady_clock;
  using Task = std::function<void()>;

  EventLoop();
  ~EventLoop();
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;

  // Runs until Stop. Sleeps in the kernel while there is nothing to do: an idle loop never wakes
  // up.
  void Run();
  // Thread-safe. Run returns after the events that were picked up together with the current one.
  void Stop();
  // Thread-safe. Runs the task on the loop, in the order of the posts. Costs a system call only
  // from other threads. Tasks that never ran are dropped with the loop.
  void Post(Task task);
  // The time at which the current event was picked up.
  Clock::time_point Now() const;

  class Handle;
  using HandlePtr = std::unique_ptr<Handle>;

  static constexpr int kReadable = 1;
  static constexpr int kWritable = 2;
  // Calls back with kReadable, kWritable or both; a socket error counts as both. Level-triggered.
  // The fd stays the caller's and must outlive the handle.
  HandlePtr Watch(int fd, int events, std::function<void(int)> callback);
  // Changes the events of a handle that Watch returned. 0 pauses it.
  static void SetEvents(Handle& watch, int events);

  // Runs once after the delay, or again and again after each period.
  HandlePtr After(std::chrono::milliseconds delay, Task task);
  HandlePtr Every(std::chrono::milliseconds period, Task task);

  // Runs when the process gets the signal, in place of its default effect. `sender` is the process
  // that sent the last one, 0 for the kernel and for a process of another PID namespace.
  using SignalTask = std::function<void(pid_t sender)>;
  HandlePtr OnSignal(int signal, SignalTask task);

 private:
  class Impl;
  class SourceHandle;
  struct Source;
  std::unique_ptr<Impl> impl_;
};

// Releases one event source of the loop.
class EventLoop::Handle {
 public:
  virtual ~Handle() = default;
};

}  // namespace resmgr
