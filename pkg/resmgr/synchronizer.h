// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "pkg/base/ids.h"
#include "pkg/base/status.h"
#include "pkg/resmgr/brain_options.h"
#include "pkg/resmgr/container_store.h"
#include "pkg/resmgr/runtime_client.h"
#include "pkg/sys/backoff.h"
#include "pkg/sys/clock.h"
#include "pkg/sys/lifetime.h"

namespace resmgr {

// Decides when to list everything that the runtime holds: after each connect, until one list
// succeeded, and later whenever something does not fit what is known. The owner takes the lists
// over. All on the loop's thread.
class Synchronizer {
 public:
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
    // Whether the status of a listed object is known already and need not be asked for.
    virtual bool Knows(const Pod& listed) const = 0;
    virtual bool Knows(const RuntimeContainer& listed) const = 0;
    // The first list since the connect, or the first after a success, has failed; it is repeated.
    virtual void OnListFailed(const Status& status) = 0;
  };

  // All references must outlive it.
  Synchronizer(Clock& clock, RuntimeClient& runtime, Owner& owner, const BrainOptions& options);
  Synchronizer(const Synchronizer&) = delete;
  Synchronizer& operator=(const Synchronizer&) = delete;

  void Connected();
  void Disconnected();
  // Runs `ready` once the first list after a connect is taken over; at once if it is already.
  // Unavailable if the runtime is not connected, if the connection is lost meanwhile, or if the
  // list fails (another one follows by itself).
  void WhenReady(Ready ready);
  // Whether the first list since the connect is taken over.
  bool ready() const { return state_ == State::kReady; }
  // Something does not fit what is known: lists everything soon, but not too often, and after the
  // list that is under way. Does nothing without a connection, since each connect lists everything.
  void ResyncSoon();
  // Lists everything at once, or as soon as the list that is under way has ended. Runs `ready` when
  // the list is taken over, or with the error.
  void ListNow(Ready ready);
  // As ListNow, but at least BrainOptions::refresh_pause after the last list: all calls meanwhile
  // share one list. `ready` never runs from within, except without a connection.
  void Refresh(Ready ready);
  // Whether a list by Refresh may show something new.
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
  const BrainOptions& options_;
  State state_ = State::kDisconnected;
  bool listing_ = false;
  bool resync_wanted_ = false;  // a further list is wanted, after the present one or a pause
  bool failed_ = false;         // the last list failed
  Removed removed_;
  std::vector<Ready> waiters_;
  std::vector<Ready> list_waiters_;       // run after the list that is under way
  std::vector<Ready> next_list_waiters_;  // run after the next list
  std::vector<Ready> refresh_waiters_;    // run after the list that follows the pause
  Clock::SteadyTime listed_at_;           // when the last list was asked for
  EventLoop::HandlePtr refresh_timer_;
  EventLoop::HandlePtr period_timer_;
  Backoff delays_{options_.first_retry, options_.last_retry};
  EventLoop::HandlePtr retry_;
  // Pauses after lists with unclear objects.
  Backoff unclear_pauses_{options_.last_retry, options_.last_retry * 12};
  EventLoop::HandlePtr unclear_timer_;
  EventLoop::HandlePtr resync_pause_;                  // runs while no further resync may begin
  std::optional<Lifetime> connection_{std::in_place};  // a new one after each disconnection
};

// Lists everything if an event of the runtime reports something new. Most events come from calls
// that pass here, whose answers report the same a moment later: so events are gathered for that
// moment, and those that are explained by then are dropped. Loop's thread only.
class EventFilter {
 public:
  // Limit of waiting events; more of them cause a list, whatever they report.
  static constexpr size_t kMost = 1024;

  struct Acts {
    std::function<void()> look;  // lists everything; called at most once in a pause
    // Called with the name in the last event about the container, if it is a new one.
    std::function<void(ContainerRecord& record, const std::string& name)> rename;
  };

  // The references must outlive it. `pause`: BrainOptions::event_pause.
  EventFilter(Clock& clock, ContainerStore& store, Acts acts, std::chrono::milliseconds pause);
  EventFilter(const EventFilter&) = delete;
  EventFilter& operator=(const EventFilter&) = delete;

  void Add(const ContainerEvent& event);
  // Drops all waiting events: the connection is lost, so everything will be listed anyway.
  void Clear();
  size_t waiting() const { return pending_.size(); }

 private:
  bool IsNews(const ContainerEvent& event) const;
  bool TakeName(const std::string& id, const std::string& name);
  void OnTimer();

  Clock& clock_;
  ContainerStore& store_;
  const Acts acts_;
  const std::chrono::milliseconds pause_;
  std::set<ContainerEvent> pending_;
  // The last names in events about ids that are not known yet.
  std::map<std::string, std::string> names_;
  bool too_many_ = false;
  EventLoop::HandlePtr timer_;
};

}  // namespace resmgr
