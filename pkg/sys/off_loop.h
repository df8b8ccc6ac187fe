// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "pkg/base/status.h"
#include "pkg/sys/event_loop.h"

namespace resmgr {

// Runs work that may block (a disk) or take long away from the event loop, one piece at a time, on
// a thread that exists only while there is work. Loop's thread only.
class OffLoop {
 public:
  // Runs on the other thread. The task that it returns, which may be empty, then runs on the loop.
  // Work that hangs may outlive everything but the process, so it must own all that it uses. After
  // this object's end the task is dropped.
  using Work = std::function<EventLoop::Task()>;

  // `name` is the thread's, at most 15 characters. The destructor waits up to `patience` for work
  // that has begun or waits. The loop must outlive this object.
  OffLoop(EventLoop& loop, std::string name, std::chrono::milliseconds patience);
  ~OffLoop();
  OffLoop(const OffLoop&) = delete;
  OffLoop& operator=(const OffLoop&) = delete;

  // Begins the work. If other work is under way, the new work waits and replaces work that waited
  // before, so only the latest runs. Unavailable: no thread can be created, and the work is
  // dropped.
  Status Run(Work work);
  // Whether work is under way on the other thread, or waits for it.
  bool working() const;
  // The same, or a returned task has yet to run on the loop; false within that task. Work that
  // begins only while this is false sees the results of all earlier work.
  bool busy() const;

 private:
  struct State;

  const std::string name_;
  const std::chrono::milliseconds patience_;
  // Shared with the thread, which may outlive this object.
  const std::shared_ptr<State> state_;
};

}  // namespace resmgr
