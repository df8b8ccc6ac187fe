// SPDX-License-Identifier: Apache-2.0
#include "pkg/policy/plan_check.h"

#include <algorithm>
#include <optional>
#include <string>

#include <absl/container/inlined_vector.h>

#include "pkg/base/amount_text.h"

namespace resmgr {
namespace {

Status CheckPlacement(const Machine& machine, const Placement& placement) {
  if (placement.cpus && placement.cpus->empty()) return Internal("the plan leaves it no CPU");
  if (placement.cpus && !placement.cpus->IsSubsetOf(machine.online())) {
    return Internal("the plan uses CPUs {} that are not online",
                    (*placement.cpus - machine.online()).ToString());
  }
  if (placement.mems && placement.mems->empty()) {
    return Internal("the plan leaves it no memory node");
  }
  if (placement.mems && !placement.mems->IsSubsetOf(machine.node_ids())) {
    return Internal("the plan uses memory nodes {} that do not exist",
                    (*placement.mems - machine.node_ids()).ToString());
  }
  if (placement.exclusive.empty()) return OkStatus();
  const CpuSet outside = placement.exclusive - placement.cpus.value_or(CpuSet());
  if (outside.empty()) return OkStatus();
  return Internal("its exclusive CPUs {} are not among its CPUs", outside.ToString());
}

std::string NameOf(const Snapshot& snapshot, const Container& container) {
  const Pod* const pod = snapshot.FindPod(container.pod_id);
  return pod == nullptr ? container.name : FullName(*pod, container.name);
}

// Keys of containers, ascending.
class Keys {
 public:
  void Add(ContainerKey key) {
    sorted_ = sorted_ && (keys_.empty() || keys_.back() < key);
    keys_.push_back(key);
  }
  // Called after the last Add. Returns false if a key is there twice.
  bool Sort() {
    if (sorted_) return true;
    std::sort(keys_.begin(), keys_.end());
    return std::adjacent_find(keys_.begin(), keys_.end()) == keys_.end();
  }

  void Reserve(size_t size) { keys_.reserve(size); }
  bool Has(ContainerKey key) const { return std::binary_search(keys_.begin(), keys_.end(), key); }
  const absl::InlinedVector<ContainerKey, 4>& list() const { return keys_; }

 private:
  absl::InlinedVector<ContainerKey, 4> keys_;
  bool sorted_ = true;
};

// The CPUs that containers will hold exclusively after the plan.
class ExclusiveCheck {
 public:
  explicit ExclusiveCheck(const Snapshot& snapshot) : snapshot_(snapshot) {}

  Status AddExclusive(const Container& container, const Placement& placement) {
    if (placement.exclusive.empty()) return OkStatus();
    if (exclusive_.Intersects(placement.exclusive)) {
      return Internal("container {}: the plan grants CPUs {} exclusively a second time",
                      NameOf(snapshot_, container), (exclusive_ & placement.exclusive).ToString());
    }
    exclusive_ |= placement.exclusive;
    return OkStatus();
  }

  // Called after all calls of AddExclusive.
  Status CheckShared(const Container& container, const Placement& placement) const {
    // The usual case: the container has no exclusive CPUs, and none of its CPUs are granted to
    // others.
    if (!placement.cpus || !placement.cpus->Intersects(exclusive_)) return OkStatus();
    return CheckShared(container, *placement.cpus - placement.exclusive);
  }
  Status CheckShared(const Container& container, const CpuSet& shared) const {
    const CpuSet foreign = shared & exclusive_;
    if (foreign.empty()) return OkStatus();
    return Internal("container {}: the plan shares CPUs {} that are exclusive to another one",
                    NameOf(snapshot_, container), foreign.ToString());
  }

 private:
  const Snapshot& snapshot_;
  CpuSet exclusive_;
};

Status NoSuchContainer(ContainerKey key) {
  return Internal("the plan places a container that does not exist (key {})",
                  static_cast<uint64_t>(key));
}

Status CheckChanges(const Machine& machine, const Snapshot& snapshot, const Plan& plan) {
  for (const PlacementChange& change : plan.changes) {
    const Container* const container = snapshot.FindContainer(change.key);
    if (container == nullptr) return NoSuchContainer(change.key);
    const Status status = CheckPlacement(machine, change.placement);
    if (!status.ok()) {
      return Annotate(status, fmt::format("container {}", NameOf(snapshot, *container)));
    }
  }
  for (const SharedChange& change : plan.shared) {
    const size_t count = change.containers.size();
    if (change.cpus.empty())
      return Internal("the plan leaves {} no CPU",
                      CountText(static_cast<int64_t>(count), "container"));
    if (change.cpus.IsSubsetOf(machine.online())) continue;
    return Internal("the plan puts {} on CPUs {} that are not online",
                    CountText(static_cast<int64_t>(count), "container"),
                    (change.cpus - machine.online()).ToString());
  }
  return OkStatus();
}

// Checks that the containers of shared changes exist and, if the plan takes more CPUs for exclusive
// use, that no container outside the plan runs on those CPUs. One pass over all containers, since
// both lists ascend.
Status CheckOthers(const Snapshot& snapshot, const Keys& named, bool takes_more,
                   const ExclusiveCheck& check) {
  Status status;
  auto next = named.list().begin();
  const auto end = named.list().end();
  std::optional<ContainerKey> missing;
  snapshot.ForEachContainer([&](const Pod&, const Container& container) {
    for (; next != end && *next < container.key; ++next)
      missing = *next;
    if (next != end && *next == container.key) {
      ++next;
    } else if (takes_more && status.ok()) {
      status = check.CheckShared(container, container.placement);
    }
  });
  if (next != end) missing = *next;
  return missing ? NoSuchContainer(*missing) : status;
}

bool AnyExclusive(const Plan& plan) {
  return std::ranges::any_of(plan.changes, [](const PlacementChange& change) {
    return !change.placement.exclusive.empty();
  });
}

Status CheckExclusive(const Snapshot& snapshot, const ExclusiveHolders& holders, const Plan& plan,
                      const Keys& changed, const Keys& named) {
  ExclusiveCheck check(snapshot);
  for (const ContainerKey key : holders) {
    const Container* const holder = changed.Has(key) ? nullptr : snapshot.FindContainer(key);
    if (holder != nullptr) RESMGR_RETURN_IF_ERROR(check.AddExclusive(*holder, holder->placement));
  }
  bool takes_more = false;
  for (const PlacementChange& change : plan.changes) {
    const Container& container = *snapshot.FindContainer(change.key);
    RESMGR_RETURN_IF_ERROR(check.AddExclusive(container, change.placement));
    takes_more |= !change.placement.exclusive.IsSubsetOf(container.placement.exclusive);
  }
  for (const PlacementChange& change : plan.changes) {
    RESMGR_RETURN_IF_ERROR(
        check.CheckShared(*snapshot.FindContainer(change.key), change.placement));
  }
  if (takes_more || !plan.shared.empty()) {
    RESMGR_RETURN_IF_ERROR(CheckOthers(snapshot, named, takes_more, check));
  }
  for (const SharedChange& change : plan.shared) {
    if (change.containers.empty()) continue;
    RESMGR_RETURN_IF_ERROR(
        check.CheckShared(*snapshot.FindContainer(change.containers.front()), change.cpus));
  }
  return OkStatus();
}

}  // namespace

Status CheckPlan(const Machine& machine, const Snapshot& snapshot, const ExclusiveHolders& holders,
                 const Plan& plan) {
  if (plan.empty()) return OkStatus();
  RESMGR_RETURN_IF_ERROR(CheckChanges(machine, snapshot, plan));
  const bool exclusive = !holders.empty() || AnyExclusive(plan);
  // A plan of one change cannot name a container twice.
  if (!exclusive && plan.shared.empty() && plan.changes.size() == 1) return OkStatus();
  Keys changed;
  Keys named;
  named.Reserve(plan.size());
  for (const SharedChange& change : plan.shared) {
    for (const ContainerKey key : change.containers)
      named.Add(key);
  }
  for (const PlacementChange& change : plan.changes) {
    changed.Add(change.key);
    named.Add(change.key);
  }
  changed.Sort();
  if (!named.Sort()) return Internal("the plan places a container twice");
  if (!exclusive && plan.shared.empty()) return OkStatus();
  return CheckExclusive(snapshot, holders, plan, changed, named);
}

Status CheckPlan(const Machine& machine, const Snapshot& snapshot, const Plan& plan) {
  ExclusiveHolders holders;
  snapshot.ForEachContainer([&holders](const Pod&, const Container& container) {
    if (!container.placement.exclusive.empty()) holders.insert(container.key);
  });
  return CheckPlan(machine, snapshot, holders, plan);
}

}  // namespace resmgr
