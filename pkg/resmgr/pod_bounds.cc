// SPDX-License-Identifier: Apache-2.0
// What a pod has as a whole bounds what its containers have together.
#include <algorithm>
#include <utility>

#include <absl/container/inlined_vector.h>

#include "pkg/kube/pod_division.h"
#include "pkg/resmgr/resource_manager_impl.h"

namespace resmgr {

namespace {

using Members = absl::InlinedVector<PodMember, 4>;

bool BoundsSomething(const LinuxResources& resources) {
  return resources.cpu_shares || resources.memory_limit;
}

}  // namespace

// `fresh` is not placed yet, and its needs are its own to change; nullptr: there is none. Others
// turn out to have nothing of their own only now: that is so whatever becomes of `fresh`. Returns
// those that changed places.
ContainerKeys ResourceManager::Impl::BoundByPod(PodRecord& pod, ContainerRecord* fresh) {
  ContainerKeys moved;
  if (!BoundsSomething(pod.pod.resources)) return moved;
  Members members;
  for (const ContainerKey key : pod.containers) {
    const ContainerRecord& record = *store_.Find(key);
    // The attempt before `fresh` goes when that comes.
    const bool former =
        fresh != nullptr && fresh != &record && record.container.name == fresh->container.name;
    if (!record.Placeable() || former) continue;
    members.push_back({&record.container, record.container.requirements});
  }
  DivideAmong(pod.pod, members);
  for (const PodMember& member : members) {
    ContainerRecord& record = *store_.Find(member.container->key);
    if (&record == fresh) {
      record.container.requirements = member.needs;
    } else if (record.container.requirements != member.needs) {
      Append(moved, ChangeNeeds(record, member.needs));
    }
  }
  return moved;
}

// A refusal leaves the container as it is.
StatusOr<ContainerKeys> ResourceManager::Impl::ChangeNeeds(ContainerRecord& record,
                                                           const Requirements& needs) {
  Container& container = record.container;
  const Requirements before = std::exchange(container.requirements, needs);
  StatusOr<ContainerKeys> changed = decider_.Update(record);
  if (changed.ok()) {
    TellMoves("its pod as a whole has no more");
    keeper_.Keep(record);
    return changed;
  }
  container.requirements = before;
  if (changed.status().code() == StatusCode::kInternal) return changed;
  log_.Warn("container {} keeps what it has beside others of its pod: {}", LogName(record),
            Describe(changed.status()));
  return ContainerKeys();
}

// After a list: those of which no note tells what is their own.
void ResourceManager::Impl::BoundAdopted(const Adoption& adoption) {
  for (const ContainerKey key : adoption.without_notes) {
    PodRecord& pod = *store_.Find(key)->pod;
    if (!BoundsSomething(pod.pod.resources)) continue;
    Members members;
    for (const ContainerKey other : pod.containers) {
      const ContainerRecord& record = *store_.Find(other);
      if (!record.Placeable()) continue;
      const bool noted =
          !std::binary_search(adoption.without_notes.begin(), adoption.without_notes.end(), other);
      members.push_back({&record.container, record.container.requirements, noted});
    }
    DivideAmong(pod.pod, members);
    for (const PodMember& member : members)
      store_.Find(member.container->key)->container.requirements = member.needs;
  }
}

}  // namespace resmgr
