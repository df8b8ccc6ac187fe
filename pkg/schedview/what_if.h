// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <functional>

#include "pkg/model/snapshot.h"

namespace resmgr {

// The containers that a policy may look at, and with them containers that do not exist: a copy of
// the policy is asked for their places. Those that exist keep the placements that they have. Loop's
// thread only; `all` must outlive this and stay as it is.
class WhatIf final : public Snapshot {
 public:
  explicit WhatIf(const Snapshot& all) : all_(all) {}

  // A container with so many whole CPUs, in a Guaranteed pod of its own without annotations in the
  // namespace `default`. The result stays valid as long as this object.
  const Container& Add(int cpus);
  // Removes the last one.
  void RemoveLast() { imagined_.pop_back(); }
  ContainerKey LastKey() const { return imagined_.back().container.key; }
  const Pod& PodOfLast() const { return imagined_.back().pod; }
  // Notes where the last one has its place.
  void Place(const Placement& placement) { imagined_.back().container.placement = placement; }

  const Pod* FindPod(const PodSandboxId& id) const override;
  const Container* FindContainer(ContainerKey key) const override;
  void ForEachContainer(
      const std::function<void(const Pod&, const Container&)>& visit) const override;
  Overhead OverheadOf(const Pod& pod) const override { return all_.OverheadOf(pod); }
  HeldOverheads Overheads() const override { return all_.Overheads(); }

 private:
  struct Imagined {
    Pod pod;
    Container container;
  };

  const Snapshot& all_;
  std::deque<Imagined> imagined_;  // ascending by key
  uint64_t made_ = 0;              // never the same pod twice
};

// No container at all, as on a node that has just joined.
class EmptySnapshot final : public Snapshot {
 public:
  const Pod* FindPod(const PodSandboxId& /*id*/) const override { return nullptr; }
  const Container* FindContainer(ContainerKey /*key*/) const override { return nullptr; }
  void ForEachContainer(
      const std::function<void(const Pod&, const Container&)>& /*visit*/) const override {}
  Overhead OverheadOf(const Pod& /*pod*/) const override { return {}; }
  HeldOverheads Overheads() const override { return {}; }
};

}  // namespace resmgr
