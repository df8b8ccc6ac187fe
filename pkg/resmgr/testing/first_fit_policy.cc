// SPDX-License-Identifier: Apache-2.0
#include "pkg/resmgr/testing/first_fit_policy.h"

#include <utility>

#include "pkg/model/requirements.h"

namespace resmgr::test {
namespace {

int Wanted(const Pod& pod, const Container& container) {
  const MilliCpu request = container.requirements.cpu_request;
  const bool entitled = pod.qos == QosClass::kGuaranteed && request.IsWhole() &&
                        WhyCpuIsOfPod(container.requirements).empty();
  return entitled ? static_cast<int>(request.Whole()) : 0;
}

}  // namespace

StatusOr<Plan> FirstFitPolicy::Reconcile(const Snapshot& snapshot) {
  ++reconciled;
  grants_.clear();
  const auto for_each_entitled = [&snapshot](const auto& visit) {
    snapshot.ForEachContainer([&visit](const Pod& pod, const Container& container) {
      if (const int count = Wanted(pod, container); count > 0) visit(container, count);
    });
  };
  // Containers get decided CPUs first, then the CPUs that they are on.
  for (const bool decided : {true, false}) {
    for_each_entitled([this, decided](const Container& container, int count) {
      if (grants_.contains(container.key)) return;
      const CpuSet cpus = container.placement.cpus.value_or(CpuSet());
      if (decided && container.placement.exclusive != cpus) return;
      if (cpus.size() == count && cpus.IsSubsetOf(Free())) grants_[container.key] = cpus;
    });
  }
  for_each_entitled([this](const Container& container, int count) {
    if (grants_.contains(container.key)) return;
    const StatusOr<CpuSet> cpus = Choose({}, count, container.name);
    if (cpus.ok()) grants_[container.key] = *cpus;
  });
  return Changes(snapshot);
}

StatusOr<Plan> FirstFitPolicy::Allocate(const Snapshot& snapshot, const Pod& pod,
                                        const Container& container, const Container* predecessor) {
  if (predecessor == nullptr) return Regrant(snapshot, pod, container, container.key, {});
  return Regrant(snapshot, pod, container, predecessor->key, predecessor->placement.exclusive);
}

StatusOr<Plan> FirstFitPolicy::Update(const Snapshot& snapshot, const Pod& pod,
                                      const Container& container) {
  const auto held = grants_.find(container.key);
  const CpuSet former = held == grants_.end() ? CpuSet() : held->second;
  return Regrant(snapshot, pod, container, container.key, former);
}

StatusOr<Plan> FirstFitPolicy::Regrant(const Snapshot& snapshot, const Pod& pod,
                                       const Container& container, ContainerKey from,
                                       const CpuSet& former) {
  const std::map<ContainerKey, CpuSet> before = grants_;
  grants_.erase(from);
  if (const int count = Wanted(pod, container); count > 0) {
    const StatusOr<CpuSet> cpus = Choose(former, count, FullName(pod, container.name));
    if (!cpus.ok()) {
      grants_ = before;
      return cpus.status();
    }
    grants_[container.key] = *cpus;
  }
  return Changes(snapshot);
}

StatusOr<Plan> FirstFitPolicy::Release(const Snapshot& snapshot, ContainerKey key) {
  grants_.erase(key);
  return Changes(snapshot);
}

CpuSet FirstFitPolicy::Free() const {
  CpuSet free = machine_.online() - CpuSet{0};
  for (const auto& [key, cpus] : grants_)
    free -= cpus;
  return free;
}

StatusOr<CpuSet> FirstFitPolicy::Choose(const CpuSet& first, int count,
                                        std::string_view name) const {
  const CpuSet free = Free();
  CpuSet chosen;
  for (const CpuSet& from : {first & free, free}) {
    for (const int cpu : from) {
      if (chosen.size() < count) chosen.Add(cpu);
    }
  }
  if (chosen.size() == count) return chosen;
  return ResourceExhausted("container {}: needs {} CPUs, {} are free", name, count, free.size());
}

Plan FirstFitPolicy::Changes(const Snapshot& snapshot) {
  const CpuSet shared = Free() | CpuSet{0};
  Plan plan;
  snapshot.ForEachContainer([&](const Pod&, const Container& container) {
    const auto grant = grants_.find(container.key);
    Placement placement;
    if (!left_alone.contains(container.name)) placement.cpus = shared;
    if (grant != grants_.end()) {
      placement.cpus = grant->second;
      placement.exclusive = grant->second;
      placement.cpu_quota = -1;
    }
    const Placement& before = container.placement;
    if (placement.values() == before.values() && placement.exclusive == before.exclusive) return;
    plan.changes.push_back({container.key, std::move(placement)});
  });
  if (spoil) spoil(plan);
  return plan;
}

}  // namespace resmgr::test
