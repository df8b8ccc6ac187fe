// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "pkg/model/snapshot.h"
#include "pkg/policy/policy.h"

namespace resmgr::test {

// Pods of one container each, for driving a policy without the brain. Acts as the brain does for a
// policy: gives keys, hides removed containers, keeps the placements of plans.
class TestSnapshot : public Snapshot {
 public:
  // A container that waits to be placed. Names: namespace "ns", pod and container `name`.
  Container& Add(std::string_view name, QosClass qos, int64_t milli_cpu);
  void Remove(ContainerKey key) { entries_.erase(key); }
  // Writes the plan's placements; containers that it does not know are ignored.
  void Apply(const Plan& plan);

  Container& At(ContainerKey key) { return entries_.at(key).container; }
  Pod& PodOf(ContainerKey key) { return entries_.at(key).pod; }
  size_t size() const { return entries_.size(); }

  const Pod* FindPod(const PodSandboxId& id) const override;
  const Container* FindContainer(ContainerKey key) const override;
  void ForEachContainer(
      const std::function<void(const Pod&, const Container&)>& visit) const override;
  // All pods are ready.
  Overhead OverheadOf(const Pod& pod) const override { return OverheadFrom(pod.overhead); }
  HeldOverheads Overheads() const override;

 private:
  struct Entry {
    Pod pod;
    Container container;
  };
  std::map<ContainerKey, Entry> entries_;
  uint64_t last_key_ = 0;
};

}  // namespace resmgr::test
