// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "pkg/base/units.h"
#include "pkg/model/container.h"
#include "pkg/model/resources.h"

namespace resmgr {

// The costs of pods besides their containers: the `overhead` of their RuntimeClasses.
struct Overhead {
  MilliCpu cpu{};
  Bytes memory{};

  bool empty() const { return *this == Overhead(); }
  Overhead& operator+=(const Overhead& other);
  Overhead& operator-=(const Overhead& other);

  friend bool operator==(const Overhead&, const Overhead&) = default;
};

// The overhead that a kubelet states for a pod sandbox, by CPU shares, quota and period for the
// same amount. Kubelets round small quotas up, so if the shares stand for less, they count. Amounts
// that no machine has are reduced, so that sums do not overflow.
Overhead OverheadFrom(const LinuxResources& stated);

// The sums over all pod sandboxes of a node.
struct HeldOverheads {
  Overhead shown{};     // of all sandboxes until they are removed, with configured overheads
  MilliCpu promised{};  // of ready sandboxes, as the kubelet states it; the scheduler counts these

  HeldOverheads& operator+=(const HeldOverheads& other);
  HeldOverheads& operator-=(const HeldOverheads& other);

  friend bool operator==(const HeldOverheads&, const HeldOverheads&) = default;
};

// All pods and containers of the resource manager, as a policy may look at them during one call.
// They are ordered by key, so the same history gives the same order.
class Snapshot {
 public:
  virtual ~Snapshot() = default;

  virtual const Pod* FindPod(const PodSandboxId& id) const = 0;
  virtual const Container* FindContainer(ContainerKey key) const = 0;
  virtual void ForEachContainer(
      const std::function<void(const Pod&, const Container&)>& visit) const = 0;

  // The shown overhead of one pod, and the overheads of all pods, also those without containers.
  // O(1).
  virtual Overhead OverheadOf(const Pod& pod) const = 0;
  virtual HeldOverheads Overheads() const = 0;
};

}  // namespace resmgr
