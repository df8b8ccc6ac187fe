// SPDX-License-Identifier: Apache-2.0
#include "pkg/resmgr/start_gate.h"

#include <algorithm>
#include <utility>

#include "pkg/base/amount_text.h"
#include "pkg/resmgr/refusal_log.h"

namespace resmgr {

StartGate::StartGate(Clock& clock, ContainerStore& store, Pusher& pusher, Options options)
    : clock_(clock), store_(store), pusher_(pusher), options_(std::move(options)) {}

std::unique_ptr<StartWait> StartGate::Admit(ContainerKey key, Go go) {
  const Obstacles found = Look(key);
  if (!found.blocks) {
    go(End(key, found.overdue, /*timed_out=*/false));
    return nullptr;
  }
  // All obstacles are noted at once, so that several stuck containers delay the start by one
  // timeout in all, and not by one each.
  VisitObstacles(key, [this](const Obstacle& obstacle) {
    pusher_.NoteWaitedFor(obstacle.key);
    return true;
  });
  const uint64_t number = ++last_number_;
  Waiting& wait = waits_[number];
  wait.key = key;
  wait.obstacle = found.blocks->key;
  wait.go = std::move(go);
  wait.deadline = clock_.Steady() + options_.timeout;
  SetTimer(number, wait);
  return std::make_unique<StartWait>(lifetime_.Guard([this, number] { Withdraw(number); }));
}

void StartGate::Withdraw(uint64_t number) {
  const auto found = waits_.find(number);
  if (found == waits_.end()) return;
  const Waiting wait = std::move(waits_.extract(found).mapped());
  options_.withdrawn(wait.key);
}

bool StartGate::Waits(ContainerKey key) const {
  return std::ranges::any_of(waits_, [key](const auto& entry) { return entry.second.key == key; });
}

void StartGate::Examine(std::optional<ContainerKey> changed) {
  std::vector<uint64_t> numbers;
  for (const auto& [number, wait] : waits_) {
    if (!changed || wait.obstacle == changed || wait.key == changed) numbers.push_back(number);
  }
  for (const uint64_t number : numbers)
    ExamineOne(number);
}

void StartGate::RefuseAll(const Status& status) {
  while (!waits_.empty())
    Finish(waits_.begin()->first, status);
}

void StartGate::VisitObstacles(ContainerKey key, const Visit& visit) const {
  using enum Obstacle::Kind;
  const ContainerRecord* const record = store_.Find(key);
  // Containers without a placement here are not checked: the runtime decides about their starts.
  if (record == nullptr || !record->Placeable()) return;
  if (!pusher_.InPlace(key) && !visit({.kind = kOwnPlacement, .key = key})) return;
  const Placement& placement = record->container.placement;
  CpuSet exclusive = placement.exclusive;
  if (placement.cpus) exclusive |= options_.of_pod(key) & *placement.cpus;
  if (!exclusive.empty()) {
    for (const auto& [other_key, other] : store_.containers()) {
      if (other_key == key || !other->MayRun()) continue;
      if (other->Unpinned()) options_.unpinned(other_key);
      // CPUs that are in the other container's own placement do not count, since both containers
      // share them.
      CpuSet met = pusher_.handover().ToLeave(*other, exclusive);
      if (!met.empty() &&
          !visit({.kind = kOnExclusiveCpus, .key = other_key, .cpus = std::move(met)})) {
        return;
      }
    }
  }
  for (const ContainerKey other_key : pusher_.handover().leftovers()) {
    const ContainerRecord* const other = store_.Find(other_key);
    if (other_key == key || other == nullptr || !other->MayRun() || !placement.cpus) continue;
    CpuSet met = Handover::LeftoverOf(*other) & *placement.cpus;
    if (!met.empty() && !visit({.kind = kKeepsCpus, .key = other_key, .cpus = std::move(met)})) {
      return;
    }
  }
}

StartGate::Obstacles StartGate::Look(ContainerKey key) const {
  Obstacles found;
  VisitObstacles(key, [this, &found](const Obstacle& obstacle) {
    if (IsOverdue(obstacle.key)) {
      found.overdue.push_back(obstacle);
      return true;
    }
    found.blocks = obstacle;
    return false;
  });
  return found;
}

bool StartGate::IsOverdue(ContainerKey key) const {
  const std::optional<Time> since = pusher_.StuckSince(key);
  return since && clock_.Steady() - *since >= options_.timeout;
}

// The timer fires when the obstacle is overdue or the wait's own time is up.
void StartGate::SetTimer(uint64_t number, Waiting& wait) {
  const std::optional<Time> since = pusher_.StuckSince(wait.obstacle);
  const Time until = since ? std::min(wait.deadline, *since + options_.timeout) : wait.deadline;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - clock_.Steady());
  wait.timer = clock_.After(std::max(left, std::chrono::milliseconds(1)),
                            [this, number] { OnTimer(number); });
}

void StartGate::ExamineOne(uint64_t number) {
  const auto wait = waits_.find(number);
  if (wait == waits_.end()) return;
  const ContainerKey key = wait->second.key;
  const Obstacles found = Look(key);
  if (!found.blocks) return Finish(number, End(key, found.overdue, /*timed_out=*/false));
  wait->second.obstacle = found.blocks->key;
  pusher_.NoteWaitedFor(found.blocks->key);
}

void StartGate::OnTimer(uint64_t number) {
  Waiting& wait = waits_.at(number);
  Obstacles found = Look(wait.key);
  const bool timed_out = clock_.Steady() >= wait.deadline;
  if (found.blocks && !timed_out) {
    wait.obstacle = found.blocks->key;
    return SetTimer(number, wait);
  }
  if (found.blocks) found.overdue.insert(found.overdue.begin(), *found.blocks);
  Finish(number, End(wait.key, found.overdue, timed_out));
}

Status StartGate::End(ContainerKey key, const std::vector<Obstacle>& in_the_way, bool timed_out) {
  if (!in_the_way.empty()) {
    bool news = false;
    for (const Obstacle& obstacle : in_the_way)
      news = pusher_.TellStuck(obstacle.key) || news;
    const std::string reason = Reason(in_the_way, timed_out);
    const bool refuses = options_.on_timeout == FailurePolicy::kFail;
    if (refuses && (news || timed_out)) return FailedPrecondition("cannot start: {}", reason);
    options_.let_through(
        key,
        fmt::format("{}: {}",
                    refuses ? "since one container blocks no start for longer than one deadline"
                            : "as StartFailurePolicy says",
                    reason));
  }
  if (ContainerRecord* const record = store_.Find(key)) record->Advance(LifeEvent::kStartSent);
  return OkStatus();
}

std::string StartGate::Reason(const std::vector<Obstacle>& in_the_way, bool timed_out) const {
  const Obstacle& first = in_the_way.front();
  std::string text = timed_out ? fmt::format("after {} ms ", options_.timeout.count()) : "";
  text += Describe(first);
  if (in_the_way.size() > 1)
    text += fmt::format(" (and {})", CountText(std::ssize(in_the_way) - 1, "more container"));
  if (const auto since = pusher_.StuckSince(first.key); since && !timed_out) {
    const auto time =
        std::chrono::duration_cast<std::chrono::milliseconds>(clock_.Steady() - *since);
    text += fmt::format(", for {} ms now", time.count());
  }
  const Status error = pusher_.LastError(first.key);
  if (!error.ok()) {
    text += fmt::format("; the runtime's last answer: {}", resmgr::Describe(error));
  }
  if (const ContainerRecord* const record = store_.Find(first.key)) {
    text += "; what to do: " + UpdateRemedy(record->pod->pod, record->container, error);
  }
  return text;
}

std::string StartGate::Describe(const Obstacle& obstacle) const {
  const ContainerRecord& record = *store_.Find(obstacle.key);
  if (obstacle.kind == Obstacle::Kind::kOwnPlacement) {
    const std::optional<CpuSet>& cpus = record.container.placement.cpus;
    return fmt::format("its own placement on CPUs {} is not in force",
                       cpus ? cpus->ToString() : "any");
  }
  const std::string_view what = obstacle.kind == Obstacle::Kind::kOnExclusiveCpus
                                    ? "may still run on its exclusive CPUs"
                                    : "has not given up the CPUs";
  return fmt::format("container {} {} {}", FullName(record.pod->pod, record.container.name), what,
                     obstacle.cpus.ToString());
}

// The callback may do anything, for example withdraw this wait, so the wait is removed first.
void StartGate::Finish(uint64_t number, const Status& status) {
  const Waiting wait = std::move(waits_.extract(number).mapped());
  wait.go(status);
}

}  // namespace resmgr
