// SPDX-License-Identifier: Apache-2.0
#include "pkg/resmgr/pod_limits.h"

#include <algorithm>
#include <utility>

#include "pkg/model/requirements.h"

namespace resmgr {
namespace {

using Members = PodLimits::Members;

// Why containers move that get less by a division, or more.
constexpr std::string_view kDividedAnew = "the resources of its pod are divided anew";

// The container's needs: its needs in `before` if it has an entry there, else its present ones.
Requirements NeedsOf(const ContainerRecord& record, std::span<const ReducedSibling> before) {
  const auto found = std::ranges::find(before, record.container.key, &ReducedSibling::key);
  // The needs have been changed since, so the entry does not count.
  const bool stale = found == before.end() || record.container.requirements != found->bounded;
  return stale ? record.container.requirements : found->needs;
}

// Whether `other` is an attempt before `fresh`, which ends when `fresh` is created.
bool IsFormer(const ContainerRecord& other, const ContainerRecord& fresh) {
  return &other != &fresh && other.container.name == fresh.container.name;
}

// The needs of the last attempt before `fresh`; nullptr: it is the first one.
const Requirements* FormerNeeds(const ContainerStore& store, const ContainerRecord& fresh) {
  const Requirements* former = nullptr;
  for (const ContainerKey key : fresh.pod->containers) {
    const ContainerRecord& other = *store.Find(key);
    if (IsFormer(other, fresh)) former = &other.container.requirements;
  }
  return former;
}

// The needs of the pod's containers under the pod's limits. `fresh` is not placed yet; nullptr:
// there is none.
Members Divided(const ContainerStore& store, const PodRecord& pod, const ContainerRecord* fresh,
                std::span<const ReducedSibling> before) {
  Members members;
  for (const ContainerKey key : pod.containers) {
    const ContainerRecord& record = *store.Find(key);
    if (!record.Placeable() || (fresh != nullptr && IsFormer(record, *fresh))) continue;
    members.push_back({.container = &record.container,
                       .needs = NeedsOf(record, before),
                       .former = &record == fresh ? FormerNeeds(store, record) : nullptr});
  }
  DivideAmong(pod.pod, members);
  return members;
}

bool Changes(const PodMember& member) {
  return member.needs != member.container->requirements;
}

}  // namespace

bool PodLimits::Bounds(const PodRecord& pod) {
  const LinuxResources& resources = pod.pod.resources;
  return resources.cpu_shares || resources.memory_limit;
}

Members PodLimits::TakePart(ContainerRecord& record, bool falls) const {
  Members changed;
  const PodRecord& pod = *record.pod;
  if (falls) {
    for (const ContainerKey key : pod.containers) {
      const ContainerRecord& other = *brain_.store.Find(key);
      if (&other == &record || !other.Placeable() || IsFormer(other, record)) continue;
      const PodMember member{
          &other.container,
          EstimateRequirements(other.container.requested, pod.pod.qos, brain_.memory_capacity)};
      if (Changes(member)) changed.push_back(member);
    }
  } else if (Bounds(pod)) {
    for (const PodMember& member : Divided(brain_.store, pod, &record, {})) {
      if (member.container == &record.container) {
        record.container.requirements = member.needs;
      } else if (Changes(member)) {
        changed.push_back(member);
      }
    }
  }
  return changed;
}

void PodLimits::CountFound(ContainerRecord& record, bool falls) {
  for (const PodMember& member : TakePart(record, falls))
    SetNeeds(member);
}

void PodLimits::SetNeeds(const PodMember& member) {
  ContainerRecord& record = *brain_.store.Find(member.container->key);
  record.container.requirements = member.needs;
  brain_.state_writer.MarkChanged(record);
}

Members PodLimits::ReducedBy(const ContainerRecord& record) const {
  Members reduced;
  if (!Bounds(*record.pod)) return reduced;
  for (const PodMember& member : Divided(brain_.store, *record.pod, nullptr, {})) {
    const Requirements& before = member.container->requirements;
    const bool less = member.needs.cpu_request < before.cpu_request ||
                      member.needs.memory_request < before.memory_request;
    if (less && member.container != &record.container) reduced.push_back(member);
  }
  return reduced;
}

StatusOr<ContainerKeys> PodLimits::Reduce(const Members& siblings, Transaction& change,
                                          std::vector<Shift>& shifts,
                                          std::vector<ReducedSibling>& bounded) {
  ContainerKeys moved;
  for (const PodMember& member : siblings) {
    ContainerRecord& other = *brain_.store.Find(member.container->key);
    const Container& container = other.container;
    change.Note(other);
    bounded.push_back({container.key, container.requirements, container.placement, member.needs});
    RESMGR_ASSIGN_OR_RETURN(const ContainerKeys changed, ChangeNeeds(other, member.needs));
    moved.insert(moved.end(), changed.begin(), changed.end());
    const std::span<const Shift> more = brain_.decider.shifts();
    shifts.insert(shifts.end(), more.begin(), more.end());
  }
  return moved;
}

void PodLimits::NoteReduced(std::span<const Shift> shifts,
                            std::span<const ReducedSibling> bounded) {
  brain_.ReportMoves(shifts, kDividedAnew);
  for (const ReducedSibling& sibling : bounded)
    brain_.state_writer.MarkChanged(*brain_.store.Find(sibling.key));
}

ContainerKeys PodLimits::Apply(PodRecord& pod) {
  if (!Bounds(pod)) return {};
  return Divide(pod, {}, kDividedAnew);
}

ContainerKeys PodLimits::Restore(PodRecord& pod, std::span<const ReducedSibling> bounded) {
  if (bounded.empty()) return Apply(pod);
  return Divide(pod, bounded, "another container of its pod was not created");
}

// Divides the pod's resources among its containers. Those that have their needs in `bounded` again
// return to their place there if it is free.
ContainerKeys PodLimits::Divide(PodRecord& pod, std::span<const ReducedSibling> bounded,
                                std::string_view why) {
  ContainerKeys moved;
  for (const PodMember& member : Divided(brain_.store, pod, nullptr, bounded)) {
    if (!Changes(member)) continue;
    ContainerRecord& record = *brain_.store.Find(member.container->key);
    const auto before = std::ranges::find(bounded, record.container.key, &ReducedSibling::key);
    const ContainerKey key = record.container.key;
    const bool returns = before != bounded.end() && member.needs == before->needs &&
                         brain_.decider.MayReturn(key, before->placement, key);
    if (returns) {
      record.container.requirements = member.needs;
      brain_.decider.PutBack(record.container, before->placement);
      moved.push_back(record.container.key);
      brain_.Append(moved, brain_.decider.Reconcile());
    } else {
      brain_.Append(moved, ChangeNeeds(record, member.needs));
    }
    brain_.ReportMoves(why);
    brain_.state_writer.MarkChanged(record);
  }
  return moved;
}

// If the policy refuses, the container keeps its needs and its place.
StatusOr<ContainerKeys> PodLimits::ChangeNeeds(ContainerRecord& record, const Requirements& needs) {
  Transaction change(brain_.decider);
  change.Note(record);
  record.container.requirements = needs;
  StatusOr<ContainerKeys> changed = brain_.decider.Update(record);
  if (changed.ok()) {
    change.Commit();
  } else if (changed.status().code() != StatusCode::kInternal) {
    brain_.log.Warn(
        "container {} keeps its resources although the limits of its pod have changed: {}",
        LogName(record), Describe(changed.status()));
    return ContainerKeys();
  }
  return changed;
}

void PodLimits::ApplyToRest(const PodRecord& pod, const Adoption& adoption, bool first) {
  if (Bounds(pod)) DivideFound(pod, adoption, first);
}

void PodLimits::ApplyToAdopted(const Adoption& adoption, bool first) {
  for (const std::vector<ContainerKey>* const keys : {&adoption.without_notes, &adoption.resized}) {
    for (const ContainerKey key : *keys) {
      const ContainerRecord& found = *brain_.store.Find(key);
      // One that has exited has no part.
      if (found.Placeable() && Bounds(*found.pod)) DivideFound(*found.pod, adoption, first);
    }
  }
  // Others of the pod may have ended since the shares were saved.
  for (const ContainerKey key : adoption.adopted) {
    const ContainerRecord& found = *brain_.store.Find(key);
    const Requirements& needs = found.container.requirements;
    if (needs.cpu_of_pod || needs.memory_of_pod) ApplyToRest(*found.pod, adoption, first);
  }
}

void PodLimits::DivideFound(const PodRecord& pod, const Adoption& adoption, bool first) {
  Members members;
  for (const ContainerKey key : pod.containers) {
    const ContainerRecord& record = *brain_.store.Find(key);
    if (!record.Placeable()) continue;
    const bool fresh = std::ranges::binary_search(adoption.without_notes, key);
    members.push_back({.container = &record.container,
                       .needs = record.container.requirements,
                       .fixed = first && !fresh,
                       .former = fresh ? FormerNeeds(brain_.store, record) : nullptr});
  }
  DivideAmong(pod.pod, members);
  for (const PodMember& member : members) {
    if (Changes(member)) SetNeeds(member);
  }
}

}  // namespace resmgr
