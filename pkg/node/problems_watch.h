// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "pkg/model/problem.h"
#include "pkg/node/pod_event_watch.h"
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
    // Called after each look.
    std::function<void(const Counts& counts)> count = [](const Counts&) {};
    // Sends an Event of the node for each kind of problem that the last look did not find.
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

// The Event of the node for `count` problems of one kind, of which `first` is described.
PodEvent NodeEventOf(const Problem& first, size_t count);

// Remembers when each problem was first listed, for problems that come without a time.
// Thread-compatible.
class ProblemTimes {
 public:
  using Time = std::chrono::system_clock::time_point;

  // The given problems, each with its time. Forgets all other problems.
  std::vector<Problem> Completed(std::vector<Problem> problems,
                                 Time now = std::chrono::system_clock::now());

 private:
  // A problem is recognized by its kind and objects. Without objects its message counts, in which
  // numbers may change.
  using Key = std::pair<std::string, std::vector<std::string>>;

  std::map<Key, Time> since_;
};

}  // namespace resmgr
