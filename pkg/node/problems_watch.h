// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/model/problem.h"
#include "pkg/node/pod_event.h"
#include "pkg/sys/event_loop.h"

namespace resmgr {

// Reports the list of problems to metrics and as the node's Events. Loop's thread only.
class ProblemsWatch {
 public:
  // The number of problems of each kind in kProblemKinds.
  using Counts = std::map<std::string, size_t, std::less<>>;

  struct Options {
    EventLoop& loop;
    std::function<std::vector<Problem>()> problems{};
    // Told after each look.
    std::function<void(const Counts& counts)> count = [](const Counts&) {};
    // An Event of the node for a kind that was not there at the look before.
    std::function<void(PodEvent event)> tell = [](const PodEvent&) {};
    std::chrono::milliseconds period = std::chrono::seconds(10);
  };
  // The loop must outlive it.
  explicit ProblemsWatch(Options options);
  ProblemsWatch(const ProblemsWatch&) = delete;
  ProblemsWatch& operator=(const ProblemsWatch&) = delete;

 private:
  void Look();

  const Options options_;
  Counts counts_;
  EventLoop::HandlePtr timer_;
};

// The Event of the node for a kind with this first problem and this number of problems.
PodEvent NodeEventOf(const Problem& first, size_t count);

}  // namespace resmgr
