// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pkg/classes/blockio_limits.h"

namespace resmgr {

// The classes of block I/O as files of cgroup v2, as the worker has found the devices last, and for
// the loop, which must not look for devices itself. Only files that containers of this node have.
// Thread-safe.
class ResolvedBlockio {
 public:
  using Classes = std::map<std::string, std::vector<BlockioFile>, std::less<>>;

  void Set(Classes classes) {
    const std::lock_guard lock(mutex_);
    classes_ = std::move(classes);
  }
  // The class's files; empty if the class is not known yet or sets nothing.
  std::vector<BlockioFile> Find(std::string_view name) const {
    const std::lock_guard lock(mutex_);
    const auto found = classes_.find(name);
    return found == classes_.end() ? std::vector<BlockioFile>() : found->second;
  }

 private:
  mutable std::mutex mutex_;
  Classes classes_;
};

}  // namespace resmgr
