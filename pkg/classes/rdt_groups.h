// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <utility>

namespace resmgr {

// The groups of resctrl that the worker has found last, for the loop: a runtime refuses the
// creation of a container for another one. The worker learns here whether the runtime starts
// containers in them, as the loop has seen it last. Thread-safe.
class RdtGroups {
 public:
  using Names = std::set<std::string, std::less<>>;

  void Set(Names names) {
    const std::lock_guard lock(mutex_);
    names_ = std::move(names);
  }
  bool Has(std::string_view name) const {
    const std::lock_guard lock(mutex_);
    return names_.contains(name);
  }
  void SetStartedIn(bool started_in) { started_in_ = started_in; }
  bool started_in() const { return started_in_; }

 private:
  mutable std::mutex mutex_;
  Names names_;
  std::atomic<bool> started_in_ = false;
};

}  // namespace resmgr
