// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "policies/balloons/balloons_policy.h"
#include "test/integration/brain/policy_node.h"

namespace resmgr::test {

inline bool Apart(const CpuSet& a, const CpuSet& b) {
  return !a.Intersects(b);
}

// The properties of a test's container beside its name.
struct BalloonPod {
  std::string_view namespace_name = "ns";
  int64_t request = 0;
  std::string_view type{};  // by annotation
  int64_t limit = 0;
};

// A node under the balloons policy, for tests.
class BalloonsNode : public PolicyNode {
 public:
  explicit BalloonsNode(std::string_view section, Machine machine = N4C16(),
                        std::string_view reserved = "")
      : PolicyNode(BalloonsPolicyFactory(), std::move(machine), reserved, section) {}

  // A container in a pod of its own, which is not placed yet.
  ContainerKey Add(std::string_view name, const BalloonPod& pod) {
    const QosClass qos = pod.request == 0 ? QosClass::kBestEffort : QosClass::kBurstable;
    Container& container = snapshot().Add(name, qos, pod.request);
    container.requirements.cpu_limit = MilliCpu{pod.limit};
    Pod& its = snapshot().PodOf(container.key);
    its.namespace_name = std::string(pod.namespace_name);
    if (!pod.type.empty()) Annotate(container.key, "balloon.balloons", pod.type);
    return container.key;
  }
  void Annotate(ContainerKey key, std::string_view annotation, std::string_view value) {
    snapshot().PodOf(key).annotations.Set(std::string(annotation) + ".resource-policy.nri.io",
                                          std::string(value));
  }
  StatusOr<ContainerKey> Run(std::string_view name, const BalloonPod& pod) {
    return Place(Add(name, pod));
  }
  // The container's CPUs, or the refusal.
  std::string CpusAt(std::string_view name, const BalloonPod& pod) {
    const StatusOr<ContainerKey> key = Run(name, pod);
    return key.ok() ? CpusOf(*key) : std::string(Message(key.status()));
  }
  CpuSet SetOf(ContainerKey key) { return PlacementOf(key).cpus.value_or(CpuSet()); }
  std::string PoolOf(ContainerKey key) { return PlacementOf(key).pool; }
  // "" if there is no such balloon.
  std::string CpusOfBalloon(std::string_view name) {
    for (const Zone& zone : policy().Zones(snapshot())) {
      if (zone.name == name) return zone.cpus.ToString();
    }
    return "none";
  }
};

}  // namespace resmgr::test
