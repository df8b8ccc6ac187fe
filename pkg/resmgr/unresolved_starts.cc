// SPDX-License-Identifier: Apache-2.0
#include "pkg/resmgr/unresolved_starts.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace resmgr {

UnresolvedStarts::UnresolvedStarts(Clock& clock, ContainerStore& store, Look look,
                                   std::function<void(ContainerKey)> given_up, Options options)
    : clock_(clock),
      store_(store),
      look_(std::move(look)),
      given_up_(std::move(given_up)),
      options_(options) {}

void UnresolvedStarts::Add(ContainerKey key) {
  doubts_[key] = {.deadline = clock_.Steady() + options_.limit};
  pauses_.Reset();
  timer_.reset();
  Schedule();
}

void UnresolvedStarts::Examine() {
  std::vector<ContainerKey> given_up;
  for (auto it = doubts_.begin(); it != doubts_.end();) {
    ContainerRecord* const record = store_.Find(it->first);
    // A running container may still be about to be restarted.
    const bool unclear = record != nullptr && (record->life.state() == LifeState::kUnresolved ||
                                               record->life.ComesBack());
    if (unclear && !it->second.last_look) {
      ++it;
      continue;
    }
    if (unclear) {
      record->Advance(LifeEvent::kStartExpired);
      given_up.push_back(it->first);
    }
    it = doubts_.erase(it);
  }
  for (const ContainerKey key : given_up)
    given_up_(key);
  Schedule();
}

void UnresolvedStarts::Schedule() {
  if (doubts_.empty()) {
    timer_.reset();
    return;
  }
  if (timer_ == nullptr) timer_ = clock_.After(pauses_.Next(), [this] { OnTimer(); });
}

void UnresolvedStarts::OnTimer() {
  timer_.reset();
  Schedule();
  look_([this, asked = clock_.Steady()](const Status& status) {
    if (status.ok()) OnLooked(asked);
  });
}

void UnresolvedStarts::OnLooked(Clock::SteadyTime asked) {
  for (auto& [key, doubt] : doubts_)
    doubt.last_look = doubt.last_look || asked >= doubt.deadline;
  Examine();
}

}  // namespace resmgr
