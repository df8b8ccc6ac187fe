// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "pkg/model/container.h"
#include "pkg/model/overhead.h"

namespace resmgr {

// All pods and containers that the brain holds, as a policy may look at them during one call.
// Order: by key, so the same history gives the same order.
class Snapshot {
 public:
  virtual ~Snapshot() = default;

  virtual const Pod* FindPod(const PodSandboxId& id) const = 0;
  virtual const Container* FindContainer(ContainerKey key) const = 0;
  virtual void ForEachContainer(
      const std::function<void(const Pod&, const Container&)>& visit) const = 0;

  // The shown overhead of one pod, and the overhead of all pods, those without containers included.
  // O(1).
  virtual Overhead OverheadOf(const Pod& pod) const = 0;
  virtual HeldOverheads Overheads() const = 0;
};

}  // namespace resmgr
