// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <set>
#include <string>

#include "pkg/resmgr/container_store.h"
#include "pkg/resmgr/runtime_client.h"
#include "pkg/sys/clock.h"

namespace resmgr {

// Container events of the runtime cause a list where they report something new. Most come from
// calls that pass here, whose answers report the same a moment later: so events are gathered for
// that moment, and those that are known by then are dropped. Loop's thread only.
class EventFilter {
 public:
  struct Options {
    std::chrono::milliseconds pause{100};
    // Limit of waiting events; more of them cause a list, whatever they report.
    size_t most = 1024;
  };

  struct Acts {
    std::function<void()> look;  // at most once in a pause
    // Called with the name in the last event about the container.
    std::function<void(ContainerRecord& record, const std::string& name)> rename;
  };

  // The references must outlive it.
  EventFilter(Clock& clock, ContainerStore& store, Acts acts, Options options);
  EventFilter(const EventFilter&) = delete;
  EventFilter& operator=(const EventFilter&) = delete;

  void Add(const ContainerEvent& event);
  // The connection is lost: everything will be listed anyway.
  void Clear();
  size_t waiting() const { return pending_.size(); }

 private:
  bool IsNews(const ContainerEvent& event) const;
  bool TakeName(const std::string& id, const std::string& name);
  void OnTimer();

  Clock& clock_;
  ContainerStore& store_;
  const Acts acts_;
  const Options options_;
  std::set<ContainerEvent> pending_;
  // The last names in events, by ids that are not known yet.
  std::map<std::string, std::string> names_;
  bool too_many_ = false;
  EventLoop::HandlePtr timer_;
};

}  // namespace resmgr
