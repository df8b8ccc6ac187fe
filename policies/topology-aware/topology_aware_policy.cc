// SPDX-License-Identifier: Apache-2.0
#include "policies/topology-aware/topology_aware_policy.h"

#include <algorithm>
#include <span>
#include <string_view>
#include <utility>

#include "pkg/allocator/want_of_room.h"
#include "pkg/base/amount_text.h"
#include "pkg/model/container_facts.h"
#include "pkg/policy/conventions.h"
#include "policies/topology-aware/rebalancer.h"
#include "policies/topology-aware/reconciler.h"

namespace resmgr {
namespace {

// Weight of the affinity that colocate-pods and colocate-namespaces imply.
constexpr int kColocationWeight = 10;

}  // namespace

StatusOr<std::unique_ptr<Policy>> TopologyAwarePolicy::Create(const PolicyContext& context) {
  RESMGR_ASSIGN_OR_RETURN(const TopologyAwareOptions options,
                          ReadTopologyAwareOptions(context.section));
  // Where all others are reserved, containers share these.
  if (context.reserved.empty() && (context.available - context.machine.isolated()).empty()) {
    return InvalidArgument(
        "policy topology-aware: of the available CPUs ({}) none is left for containers without "
        "the isolated ones ({})",
        context.available.ToString(), context.machine.isolated().ToString());
  }
  return std::unique_ptr<Policy>(
      new TopologyAwarePolicy(context, options, PinningRule(context.runtimes)));
}

TopologyAwarePolicy::TopologyAwarePolicy(const PolicyContext& context,
                                         const TopologyAwareOptions& options, PinningRule pinning)
    : options_(options),
      pinning_(std::move(pinning)),
      book_(context.machine, context.available, context.reserved, options.pin_cpu,
            context.unreserved, context.offline),
      placer_(book_) {}

// The copy computes its ledgers from the grants, and fills its index from the snapshot if needed.
std::unique_ptr<Policy> TopologyAwarePolicy::Clone() const {
  const PoolTree& tree = book_.tree();
  const PolicyContext context = {.machine = book_.machine(),
                                 .available = tree.at(tree.root()).cpus,
                                 .reserved = book_.reserved(),
                                 .unreserved = book_.cpus().unreserved(),
                                 .offline = book_.offline()};
  std::unique_ptr<TopologyAwarePolicy> clone(new TopologyAwarePolicy(context, options_, pinning_));
  clone->book_.CopyFrom(book_);
  return clone;
}

StatusOr<Plan> TopologyAwarePolicy::Reconcile(const Snapshot& snapshot) {
  Reconciler reconciler(book_, placer_);
  snapshot.ForEachContainer([&](const Pod& pod, const Container& container) {
    reconciler.Add(pod, container, MakeDemand(pod, container));
  });
  index_.Clear();
  return reconciler.Run(
      [&](const Pod& pod, const Container& container, Demand& demand) {
        AddAffinities(snapshot, pod, container, demand);
      },
      [this](const Pod& pod, const Container& container) { Index(pod, container); });
}

void TopologyAwarePolicy::Prepare(const Pod& pod) {
  affinities_.Prepare(pod.annotations);
}

StatusOr<Plan> TopologyAwarePolicy::Allocate(const Snapshot& snapshot, const Pod& pod,
                                             const Container& container,
                                             const Container* predecessor) {
  const CpuSet before = book_.cpus().exclusive();
  Demand demand = MakeDemand(pod, container);
  std::optional<Grant> inherited;
  std::optional<Grant> again;
  if (predecessor != nullptr) {
    inherited = Take(predecessor->key);
    again = PlaceLikeFormer(demand, container, *predecessor, inherited);
  }
  if (!again) AddAffinities(snapshot, pod, container, demand);
  StatusOr<Grant> grant = again ? *std::move(again) : placer_.Place(demand);
  if (grant.ok() && predecessor == nullptr) {
    const Status room = CheckOverhead(snapshot, *grant, 0);
    if (!room.ok()) grant = room;
  }
  if (!grant.ok()) {
    if (inherited) Give(pod, *predecessor, *std::move(inherited));
    return Refusal(grant.status(), snapshot, demand, container.key);
  }
  BeginColdStart(*grant);
  Give(pod, container, *std::move(grant));
  return MakePlan(before, {container.key});
}

StatusOr<Plan> TopologyAwarePolicy::Update(const Snapshot& snapshot, const Pod& pod,
                                           const Container& container) {
  const CpuSet before = book_.cpus().exclusive();
  Demand demand = MakeDemand(pod, container);
  std::optional<Grant> held = Take(container.key);
  if (held && held->zone) demand.need.memory_held = held->need.memory;
  std::optional<Grant> near;
  if (held) near = Resize(demand, *held);
  if (!near) AddAffinities(snapshot, pod, container, demand);
  StatusOr<Grant> grant = near ? *std::move(near) : placer_.Place(demand);
  if (grant.ok()) {
    const Status room = CheckOverhead(snapshot, *grant, held ? held->exclusive.size() : 0);
    if (!room.ok()) grant = room;
  }
  if (!grant.ok() && held) {
    std::optional<Grant> less = KeepFewer(demand, *held);
    if (!less) less = ShareLess(demand, *held, grant.status());
    if (less) grant = *std::move(less);
  }
  if (!grant.ok()) {
    if (held) Give(pod, container, *std::move(held));
    return Refusal(grant.status(), snapshot, demand, container.key);
  }
  if (held) placer_.KeepMemory(*held, *grant);
  grant->cold = held && held->cold && book_.WhyNotCold(*grant).empty();
  grant->need.memory_held = Bytes{};
  Give(pod, container, *std::move(grant));
  Plan plan = MakePlan(before, {container.key});
  std::erase_if(plan.changes, [&](const PlacementChange& change) {
    return change.key == container.key && change.placement.SameDecision(container.placement);
  });
  return plan;
}

// Checks that the overhead promised to pods stays free. A grant with no more exclusive CPUs than
// the former one passes, since it takes none from other containers. Free isolated CPUs count like
// others, since the scheduler does not distinguish them.
Status TopologyAwarePolicy::CheckOverhead(const Snapshot& snapshot, const Grant& grant,
                                          int former) const {
  const int count = grant.exclusive.size();
  if (count <= former) return OkStatus();
  const int64_t promised = snapshot.Overheads().promised.value;
  if (promised == 0) return OkStatus();
  const int root = book_.tree().root();
  const CpuLedger& cpus = book_.cpus();
  const int64_t free = cpus.Room(root) + int64_t{1000} * cpus.FreeIsolated(root).size();
  const int64_t wanted = int64_t{1000} * count + grant.need.fraction;
  if (free - wanted >= promised) return OkStatus();
  return ResourceExhausted("needs {}, but of the {}m that are free {}m are overhead of pods",
                           CountText(count, "exclusive CPU"), free, promised);
}

// Completes a refusal with the containers that hold the missing CPUs or memory.
Status TopologyAwarePolicy::Refusal(const Status& shortage, const Snapshot& snapshot,
                                    const Demand& demand, ContainerKey key) const {
  const Need& need = demand.need;
  if (shortage.code() != StatusCode::kResourceExhausted) return shortage;
  Grant memory{.need = need, .pool = book_.tree().root()};
  if (!placer_.FindMemory(memory, memory.pool)) {
    const std::string holders = MemoryHolders(snapshot, key);
    return holders.empty() ? shortage : ResourceExhausted("{}: {}", Message(shortage), holders);
  }
  if (need.cpu_class != CpuClass::kExclusive) return shortage;
  const int root = book_.tree().root();
  const int free = need.isolated_required ? book_.cpus().FreeIsolated(root).size()
                                          : book_.cpus().Sliceable(root, need.fraction);
  if (free >= placer_.ExclusiveCount(need)) return shortage;
  const std::string holders = DescribeCpuHolders(snapshot, book_.reserved(), key);
  const std::string sharers = DescribeSharers(snapshot, key);
  if (holders.empty() && sharers.empty()) return shortage;
  return ResourceExhausted("{}: {}{}{}", Message(shortage), holders,
                           holders.empty() || sharers.empty() ? "" : ", ", sharers);
}

std::string TopologyAwarePolicy::MemoryHolders(const Snapshot& snapshot, ContainerKey key) const {
  std::vector<Holding> holders;
  snapshot.ForEachContainer([&](const Pod& pod, const Container& container) {
    const Grant* const grant = book_.Find(container.key);
    if (grant == nullptr || container.key == key || grant->need.memory_estimated) return;
    const int64_t memory = grant->need.memory.value;
    if (memory > 0) holders.push_back({&pod, &container, memory});
  });
  return DescribeHolders(std::move(holders),
                         [](const Holding& holder) { return BytesText(holder.amount); });
}

StatusOr<Plan> TopologyAwarePolicy::LookAgain(const Snapshot& /*snapshot*/, ContainerKey key) {
  if (!book_.EndColdStart(key)) return Plan{};
  return MakePlan(book_.cpus().exclusive(), {key});
}

StatusOr<Plan> TopologyAwarePolicy::Release(const Snapshot& /*snapshot*/, ContainerKey key) {
  const CpuSet before = book_.cpus().exclusive();
  Take(key);
  return MakePlan(before, {});
}

StatusOr<Plan> TopologyAwarePolicy::Rebalance(const Snapshot& snapshot) {
  const CpuSet before = book_.cpus().exclusive();
  Rebalancer rebalancer(book_, placer_);
  snapshot.ForEachContainer([&](const Pod& pod, const Container& container) {
    if (book_.Find(container.key) == nullptr) return;
    rebalancer.Add(container.key, MakeDemand(pod, container));
  });
  snapshot.ForEachContainer([&](const Pod& pod, const Container& container) {
    if (book_.Find(container.key) == nullptr) return;
    const OwnAffinities affinities = AffinitiesOf(pod, container);
    const auto meant = index_.Meant(affinities.list(), pod, snapshot,
                                    [this](ContainerKey key) { return PoolOf(key); });
    rebalancer.Note(container.key, affinities.note);
    for (const auto& [other, weight] : meant)
      rebalancer.Want(container.key, other, weight);
  });
  std::set<ContainerKey> moved = rebalancer.Run();
  for (const ContainerKey key : moved)
    IndexAgain(key);
  return MakePlan(before, std::move(moved));
}

Demand TopologyAwarePolicy::MakeDemand(const Pod& pod, const Container& container) const {
  Preferences preferences = ReadPreferences(pod, container.name, options_.pod_resource_api);
  for (std::string& ignored : TakeUnprivileged(pod, options_, preferences))
    preferences.notes.push_back(std::move(ignored));
  Demand demand;
  demand.need = DecideNeed(pod, container, preferences, options_, !book_.reserved().empty());
  if (const std::string_view why = pinning_.WhyUnbound(pod); !why.empty()) {
    demand.need = UnboundNeed(demand.need, why);
  }
  for (const LocalityHint& hint : container.hints) {
    if (preferences.hints.Accepts(hint.source)) demand.hints.push_back(hint);
  }
  demand.strict_hints = preferences.hints.strict;
  demand.pick_by_hints = preferences.pick_by_hints;
  demand.may_move = preferences.allow_rebalance;
  for (const std::string& text : preferences.notes)
    demand.need.why += fmt::format(" ({})", text);
  return demand;
}

std::vector<std::string> TopologyAwarePolicy::Unheeded(const Pod& pod,
                                                       const Container& container) const {
  if (!pinning_.WhyUnbound(pod).empty()) return {};
  Preferences preferences = ReadPreferences(pod, container.name);
  return TakeUnprivileged(pod, options_, preferences);
}

void TopologyAwarePolicy::BeginColdStart(Grant& grant) const {
  if (grant.need.cold_start.count() == 0) return;
  const std::string obstacle = book_.WhyNotCold(grant);
  grant.cold = obstacle.empty();
  grant.reason += grant.cold ? fmt::format("; the first {}ms with memory nodes {} (PMEM) alone",
                                           grant.need.cold_start.count(),
                                           book_.ColdNodes(*grant.zone).ToString())
                             : fmt::format("; no cold start: {}", obstacle);
}

void TopologyAwarePolicy::Give(const Pod& pod, const Container& container, Grant grant) {
  book_.Give(container.key, std::move(grant));
  Index(pod, container);
}

std::optional<Grant> TopologyAwarePolicy::Take(ContainerKey key) {
  index_.Erase(key);
  return book_.Take(key);
}

void TopologyAwarePolicy::Index(const Pod& pod, const Container& container) {
  if (const std::optional<int> pool = PoolOf(container.key)) index_.Put(pod, container, *pool);
}

void TopologyAwarePolicy::IndexAgain(ContainerKey key) {
  if (const std::optional<int> pool = PoolOf(key)) index_.Move(key, *pool);
}

std::optional<int> TopologyAwarePolicy::PoolOf(ContainerKey key) const {
  const Grant* const grant = book_.Find(key);
  if (grant == nullptr || !grant->IsPooled()) return std::nullopt;
  return grant->pool;
}

// Adds to the demand the weights of the pools of other containers.
void TopologyAwarePolicy::AddAffinities(const Snapshot& snapshot, const Pod& pod,
                                        const Container& container, Demand& demand) {
  const OwnAffinities affinities = AffinitiesOf(pod, container);
  demand.need.why += affinities.note;
  if (affinities.list().empty()) return;
  const std::vector<int64_t> weights =
      index_.Weights(affinities.list(), pod, book_.tree().size(), snapshot,
                     [this](ContainerKey key) { return PoolOf(key); });
  demand.affinities = AffinityScores(book_.tree(), weights);
}

TopologyAwarePolicy::OwnAffinities TopologyAwarePolicy::AffinitiesOf(const Pod& pod,
                                                                     const Container& container) {
  const StatusOr<std::span<const Affinity>> read =
      affinities_.Read(pod.annotations, container.name);
  OwnAffinities own;
  if (!read.ok()) own.note = fmt::format(" (affinities ignored: {})", Message(read.status()));
  if (read.ok()) own.read = *read;
  if (own.read.empty()) own.implied = ImpliedAffinities(pod);
  return own;
}

// The affinities that the options imply for a container without affinities of its own.
std::vector<Affinity> TopologyAwarePolicy::ImpliedAffinities(const Pod& pod) const {
  std::vector<Affinity> implied;
  if (options_.colocate_pods) implied.push_back({.weight = kColocationWeight});
  if (options_.colocate_namespaces) {
    implied.push_back(
        {.weight = kColocationWeight, .scope = Expression::In("namespace", {pod.namespace_name})});
  }
  return implied;
}

// A grant in the place of an earlier attempt, if it still suits. If not, the demand prefers the
// CPUs of that attempt, unless others have some of them.
std::optional<Grant> TopologyAwarePolicy::PlaceLikeFormer(
    Demand& demand, const Container& container, const Container& predecessor,
    const std::optional<Grant>& inherited) const {
  const Placement& former = predecessor.placement;
  if (inherited) demand.held = inherited->exclusive;
  // If others have some of its CPUs now, the rest would split the container.
  const CpuLedger& cpus = book_.cpus();
  const int root = book_.tree().root();
  if (!former.exclusive.IsSubsetOf(cpus.Free(root) | cpus.FreeIsolated(root))) return std::nullopt;
  demand.preferred = {former.exclusive};
  const CpuClass cpu_class = demand.need.cpu_class;
  if (cpu_class != CpuClass::kShared && cpu_class != CpuClass::kExclusive) return std::nullopt;
  const int pool = book_.tree().Find(former.pool);
  if (pool < 0) return std::nullopt;
  std::optional<Grant> grant = placer_.PlaceIn(demand, pool);
  if (!grant && former.exclusive.Intersects(book_.tree().at(pool).isolated)) {
    // The former attempt had CPUs of both kinds, so the new one may, too.
    Demand both = demand;
    both.any_kind = !demand.need.isolated_required && !demand.need.isolated_never;
    grant = placer_.PlaceIn(both, pool);
  }
  if (!grant) return std::nullopt;
  const std::string_view why = IsFormerAttempt(container, predecessor)
                                   ? "where it was before"
                                   : "the place that it asks for";
  grant->reason = fmt::format("{}: {}, {}", demand.need.why, former.pool, why);
  return grant;
}

// A grant in the container's pool or around it. Its present grant must be taken out of the book.
std::optional<Grant> TopologyAwarePolicy::Resize(Demand& demand, const Grant& held) const {
  placer_.PreferHeld(held.exclusive, demand);
  if (held.need.Shares()) {
    demand.shares_in = held.pool;
    demand.shared_held = held.need.fraction;
  }
  if (held.need.cpu_class == CpuClass::kReserved) demand.reserved_held = held.need.fraction;
  std::optional<Grant> grant = placer_.PlaceNear(demand, held.pool);
  if (!grant) return std::nullopt;
  const bool same_place = grant->pool == held.pool && grant->exclusive == held.exclusive &&
                          grant->need.cpu_class == held.need.cpu_class;
  if (!same_place) return grant;
  grant->reason = held.reason;
  grant->candidates = held.candidates;
  return grant;
}

std::optional<Grant> TopologyAwarePolicy::KeepFewer(const Demand& demand, const Grant& held) const {
  const int count = placer_.ExclusiveCount(demand.need);
  const bool exclusive = demand.need.cpu_class == CpuClass::kExclusive && !held.exclusive.empty();
  if (!exclusive || held.exclusive.size() > count || demand.need.isolated_required) {
    return std::nullopt;
  }
  if (count > placer_.ExclusiveCount(held.need)) return std::nullopt;
  std::optional<Grant> grant = placer_.KeepFewer(demand.need, held.exclusive, held.pool);
  if (!grant || !placer_.FindMemory(*grant, held.pool)) return std::nullopt;
  return grant;
}

std::optional<Grant> TopologyAwarePolicy::ShareLess(const Demand& demand, const Grant& held,
                                                    const Status& why) const {
  Grant grant;
  grant.need = Placer::Shared(demand.need);
  const Need before = Placer::Shared(held.need);
  const bool placeable = grant.need.cpu_class == CpuClass::kShared &&
                         before.cpu_class == CpuClass::kShared && !demand.need.isolated_required;
  if (!placeable || grant.need.fraction > before.fraction) return std::nullopt;
  grant.pool = held.pool;
  while (!book_.cpus().CanShare(grant.pool) && grant.pool != book_.tree().root())
    grant.pool = book_.tree().at(grant.pool).parent;
  grant.reason = fmt::format("{}{}", kWantOfRoom, Message(why));
  if (!placer_.FindMemory(grant, grant.pool)) return std::nullopt;
  return grant;
}

Plan TopologyAwarePolicy::MakePlan(const CpuSet& before, std::set<ContainerKey> keys) {
  // No container goes back in a decision that moves others out: their room must be there when the
  // new grant ends.
  std::vector<ContainerKey> moved = book_.MakeRoom(book_.cpus().exclusive() - before);
  if (moved.empty()) moved = book_.MoveBack();
  for (const ContainerKey key : moved) {
    keys.insert(key);
    IndexAgain(key);
  }
  const std::vector<ContainerKey> widened = book_.WidenMemory();
  keys.insert(widened.begin(), widened.end());
  Plan plan;
  book_.AddSharersOf(before, keys, plan.shared);
  plan.changes.reserve(keys.size());
  for (const ContainerKey key : keys)
    plan.changes.push_back({key, book_.PlacementOf(*book_.Find(key))});
  return plan;
}

PolicyFactory TopologyAwarePolicyFactory() {
  return {
      .name = "topology-aware",
      .description =
          "containers by packages, dies, NUMA nodes, L3 caches and memory, on exclusive CPUs or "
          "the shared ones of their pool",
      .create = TopologyAwarePolicy::Create,
      .read_section =
          [](const ConfigNode& section, std::vector<ConfigKey>* keys) {
            return ReadTopologyAwareOptions(&section, keys).status();
          },
      .named_classes = TopologyAwareNamedClasses,
  };
}

}  // namespace resmgr
