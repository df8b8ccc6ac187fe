// SPDX-License-Identifier: Apache-2.0
#include "pkg/resmgr/synchronizer.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace resmgr {

Synchronizer::Synchronizer(EventLoop& loop, RuntimeClient& runtime, Owner& owner, Options options)
    : loop_(loop),
      runtime_(runtime),
      owner_(owner),
      options_(options),
      self_(std::make_shared<Synchronizer*>(this)) {}

void Synchronizer::Connected() {
  Disconnected();
  state_ = State::kSynchronizing;
  List();
}

void Synchronizer::Disconnected() {
  ++epoch_;
  state_ = State::kDisconnected;
  listing_ = false;
  doubt_ = false;
  failed_ = false;
  gone_ = {};
  delay_ = std::chrono::milliseconds(0);
  retry_.reset();
  rest_.reset();
  unclear_pause_ = std::chrono::milliseconds(0);
  unclear_timer_.reset();
  refresh_timer_.reset();
  period_timer_.reset();
  const Status lost = Unavailable("the connection to the runtime was lost");
  Run(std::exchange(lookers_, {}), lost);
  Run(std::exchange(next_lookers_, {}), lost);
  Run(std::exchange(refreshers_, {}), lost);
  RunWaiters(lost);
}

void Synchronizer::WhenReady(Ready ready) {
  switch (state_) {
    case State::kDisconnected:
      ready(Unavailable("there is no connection to the runtime"));
      return;
    case State::kSynchronizing:
      waiters_.push_back(std::move(ready));
      return;
    case State::kReady:
      ready(OkStatus());
      return;
  }
}

void Synchronizer::Doubt() {
  if (state_ == State::kDisconnected) return;
  if (state_ == State::kSynchronizing || listing_ || rest_ != nullptr) {
    doubt_ = true;
    return;
  }
  List();
}

void Synchronizer::Look(Ready ready) {
  if (state_ == State::kDisconnected) {
    ready(Unavailable("there is no connection to the runtime"));
    return;
  }
  next_lookers_.push_back(std::move(ready));
  if (state_ == State::kReady && !listing_) List();
}

void Synchronizer::Refresh(Ready ready) {
  if (state_ == State::kDisconnected) {
    ready(Unavailable("there is no connection to the runtime"));
    return;
  }
  refreshers_.push_back(std::move(ready));
  ListForRefreshers();
}

void Synchronizer::ListForRefreshers() {
  if (state_ != State::kReady || listing_ || refresh_timer_ != nullptr || refreshers_.empty()) {
    return;
  }
  const auto rested = std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::steady_clock::now() - listed_at_);
  if (rested >= options_.refresh_pause) {
    List();
    return;
  }
  refresh_timer_ = loop_.After(options_.refresh_pause - rested, [this] {
    refresh_timer_.reset();
    if (!listing_ && !refreshers_.empty()) List();
  });
}

void Synchronizer::NoteGone(const ContainerId& id) {
  if (listing_) gone_.containers.insert(id);
}

void Synchronizer::NoteGone(const PodSandboxId& id) {
  if (listing_) gone_.pods.insert(id);
}

void Synchronizer::List() {
  listing_ = true;
  lookers_ = std::exchange(next_lookers_, {});
  std::ranges::move(std::exchange(refreshers_, {}), std::back_inserter(lookers_));
  listed_at_ = std::chrono::steady_clock::now();
  owner_.OnListing();
  runtime_.ListAll(WhatIsKnown(), [weak = std::weak_ptr<Synchronizer*>(self_),
                                   epoch = epoch_](const StatusOr<RuntimeInventory>& inventory) {
    const std::shared_ptr<Synchronizer*> self = weak.lock();
    if (self == nullptr || (*self)->epoch_ != epoch) return;
    (*self)->OnList(inventory);
  });
}

// The first list tells everything. What was told since then, or passed by, need not be told again.
Known Synchronizer::WhatIsKnown() const {
  if (state_ != State::kReady) return {};
  const auto knows = [weak = std::weak_ptr<Synchronizer*>(self_), epoch = epoch_](const auto& one) {
    const std::shared_ptr<Synchronizer*> self = weak.lock();
    return self != nullptr && (*self)->epoch_ == epoch && (*self)->owner_.Knows(one);
  };
  return {.pod = knows, .container = knows};
}

void Synchronizer::OnList(const StatusOr<RuntimeInventory>& inventory) {
  listing_ = false;
  const Gone gone = std::exchange(gone_, {});
  const bool first = state_ == State::kSynchronizing;
  const Status status =
      inventory.ok() ? owner_.OnInventory(*inventory, gone, first) : inventory.status();
  if (!std::exchange(failed_, !status.ok()) && !status.ok()) owner_.OnListFailed(status);
  if (!status.ok()) doubt_ = true;  // what made somebody ask is not answered
  if (status.ok()) FollowUnclear(inventory->unclear);
  if (first && !status.ok()) {
    OnFailure(status);
    return;
  }
  state_ = State::kReady;
  delay_ = std::chrono::milliseconds(0);
  // Lists that others ask for do not put off the one that answers a doubt.
  if (rest_ == nullptr) rest_ = loop_.After(options_.last_retry, [this] { OnRested(); });
  ListPeriodically();
  Run(std::exchange(lookers_, {}), status);
  RunWaiters(OkStatus());
  if (!next_lookers_.empty() && !listing_) List();
  ListForRefreshers();
}

void Synchronizer::ListPeriodically() {
  period_timer_ = loop_.After(options_.period, [this] {
    period_timer_.reset();
    Doubt();
  });
}

// What a runtime does not tell now it may not tell for long, and asking is work for it.
void Synchronizer::FollowUnclear(const RuntimeInventory::Unclear& unclear) {
  if (unclear.why.ok()) {
    unclear_pause_ = std::chrono::milliseconds(0);
    unclear_timer_.reset();
    return;
  }
  constexpr int kMost = 12;
  unclear_pause_ = unclear_pause_.count() == 0
                       ? options_.last_retry
                       : std::min(unclear_pause_ * 2, options_.last_retry * kMost);
  unclear_timer_ = loop_.After(unclear_pause_, [this] {
    unclear_timer_.reset();
    Doubt();
  });
}

void Synchronizer::OnFailure(const Status& status) {
  delay_ = delay_.count() == 0 ? options_.first_retry : std::min(delay_ * 2, options_.last_retry);
  retry_ = loop_.After(delay_, [this] {
    retry_.reset();
    List();
  });
  const Status failed =
      Unavailable("cannot take over what the runtime holds: {}", Describe(status));
  Run(std::exchange(lookers_, {}), failed);
  RunWaiters(failed);
}

// A callback may ask again: it joins the next round.
void Synchronizer::RunWaiters(const Status& status) {
  Run(std::exchange(waiters_, {}), status);
}

void Synchronizer::Run(const std::vector<Ready>& waiters, const Status& status) {
  for (const Ready& ready : waiters)
    ready(status);
}

void Synchronizer::OnRested() {
  rest_.reset();
  if (std::exchange(doubt_, false)) List();
}

}  // namespace resmgr
