// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string_view>
#include <vector>

#include "pkg/policy/policy.h"
#include "pkg/policy/registry.h"

namespace resmgr {

// Each container runs on the unreserved CPUs of one NUMA node: of the one whose containers request
// the least CPU. Nothing is exclusive, and nothing is refused.
class NumaSpreadPolicy : public Policy {
 public:
  // InvalidArgument when the section is wrong or the CPUs leave no node to place on.
  static StatusOr<std::unique_ptr<Policy>> Create(const PolicyContext& context);

  std::string_view name() const override { return "numa-spread"; }
  std::unique_ptr<Policy> Clone() const override;
  StatusOr<Plan> Reconcile(const Snapshot& snapshot) override;
  StatusOr<Plan> Allocate(const Snapshot& snapshot, const Pod& pod, const Container& container,
                          const Container* predecessor) override;
  StatusOr<Plan> Update(const Snapshot& snapshot, const Pod& pod,
                        const Container& container) override;
  StatusOr<Plan> Release(const Snapshot& snapshot, ContainerKey key) override;
  std::vector<Zone> Zones(const Snapshot& snapshot) const override;

 private:
  struct Member {
    size_t zone = 0;  // index into zones_
    MilliCpu request{};
  };

  NumaSpreadPolicy(std::vector<Zone> zones, bool pin_memory);

  // The zone that the placement names; nullptr when it names none.
  const Zone* Former(const Placement& placement) const;
  const Zone& LeastRequested() const;
  Placement Join(const Container& container, const Zone& zone, std::string_view reason);
  void Leave(ContainerKey key);

  const bool pin_memory_;
  std::vector<Zone> zones_;  // one for each NUMA node that has CPUs
  std::map<ContainerKey, Member> members_;
};

PolicyFactory NumaSpreadPolicyFactory();

}  // namespace resmgr
