// SPDX-License-Identifier: Apache-2.0
#include "pkg/resmgr/starts.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include "pkg/base/parse.h"

namespace resmgr {
namespace {

// The longest pause between two lists for an unresolved start.
constexpr std::chrono::milliseconds kLongestPause{1'000};

}  // namespace

Starts::Starts(Brain& brain, Creations& creations)
    : brain_(brain),
      creations_(creations),
      starts_exited_(brain.runtime.StartsExited()),
      gate_(brain.timers, brain.store, brain.pusher,
            {brain.options.start_timeout, brain.options.start_failure,
             [this](ContainerKey key, const std::string& reason) { OnForced(key, reason); },
             [this](ContainerKey key) { WarnUnpinned(key); },
             [this](ContainerKey key) { DropRevived(key); },
             [&brain](ContainerKey key) { return brain.decider.ClaimedFor(key); }}),
      unresolved_(
          brain.timers, brain.store,
          [this](std::function<void(const Status&)> listed) {
            brain_.synchronizer.ListNow(std::move(listed));
          },
          [this](ContainerKey key) { OnExpired(key); }, brain.options) {}

std::unique_ptr<StartWait> Starts::Admit(const ContainerId& id, std::function<void(Status)> go) {
  using enum RefusalKind;
  if (ContainerRecord* const record = brain_.store.Resolve(id); record != nullptr) {
    const bool may_list = brain_.synchronizer.RefreshTellsNews();
    const Status placed = ReviveExited(*record, may_list ? kTentative : kFinal);
    if (!may_list || placed.code() != StatusCode::kResourceExhausted) {
      return AdmitKnown(record->container.key, placed, std::move(go));
    }
  }
  // The container was created without a call that passed here, or others may have left the CPUs
  // that it needs: a list has to show that first.
  const auto wait = std::make_shared<std::unique_ptr<StartWait>>();
  brain_.synchronizer.ListNow(
      [this, id, go = std::move(go), weak_wait = std::weak_ptr(wait)](const Status& status) {
        const auto at_gate = weak_wait.lock();
        if (at_gate == nullptr) return;  // the start was withdrawn
        if (ContainerRecord* const found = brain_.store.Resolve(id); found != nullptr) {
          const Status placed = ReviveExited(*found, kFinal);
          *at_gate = AdmitKnown(found->container.key, placed, go);
        } else {
          // If the container is not listed, the runtime itself will refuse the start.
          go(status);
        }
      });
  return std::make_unique<StartWait>([wait] { wait->reset(); });
}

Status Starts::ReviveExited(ContainerRecord& record, RefusalKind refusal) {
  if (!starts_exited_ || record.container.state != ContainerState::kExited) return OkStatus();
  if (record.dead) {
    return brain_.AsRefusal(record, FailedPrecondition("the runtime is removing it"));
  }
  return creations_.Revive(record, refusal);
}

// Takes a revived container's place back, unless other starts of the container wait or are under
// way.
void Starts::DropRevived(ContainerKey key) {
  ContainerRecord* const record = brain_.store.Find(key);
  if (record == nullptr || record->container.state != ContainerState::kCreated) return;
  if (!record->life.ComesBack() || record->life.BeingStarted() || gate_.Waits(key)) return;
  creations_.EndRevived(*record);
}

std::unique_ptr<StartWait> Starts::AdmitKnown(ContainerKey key, const Status& placed,
                                              std::function<void(Status)> go) {
  if (!placed.ok()) {
    go(placed);
    return nullptr;
  }
  if (brain_.store.Find(key)->Unpinned() && AnyExclusive()) WarnUnpinned(key);
  std::unique_ptr<StartWait> wait =
      gate_.Admit(key, [this, key, go = std::move(go)](const Status& status) {
        ContainerRecord* const record = brain_.store.Find(key);
        if (record == nullptr) return go(status);
        const Status may_go = status.ok() ? CheckPlaced(*record) : status;
        if (may_go.ok()) {
          if (starts_exited_) record->life.ExpectReturn();
          brain_.state_writer.BeginCall(StateWriter::Call::kStart, record->container.id);
          return go(may_go);
        }
        brain_.observers.OnStartRefused(brain_.ActAt(*record), may_go);
        const Status refusal = brain_.AsRefusal(*record, may_go);
        DropRevived(key);
        go(refusal);
      });
  if (wait != nullptr) brain_.observers.OnStartWaiting(brain_.ActAt(*brain_.store.Find(key)));
  return wait;
}

// Fails if the container has exited while its start waited: it has no place any more.
Status Starts::CheckPlaced(const ContainerRecord& record) const {
  if (!starts_exited_ || record.container.state != ContainerState::kExited) return OkStatus();
  return FailedPrecondition("it ended while its start waited");
}

// Warns once for each container. The start is not refused, since the policy does not pin the
// container.
void Starts::WarnUnpinned(ContainerKey key) {
  ContainerRecord& record = *brain_.store.Find(key);
  if (std::exchange(record.unpinned_warned, true)) return;
  const std::string& reason = record.container.placement.reason;
  brain_.log.Warn(
      "container {} is not pinned, so it may run on exclusive CPUs of other containers: {}",
      LogName(record), reason.empty() ? "the policy leaves it alone" : Printable(reason));
}

bool Starts::AnyExclusive() const {
  const auto& all = brain_.store.containers();
  return std::any_of(all.begin(), all.end(), [](const auto& entry) {
    return !entry.record->container.placement.exclusive.empty();
  });
}

void Starts::OnForced(ContainerKey key, const std::string& reason) {
  brain_.pusher.MarkOverlap(key);
  brain_.observers.OnStartForced(brain_.ActAt(*brain_.store.Find(key)), reason);
}

void Starts::End(const ContainerId& id, LifeEvent outcome) {
  ContainerRecord* const record = brain_.store.Resolve(id);
  if (record == nullptr) {
    if (outcome != LifeEvent::kStartFailed) brain_.synchronizer.ResyncSoon();
    return;
  }
  const ContainerKey key = record->container.key;
  brain_.store.Touch(*record);
  const LifeState before = record->life.state();
  const bool came_back = record->life.ComesBack();
  record->Advance(outcome);
  const LifeState now = record->life.state();
  const bool unresolved = now == LifeState::kUnresolved || record->life.ComesBack();
  if (outcome == LifeEvent::kStartUnanswered && unresolved) unresolved_.Add(key);
  if (now == LifeState::kRunning && before != now) record->started_at = brain_.clock.Now();
  // The container counted as exited, so a list has to show its state.
  if (outcome == LifeEvent::kStartSucceeded && now == LifeState::kExited)
    brain_.synchronizer.ResyncSoon();
  // The start stays noted while another one is under way, which may be why the runtime refused this
  // one.
  if (!record->life.BeingStarted()) {
    brain_.state_writer.EndCall(StateWriter::Call::kStart, record->container.id);
  }
  unresolved_.Examine();
  brain_.Push({key});
  if (!came_back || outcome == LifeEvent::kStartUnanswered) return;
  if (outcome == LifeEvent::kStartFailed) DropRevived(key);
  // The container may have ended meanwhile: during a restart, reports of its exit are ignored.
  brain_.synchronizer.ListNow([](const Status&) {});
}

void Starts::OnListed() {
  for (const auto& [key, record] : brain_.store.containers()) {
    // Known from notes alone, which end no note.
    if (record->kept) continue;
    if (!record->life.BeingStarted()) {
      brain_.state_writer.EndCall(StateWriter::Call::kStart, record->container.id);
    } else if (record->life.state() == LifeState::kUnresolved && !unresolved_.Contains(key)) {
      brain_.state_writer.BeginCall(StateWriter::Call::kStart, record->container.id);
      unresolved_.Add(key);
    }
  }
  unresolved_.Examine();
}

// The time in which the runtime may still carry out the start is over.
void Starts::OnExpired(ContainerKey key) {
  const ContainerRecord& record = *brain_.store.Find(key);
  if (record.life.BeingStarted()) return;
  if (record.life.state() == LifeState::kRunning) {
    // The restart did not happen, so a list has to show the container's state.
    brain_.synchronizer.ListNow([](const Status&) {});
    return;
  }
  brain_.log.Warn("container {}: unresolved StartContainer expired; treated as not started",
                  LogName(record));
  brain_.state_writer.EndCall(StateWriter::Call::kStart, record.container.id);
  brain_.Push({key});
  DropRevived(key);
}

UnresolvedStarts::UnresolvedStarts(Clock& clock, ContainerStore& store, Look look,
                                   std::function<void(ContainerKey)> given_up,
                                   const BrainOptions& options)
    : clock_(clock),
      store_(store),
      look_(std::move(look)),
      given_up_(std::move(given_up)),
      limit_(options.start_limit),
      pauses_(options.first_retry, std::min(options.last_retry, kLongestPause)) {}

void UnresolvedStarts::Add(ContainerKey key) {
  doubts_[key] = {.deadline = clock_.Steady() + limit_};
  pauses_.Reset();
  timer_.reset();
  Schedule();
}

void UnresolvedStarts::Examine() {
  std::vector<ContainerKey> given_up;
  for (auto it = doubts_.begin(); it != doubts_.end();) {
    ContainerRecord* const record = store_.Find(it->first);
    // Also follows a running container that may still be restarted.
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
