// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <utility>

namespace resmgr {

// The groups of resctrl that the worker has found last, for the loop: a runtime refuses the
// creation of a container for another one. Thread-safe.
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

 private:
  mutable std::mutex mutex_;
  Names names_;
};

}  // namespace resmgr
