// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>

#include "pkg/model/plan.h"
#include "pkg/model/snapshot.h"

namespace resmgr {

// Pods and containers as a policy is to take them over when CPUs went offline: no placement has a
// CPU that cannot be used. A container that lost all of its exclusive CPUs has no place at all.
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

  // Adds the placements of this view to the plan of a policy that saw it, for containers that the
  // plan leaves in place.
  void Complete(Plan& plan) const;

 private:
  const Snapshot& all_;
  std::map<ContainerKey, Container> changed_;  // mostly none
};

}  // namespace resmgr
