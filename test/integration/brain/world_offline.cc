// SPDX-License-Identifier: Apache-2.0
// CPUs of a World that go offline and come back.
#include <utility>

#include <gtest/gtest.h>

#include "pkg/allocator/want_of_room.h"
#include "test/integration/brain/world.h"
#include "test/support/machines/machines.h"

namespace resmgr::test {
namespace {

Machine Without(const Machine& machine, const CpuSet& offline) {
  Machine::Parts parts{
      .cpus = machine.cpus(), .nodes = machine.nodes(), .allowed = machine.allowed() - offline};
  for (Cpu& cpu : parts.cpus)
    cpu.online = cpu.online && !offline.Contains(cpu.id);
  return MakeMachine(std::move(parts));
}

}  // namespace

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
  const Status set =
      node_.manager().SetOffline({.cpus = offline, .reserved = reserved}, *std::move(policy));
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
