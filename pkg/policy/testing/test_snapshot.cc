// SPDX-License-Identifier: Apache-2.0
#include "pkg/policy/testing/test_snapshot.h"

#include <utility>

namespace resmgr::test {

Container& TestSnapshot::Add(std::string_view name, QosClass qos, int64_t milli_cpu) {
  const ContainerKey key{++last_key_};
  Entry entry;
  entry.pod.id = PodSandboxId(fmt::format("pod-{}", last_key_));
  entry.pod.uid = PodUid(fmt::format("uid-{}", last_key_));
  entry.pod.name = name;
  entry.pod.namespace_name = "ns";
  entry.pod.qos = qos;
  entry.container.key = key;
  entry.container.pod_id = entry.pod.id;
  entry.container.name = name;
  entry.container.requirements.cpu_request = MilliCpu{milli_cpu};
  return entries_.emplace(key, std::move(entry)).first->second.container;
}

void TestSnapshot::Apply(const Plan& plan) {
  for (const PlacementChange& change : plan.changes) {
    const auto found = entries_.find(change.key);
    if (found != entries_.end()) found->second.container.placement = change.placement;
  }
  for (const SharedChange& change : plan.shared) {
    for (const ContainerKey key : change.containers) {
      const auto found = entries_.find(key);
      if (found == entries_.end()) continue;
      Placement& placement = found->second.container.placement;
      placement.cpus = change.CpusFor(placement);
    }
  }
}

const Pod* TestSnapshot::FindPod(const PodSandboxId& id) const {
  for (const auto& [key, entry] : entries_) {
    if (entry.pod.id == id) return &entry.pod;
  }
  return nullptr;
}

const Container* TestSnapshot::FindContainer(ContainerKey key) const {
  const auto found = entries_.find(key);
  return found == entries_.end() ? nullptr : &found->second.container;
}

void TestSnapshot::ForEachContainer(
    const std::function<void(const Pod&, const Container&)>& visit) const {
  for (const auto& [key, entry] : entries_)
    visit(entry.pod, entry.container);
}

HeldOverheads TestSnapshot::Overheads() const {
  HeldOverheads held;
  for (const auto& [key, entry] : entries_) {
    const Overhead overhead = OverheadOf(entry.pod);
    held += {.shown = overhead, .promised = overhead.cpu};
  }
  return held;
}

}  // namespace resmgr::test
