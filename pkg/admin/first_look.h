// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <vector>

#include "pkg/node/node_view.h"
#include "pkg/sys/event_loop.h"

namespace resmgr {

// Holds questions about containers back while a daemon that has just started reads them from the
// runtime: an answer before that would say that there are none, and a configuration would seem to
// take no CPUs away. After kLongest from the start the
// answer tells what is known, since a runtime may be away for long. Loop's thread only.
class FirstLook {
 public:
  static constexpr std::chrono::milliseconds kLongest{2'000};

  // Counts the time from now. The node must outlive it.
  explicit FirstLook(const NodeView& node) : node_(node) {}
  FirstLook(const FirstLook&) = delete;
  FirstLook& operator=(const FirstLook&) = delete;

  // Runs the task at once where the first look is over, else as soon as it is.
  void Then(EventLoop::Task task);

 private:
  bool IsOver();
  void Look();

  const NodeView& node_;
  const std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
  bool over_ = false;
  std::vector<EventLoop::Task> waiting_;
  EventLoop::HandlePtr timer_;
};

}  // namespace resmgr
