// SPDX-License-Identifier: Apache-2.0
#include "pkg/simulator/memory_runtime.h"

#include <algorithm>
#include <utility>

namespace resmgr {

void MemoryRuntime::Answer(std::function<void()> answer) {
  ++answers_;
  loop_.Post([this, answer = std::move(answer)] {
    --answers_;
    answer();
  });
}

void MemoryRuntime::UpdateContainer(const ContainerId& id, const ResourceValues& adjustment,
                                    std::function<void(Status)> done) {
  const bool known = Find(id) != nullptr;
  Apply(id, adjustment);
  Answer([done = std::move(done),
          status = known ? OkStatus() : NotFound("no container {}", id.value())] { done(status); });
}

void MemoryRuntime::ListAll(Known /*known*/, std::function<void(StatusOr<RuntimeInventory>)> done) {
  Answer([done = std::move(done), inventory = held_] { done(inventory); });
}

const Pod* MemoryRuntime::FindPod(const PodSandboxId& id) const {
  const auto found = std::ranges::find(held_.pods, id, &Pod::id);
  return found == held_.pods.end() ? nullptr : &*found;
}

RuntimeContainer* MemoryRuntime::Find(const ContainerId& id) {
  const auto found = std::ranges::find(held_.containers, id, &RuntimeContainer::id);
  return found == held_.containers.end() ? nullptr : &*found;
}

void MemoryRuntime::AddPod(Pod pod) {
  RemovePod(pod.id);
  held_.pods.push_back(std::move(pod));
}

void MemoryRuntime::RemovePod(const PodSandboxId& id) {
  std::erase_if(held_.containers, [&id](const auto& held) { return held.pod_id == id; });
  std::erase_if(held_.pods, [&id](const Pod& held) { return held.id == id; });
}

void MemoryRuntime::Add(RuntimeContainer container) {
  Remove(container.id);
  held_.containers.push_back(std::move(container));
}

void MemoryRuntime::Remove(const ContainerId& id) {
  std::erase_if(held_.containers, [&id](const auto& held) { return held.id == id; });
}

void MemoryRuntime::Apply(const ContainerId& id, const LinuxResources& resources) {
  RuntimeContainer* const container = Find(id);
  if (container != nullptr) container->resources = Merged(container->resources, resources);
}

void MemoryRuntime::Apply(const ContainerId& id, const ResourceValues& adjustment) {
  Apply(id, AsResources(adjustment));
}

}  // namespace resmgr
