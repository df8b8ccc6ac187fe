// SPDX-License-Identifier: Apache-2.0
#include "pkg/resmgr/synchronizer.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace resmgr {
namespace {

void RefuseUnconnected(const Synchronizer::Ready& ready) {
  ready(Unavailable("there is no connection to the runtime"));
}

}  // namespace

Synchronizer::Synchronizer(Clock& clock, RuntimeClient& runtime, Owner& owner,
                           const BrainOptions& options)
    : clock_(clock), runtime_(runtime), owner_(owner), options_(options) {}

void Synchronizer::Connected() {
  Disconnected();
  state_ = State::kSynchronizing;
  List();
}

void Synchronizer::Disconnected() {
  connection_.emplace();
  state_ = State::kDisconnected;
  listing_ = false;
  resync_wanted_ = false;
  failed_ = false;
  removed_ = {};
  delays_.Reset();
  retry_.reset();
  resync_pause_.reset();
  unclear_pauses_.Reset();
  unclear_timer_.reset();
  refresh_timer_.reset();
  period_timer_.reset();
  const Status lost = Unavailable("the connection to the runtime was lost");
  Run(std::exchange(list_waiters_, {}), lost);
  Run(std::exchange(next_list_waiters_, {}), lost);
  Run(std::exchange(refresh_waiters_, {}), lost);
  RunWaiters(lost);
}

void Synchronizer::WhenReady(Ready ready) {
  switch (state_) {
    case State::kDisconnected:
      return RefuseUnconnected(ready);
    case State::kSynchronizing:
      waiters_.push_back(std::move(ready));
      return;
    case State::kReady:
      return ready(OkStatus());
  }
}

void Synchronizer::ResyncSoon() {
  if (state_ == State::kDisconnected) return;
  if (state_ == State::kSynchronizing || listing_ || resync_pause_ != nullptr) {
    resync_wanted_ = true;
    return;
  }
  List();
}

void Synchronizer::ListNow(Ready ready) {
  if (state_ == State::kDisconnected) return RefuseUnconnected(ready);
  next_list_waiters_.push_back(std::move(ready));
  if (state_ == State::kReady && !listing_) List();
}

void Synchronizer::Refresh(Ready ready) {
  if (state_ == State::kDisconnected) return RefuseUnconnected(ready);
  refresh_waiters_.push_back(std::move(ready));
  ListForRefresh();
}

void Synchronizer::ListForRefresh() {
  if (state_ != State::kReady || listing_ || refresh_timer_ != nullptr ||
      refresh_waiters_.empty()) {
    return;
  }
  const auto rested =
      std::chrono::duration_cast<std::chrono::milliseconds>(clock_.Steady() - listed_at_);
  if (rested >= options_.refresh_pause) {
    List();
    return;
  }
  Arm(refresh_timer_, options_.refresh_pause - rested, [this] {
    if (!listing_ && !refresh_waiters_.empty()) List();
  });
}

void Synchronizer::RecordRemoval(const ContainerId& id) {
  if (listing_) removed_.containers.insert(id);
}

void Synchronizer::RecordRemoval(const PodSandboxId& id) {
  if (listing_) removed_.pods.insert(id);
}

// One list at a time: a second one would drop the callers that wait for the first.
void Synchronizer::List() {
  if (listing_) {
    resync_wanted_ = true;
    return;
  }
  listing_ = true;
  list_waiters_ = std::exchange(next_list_waiters_, {});
  std::ranges::move(std::exchange(refresh_waiters_, {}), std::back_inserter(list_waiters_));
  listed_at_ = clock_.Steady();
  owner_.OnListing();
  runtime_.ListAll(WhatIsKnown(),
                   connection_->Guard(
                       [this](const StatusOr<RuntimeInventory>& inventory) { OnList(inventory); }));
}

// After the first list, only what is not known needs to be asked for: later events and calls have
// reported the rest.
Known Synchronizer::WhatIsKnown() const {
  if (state_ != State::kReady) return {};
  const auto knows = [this, connected = connection_->token()](const auto& one) {
    return !connected.expired() && owner_.Knows(one);
  };
  return {.pod = knows, .container = knows};
}

void Synchronizer::OnList(const StatusOr<RuntimeInventory>& inventory) {
  const Removed removed = std::exchange(removed_, {});
  const bool first = state_ == State::kSynchronizing;
  const Status status =
      inventory.ok() ? owner_.OnInventory(*inventory, removed, first) : inventory.status();
  // Reset only now: a list that the owner asked for in OnInventory waits until this list's callers
  // were called.
  listing_ = false;
  if (!std::exchange(failed_, !status.ok()) && !status.ok()) owner_.OnListFailed(status);
  if (!status.ok()) resync_wanted_ = true;  // the reason for the list has not gone
  if (status.ok()) ScheduleUnclearResync(inventory->unclear);
  if (first && !status.ok()) {
    OnFailure(status);
    return;
  }
  state_ = State::kReady;
  delays_.Reset();
  // A pause that is running stays, so that lists for other reasons do not delay the wanted resync.
  if (resync_pause_ == nullptr) {
    Arm(resync_pause_, options_.last_retry, [this] {
      if (std::exchange(resync_wanted_, false)) List();
    });
  }
  Arm(period_timer_, options_.list_period, [this] { ResyncSoon(); });
  Run(std::exchange(list_waiters_, {}), status);
  RunWaiters(OkStatus());
  if (!next_list_waiters_.empty() && !listing_) List();
  ListForRefresh();
}

void Synchronizer::Arm(EventLoop::HandlePtr& timer, std::chrono::milliseconds delay,
                       EventLoop::Task then) {
  timer = clock_.After(delay, [&timer, then = std::move(then)] {
    const EventLoop::HandlePtr over = std::move(timer);
    then();
  });
}

// Pauses grow, since a runtime may fail to answer for long and each question is work for it.
void Synchronizer::ScheduleUnclearResync(const RuntimeInventory::Unclear& unclear) {
  if (unclear.why.ok()) {
    unclear_pauses_.Reset();
    unclear_timer_.reset();
    return;
  }
  Arm(unclear_timer_, unclear_pauses_.Next(), [this] { ResyncSoon(); });
}

void Synchronizer::OnFailure(const Status& status) {
  Arm(retry_, delays_.Next(), [this] { List(); });
  const Status failed =
      Unavailable("cannot take over the containers of the runtime: {}", Describe(status));
  Run(std::exchange(list_waiters_, {}), failed);
  RunWaiters(failed);
}

// A callback may wait again: it then joins the next round.
void Synchronizer::RunWaiters(const Status& status) {
  Run(std::exchange(waiters_, {}), status);
}

void Synchronizer::Run(const std::vector<Ready>& waiters, const Status& status) {
  for (const Ready& ready : waiters)
    ready(status);
}

EventFilter::EventFilter(Clock& clock, ContainerStore& store, Acts acts,
                         std::chrono::milliseconds pause)
    : clock_(clock), store_(store), acts_(std::move(acts)), pause_(pause) {}

void EventFilter::Add(const ContainerEvent& event) {
  const bool named = event.name.empty() || TakeName(event.id, event.name);
  if (!named && (names_.size() < kMost || names_.contains(event.id))) {
    names_.insert_or_assign(event.id, event.name);
  }
  if (IsNews(event)) {
    if (pending_.size() < kMost) {
      pending_.insert(event);
    } else {
      too_many_ = true;
    }
  }
  const bool waits = !pending_.empty() || !names_.empty();
  if (waits && timer_ == nullptr) timer_ = clock_.After(pause_, [this] { OnTimer(); });
}

void EventFilter::Clear() {
  pending_.clear();
  names_.clear();
  too_many_ = false;
  timer_.reset();
}

void EventFilter::OnTimer() {
  timer_.reset();
  // The answer to the creation may have arrived meanwhile, so that the id is known now.
  for (const auto& [id, name] : std::exchange(names_, {}))
    TakeName(id, name);
  const std::set<ContainerEvent> events = std::exchange(pending_, {});
  const bool news =
      std::exchange(too_many_, false) ||
      std::ranges::any_of(events, [this](const auto& event) { return IsNews(event); });
  if (news) acts_.look();
}

// Passes on the new name in an event. False if the container is not known. A waiting name from an
// earlier event is dropped.
bool EventFilter::TakeName(const std::string& id, const std::string& name) {
  ContainerRecord* const record = store_.FindById(ContainerId(id));
  if (record == nullptr) return false;
  names_.erase(id);
  if (record->container.name != name) acts_.rename(*record, name);
  return true;
}

// Whether the event reports something new. Runtimes also send events for pod sandboxes in the form
// of container events.
bool EventFilter::IsNews(const ContainerEvent& event) const {
  const ContainerRecord* const record = store_.FindById(ContainerId(event.id));
  const bool pod = store_.pods().contains(PodSandboxId(event.id));
  switch (event.kind) {
    case ContainerEvent::Kind::kUnknown:
      return true;
    case ContainerEvent::Kind::kCreated:
      return record == nullptr && !pod;
    case ContainerEvent::Kind::kStarted:
      if (record == nullptr) return !pod;
      return record->container.state != ContainerState::kRunning && !record->life.BeingStarted();
    case ContainerEvent::Kind::kStopped:
      return record != nullptr && record->container.state != ContainerState::kExited;
    case ContainerEvent::Kind::kDeleted:
      return record != nullptr || pod;
    // No list is needed: audits compare the values in force, and names were taken from the event.
    case ContainerEvent::Kind::kUpdated:
    case ContainerEvent::Kind::kRenamed:
      return false;
  }
  return true;
}

}  // namespace resmgr
