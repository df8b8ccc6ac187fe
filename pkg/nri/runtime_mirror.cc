// SPDX-License-Identifier: Apache-2.0
#include "pkg/nri/runtime_mirror.h"

#include <algorithm>
#include <utility>

namespace resmgr::nri {

void RuntimeMirror::Clear() {
  pods_.clear();
  stopped_.clear();
  guessed_stopped_.clear();
  containers_.clear();
  planned_.clear();
}

void RuntimeMirror::Add(Pod pod) {
  const PodSandboxId id = pod.id;
  pods_.insert_or_assign(id, std::move(pod));
}

void RuntimeMirror::Remove(const PodSandboxId& id) {
  pods_.erase(id);
  stopped_.erase(id);
  guessed_stopped_.erase(id);
  absl::erase_if(containers_, [&id](const auto& entry) { return entry.second.pod_id == id; });
  absl::erase_if(planned_, [this](const ContainerId& each) { return !containers_.contains(each); });
}

void RuntimeMirror::Remove(const ContainerId& id) {
  containers_.erase(id);
  planned_.erase(id);
}

void RuntimeMirror::GuessStopped() {
  std::set<PodSandboxId> live;
  for (const auto& [id, container] : containers_) {
    if (container.state != ContainerState::kExited) live.insert(container.pod_id);
  }
  for (const auto& [id, pod] : pods_) {
    if (!live.contains(pod.id)) guessed_stopped_.insert(pod.id);
  }
}

void RuntimeMirror::SetPodResources(const PodSandboxId& id, const LinuxResources& overhead,
                                    const LinuxResources& resources) {
  const auto pod = pods_.find(id);
  if (pod == pods_.end()) return;
  pod->second.overhead = overhead;
  pod->second.resources = resources;
}

void RuntimeMirror::Add(RuntimeContainer container) {
  const ContainerId id = container.id;
  if (container.state != ContainerState::kExited) guessed_stopped_.erase(container.pod_id);
  containers_.insert_or_assign(id, std::move(container));
}

void RuntimeMirror::AddPlanned(RuntimeContainer container) {
  const ContainerId id = container.id;
  planned_.insert(id);
  containers_.insert_or_assign(id, std::move(container));
}

void RuntimeMirror::Confirm(const ContainerId& id) {
  planned_.erase(id);
  if (const RuntimeContainer* const made = Find(id)) guessed_stopped_.erase(made->pod_id);
}

RuntimeContainer* RuntimeMirror::Find(const ContainerId& id) {
  const auto container = containers_.find(id);
  return container == containers_.end() ? nullptr : &container->second;
}

bool RuntimeMirror::SetState(const ContainerId& id, ContainerState state) {
  RuntimeContainer* const container = Find(id);
  if (container == nullptr) return false;
  if (container->state != ContainerState::kExited) container->state = state;
  return container->state == state;
}

void RuntimeMirror::Merge(const ContainerId& id, const LinuxResources& resources) {
  if (RuntimeContainer* const container = Find(id)) resmgr::Merge(container->resources, resources);
}

void RuntimeMirror::SetUntold(const ContainerId& id) {
  if (RuntimeContainer* const container = Find(id)) container->told = false;
}

void RuntimeMirror::SetTold(const ContainerId& id, const LinuxResources& in_force) {
  RuntimeContainer* const container = Find(id);
  if (container == nullptr) return;
  container->told = true;
  container->resources.cpu_shares = in_force.cpu_shares;
  container->resources.cpu_quota = in_force.cpu_quota;
  container->resources.cpu_period = in_force.cpu_period;
}

void RuntimeMirror::SetToldSets(const ContainerId& id, const LinuxResources& in_force) {
  RuntimeContainer* const container = Find(id);
  if (container == nullptr) return;
  const auto take = [](const auto& told, auto& noted) {
    if (told && !told->empty()) noted = told;
  };
  take(in_force.cpuset_cpus, container->resources.cpuset_cpus);
  take(in_force.cpuset_mems, container->resources.cpuset_mems);
}

RuntimeInventory RuntimeMirror::Inventory() const {
  RuntimeInventory inventory;
  inventory.stopped_pods = stopped_;
  inventory.stopped_pods.insert(guessed_stopped_.begin(), guessed_stopped_.end());
  for (const auto& [id, pod] : pods_)
    inventory.pods.push_back(pod);
  for (const auto& [id, container] : containers_)
    if (!planned_.contains(id)) inventory.containers.push_back(container);
  std::ranges::sort(inventory.pods, {}, &Pod::id);
  std::ranges::sort(inventory.containers, {}, &RuntimeContainer::id);
  return inventory;
}

}  // namespace resmgr::nri
