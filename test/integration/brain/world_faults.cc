// SPDX-License-Identifier: Apache-2.0
// The faults of a World: crashes, errors, lost connections, kills.
#include <algorithm>
#include <utility>

#include <gtest/gtest.h>

#include "pkg/allocator/want_of_room.h"
#include "pkg/resmgr/testing/fake_runtime_client.h"
#include "test/integration/brain/world.h"
#include "test/support/machines/machines.h"

namespace resmgr::test {
namespace {

// CPUs of a World that go offline and come back.

Machine Without(const Machine& machine, const CpuSet& offline) {
  Machine::Parts parts{
      .cpus = machine.cpus(), .nodes = machine.nodes(), .allowed = machine.allowed() - offline};
  for (Cpu& cpu : parts.cpus)
    cpu.online = cpu.online && !offline.Contains(cpu.id);
  return MakeMachine(std::move(parts));
}

}  // namespace

// The creation never arrived, has happened, or will happen.
void World::AbandonCreation(const Creation& creation) {
  if (Chance(40)) return;
  abandoned_creations_.push_back(creation);
  if (Chance(60)) EndAbandonedCreation(abandoned_creations_.size() - 1);
}

void World::EndAbandonedCreation(size_t index) {
  const Creation creation = TakeAt(abandoned_creations_, index);
  if (!SandboxLives(creation)) return;
  const ContainerId id = node_.Hold(creation.request, creation.admission);
  Note(fmt::format("{} was created on {} after all", id.value(), node_.runtime.CpusOf(id)));
}

void World::AbandonStart(const Start& start) {
  const bool under_way = start.decided.has_value() && start.decided->ok();
  const RuntimeContainer* const container = node_.runtime.Find(start.id);
  if (!under_way || container == nullptr || container->state != ContainerState::kCreated) return;
  abandoned_starts_.push_back(start.id);
  may_start_[start.id] |= start.begun_on;
  if (Chance(40)) EndAbandonedStart(abandoned_starts_.size() - 1);
}

// The container runs, could not be started, or the start never arrived.
void World::EndAbandonedStart(size_t index) {
  const ContainerId id = TakeAt(abandoned_starts_, index);
  RuntimeContainer* const container = node_.runtime.Find(id);
  if (container == nullptr || container->state != ContainerState::kCreated) return;
  const int64_t what = Number(1, 100);
  if (what <= 60) {
    Note(fmt::format("{} was started after all", id.value()));
    node_.runtime.EndStart(id);
  } else if (what <= 80) {
    Note(fmt::format("{} could not be started", id.value()));
    container->state = ContainerState::kExited;
  } else {
    Note(fmt::format("the start of {} is lost", id.value()));
  }
}

// When an update fails, containerd takes its record back but not runc's work; and a containerd that
// is killed in the middle has a record that runc did not get. Without notes of our own this is
// unknown.
void World::ApplySomehow(const ContainerId& id, const ResourceValues& adjustment) {
  const RuntimeContainer* const container = node_.runtime.Find(id);
  const bool runs = container != nullptr && container->state == ContainerState::kRunning;
  switch (Number(0, keeps_state_ && runs ? 3 : 1)) {
    case 0:
      return;
    case 1:
      return node_.runtime.Apply(id, adjustment);
    case 2:
      return node_.runtime.ApplyPart(id, adjustment, FakeRuntimeClient::Part::kReport);
    default:
      return node_.runtime.ApplyPart(id, adjustment, FakeRuntimeClient::Part::kForce);
  }
}

void World::CrashSome() {
  if (const RuntimeContainer* const running = SomeContainer(ContainerState::kRunning)) {
    Note(fmt::format("crash {}", running->id.value()));
    node_.Crash(ContainerId(running->id));
  }
}

void World::AnswerSome() {
  if (!abandoned_creations_.empty() && Chance(30)) EndAbandonedCreation(0);
  if (!abandoned_starts_.empty() && Chance(30)) EndAbandonedStart(0);
  AnswerLists();
  std::vector<FakeRuntimeClient::Update>& updates = node_.runtime.updates;
  for (int64_t n = Number(1, 10); n > 0 && !updates.empty(); --n) {
    const size_t index = static_cast<size_t>(Number(0, std::ssize(updates) - 1));
    Note(
        fmt::format("answer {} {}", updates[index].id.value(), CpuList(updates[index].adjustment)));
    if (Chance(90)) {
      node_.runtime.Answer(index);
    } else {
      Note("  which failed");
      ApplySomehow(updates[index].id, updates[index].adjustment);
      node_.runtime.Answer(
          index, Chance(50) ? DeadlineExceeded("no answer") : Internal("something went wrong"));
    }
  }
}

void World::AnswerLists() {
  while (!node_.runtime.lists.empty())
    node_.runtime.AnswerList();
}

// Every call under way fails for its client; only the runtime knows the outcome.
void World::LoseConnection() {
  Note("lose the connection");
  for (const FakeRuntimeClient::Update& update : node_.runtime.updates)
    ApplySomehow(update.id, update.adjustment);
  node_.manager().RuntimeDisconnected();
  node_.runtime.DropAll();
  while (!creations_.empty()) {
    const Creation creation = TakeAt(creations_, 0);
    AbandonCreation(creation);
    node_.manager().CreateFailed(creation.admission.key);
  }
  while (!resizes_.empty()) {
    const Resize resize = TakeAt(resizes_, 0);
    if (!resize.applied) ApplySomehow(resize.id, resize.Carried());
    node_.manager().UpdateFailed(resize.admission);
  }
  while (!starts_.empty()) {
    const std::unique_ptr<Start> start = TakeAt(starts_, 0);
    EXPECT_TRUE(start->decided.has_value()) << "waits end with the connection";
    if (!start->decided.has_value() || !start->decided->ok()) continue;
    AbandonStart(*start);
    node_.manager().StartUnclear(start->id);
  }
  node_.manager().RuntimeConnected();
  AnswerLists();
}

// kill -9: calls under way end at the runtime in either way, and the daemon has forgotten them.
void World::RestartDaemon() {
  Note("restart");
  const std::map<ContainerId, CpuSet> promised = Promised();
  for (const FakeRuntimeClient::Update& update : node_.runtime.updates)
    ApplySomehow(update.id, update.adjustment);
  for (const auto& start : starts_)
    AbandonStart(*start);
  starts_.clear();
  for (const Creation& creation : creations_)
    AbandonCreation(creation);
  creations_.clear();
  for (const Resize& resize : resizes_) {
    if (!resize.applied) ApplySomehow(resize.id, resize.Carried());
  }
  resizes_.clear();
  // If a container also runs on other CPUs, the runtime does not report which are exclusive.
  for (const Running& one : RunningContainers()) {
    const auto owned = owned_.find(one.id);
    if (owned == owned_.end() || one.in_force.IsSubsetOf(owned->second.cpus)) continue;
    owned_.erase(owned);
  }
  files_.Resume();
  unsaved_moves_ = false;
  pools_.clear();
  // Without notes it is also unknown that an update has met a start that is over now.
  if (!keeps_state_) node_.runtime.ReportTruth();
  RestartNode();
  for (const auto& [id, cpus] : promised) {
    const Container* const known = node_.Known(id);
    if (known == nullptr) continue;
    EXPECT_EQ(known->placement.exclusive.ToString(), cpus.ToString())
        << known->name << " was promised these CPUs before a kill\n"
        << Journal();
  }
  if (keeps_state_) return;
  for (const RuntimeContainer& container : node_.runtime.held.containers) {
    if (container.state == ContainerState::kCreated) may_start_.try_emplace(container.id);
  }
}

// By pkg/policy/constraints.h a reservation does not become empty.
World::Configuration World::Effective(Configuration configuration) const {
  const bool reserves = !configuration.reserved.empty();
  configuration.available &= found_->online() - told_;
  configuration.reserved &= configuration.available;
  if (!reserves || !configuration.reserved.empty()) return configuration;
  const CpuSet ordinary = configuration.available - machine_.isolated();
  if (!ordinary.empty()) configuration.reserved.Add(ordinary.First());
  return configuration;
}

void World::ChangeOnline() {
  const CpuSet before = off_;
  const int percent = static_cast<int>(Number(0, 2)) * 15;
  off_ = {};
  for (const int cpu : machine_.allowed()) {
    if (Chance(percent)) off_.Add(cpu);
  }
  // Without CPUs a memory node is of another kind.
  for (const NumaNode& numa : machine_.nodes()) {
    if (numa.cpus.IsSubsetOf(off_) && !numa.cpus.empty()) off_.Remove(numa.cpus.First());
  }
  Note(fmt::format("CPUs {} are offline after {}", off_.ToString(), before.ToString()));
  TellOffline();
}

void World::TellOffline() {
  const CpuSet offline = off_ & found_->online();
  if (offline == told_) return;
  const CpuSet before = std::exchange(told_, offline);
  StatusOr<std::unique_ptr<Policy>> policy = MakePolicy(configured_);
  if (!policy.ok()) {
    EXPECT_EQ(policy.status().code(), StatusCode::kInvalidArgument) << policy.status();
    Note(fmt::format("  they stay: {}", Message(policy.status())));
    told_ = before;
    off_ = before | (off_ - found_->online());
    return;
  }
  const CpuSet reserved = Effective(configured_).reserved;
  const std::map<ContainerKey, CpuSet> own = ExclusiveCpus();
  const Status set = node_.manager().policy_changes().SetOffline(
      {.cpus = offline, .reserved = reserved}, *std::move(policy));
  if (!set.ok()) {
    EXPECT_EQ(set.code(), StatusCode::kFailedPrecondition) << set;
    told_ = before;
    return;
  }
  Note(fmt::format("the daemon does without {}", told_.ToString()));
  CheckNoOtherLost(own, offline | reserved);
}

std::map<ContainerKey, CpuSet> World::ExclusiveCpus() {
  std::map<ContainerKey, CpuSet> own;
  node_.manager().snapshot().ForEachContainer([&](const Pod&, const Container& container) {
    if (container.state == ContainerState::kExited) return;
    if (LacksCpus(container.placement.reason) || container.placement.exclusive.empty()) return;
    own[container.key] = container.placement.exclusive;
  });
  return own;
}

void World::CheckNoOtherLost(const std::map<ContainerKey, CpuSet>& before, const CpuSet& gone) {
  CpuSet kept;
  for (const auto& [key, own] : before)
    kept |= own - gone;
  const Configuration now = Effective(configured_);
  // One container has to make room for shared ones.
  if ((now.available - now.reserved - machine_.isolated()).IsSubsetOf(kept)) return;
  for (const auto& [key, own] : before) {
    const Container& container = *node_.manager().snapshot().FindContainer(key);
    const Placement& placement = container.placement;
    if (!own.Intersects(gone)) {
      EXPECT_EQ(placement.exclusive.ToString(), own.ToString())
          << container.name << " lost CPUs that are online: " << placement.reason;
      continue;
    }
    EXPECT_TRUE((own - gone).IsSubsetOf(placement.exclusive))
        << container.name << " had " << own.ToString() << " and has "
        << placement.exclusive.ToString() << ": " << placement.reason;
    EXPECT_TRUE(placement.exclusive.size() == own.size() || LacksCpus(placement.reason))
        << container.name << " had " << own.ToString() << " and has "
        << placement.exclusive.ToString() << ": " << placement.reason;
  }
}

void World::RestartNode() {
  if (!setup_.cpus_go_offline) return node_.Restart();
  const CpuSet before = std::exchange(told_, CpuSet());
  const Machine* const former = found_;
  found_ = &machines_.emplace_back(Without(machine_, off_));
  if (!MakePolicy(configured_).ok()) {
    off_ = (former->online() & before) | (machine_.online() - former->online());
    found_ = &machines_.emplace_back(Without(machine_, off_));
  }
  node_.RestartOn(*found_);
}

}  // namespace resmgr::test
