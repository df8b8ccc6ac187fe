// SPDX-License-Identifier: Apache-2.0
#include "policies/balloons/balloons_policy.h"

#include <algorithm>
#include <map>
#include <utility>

#include "pkg/allocator/want_of_room.h"
#include "pkg/model/cpu_holders.h"
#include "policies/balloons/balloon_adoption.h"
#include "policies/balloons/balloon_placer.h"

namespace resmgr {
namespace {

constexpr std::string_view kOwn = "; own CPUs ";
constexpr std::string_view kBeforeFewer = "; ";

// Whether containers that are entitled to the balloon's CPUs have fewer than they ask for: guests
// say so themselves.
bool IsShort(const BalloonSetup& setup, const Balloon& balloon, const CpuSet& own) {
  int64_t demand = 0;
  for (const BalloonMemberPtr& member : balloon.members)
    if (!member->text.starts_with(kWantOfRoom)) demand += member->demand;
  return own.size() < setup.CpusFor(balloon.type, demand);
}

std::string_view VerdictOf(const ConsideredBalloon& balloon) {
  if (!balloon.pods_fit) return "has as many pods as it may";
  if (balloon.needed > balloon.most) return "too small";
  return balloon.needed <= balloon.size ? "has room" : "can grow";
}

std::string TextOf(const ConsideredBalloon& balloon, std::string_view name) {
  return fmt::format("{}: {} of {}m requested, needs {} CPUs, could have {}: {}", name,
                     balloon.request, 1000 * balloon.size, balloon.needed, balloon.most,
                     VerdictOf(balloon));
}

Status ReadKeys(const ConfigNode& section, std::vector<ConfigKey>* keys) {
  return ReadBalloonsOptions(&section, keys).status();
}

}  // namespace

std::string WithOwnCpus(const std::string& text, const CpuSet& own) {
  return fmt::format("{}{}{}", text, kOwn, own.ToString());
}

std::string TextOfReason(const std::string& reason) {
  std::string text = reason.substr(0, reason.rfind(kOwn));
  if (text.ends_with(kFewerCpus))
    text.resize(text.size() - kFewerCpus.size() - kBeforeFewer.size());
  return text;
}

CpuSet OwnCpusOfReason(const std::string& reason) {
  const size_t at = reason.rfind(kOwn);
  if (at == std::string::npos) return {};
  return CpuSet::Parse(std::string_view(reason).substr(at + kOwn.size())).value_or(CpuSet());
}

CpuSet OneThreadPerCore(const Machine& machine, const CpuSet& cpus) {
  CpuSet first;
  CpuSet seen;
  for (const int cpu : cpus) {
    if (seen.Contains(cpu)) continue;
    first.Add(cpu);
    seen |= machine.WithSiblings({cpu});
  }
  return first;
}

StatusOr<std::unique_ptr<Policy>> BalloonsPolicy::Create(const PolicyContext& context) {
  RESMGR_ASSIGN_OR_RETURN(BalloonsOptions options, ReadBalloonsOptions(context.section));
  RESMGR_ASSIGN_OR_RETURN(BalloonSetup setup, BalloonSetup::Create(context, std::move(options)));
  std::unique_ptr<BalloonsPolicy> policy(new BalloonsPolicy(
      std::make_shared<const BalloonSetup>(std::move(setup)), PinningRule(context.runtimes)));
  const Status made = policy->book_.CreateAlways();
  if (!made.ok()) {
    return InvalidArgument(
        "policy balloons: the balloons that always exist do not fit into CPUs "
        "{}: {}",
        policy->setup_->available().ToString(), Message(made));
  }
  return std::unique_ptr<Policy>(std::move(policy));
}

BalloonsPolicy::BalloonsPolicy(std::shared_ptr<const BalloonSetup> setup, PinningRule pinning)
    : setup_(std::move(setup)), pinning_(std::move(pinning)), book_(setup_) {}

std::unique_ptr<Policy> BalloonsPolicy::Clone() const {
  std::unique_ptr<BalloonsPolicy> clone(new BalloonsPolicy(setup_, pinning_));
  clone->book_ = book_;
  return clone;
}

bool BalloonsPolicy::WantsHints() const {
  return std::ranges::any_of(setup_->options().types,
                             [](const BalloonType& type) { return !type.close_to.empty(); });
}

bool BalloonsPolicy::WantsPodResources() const {
  if (!setup_->options().pod_resource_api) return false;
  return std::ranges::any_of(setup_->options().types, [](const BalloonType& type) {
    return std::ranges::any_of(
        type.close_to, [](std::string_view path) { return path.starts_with("podresourceapi:"); });
  });
}

std::vector<std::string> BalloonsPolicy::Unheeded(const Pod& pod,
                                                  const Container& container) const {
  return rules().Unheeded(pod, container);
}

StatusOr<Plan> BalloonsPolicy::Reconcile(const Snapshot& snapshot) {
  BalloonAdoption adoption(setup_, rules());
  snapshot.ForEachContainer(
      [&](const Pod& pod, const Container& container) { adoption.Add(pod, container); });
  book_ = adoption.Run();
  Plan plan;
  snapshot.ForEachContainer([&](const Pod& pod, const Container& container) {
    const std::optional<size_t> place = book_.Find(container.key);
    Placement placement = place ? PlacementOf(book_.balloons()[*place],
                                              *book_.MemberOf(container.key), pod, container)
                                : UnboundPlacement(adoption.WhyInNone(container.key), container);
    if (placement.SameDecision(container.placement)) return;
    plan.changes.push_back({container.key, std::move(placement)});
  });
  return plan;
}

StatusOr<Plan> BalloonsPolicy::Allocate(const Snapshot& snapshot, const Pod& pod,
                                        const Container& container, const Container* predecessor) {
  BalloonBook before = book_;
  if (const std::string why = rules().WhyInNone(pod, container); !why.empty()) {
    if (predecessor != nullptr) book_.Leave(predecessor->key);
    Plan plan = MakePlan(snapshot, before);
    plan.Change(container.key) = UnboundPlacement(why, container);
    return plan;
  }
  StatusOr<BalloonMember> decided = rules().MemberFor(pod, container);
  if (!decided.ok()) return decided.status();
  const auto member = std::make_shared<BalloonMember>(*std::move(decided));
  if (predecessor == nullptr || !JoinFormer(*predecessor, member)) {
    if (predecessor != nullptr) book_.Leave(predecessor->key);
    const StatusOr<size_t> place = BalloonPlacer(book_).Place(member);
    if (!place.ok()) {
      book_ = std::move(before);
      const std::string holders = DescribeCpuHolders(snapshot, {}, container.key);
      if (holders.empty()) return place.status();
      return MakeStatus(place.status().code(),
                        fmt::format("{}; {}", Message(place.status()), holders));
    }
  }
  return MakePlan(snapshot, before);
}

bool BalloonsPolicy::JoinFormer(const Container& predecessor,
                                const std::shared_ptr<BalloonMember>& member) {
  const BalloonBook before = book_;
  const std::string text = member->text;
  const Placement& former = predecessor.placement;
  member->text += "; where it was before";
  const int type = member->type;
  if (const std::optional<size_t> held = book_.Find(predecessor.key)) {
    if (book_.balloons()[*held].type == type &&
        book_.Replace(*held, predecessor.key, member).ok()) {
      book_.GrowShort();
      return true;
    }
    book_.Leave(predecessor.key);
  }
  const auto at = std::ranges::find_if(book_.balloons(), [&](const Balloon& balloon) {
    return balloon.type == type && book_.NameOf(balloon) == former.pool;
  });
  std::optional<size_t> place;
  const CpuSet own = OwnCpusOfReason(former.reason);
  if (at != book_.balloons().end()) {
    if (IsFormer(*at, own, *member)) place = static_cast<size_t>(at - book_.balloons().begin());
  } else if (book_.Count(type) < setup_->MaxBalloons(type)) {
    const int index = book_.NextIndex(type);
    if (!own.empty() && own.IsSubsetOf(book_.FreeForNew(type, index))) {
      place = book_.Adopt(type, index, own);
      book_.KeepRooms();
    }
  }
  if (place && book_.Join(*place, member).ok()) return true;
  book_ = before;
  member->text = text;
  return false;
}

// A name is used again by balloons that have nothing to do with the former one.
bool BalloonsPolicy::IsFormer(const Balloon& balloon, const CpuSet& own,
                              const BalloonMember& member) const {
  if (balloon.members.empty() || balloon.Holds(member.pod)) return true;
  const BalloonType& type = setup_->type(balloon.type);
  const bool apart = type.prefer_new || type.per_namespace || !type.group_by.empty();
  return !apart && own.Intersects(balloon.cpus());
}

StatusOr<Plan> BalloonsPolicy::Update(const Snapshot& snapshot, const Pod& pod,
                                      const Container& container) {
  const ContainerKey key = container.key;
  if (!rules().WhyInNone(pod, container).empty()) return Plan{};
  StatusOr<BalloonMember> decided = rules().MemberFor(pod, container);
  const std::optional<size_t> place = book_.Find(key);
  // It runs in a balloon that would not be created for it any more.
  if (!decided.ok() && place) decided = rules().RunningMember(pod, container);
  if (!decided.ok()) return decided.status();
  BalloonBook before = book_;
  const auto member = std::make_shared<BalloonMember>(*decided);
  bool may_stay = false;
  if (place) {
    const BalloonMemberPtr held = book_.MemberOf(key);
    member->text = held->text;
    member->considered = held->considered;
    may_stay = member->demand <= held->demand;
    // A guest looks for room in a balloon of its own type.
    const bool guest = held->type != book_.balloons()[*place].type;
    if (!guest && book_.Replace(*place, key, member).ok()) {
      book_.GrowShort();
      return MakePlan(snapshot, before);
    }
    book_.Leave(key);
  }
  const StatusOr<size_t> found =
      BalloonPlacer(book_).Place(std::make_shared<BalloonMember>(*std::move(decided)));
  if (found.ok()) return MakePlan(snapshot, before);
  book_ = std::move(before);
  if (!may_stay) return found.status();
  return Plan{};
}

std::vector<ConsideredPlace> BalloonsPolicy::Considered(ContainerKey key) const {
  if (!book_.Find(key)) return {};
  std::vector<ConsideredPlace> places;
  for (const ConsideredBalloon& considered : book_.MemberOf(key)->considered) {
    if (places.size() == kMostToldBalloons) break;
    ConsideredPlace& place = places.emplace_back();
    place.name = book_.NameOf(considered.type, considered.index);
    place.free = MilliCpu{int64_t{1000} * considered.size - considered.request};
    place.verdict = VerdictOf(considered);
  }
  return places;
}

std::vector<std::string> BalloonsPolicy::WaysIn(const Snapshot& /*snapshot*/, const Pod& pod,
                                                const Container& container) const {
  const StatusOr<BalloonMember> member = rules().MemberFor(pod, container);
  if (!member.ok()) return {};
  BalloonBook book = book_;
  return BalloonPlacer(book).WaysIn(*member);
}

StatusOr<Plan> BalloonsPolicy::Release(const Snapshot& snapshot, ContainerKey key) {
  const BalloonBook before = book_;
  book_.Leave(key);
  return MakePlan(snapshot, before);
}

// Containers that share for want of room look for a balloon of their type again.
StatusOr<Plan> BalloonsPolicy::Rebalance(const Snapshot& snapshot) {
  const BalloonBook before = book_;
  snapshot.ForEachContainer([&](const Pod& pod, const Container& container) {
    if (!container.placement.reason.starts_with(kWantOfRoom)) return;
    StatusOr<BalloonMember> decided = rules().MemberFor(pod, container);
    if (!decided.ok() || !book_.Find(container.key)) return;
    const BalloonBook held = book_;
    book_.Leave(container.key);
    const auto member = std::make_shared<BalloonMember>(*std::move(decided));
    const bool found = BalloonPlacer(book_).Place(member).ok();
    if (!found || member->text.starts_with(kWantOfRoom)) book_ = held;
  });
  Plan plan;
  for (const Balloon& balloon : book_.balloons())
    AddChanges(snapshot, balloon, plan);
  return plan;
}

std::vector<std::string> BalloonsPolicy::Explain(ContainerKey key) const {
  const std::optional<size_t> place = book_.Find(key);
  if (!place) return {};
  const Balloon& balloon = book_.balloons()[*place];
  std::vector<std::string> lines;
  const BalloonMemberPtr member = book_.MemberOf(key);
  for (const ConsideredBalloon& considered : member->considered) {
    if (lines.size() == kMostToldBalloons) {
      lines.emplace_back("and more of the type");
      break;
    }
    lines.push_back(TextOf(considered, book_.NameOf(considered.type, considered.index)));
  }
  for (const std::string& hint : balloon.dropped)
    lines.push_back(fmt::format("{}: not followed: {}", book_.NameOf(balloon), hint));
  for (const std::string& path : setup_->type(balloon.type).close_to) {
    if (!CpusNearDevice(setup_->machine(), path).empty()) continue;
    lines.push_back(fmt::format("{}: only devices and volumes of containers tell where {} is",
                                book_.NameOf(balloon), path));
  }
  for (const std::string& named : setup_->type(balloon.type).classes) {
    lines.push_back(
        fmt::format("{}: {} is kept, and applied by nothing here", book_.NameOf(balloon), named));
  }
  return lines;
}

Plan BalloonsPolicy::MakePlan(const Snapshot& snapshot, const BalloonBook& before) const {
  Plan plan;
  std::map<uint64_t, const Balloon*> known;
  for (const Balloon& balloon : before.balloons())
    known.emplace(balloon.serial, &balloon);
  for (const Balloon& balloon : book_.balloons()) {
    const auto at = known.find(balloon.serial);
    const bool same = at != known.end() && at->second->cpus() == balloon.cpus() &&
                      at->second->members == balloon.members &&
                      before.SharedIdle(*at->second) == book_.SharedIdle(balloon);
    if (!same) AddChanges(snapshot, balloon, plan);
  }
  return plan;
}

void BalloonsPolicy::AddChanges(const Snapshot& snapshot, const Balloon& balloon,
                                Plan& plan) const {
  for (const BalloonMemberPtr& member : balloon.members) {
    const Container* const container = snapshot.FindContainer(member->key);
    const Pod* const pod = container == nullptr ? nullptr : snapshot.FindPod(container->pod_id);
    if (pod == nullptr) continue;
    Placement placement = PlacementOf(balloon, *member, *pod, *container);
    if (placement.SameDecision(container->placement)) continue;
    plan.changes.push_back({member->key, std::move(placement)});
  }
}

Placement BalloonsPolicy::UnboundPlacement(const std::string& why,
                                           const Container& container) const {
  Placement placement;
  placement.reason = why + container.needs_note;
  return placement;
}

Placement BalloonsPolicy::PlacementOf(const Balloon& balloon, const BalloonMember& member,
                                      const Pod& pod, const Container& container) const {
  const CpuSet own = balloon.cpus();
  CpuSet cpus = own | book_.SharedIdle(balloon);
  Placement placement;
  if (rules().PinsMemory(pod, container, balloon.type)) {
    const NodeSet nodes = MemoryNodes(cpus, member.memory_types);
    if (!nodes.empty()) placement.mems = nodes;
  }
  if (member.hide_hyperthreads) {
    const Machine& machine = setup_->machine();
    // The balloon's own thread of a core comes before an idle one.
    cpus = OneThreadPerCore(machine, own) |
           OneThreadPerCore(machine, cpus - machine.WithSiblings(own));
  }
  if (setup_->options().pin_cpu) placement.cpus = cpus;
  placement.pool = book_.NameOf(balloon);
  const bool lacks = !member.text.starts_with(kWantOfRoom) && IsShort(*setup_, balloon, own);
  placement.reason = WithOwnCpus(
      lacks ? fmt::format("{}{}{}", member.text, kBeforeFewer, kFewerCpus) : member.text, own);
  return placement;
}

// The nodes of the CPUs; for each type of memory that is asked for and none of them has, the
// nearest ones; then only nodes of those types, if there are any.
NodeSet BalloonsPolicy::MemoryNodes(const CpuSet& cpus, unsigned types) const {
  const Machine& machine = setup_->machine();
  const auto usable = [](const NumaNode& node) { return node.allowed && node.memory.value > 0; };
  const auto has = [types](const NumaNode& node) {
    return types == 0 || (types & (1U << static_cast<unsigned>(node.type))) != 0;
  };
  const NodeSet local = machine.NodesOf(cpus);
  NodeSet chosen;
  for (const NumaNode& node : machine.nodes()) {
    if (local.Contains(node.id) && usable(node)) chosen.Add(node.id);
  }
  const auto distance = [&](const NumaNode& to) {
    int least = -1;
    for (const NumaNode& from : machine.nodes()) {
      if (!local.Contains(from.id)) continue;
      const int here = from.distances[static_cast<size_t>(&to - machine.nodes().data())];
      if (least < 0 || here < least) least = here;
    }
    return least;
  };
  for (const MemoryType type : {MemoryType::kDram, MemoryType::kHbm, MemoryType::kPmem}) {
    const bool wanted = types == 0 ? chosen.empty() && type == MemoryType::kDram
                                   : (types & (1U << static_cast<unsigned>(type))) != 0;
    if (!wanted) continue;
    int nearest = -1;
    bool present = false;
    for (const NumaNode& node : machine.nodes()) {
      if (node.type != type || !usable(node)) continue;
      present |= chosen.Contains(node.id);
      if (nearest < 0 || distance(node) < nearest) nearest = distance(node);
    }
    if (present) continue;
    for (const NumaNode& node : machine.nodes()) {
      if (node.type == type && usable(node) && distance(node) == nearest) chosen.Add(node.id);
    }
  }
  NodeSet matching;
  for (const NumaNode& node : machine.nodes()) {
    if (chosen.Contains(node.id) && has(node)) matching.Add(node.id);
  }
  return matching.empty() ? chosen : matching;
}

std::vector<Zone> BalloonsPolicy::Zones(const Snapshot& /*snapshot*/) const {
  std::vector<Zone> zones;
  const auto add = [&](Zone zone) {
    for (const int node : setup_->machine().NodesOf(zone.cpus))
      zone.mems.Add(node);
    zones.push_back(std::move(zone));
  };
  for (int type = 0; type < setup_->types(); ++type) {
    std::vector<const Balloon*> own;
    for (const Balloon& balloon : book_.balloons()) {
      if (balloon.type == type) own.push_back(&balloon);
    }
    std::ranges::sort(own, {}, &Balloon::index);
    for (const Balloon* const balloon : own) {
      const int64_t request = balloon->Request();
      add({.name = book_.NameOf(*balloon),
           .kind = "balloon",
           .cpus = balloon->cpus(),
           .shared = balloon->cpus() | book_.SharedIdle(*balloon),
           .shared_request = MilliCpu{request},
           .free = MilliCpu{int64_t{1000} * book_.MostNow(*balloon) - request},
           .containers = static_cast<int>(balloon->members.size())});
    }
  }
  if (!book_.idle().empty()) add({.name = "idle", .kind = "idle", .cpus = book_.idle()});
  return zones;
}

PolicyFactory BalloonsPolicyFactory() {
  return {
      .name = "balloons",
      .description =
          "containers in balloons: sets of CPUs by type, which grow and shrink with what "
          "their containers request",
      .create = BalloonsPolicy::Create,
      .read_section = ReadKeys,
  };
}

}  // namespace resmgr
