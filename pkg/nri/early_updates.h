// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "pkg/base/ids.h"

namespace resmgr::nri {

// Which containers were sent updates before they were known to run. Runtimes report such an update
// as done although it may have no effect: containerd has not heard of a container as long as it
// creates it, and changes only its notes of one for which it has made the process already. A plugin
// is told of a start only after that. Loop's thread only.
class EarlyUpdates {
 public:
  void Clear() { sent_.clear(); }
  // It does not run yet.
  void Add(const ContainerId& id) { sent_.insert_or_assign(std::string(id.value()), false); }
  // It runs, or will not any more.
  void Remove(const ContainerId& id) { sent_.erase(std::string(id.value())); }
  // Keeps those for which this is true.
  template <typename Predicate>
  void Keep(const Predicate& predicate) {
    std::erase_if(sent_, [&](const auto& each) { return !predicate(ContainerId(each.first)); });
  }
  // It is sent an update.
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
