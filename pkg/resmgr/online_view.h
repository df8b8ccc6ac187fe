// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>

#include "pkg/model/plan.h"
#include "pkg/model/snapshot.h"

namespace resmgr {

// Pods and containers as a policy is to take them over when CPUs went offline: no placement has a
// CPU that cannot be used. One that had CPUs for itself, and lost all of them, has no place at all.
class OnlineView final : public Snapshot {
 public:
  // `usable`: CPUs that containers can run on; `withheld`: those of them that no container may have
  // for itself any more. `all` must outlive this.
  OnlineView(const Snapshot& all, const CpuSet& usable, const CpuSet& withheld);

  const Pod* FindPod(const PodSandboxId& id) const override { return all_.FindPod(id); }
  const Container* FindContainer(ContainerKey key) const override;
  void ForEachContainer(
      const std::function<void(const Pod&, const Container&)>& visit) const override;
  Overhead OverheadOf(const Pod& pod) const override { return all_.OverheadOf(pod); }
  HeldOverheads Overheads() const override { return all_.Overheads(); }

  // Adds to the plan of a policy that saw this view what it took for the placements of containers
  // that it leaves where they are.
  void Complete(Plan& plan) const;

 private:
  const Snapshot& all_;
  std::map<ContainerKey, Container> changed_;  // mostly none
};

}  // namespace resmgr
