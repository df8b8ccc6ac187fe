// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "pkg/base/ids.h"

namespace resmgr::nri {

// The containers that were sent updates before they were known to run. Runtimes report such an
// update as done although it may have no effect: containerd does not know a container while
// creating it, and changes only its record of one whose process it has made already. A plugin hears
// of a start only afterwards. Loop's thread only.
class EarlyUpdates {
 public:
  void Clear() { sent_.clear(); }
  // The container does not run yet.
  void Add(const ContainerId& id) { sent_.insert_or_assign(std::string(id.value()), false); }
  // The container runs, or never will.
  void Remove(const ContainerId& id) { sent_.erase(std::string(id.value())); }
  // Keeps the containers for which the predicate is true.
  template <typename Predicate>
  void Keep(const Predicate& predicate) {
    std::erase_if(sent_, [&](const auto& each) { return !predicate(ContainerId(each.first)); });
  }
  // The container is sent an update.
  void Sent(const ContainerId& id) {
    if (const auto found = sent_.find(id.value()); found != sent_.end()) found->second = true;
  }
  bool WasSent(const ContainerId& id) const {
    const auto found = sent_.find(id.value());
    return found != sent_.end() && found->second;
  }

 private:
  std::map<std::string, bool, std::less<>> sent_;
};

}  // namespace resmgr::nri
