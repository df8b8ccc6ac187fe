// SPDX-License-Identifier: Apache-2.0
// What a pod has as a whole bounds what its containers have together.
#include <algorithm>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include <absl/container/inlined_vector.h>

#include "pkg/model/pod_division.h"
#include "pkg/model/requirements.h"
#include "pkg/resmgr/resource_manager_impl.h"

namespace resmgr {

namespace {

using Members = absl::InlinedVector<PodMember, 4>;

// What a decision writes into a container.
struct Decided {
  Placement placement;
  bool cpus_bound;
  bool mems_bound;
};

std::map<ContainerKey, Decided> AllDecided(const ContainerStore& store) {
  std::map<ContainerKey, Decided> all;
  for (const auto& [key, record] : store.containers()) {
    const Container& container = record.container;
    if (!record.Placeable()) continue;
    all.emplace(key, Decided{container.placement, container.cpus_bound, container.mems_bound});
  }
  return all;
}

bool BoundsSomething(const LinuxResources& resources) {
  return resources.cpu_shares || resources.memory_limit;
}

// Each container's needs, or, where it is in `before`, those of then.
Requirements NeedsOf(const ContainerRecord& record, std::span<const ReducedSibling> before) {
  const auto found = std::ranges::find(before, record.container.key, &ReducedSibling::key);
  // Something else changed them since.
  const bool stale = found == before.end() || record.container.requirements != found->bounded;
  return stale ? record.container.requirements : found->needs;
}

// What the containers of the pod are to need. `fresh` is not placed yet; nullptr: there is none.
Members Divided(const ContainerStore& store, const PodRecord& pod, const ContainerRecord* fresh,
                std::span<const ReducedSibling> before) {
  Members members;
  for (const ContainerKey key : pod.containers) {
    const ContainerRecord& record = *store.Find(key);
    // The attempt before `fresh` goes when that comes.
    const bool former =
        fresh != nullptr && fresh != &record && record.container.name == fresh->container.name;
    if (!record.Placeable() || former) continue;
    members.push_back({&record.container, NeedsOf(record, before)});
  }
  DivideAmong(pod.pod, members);
  return members;
}

bool Changes(const PodMember& member) {
  return member.needs != member.container->requirements;
}

}  // namespace

// The class of a pod of which nothing else tells it: that of its containers together. While there
// are others it never rises, since these were placed by the lower one. Returns whether the others
// lose by it what containers of Guaranteed pods may have.
bool ResourceManager::Impl::DeriveQos(ContainerRecord& record) {
  Pod& pod = record.pod->pod;
  if (!pod.qos_derived) return false;
  const QosClass own = DerivedQos(record.container.requested);
  if (own == pod.qos) return false;
  const bool alone = std::ranges::none_of(record.pod->containers, [&](ContainerKey key) {
    const ContainerRecord& other = *store_.Find(key);
    return other.Placeable() && other.container.name != record.container.name;
  });
  record.former_qos = std::exchange(pod.qos, alone ? own : QosClass::kBurstable);
  return !alone && record.former_qos == QosClass::kGuaranteed;
}

void ResourceManager::Impl::RestoreQos(ContainerRecord& record) {
  if (record.former_qos) record.pod->pod.qos = *std::exchange(record.former_qos, std::nullopt);
}

// Gives a new container its place. Its coming may tell that others of its pod have nothing of their
// own; their loss is part of its creation, and holds only if that does.
StatusOr<ContainerKeys> ResourceManager::Impl::PlaceInPod(ContainerRecord& record, bool falls) {
  if (falls) {
    Members members;
    for (const ContainerKey key : record.pod->containers) {
      const ContainerRecord& other = *store_.Find(key);
      if (&other == &record || !other.Placeable()) continue;
      if (other.container.name == record.container.name) continue;
      members.push_back(
          {&other.container,
           EstimateRequirements(other.container.requested, record.pod->pod.qos, memory_capacity_)});
    }
    return PlaceAndReduceSiblings(record, members);
  }
  if (BoundsSomething(record.pod->pod.resources)) {
    const Members members = Divided(store_, *record.pod, &record, {});
    bool others = false;
    for (const PodMember& member : members) {
      if (member.container != &record.container) {
        others |= Changes(member);
      } else {
        record.container.requirements = member.needs;
      }
    }
    if (others) return PlaceAndReduceSiblings(record, members);
  }
  return Place(record, FindPredecessor(record));
}

// Whole or not at all: several decisions, of which the last one may fail. The policy before them
// is put back then, rather than asked to take over what it had decided: so it is the very same.
StatusOr<ContainerKeys> ResourceManager::Impl::PlaceAndReduceSiblings(
    ContainerRecord& record, std::span<const PodMember> members) {
  std::unique_ptr<Policy> policy = policy_->Clone();
  std::map<ContainerKey, Decided> before = AllDecided(store_);
  std::vector<Shift> shifts;
  StatusOr<ContainerKeys> changed = ReduceSiblings(record, members, shifts);
  if (changed.ok()) {
    StatusOr<ContainerKeys> placed = Place(record, FindPredecessor(record));
    if (placed.ok()) {
      ReportMoves(shifts, "its pod as a whole has no more");
      for (const ReducedSibling& sibling : record.bounded)
        state_writer_.MarkChanged(*store_.Find(sibling.key));
      changed->insert(changed->end(), placed->begin(), placed->end());
      return changed;
    }
    changed = std::move(placed);
  }
  for (const ReducedSibling& sibling : record.bounded)
    store_.Find(sibling.key)->container.requirements = sibling.needs;
  for (auto& [key, decided] : before) {
    Container& container = store_.Find(key)->container;
    container.placement = std::move(decided.placement);
    container.cpus_bound = decided.cpus_bound;
    container.mems_bound = decided.mems_bound;
  }
  policy_ = std::move(policy);
  decider_.Resume(*policy_);
  return changed;
}

// `record` notes what the others had.
StatusOr<ContainerKeys> ResourceManager::Impl::ReduceSiblings(ContainerRecord& record,
                                                              std::span<const PodMember> members,
                                                              std::vector<Shift>& shifts) {
  ContainerKeys moved;
  for (const PodMember& member : members) {
    if (!Changes(member)) continue;
    ContainerRecord& other = *store_.Find(member.container->key);
    const Container& container = other.container;
    record.bounded.push_back(
        {container.key, container.requirements, container.placement, member.needs});
    RESMGR_ASSIGN_OR_RETURN(const ContainerKeys changed, ChangeNeeds(other, member.needs));
    moved.insert(moved.end(), changed.begin(), changed.end());
    shifts.insert(shifts.end(), decider_.shifts().begin(), decider_.shifts().end());
  }
  return moved;
}

// Returns the containers that changed places.
ContainerKeys ResourceManager::Impl::ApplyPodLimits(PodRecord& pod) {
  ContainerKeys moved;
  if (!BoundsSomething(pod.pod.resources)) return moved;
  for (const PodMember& member : Divided(store_, pod, nullptr, {})) {
    if (!Changes(member)) continue;
    ContainerRecord& record = *store_.Find(member.container->key);
    Append(moved, ChangeNeeds(record, member.needs));
    ReportMoves("its pod as a whole has no more");
    state_writer_.MarkChanged(record);
  }
  return moved;
}

// A container for whose sake others of its pod had less was not created. They have again what they
// had, as far as those that are left leave it to them: at the very same place where that is free.
ContainerKeys ResourceManager::Impl::RestoreSiblings(PodRecord& pod,
                                                     std::span<const ReducedSibling> bounded) {
  ContainerKeys moved;
  for (const PodMember& member : Divided(store_, pod, nullptr, bounded)) {
    if (!Changes(member)) continue;
    ContainerRecord& record = *store_.Find(member.container->key);
    const auto before = std::ranges::find(bounded, record.container.key, &ReducedSibling::key);
    const bool returns = before != bounded.end() && member.needs == before->needs &&
                         StillFree(record, before->placement);
    if (returns) {
      record.container.requirements = member.needs;
      decider_.PutBack(record.container, before->placement);
      moved.push_back(record.container.key);
      Append(moved, decider_.Reconcile());
    } else {
      Append(moved, ChangeNeeds(record, member.needs));
    }
    ReportMoves("another container of its pod was not created");
    state_writer_.MarkChanged(record);
  }
  return moved;
}

// A refusal leaves the container as it is.
StatusOr<ContainerKeys> ResourceManager::Impl::ChangeNeeds(ContainerRecord& record,
                                                           const Requirements& needs) {
  Container& container = record.container;
  const Requirements before = std::exchange(container.requirements, needs);
  StatusOr<ContainerKeys> changed = decider_.Update(record);
  if (changed.ok()) return changed;
  container.requirements = before;
  if (changed.status().code() == StatusCode::kInternal) return changed;
  log_.Warn("container {} keeps its resources although the limits of its pod have changed: {}",
            LogName(record), Describe(changed.status()));
  return ContainerKeys();
}

// After a list: those of which no note tells what is their own. Notes are of before the first list
// of a connection; what is known since then may turn out to be otherwise.
void ResourceManager::Impl::ApplyPodLimitsToAdopted(const Adoption& adoption, bool first) {
  for (const ContainerKey key : adoption.without_notes) {
    PodRecord& pod = *store_.Find(key)->pod;
    if (!BoundsSomething(pod.pod.resources)) continue;
    Members members;
    for (const ContainerKey other : pod.containers) {
      const ContainerRecord& record = *store_.Find(other);
      if (!record.Placeable()) continue;
      const bool noted = first && !std::binary_search(adoption.without_notes.begin(),
                                                      adoption.without_notes.end(), other);
      members.push_back({&record.container, record.container.requirements, noted});
    }
    DivideAmong(pod.pod, members);
    for (const PodMember& member : members)
      store_.Find(member.container->key)->container.requirements = member.needs;
  }
}

}  // namespace resmgr
