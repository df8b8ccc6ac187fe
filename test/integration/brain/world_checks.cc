// SPDX-License-Identifier: Apache-2.0
// The invariants of a World.
#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "pkg/kube/cpu_arithmetic.h"
#include "test/integration/brain/world.h"

namespace resmgr::test {

namespace {

// Whether a container of a balloon also runs on idle CPUs, or not on all of its balloon's: only the
// daemon's notes have the balloon's own CPUs.
bool UsesIdleCpus(const Placement& placement) {
  constexpr std::string_view kOwn = "; own CPUs ";
  const size_t at = placement.reason.rfind(kOwn);
  if (at == std::string::npos) return false;
  std::string own = placement.reason.substr(at + kOwn.size());
  std::ranges::replace(own, '+', ',');  // between components
  return CpuSet::Parse(own).value_or(CpuSet()) != placement.cpus.value_or(CpuSet());
}

}  // namespace

CpuSet World::InForce(const RuntimeContainer& container) {
  const StatusOr<CpuSet> cpus = CpuSet::Parse(node_.runtime.CpusOf(container.id));
  EXPECT_TRUE(cpus.ok()) << container.id.value();
  if (!cpus.ok()) return {};
  // One without Linux resources.
  return cpus->empty() ? machine_.online() : *cpus;
}

void World::Check() {
  CheckDecisions();
  CheckRunning();
}

void World::CheckDecisions() {
  const Configuration now = Effective(configured_);
  CpuSet exclusive;
  const auto for_each_placed = [this](const auto& visit) {
    node_.manager().snapshot().ForEachContainer([&](const Pod& pod, const Container& container) {
      if (container.placement.cpus) visit(FullName(pod, container.name), container.placement);
    });
  };
  for_each_placed([&](const std::string& name, const Placement& placement) {
    EXPECT_FALSE(placement.cpus->empty()) << name;
    EXPECT_TRUE(placement.cpus->IsSubsetOf(now.available)) << name;
    EXPECT_FALSE(placement.exclusive.Intersects(exclusive)) << name;
    EXPECT_FALSE(placement.exclusive.Intersects(now.reserved)) << name;
    exclusive |= placement.exclusive;
  });
  for_each_placed([&](const std::string& name, const Placement& placement) {
    EXPECT_FALSE((*placement.cpus - placement.exclusive).Intersects(exclusive)) << name;
  });
}

// No container runs on a CPU that is exclusive to another one.
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
    running.push_back(
        {container.id, InForce(*held), *container.placement.cpus, container.placement.exclusive});
  });
  return running;
}

std::map<ContainerId, CpuSet> World::Promised() {
  std::map<ContainerId, CpuSet> promised;
  if (!keeps_state_ || unsaved_moves_ || setup_.cpus_go_offline) return promised;
  for (const Running& one : RunningContainers()) {
    const auto resized = [&one](const Resize& resize) { return resize.id == one.id; };
    if (std::ranges::any_of(resizes_, resized)) continue;
    const Container& known = *node_.Known(one.id);
    const std::optional<std::string>& reported = node_.runtime.Find(one.id)->resources.cpuset_cpus;
    const bool all_its_own =
        known.requirements.cpu_request.value == int64_t{1000} * one.exclusive.size();
    const bool in_force = one.in_force == one.placed && reported == one.placed.ToString();
    if (all_its_own && one.exclusive == one.placed && in_force) promised[one.id] = one.exclusive;
  }
  return promised;
}

bool World::Undisputed(const Running& one, const CpuSet& several) {
  if (one.exclusive.empty() || one.in_force != one.placed) return false;
  if (one.exclusive.Intersects(several)) return false;
  for (const Resize& resize : resizes_) {
    if (resize.id == one.id) return false;
  }
  for (const auto& start : starts_) {
    const bool under_way = start->decided.has_value() && start->decided->ok();
    const RuntimeContainer* const other = node_.runtime.Find(start->id);
    if (!under_way || start->id == one.id || other == nullptr) continue;
    const CpuSet cpus = InForce(*other) | start->begun_on;
    if (cpus.Intersects(one.exclusive)) return false;
  }
  for (const auto& [id, begun_on] : may_start_) {
    const RuntimeContainer* const other = node_.runtime.Find(id);
    if (id == one.id || other == nullptr) continue;
    if ((InForce(*other) | begun_on).Intersects(one.exclusive)) return false;
  }
  for (const FakeRuntimeClient::Update& update : node_.runtime.updates) {
    const CpuSet cpus = update.adjustment.cpus.value_or(CpuSet());
    if (update.id != one.id && cpus.Intersects(one.exclusive)) return false;
  }
  return true;
}

// A decision about a running container does not make it an owner yet: first the others must leave.
// EndStart adds containers that start. A container stays an owner until other CPUs are in force for
// it, or until the runtime was sent the decision that it shares.
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
      const bool nothing_to_tell =
          one.in_force == one.placed || one.in_force.IsSubsetOf(one.placed - one.exclusive);
      const bool told = applied > before.applied || nothing_to_tell;
      const CpuSet kept = before.cpus & one.in_force & (told ? one.exclusive : before.cpus);
      const bool decided = !one.exclusive.empty();
      if (!kept.empty()) still[one.id] = {kept, decided ? applied : before.applied};
    }
  }
  owned_ = std::move(still);
}

// A container placed by an earlier configuration has less or more than this one would grant. A
// container with less than it is entitled to may find room meanwhile, and the runtime does not
// report which CPUs are exclusive; neither does it for one that also shares others and has the
// policy's shares.
bool World::DependsOnMemory(const Container& container) {
  const Placement& placement = container.placement;
  const CpuSet& own = placement.exclusive;
  const bool lacks = placement.reason.starts_with("shared for want of room") ||
                     (!own.empty() && own.size() != container.requirements.cpu_request.Whole());
  return reconfigured_ || lacks || placement.cpu_shares || UsesIdleCpus(placement) ||
         node_.runtime.Find(container.id) == nullptr;
}

void World::CheckRestartMovesNobody() {
  const bool remembers = keeps_state_ && !files_.stopping();
  // A list finds containers that crashed unseen.
  LoseConnection();
  Settle();
  if (setup_.cpus_go_offline) {
    TellOffline();
    Settle();
  }
  std::map<ContainerId, Placement> before;
  NotePools();
  // A container that was in a wide pool by the last that the disk heard of may go back there.
  bool changes = unsaved_moves_ || HasUnsavedPools();
  // The next daemon knows CPUs that came back after this one's start.
  changes |= found_->online() - told_ != machine_.online() - off_;
  const std::string known = Describe();
  node_.manager().snapshot().ForEachContainer([&](const Pod& pod, const Container& container) {
    if (container.state == ContainerState::kExited) return;
    // Created without Linux resources, it may have got some by a resize, even by one that failed.
    changes |= !container.placement.cpus || !container.requested.cpu_shares;
    if (changes) return;
    before[container.id] = container.placement;
    changes |= !remembers && DependsOnMemory(container);
    if (changes || container.placement.cpu_shares) return;
    const LinuxResources& in_force = node_.runtime.Find(container.id)->resources;
    MilliCpu told = MilliCpuFromShares(in_force.cpu_shares.value_or(0));
    if (!SharesTell(told) && pod.qos == QosClass::kGuaranteed) {
      told = MilliCpuFromQuota(in_force.cpu_quota.value_or(0), kDefaultCpuPeriod);
    }
    EXPECT_EQ(container.requirements.cpu_request.value, told.value)
        << FullName(pod, container.name) << " needs other than what is in force";
  });
  if (changes) return;
  if (keeps_state_) node_.FlushState();
  RestartDaemon();
  AnswerLists();
  node_.manager().snapshot().ForEachContainer([&](const Pod& pod, const Container& container) {
    const auto found = before.find(container.id);
    if (found == before.end()) return;
    const Placement& placement = container.placement;
    EXPECT_EQ(placement.cpus.value_or(CpuSet()).ToString(), found->second.cpus->ToString())
        << FullName(pod, container.name) << " was moved by a restart; before it:\n"
        << known;
    if (!remembers) return;
    EXPECT_EQ(placement.exclusive, found->second.exclusive)
        << FullName(pod, container.name) << " has " << placement.exclusive.ToString()
        << " for itself after a restart, and had " << found->second.exclusive.ToString();
    EXPECT_EQ(placement.mems, found->second.mems) << FullName(pod, container.name);
  });
}

void World::CheckSettled() {
  Check();
  const size_t known = node_.KnownContainers();
  EXPECT_LE(known, node_.runtime.held.containers.size());
  node_.manager().snapshot().ForEachContainer([this](const Pod&, const Container& container) {
    const Placement& placement = container.placement;
    if (!placement.cpus) return;
    EXPECT_EQ(node_.runtime.CpusOf(container.id), placement.cpus->ToString());
    const RuntimeContainer* const held = node_.runtime.Find(container.id);
    if (placement.mems && held != nullptr) {
      EXPECT_EQ(held->resources.cpuset_mems.value_or(""), placement.mems->ToString());
    }
    if (container.state == ContainerState::kRunning) {
      EXPECT_EQ(placement.look_again_after.count(), 0) << container.name;
    }
  });
}

}  // namespace resmgr::test
