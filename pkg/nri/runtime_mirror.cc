// SPDX-License-Identifier: Apache-2.0
#include "pkg/nri/runtime_mirror.h"

#include <utility>

#include "pkg/model/resources.h"

namespace resmgr::nri {

void RuntimeMirror::Clear() {
  pods_.clear();
  stopped_.clear();
  containers_.clear();
  planned_.clear();
}

void RuntimeMirror::Add(Pod pod) {
  std::string id(pod.id.value());
  pods_.insert_or_assign(std::move(id), std::move(pod));
}

void RuntimeMirror::Remove(const PodSandboxId& id) {
  pods_.erase(std::string(id.value()));
  stopped_.erase(id);
  std::erase_if(containers_, [&id](const auto& entry) { return entry.second.pod_id == id; });
  std::erase_if(planned_, [this](const std::string& each) { return !containers_.contains(each); });
}

void RuntimeMirror::Remove(const ContainerId& id) {
  const std::string key(id.value());
  containers_.erase(key);
  planned_.erase(key);
}

void RuntimeMirror::GuessStopped() {
  std::set<PodSandboxId> live;
  for (const auto& [id, container] : containers_) {
    if (container.state != ContainerState::kExited) live.insert(container.pod_id);
  }
  for (const auto& [id, pod] : pods_) {
    if (!live.contains(pod.id)) stopped_.insert(pod.id);
  }
}

void RuntimeMirror::SetPodResources(const PodSandboxId& id, const LinuxResources& overhead,
                                    const LinuxResources& resources) {
  const auto pod = pods_.find(id.value());
  if (pod == pods_.end()) return;
  pod->second.overhead = overhead;
  pod->second.resources = resources;
}

void RuntimeMirror::Add(RuntimeContainer container) {
  std::string id(container.id.value());
  containers_.insert_or_assign(std::move(id), std::move(container));
}

void RuntimeMirror::AddPlanned(RuntimeContainer container) {
  planned_.emplace(container.id.value());
  Add(std::move(container));
}

RuntimeContainer* RuntimeMirror::Find(const ContainerId& id) {
  const auto container = containers_.find(id.value());
  return container == containers_.end() ? nullptr : &container->second;
}

void RuntimeMirror::SetState(const ContainerId& id, ContainerState state) {
  if (RuntimeContainer* const container = Find(id)) container->state = state;
}

void RuntimeMirror::Apply(const ContainerId& id, const ResourceValues& values) {
  Merge(id, AsResources(values));
}

void RuntimeMirror::Merge(const ContainerId& id, const LinuxResources& resources) {
  RuntimeContainer* const container = Find(id);
  if (container != nullptr)
    container->resources = Merged(std::move(container->resources), resources);
}

RuntimeInventory RuntimeMirror::Inventory() const {
  RuntimeInventory inventory;
  inventory.stopped_pods = stopped_;
  for (const auto& [id, pod] : pods_)
    inventory.pods.push_back(pod);
  for (const auto& [id, container] : containers_)
    if (!planned_.contains(id)) inventory.containers.push_back(container);
  return inventory;
}

}  // namespace resmgr::nri
