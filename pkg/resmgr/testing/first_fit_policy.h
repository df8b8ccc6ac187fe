// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/policy/policy.h"
#include "pkg/topology/machine.h"

namespace resmgr::test {

// The smallest policy with all features that the brain must handle: Guaranteed containers with
// whole CPUs get the lowest free ones exclusively, except CPU 0, and all others share the rest.
class FirstFitPolicy : public Policy {
 public:
  explicit FirstFitPolicy(const Machine& machine) : machine_(machine) {}

  // Spoils each plan before it is returned.
  std::function<void(Plan&)> spoil;
  // Names of containers that it leaves on the CPUs that they have.
  std::set<std::string, std::less<>> left_alone;
  // How often it took everything over.
  int reconciled = 0;

  std::string_view name() const override { return "first-fit"; }
  std::unique_ptr<Policy> Clone() const override { return std::make_unique<FirstFitPolicy>(*this); }
  StatusOr<Plan> Reconcile(const Snapshot& snapshot) override;
  StatusOr<Plan> Allocate(const Snapshot& snapshot, const Pod& pod, const Container& container,
                          const Container* predecessor) override;
  StatusOr<Plan> Update(const Snapshot& snapshot, const Pod& pod,
                        const Container& container) override;
  StatusOr<Plan> Release(const Snapshot& snapshot, ContainerKey key) override;
  std::vector<Zone> Zones(const Snapshot&) const override { return {}; }

  const std::map<ContainerKey, CpuSet>& grants() const { return grants_; }

 private:
  CpuSet Free() const;
  // The lowest CPUs, those of `first` before others.
  StatusOr<CpuSet> Choose(const CpuSet& first, int count, std::string_view name) const;
  // Grants CPUs anew in place of `former`, the grant of the container `from`.
  StatusOr<Plan> Regrant(const Snapshot& snapshot, const Pod& pod, const Container& container,
                         ContainerKey from, const CpuSet& former);
  Plan Changes(const Snapshot& snapshot);

  const Machine& machine_;
  std::map<ContainerKey, CpuSet> grants_;
};

inline std::unique_ptr<Policy> FirstFit(const Machine& machine) {
  return std::make_unique<FirstFitPolicy>(machine);
}

}  // namespace resmgr::test
