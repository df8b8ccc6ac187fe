// SPDX-License-Identifier: Apache-2.0
#include "pkg/schedview/what_if.h"

#include <cstdint>

#include <fmt/format.h>

namespace resmgr {
namespace {

// Keys of containers that exist are counted from 1.
constexpr uint64_t kFirstImaginedKey = uint64_t{1} << 63;
// Guaranteed pods have a memory limit; this one is too small to decide about the place.
constexpr Bytes kImaginedMemory{1 << 20};

}  // namespace

const Container& WhatIf::Add(int cpus) {
  const uint64_t number = made_++;
  Imagined& one = imagined_.emplace_back();
  one.pod.id = PodSandboxId(fmt::format("what-if-{}", number));
  one.pod.uid = PodUid(fmt::format("what-if-{}", number));
  one.pod.name = "what-if";
  one.pod.namespace_name = "default";
  one.pod.qos = QosClass::kGuaranteed;
  one.container.key = ContainerKey{kFirstImaginedKey + number};
  one.container.pod_id = one.pod.id;
  one.container.name = "what-if";
  one.container.requirements = {.cpu_request = {int64_t{cpus} * 1000},
                                .cpu_limit = {int64_t{cpus} * 1000},
                                .memory_request = kImaginedMemory,
                                .memory_limit = kImaginedMemory};
  return one.container;
}

const Pod* WhatIf::FindPod(const PodSandboxId& id) const {
  for (const Imagined& one : imagined_)
    if (one.pod.id == id) return &one.pod;
  return all_.FindPod(id);
}

const Container* WhatIf::FindContainer(ContainerKey key) const {
  for (const Imagined& one : imagined_)
    if (one.container.key == key) return &one.container;
  const Container* const found = all_.FindContainer(key);
  return found == nullptr || found->state == ContainerState::kExited ? nullptr : found;
}

void WhatIf::ForEachContainer(
    const std::function<void(const Pod&, const Container&)>& visit) const {
  all_.ForEachContainer([&visit](const Pod& pod, const Container& container) {
    if (container.state != ContainerState::kExited) visit(pod, container);
  });
  for (const Imagined& one : imagined_)
    visit(one.pod, one.container);
}

}  // namespace resmgr
