// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "pkg/topology/cpu_set.h"

namespace resmgr::test {

// Looks all the time, from outside, for the one thing that must never be: a running shared
// container that may use a CPU of a running exclusive one. Thread-safe.
class PlacementWatch {
 public:
  // The CPUs that the container's process may use now; nothing while it does not run, which
  // includes a container that is created but not started. Called on the watch's thread.
  using Reader = std::function<std::optional<CpuSet>(const std::string& container_id)>;

  explicit PlacementWatch(Reader read);

  // From now on looks at this container too. `name` is for messages.
  void Add(const std::string& container_id, const std::string& name, bool exclusive);
  void Remove(const std::string& container_id);

  // Returns after every container has been looked at once more.
  void LookAgain() const;
  uint64_t looks() const { return looks_; }

  // The violations found, one line each.
  std::vector<std::string> violations() const;

 private:
  struct Watched {
    std::string name;
    bool exclusive = false;
  };

  void Run(const std::stop_token& stop);
  void Look();

  Reader read_;
  mutable std::mutex mutex_;
  std::map<std::string, Watched> containers_;
  std::vector<std::string> violations_;
  std::atomic<uint64_t> looks_ = 0;
  std::jthread thread_;  // last: it uses all of the above
};

// Looks at containers all the time, from outside, and keeps each change of the CPUs that they may
// use. Thread-safe.
class CpuHistory {
 public:
  using Clock = std::chrono::steady_clock;
  // As PlacementWatch::Reader: nothing while the container does not run. Called on the thread of
  // the history.
  using Reader = std::function<std::optional<CpuSet>(const std::string& container_id)>;

  // The change happened after `after`, when the former state was seen, and before `before`.
  struct Change {
    Clock::time_point after;
    Clock::time_point before;
    std::optional<CpuSet> cpus;
  };

  explicit CpuHistory(Reader read);

  // From now on looks at this container too. Its first change is what is found at the first look.
  void Add(const std::string& container_id);
  void Remove(const std::string& container_id);

  std::vector<Change> ChangesOf(const std::string& container_id) const;
  // The same in words: "none, 0-1, 0".
  std::string Describe(const std::string& container_id) const;

 private:
  struct Watched {
    Clock::time_point looked;
    std::vector<Change> changes;
  };

  void Run(const std::stop_token& stop);
  void Look();

  Reader read_;
  mutable std::mutex mutex_;
  std::map<std::string, Watched> containers_;
  std::jthread thread_;  // last: it uses all of the above
};

}  // namespace resmgr::test
