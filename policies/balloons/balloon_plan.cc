// SPDX-License-Identifier: Apache-2.0
#include "policies/balloons/balloon_plan.h"

#include "pkg/allocator/want_of_room.h"
#include "pkg/topology/core_sets.h"
#include "policies/balloons/balloon_reason.h"

namespace resmgr {
namespace {

bool IsUsable(const NumaNode& node) {
  return node.allowed && node.memory.value > 0;
}

// The usable nodes of a type that are nearest to `from`; all of that type without a `from`.
NodeSet NearestOf(const Machine& machine, MemoryType type, const NumaNode* from) {
  NodeSet nearest;
  int least = 0;
  for (size_t i = 0; i < machine.nodes().size(); ++i) {
    const NumaNode& node = machine.nodes()[i];
    if (node.type != type || !IsUsable(node)) continue;
    const int distance = from == nullptr || from == &node ? 0 : from->distances[i];
    if (nearest.empty() || distance < least) {
      nearest = NodeSet();
      least = distance;
    }
    if (distance == least) nearest.Add(node.id);
  }
  return nearest;
}

// The memory for CPUs of the node `from`, or of no node: the nearest nodes of each type that is
// asked for; if there are none, or no type is asked for, the node itself or else ordinary memory.
NodeSet MemoryNear(const Machine& machine, const NumaNode* from, MemoryTypes types) {
  NodeSet nodes;
  for (const MemoryType type : kMemoryTypes)
    if ((types & BitOf(type)) != 0) nodes |= NearestOf(machine, type, from);
  if (!nodes.empty()) return nodes;
  if (from != nullptr && IsUsable(*from)) return {from->id};
  return NearestOf(machine, MemoryType::kDram, from);
}

// Each node of the CPUs has its own memory, whatever the others have. So a balloon that grows keeps
// its memory nodes, and one that shrinks gets no others.
NodeSet MemoryNodes(const Machine& machine, const CpuSet& cpus, MemoryTypes types) {
  NodeSet nodes;
  CpuSet elsewhere = cpus;
  for (const NumaNode& node : machine.nodes()) {
    if (!node.cpus.Intersects(cpus)) continue;
    nodes |= MemoryNear(machine, &node, types);
    elsewhere -= node.cpus;
  }
  if (!elsewhere.empty()) nodes |= MemoryNear(machine, nullptr, types);
  return nodes;
}

// Whether the balloon has fewer CPUs than its containers ask for. Guests do not count, since their
// own texts say that they have less.
bool IsShort(const BalloonSetup& setup, const Balloon& balloon) {
  if (setup.type(balloon.type).alone) return false;
  int64_t demand = 0;
  for (const BalloonMemberPtr& member : balloon.members)
    if (!member->text.starts_with(kWantOfRoom)) demand += member->demand;
  return balloon.size < setup.CpusFor(balloon.type, demand);
}

// Whether the containers of a balloon run on the same CPUs as before, and their shortage of CPUs
// has not changed. `idle`: CPUs that have become, or are no longer, idle and not borrowed.
bool OnSameCpus(const BalloonBook& book, const Balloon& before, const Balloon& now,
                const CpuSet& idle) {
  const bool same =
      &before == &now || (before.cpus() == now.cpus() && before.borrowed == now.borrowed);
  if (!same) return false;
  if (&before != &now && IsShort(book.setup(), before) != IsShort(book.setup(), now)) return false;
  return idle.empty() || !book.Shares(now, idle);
}

}  // namespace

BalloonPlan::View BalloonPlan::ViewOf(const Balloon& balloon) const {
  View view;
  view.own = balloon.cpus() | balloon.borrowed;
  view.cpus = view.own | book_.SharedIdle(balloon);
  view.pool = book_.NameOf(balloon);
  view.own_text = EndOfReason(book_.setup(), balloon);
  view.is_short = IsShort(book_.setup(), balloon);
  return view;
}

const NodeSet& BalloonPlan::MemoryOf(View& view, MemoryTypes types) const {
  for (const auto& [known, nodes] : view.mems) {
    if (known == types) return nodes;
  }
  view.mems.emplace_back(types, MemoryNodes(book_.setup().machine(), view.cpus, types));
  return view.mems.back().second;
}

Placement BalloonPlan::PlacementIn(View& view, const Balloon& balloon,
                                   const BalloonMember& member) const {
  Placement placement;
  if (book_.setup().type(balloon.type).pin_memory && !member.keeps_memory) {
    const NodeSet& nodes = MemoryOf(view, member.memory_types);
    if (!nodes.empty()) placement.mems = nodes;
  }
  if (book_.setup().options().pin_cpu) {
    placement.cpus = view.cpus;
    if (member.hide_hyperthreads) {
      const Machine& machine = book_.setup().machine();
      // If a core has an own and an idle thread of the balloon, the own one is visible.
      placement.cpus = OneThreadPerCore(machine, view.own) |
                       OneThreadPerCore(machine, view.cpus - machine.WithSiblings(view.own));
    }
  }
  if (book_.setup().type(balloon.type).alone && placement.cpus)
    placement.exclusive = balloon.cpus() & *placement.cpus;
  placement.pool = view.pool;
  const bool lacks = view.is_short && !member.text.starts_with(kWantOfRoom);
  placement.reason = (lacks ? TextForFewerCpus(member.text) : member.text) + view.own_text;
  return placement;
}

Placement BalloonPlan::PlacementOf(const Balloon& balloon, const BalloonMember& member) const {
  View view = ViewOf(balloon);
  return PlacementIn(view, balloon, member);
}

Plan BalloonPlan::Since(const BalloonBook& before, const Snapshot& snapshot) const {
  Plan plan;
  const CpuSet former_idle = before.unlent();
  const CpuSet idle = (former_idle - book_.unlent()) | (book_.unlent() - former_idle);
  auto former = before.balloons().begin();
  const auto end = before.balloons().end();
  for (const Balloon& balloon : book_.balloons()) {
    // Both lists are in the order of the balloons' serial numbers.
    while (former != end && former->serial < balloon.serial)
      ++former;
    const bool known = former != end && former->serial == balloon.serial;
    if (!known || !OnSameCpus(book_, *former, balloon, idle)) {
      AddChanges(snapshot, balloon, nullptr, plan);
    } else if (&*former != &balloon) {
      AddChanges(snapshot, balloon, &*former, plan);
    }
  }
  return plan;
}

Plan BalloonPlan::Complete(const Snapshot& snapshot) const {
  Plan plan;
  for (const Balloon& balloon : book_.balloons())
    AddChanges(snapshot, balloon, nullptr, plan);
  return plan;
}

void BalloonPlan::AddChanges(const Snapshot& snapshot, const Balloon& balloon,
                             const Balloon* except, Plan& plan) const {
  if (balloon.members.empty()) return;
  View view = ViewOf(balloon);
  for (const BalloonMemberPtr& member : balloon.members) {
    if (except != nullptr && except->MemberOf(member->key) == member) continue;
    const Container* const container = snapshot.FindContainer(member->key);
    if (container == nullptr) continue;
    Placement placement = PlacementIn(view, balloon, *member);
    if (placement.SameDecision(container->placement)) continue;
    plan.changes.push_back({member->key, std::move(placement)});
  }
}

}  // namespace resmgr
