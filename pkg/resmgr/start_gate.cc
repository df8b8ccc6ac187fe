// SPDX-License-Identifier: Apache-2.0
#include "pkg/resmgr/start_gate.h"

#include <utility>
#include <vector>

namespace resmgr {

StartGate::Wait::Wait(std::weak_ptr<StartGate*> gate, uint64_t number)
    : gate_(std::move(gate)), number_(number) {}

StartGate::Wait::~Wait() {
  if (const std::shared_ptr<StartGate*> gate = gate_.lock()) (*gate)->waits_.erase(number_);
}

StartGate::StartGate(EventLoop& loop, ContainerStore& store, const Pusher& pusher, Options options)
    : loop_(loop),
      store_(store),
      pusher_(pusher),
      options_(std::move(options)),
      self_(std::make_shared<StartGate*>(this)) {}

std::unique_ptr<StartGate::Wait> StartGate::Admit(ContainerKey key, Go go) {
  const std::optional<Obstacle> obstacle = FindObstacle(key);
  if (!obstacle) {
    if (ContainerRecord* const record = store_.Find(key)) record->Advance(LifeEvent::kStartSent);
    go(OkStatus());
    return nullptr;
  }
  const uint64_t number = ++last_number_;
  waits_[number] = Waiting{
      .key = key,
      .obstacle = obstacle->key,
      .go = std::move(go),
      .timeout = loop_.After(options_.timeout, [this, number] { OnTimeout(number); }),
  };
  return std::make_unique<Wait>(self_, number);
}

void StartGate::Examine() {
  std::vector<uint64_t> numbers;
  for (const auto& [number, wait] : waits_)
    numbers.push_back(number);
  for (const uint64_t number : numbers)
    ExamineOne(number);
}

void StartGate::Examine(ContainerKey changed) {
  std::vector<uint64_t> numbers;
  for (const auto& [number, wait] : waits_) {
    if (wait.obstacle == changed || wait.key == changed) numbers.push_back(number);
  }
  for (const uint64_t number : numbers)
    ExamineOne(number);
}

void StartGate::RefuseAll(const Status& status) {
  while (!waits_.empty())
    Finish(waits_.begin()->first, status);
}

std::optional<StartGate::Obstacle> StartGate::FindObstacle(ContainerKey key) const {
  const ContainerRecord* const record = store_.Find(key);
  // What is not placed here is the runtime's to judge.
  if (record == nullptr || !record->Placeable()) return std::nullopt;
  if (!pusher_.Settled(key)) return OwnPlacement(*record);
  const Placement& placement = record->container.placement;
  if (!placement.exclusive.empty()) {
    for (const auto& [other_key, other] : store_.containers()) {
      if (other_key == key || !other.MayRun()) continue;
      if (other.Unpinned()) options_.unpinned(other_key);
      const CpuSet met = pusher_.ToLeave(other, placement.exclusive);
      if (!met.empty()) return Neighbour(other, "may still run on its exclusive CPUs", met);
    }
  }
  for (const ContainerKey other_key : pusher_.leftovers()) {
    const ContainerRecord* const other = store_.Find(other_key);
    if (other_key == key || other == nullptr || !other->MayRun() || !placement.cpus) continue;
    const CpuSet met = pusher_.Leftover(other_key) & *placement.cpus;
    if (!met.empty()) return Neighbour(*other, "has not given up the CPUs", met);
  }
  return std::nullopt;
}

StartGate::Obstacle StartGate::OwnPlacement(const ContainerRecord& record) const {
  const Container& container = record.container;
  return {container.key,
          fmt::format("its own placement on CPUs {} is not in force",
                      container.placement.cpus ? container.placement.cpus->ToString() : "any")};
}

StartGate::Obstacle StartGate::Neighbour(const ContainerRecord& record, std::string_view what,
                                         const CpuSet& cpus) const {
  return {record.container.key,
          fmt::format("container {} {} {}", FullName(record.pod->pod, record.container.name), what,
                      cpus.ToString())};
}

void StartGate::ExamineOne(uint64_t number) {
  const auto found = waits_.find(number);
  if (found == waits_.end()) return;
  const ContainerKey key = found->second.key;
  if (const std::optional<Obstacle> obstacle = FindObstacle(key)) {
    found->second.obstacle = obstacle->key;
    return;
  }
  if (ContainerRecord* const record = store_.Find(key)) record->Advance(LifeEvent::kStartSent);
  Finish(number, OkStatus());
}

std::string StartGate::TimeoutReason(const Obstacle& obstacle) const {
  std::string text = fmt::format("after {} ms {}", options_.timeout.count(), obstacle.text);
  const Status error = pusher_.LastError(obstacle.key);
  if (!error.ok()) text += fmt::format("; the runtime's last answer: {}", Describe(error));
  return text;
}

void StartGate::OnTimeout(uint64_t number) {
  const ContainerKey key = waits_.at(number).key;
  const std::optional<Obstacle> obstacle = FindObstacle(key);
  ContainerRecord* const record = store_.Find(key);
  if (!obstacle || record == nullptr) {
    ExamineOne(number);
    return;
  }
  const std::string reason = TimeoutReason(*obstacle);
  if (options_.on_timeout == FailurePolicy::kIgnore) {
    options_.let_through(key, reason);
    record->Advance(LifeEvent::kStartSent);
    Finish(number, OkStatus());
    return;
  }
  Finish(number, FailedPrecondition("cannot start: {}", reason));
}

// The callback may do anything, also withdraw this wait: it is forgotten first.
void StartGate::Finish(uint64_t number, const Status& status) {
  const auto found = waits_.find(number);
  const Waiting wait = std::move(found->second);
  waits_.erase(found);
  wait.go(status);
}

}  // namespace resmgr
