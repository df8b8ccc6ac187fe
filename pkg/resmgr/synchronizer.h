// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "pkg/base/ids.h"
#include "pkg/base/status.h"
#include "pkg/resmgr/container_store.h"
#include "pkg/resmgr/runtime_client.h"
#include "pkg/sys/backoff.h"
#include "pkg/sys/clock.h"
#include "pkg/sys/lifetime.h"

namespace resmgr {

// When to ask the runtime for everything that it holds: after each connect, until it worked once,
// and later when something does not fit what is known. The owner decides about the answer. All on
// the loop's thread.
class Synchronizer {
 public:
  struct Options {
    std::chrono::milliseconds first_retry{50};
    // Also the least time between two resyncs.
    std::chrono::milliseconds last_retry{5'000};
    // The least time between two lists that Refresh asks for.
    std::chrono::milliseconds refresh_pause{1'000};
    // From one list to the next when nothing else asks for one: changes by other clients are
    // noticed by then.
    std::chrono::milliseconds period{60'000};
  };
  using Ready = std::function<void(Status)>;

  // Objects that were removed while the runtime made its list, which may still show them.
  struct Removed {
    std::set<ContainerId> containers;
    std::set<PodSandboxId> pods;
  };

  class Owner {
   public:
    virtual ~Owner() = default;
    // A list is about to be asked for.
    virtual void OnListing() = 0;
    // `first` is the first one since the connect.
    virtual Status OnInventory(const RuntimeInventory& inventory, const Removed& removed,
                               bool first) = 0;
    // Whether the status of a listed object would have no news.
    virtual bool Knows(const Pod& listed) const = 0;
    virtual bool Knows(const RuntimeContainer& listed) const = 0;
    // The first list since the connect, or since one that worked, failed; it is asked for again.
    virtual void OnListFailed(const Status& status) = 0;
  };

  // All references must outlive it.
  Synchronizer(Clock& clock, RuntimeClient& runtime, Owner& owner, Options options);
  Synchronizer(const Synchronizer&) = delete;
  Synchronizer& operator=(const Synchronizer&) = delete;

  void Connected();
  void Disconnected();
  // Runs `ready` at once with OK if the first list is taken over or, without a connection, with
  // Unavailable; else when the list under way has been taken over or has failed.
  void WhenReady(Ready ready);
  bool ready() const { return state_ == State::kReady; }
  // Something does not fit what is known: looks again, soon but not too often, and after the list
  // that is under way. Does nothing without a connection: connecting looks anyway.
  void ResyncSoon();
  // Asks for everything at once, or as soon as the list that is under way is there. Runs `ready`
  // when that is taken over, or with the reason why it is not.
  void ListNow(Ready ready);
  // As ListNow, after a pause since the last list: all calls meanwhile share the next list.
  void Refresh(Ready ready);
  bool RefreshTellsNews() const { return runtime_.ListsTellNews(); }

  void RecordRemoval(const ContainerId& id);
  void RecordRemoval(const PodSandboxId& id);

 private:
  enum class State { kDisconnected, kSynchronizing, kReady };

  void List();
  Known WhatIsKnown() const;
  void ListForRefresh();
  // Runs `then` after the delay; the handle is null from then on.
  void Arm(EventLoop::HandlePtr& timer, std::chrono::milliseconds delay, EventLoop::Task then);
  void OnList(const StatusOr<RuntimeInventory>& inventory);
  void ScheduleUnclearResync(const RuntimeInventory::Unclear& unclear);
  void OnFailure(const Status& status);
  void RunWaiters(const Status& status);
  static void Run(const std::vector<Ready>& waiters, const Status& status);

  Clock& clock_;
  RuntimeClient& runtime_;
  Owner& owner_;
  const Options options_;
  State state_ = State::kDisconnected;
  uint64_t epoch_ = 0;
  bool listing_ = false;
  bool resync_wanted_ = false;  // a list is wanted after the present one or a pause
  bool failed_ = false;         // the last list
  Removed removed_;
  std::vector<Ready> waiters_;
  std::vector<Ready> list_waiters_;       // for the list that is under way
  std::vector<Ready> next_list_waiters_;  // for the one after it
  std::vector<Ready> refresh_waiters_;    // for the one after the pause
  Clock::SteadyTime listed_at_;           // when the last list was asked for
  EventLoop::HandlePtr refresh_timer_;
  EventLoop::HandlePtr period_timer_;
  Backoff delays_{options_.first_retry, options_.last_retry};
  EventLoop::HandlePtr retry_;
  // After lists that were not clear.
  Backoff unclear_pauses_{options_.last_retry, options_.last_retry * 12};
  EventLoop::HandlePtr unclear_timer_;
  EventLoop::HandlePtr resync_pause_;  // runs while no further resync may begin
  Lifetime lifetime_;
};

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
