// SPDX-License-Identifier: Apache-2.0
// The CPUs of a balloon whose containers were found by CPUs only.
#include <algorithm>

#include "policies/balloons/balloon_adoption.h"

namespace resmgr {

// Whether the containers may run where they do: not on more CPUs than a balloon would have. Guests
// may be in a balloon of another type, which has more by its least size.
bool BalloonAdoption::Plausible(const Group& group) const {
  const int size = group.visible.size();
  const bool all = group.visible == setup_->available();
  const bool its = std::ranges::any_of(group.members, [&](const Found* found) {
    const int type = found->member.type;
    const bool may_see_more = !setup_->sharing(type).empty() || setup_->type(type).follows_use();
    return size <= TargetOf(group, type) || (may_see_more && !all);
  });
  if (its || all || !group.members.front()->lost) return its;
  for (int type = 0; type < setup_->types(); ++type) {
    const bool takes_guests = !setup_->type(type).alone && setup_->MaxCpus(type, 0) > 0;
    if (takes_guests && MayHave(group, type, size)) return true;
  }
  return false;
}

// Whether a balloon of the type with these containers may have so many CPUs. Components have their
// least sizes at first, and grow when the whole needs more CPUs than it has.
bool BalloonAdoption::MayHave(const Group& group, int type, int size) const {
  const BalloonType& own = setup_->type(type);
  const int needed = NeededBy(group, type);
  if (own.balance_components) {
    return std::ranges::any_of(own.components, [&](int component) {
      return size == setup_->WholeSize(component, setup_->ShareOf(component, needed, 1));
    });
  }
  const int most = setup_->WholeSize(type, needed);
  if (!own.composite() || size < needed) return size == most;
  return size <= most && size >= setup_->WholeSize(type, setup_->MinCpus(type, 0));
}

// The CPUs that containers of other groups would see if they were idle, and do not.
CpuSet BalloonAdoption::MissedBy(const std::vector<Group>& groups, const Group& except) const {
  CpuSet missed;
  for (const Group& group : groups) {
    const Found& first = *group.members.front();
    const int type = first.placed ? group.type : first.member.type;
    const std::vector<CpuSet>& parts = setup_->sharing(type);
    const bool its = std::ranges::all_of(
        group.members, [type](const Found* found) { return found->member.type == type; });
    if (&group == &except || !group.plausible || !its || parts.empty()) continue;
    const Machine& machine = setup_->machine();
    const bool hides = std::ranges::any_of(
        group.members, [](const Found* found) { return found->member.hide_hyperthreads; });
    const CpuSet seen = hides ? machine.WithSiblings(group.visible) : group.visible;
    missed |= AllOf(parts, group.visible) - machine.isolated() - seen;
  }
  return missed;
}

// The balloon's own among the CPUs that its containers see: as many as they need, with one in each
// part in which the type shares idle ones.
CpuSet BalloonAdoption::OwnOf(const BalloonBook& book, const Group& group, const CpuSet& others,
                              const CpuSet& missed, const Balloon* owner) const {
  const std::vector<CpuSet>& parts = setup_->sharing(group.type);
  const int target = TargetOf(group, group.type);
  const bool hides = std::ranges::any_of(
      group.members, [](const Found* found) { return found->member.hide_hyperthreads; });
  // The balloon has threads, too, that its containers do not see: those above the ones that they
  // do.
  CpuSet hidden;
  if (hides) {
    const Machine& machine = setup_->machine();
    for (const int cpu : (machine.WithSiblings(group.visible) & book.idle()) - others) {
      if ((machine.WithSiblings({cpu}) & group.visible).First() < cpu) hidden.Add(cpu);
    }
  }
  if (parts.empty()) {
    CpuSet own = group.visible;
    for (const int cpu : hidden) {
      if (own.size() < target) own.Add(cpu);
    }
    if (!setup_->type(group.type).follows_use() || own.size() <= target) return own;
    // The rest was borrowed.
    return setup_->chooser().Grow(setup_->rules(group.type), {}, own, target).value_or(own);
  }
  const CpuSet free = (group.visible & book.idle()) | hidden;
  if (free == setup_->available() && target < free.size()) return {};
  const CpuSet certain = free - others;
  CpuSet own = owner == nullptr ? CpuSet() : owner->cpus();
  // Idle CPUs would be seen by others, too, and isolated ones are not shared.
  const CpuSet sure = certain & group.visible & (missed | setup_->machine().isolated());
  if ((own | sure).size() <= target) own |= sure;
  if (hides) {
    // Containers would see the first thread of an idle core.
    const CpuSet unseen = (book.idle() - others) - group.visible;
    for (const int cpu : certain& group.visible) {
      const bool first = setup_->machine().WithSiblings({cpu}).First() == cpu;
      if (!first && unseen.Intersects(setup_->machine().WithSiblings({cpu}))) own.Add(cpu);
    }
  }
  if ((own | certain).size() < target) return own | certain;
  for (const CpuSet& part : parts) {
    const CpuSet here = free & part;
    if (here.empty() || own.size() >= target || own.Intersects(part)) continue;
    const CpuSet best = here & certain;
    own.Add(best.empty() ? here.First() : best.First());
  }
  const int more = target - own.size();
  own |= setup_->chooser()
             .Grow(setup_->rules(group.type), own, certain - own, more)
             .value_or(CpuSet());
  return own;
}

// Without what components have more.
int BalloonAdoption::NeededBy(const Group& group, int type) const {
  int64_t demand = 0;
  for (const Found* const found : group.members)
    demand += found->member.demand;
  const int index = std::max(group.members.front()->index, 0);
  const int most = std::max(setup_->MaxCpus(type, index), 1);
  return std::max(std::min(setup_->CpusFor(type, demand), most), setup_->MinCpus(type, index));
}

int BalloonAdoption::TargetOf(const Group& group, int type) const {
  return setup_->WholeSize(type, NeededBy(group, type));
}

}  // namespace resmgr
