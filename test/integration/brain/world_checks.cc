// SPDX-License-Identifier: Apache-2.0
// What must hold in a World.
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "pkg/kube/cpu_arithmetic.h"
#include "test/integration/brain/world.h"

namespace resmgr::test {

CpuSet World::InForce(const RuntimeContainer& container) {
  const StatusOr<CpuSet> cpus = CpuSet::Parse(container.resources.cpuset_cpus.value_or(""));
  EXPECT_TRUE(cpus.ok() && !cpus->empty()) << container.id.value();
  return cpus.value_or(CpuSet());
}

void World::Check() {
  CheckDecisions();
  CheckRunning();
}

void World::CheckDecisions() {
  CpuSet exclusive;
  const auto for_each_placed = [this](const auto& visit) {
    node_.manager().snapshot().ForEachContainer([&](const Pod& pod, const Container& container) {
      if (container.placement.cpus) visit(FullName(pod, container.name), container.placement);
    });
  };
  for_each_placed([&](const std::string& name, const Placement& placement) {
    EXPECT_FALSE(placement.cpus->empty()) << name;
    EXPECT_TRUE(placement.cpus->IsSubsetOf(machine_.online())) << name;
    EXPECT_FALSE(placement.exclusive.Intersects(exclusive)) << name;
    EXPECT_FALSE(placement.exclusive.Intersects(reserved_)) << name;
    exclusive |= placement.exclusive;
  });
  for_each_placed([&](const std::string& name, const Placement& placement) {
    EXPECT_FALSE((*placement.cpus - placement.exclusive).Intersects(exclusive)) << name;
  });
}

// Nobody runs on a CPU that another one runs on for itself alone.
void World::CheckRunning() {
  const std::vector<Running> running = RunningContainers();
  TrackOwners(running);
  for (const auto& [owner, owned] : owned_) {
    for (const Running& other : running) {
      if (other.id == owner) continue;
      EXPECT_FALSE(other.in_force.Intersects(owned.cpus))
          << other.id.value() << " on " << other.in_force.ToString() << " disturbs "
          << owner.value() << " on " << owned.cpus.ToString();
    }
  }
}

std::vector<World::Running> World::RunningContainers() {
  std::vector<Running> running;
  node_.manager().snapshot().ForEachContainer([&](const Pod&, const Container& container) {
    const RuntimeContainer* const held = node_.runtime.Find(container.id);
    if (!container.placement.cpus || held == nullptr) return;
    if (held->state != ContainerState::kRunning) return;
    // Without Linux resources it was left alone; a new daemon is about to place it.
    if (!held->resources.cpuset_cpus) return;
    running.push_back(
        {container.id, InForce(*held), *container.placement.cpus, container.placement.exclusive});
  });
  return running;
}

bool World::Undisputed(const Running& one, const CpuSet& several) const {
  if (one.exclusive.empty() || one.in_force != one.placed) return false;
  if (one.exclusive.Intersects(several)) return false;
  for (const Resize& resize : resizes_) {
    if (resize.id == one.id) return false;
  }
  for (const FakeRuntimeClient::Update& update : node_.runtime.updates) {
    const StatusOr<CpuSet> cpus = CpuSet::Parse(update.adjustment.cpuset_cpus.value_or(""));
    if (update.id != one.id && cpus.ok() && cpus->Intersects(one.exclusive)) return false;
  }
  return true;
}

// A decision about a running container makes it no owner yet: first the others must leave. EndStart
// adds those that start. It stays one until something else is in force for it, or until it is
// decided that it shares, and the runtime was told so.
void World::TrackOwners(const std::vector<Running>& running) {
  CpuSet used;
  CpuSet several;
  for (const Running& one : running) {
    several |= used & one.in_force;
    used |= one.in_force;
  }
  std::map<ContainerId, Owner> still;
  for (const Running& one : running) {
    const uint64_t applied = node_.runtime.Applied(one.id);
    const auto owned = owned_.find(one.id);
    if (Undisputed(one, several)) {
      still[one.id] = {one.exclusive, applied};
    } else if (owned != owned_.end()) {
      const Owner before = owned->second;
      const bool told = applied > before.applied || one.in_force == one.placed;
      const CpuSet kept = before.cpus & one.in_force & (told ? one.exclusive : before.cpus);
      const bool decided = !one.exclusive.empty();
      if (!kept.empty()) still[one.id] = {kept, decided ? applied : before.applied};
    }
  }
  owned_ = std::move(still);
}

void World::CheckRestartMovesNobody() {
  // What crashed unseen is found out by a list.
  LoseConnection();
  Settle();
  std::map<ContainerId, CpuSet> before;
  bool changes = false;
  node_.manager().snapshot().ForEachContainer([&](const Pod&, const Container& container) {
    if (container.placement.cpus) before[container.id] = *container.placement.cpus;
    // Such a one may find room meanwhile.
    changes |= container.placement.reason.starts_with("shared for want of room");
    // An update may have failed for who made it, and yet be in force: that counts then.
    const RuntimeContainer* const held = node_.runtime.Find(container.id);
    changes |= held == nullptr || container.requirements.cpu_request !=
                                      MilliCpuFromShares(held->resources.cpu_shares.value_or(0));
  });
  if (changes) return;
  RestartDaemon();
  AnswerLists();
  node_.manager().snapshot().ForEachContainer([&](const Pod& pod, const Container& container) {
    const auto found = before.find(container.id);
    if (found == before.end()) return;
    EXPECT_EQ(container.placement.cpus.value_or(CpuSet()).ToString(), found->second.ToString())
        << FullName(pod, container.name) << " was moved by a restart";
  });
}

void World::CheckSettled() {
  Check();
  const size_t known = node_.KnownContainers();
  EXPECT_LE(known, node_.runtime.held.containers.size());
  node_.manager().snapshot().ForEachContainer([this](const Pod&, const Container& container) {
    if (!container.placement.cpus) return;
    EXPECT_EQ(node_.runtime.CpusOf(container.id), container.placement.cpus->ToString());
  });
}

}  // namespace resmgr::test
