// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <set>

#include "pkg/resmgr/container_store.h"
#include "pkg/resmgr/runtime_client.h"
#include "pkg/sys/event_loop.h"

namespace resmgr {

// Container events of the runtime cause a list where they report something new. Most come from
// calls that pass here, whose answers report the same a moment later: so events are gathered for
// that moment, and those that are known by then are dropped. Loop's thread only.
class EventFilter {
 public:
  struct Options {
    std::chrono::milliseconds pause{100};
    // So many events wait at most; more are a reason to look without regard to what they say.
    size_t most = 1024;
  };

  // Containers get the names that events tell. The references must outlive it. `look` runs at most
  // once in a pause.
  EventFilter(EventLoop& loop, ContainerStore& store, std::function<void()> look, Options options);
  EventFilter(const EventFilter&) = delete;
  EventFilter& operator=(const EventFilter&) = delete;

  void Add(const ContainerEvent& event);
  // The connection is lost: everything will be listed anyway.
  void Clear();
  size_t waiting() const { return pending_.size(); }

 private:
  bool IsNews(const ContainerEvent& event) const;
  void TakeName(const ContainerEvent& event);
  void OnTimer();

  EventLoop& loop_;
  ContainerStore& store_;
  const std::function<void()> look_;
  const Options options_;
  std::set<ContainerEvent> pending_;
  bool too_many_ = false;
  EventLoop::HandlePtr timer_;
};

}  // namespace resmgr
