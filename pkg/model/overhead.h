// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "pkg/base/units.h"
#include "pkg/model/resources.h"

namespace resmgr {

// Costs of pods beside their containers: the `overhead` of their RuntimeClasses.
struct Overhead {
  MilliCpu cpu{};
  Bytes memory{};

  bool empty() const { return *this == Overhead(); }
  Overhead& operator+=(const Overhead& other);
  Overhead& operator-=(const Overhead& other);

  friend bool operator==(const Overhead&, const Overhead&) = default;
};

// As a kubelet states it of a pod sandbox, with CPU shares, quota and period that all say the same.
// Kubelets round small quotas up, so these count only as far as the shares do not tell less.
// Amounts that no machine has are cut, so that sums stay numbers.
Overhead OverheadFrom(const LinuxResources& stated);

// The sums over all pod sandboxes of a node.
struct HeldOverheads {
  Overhead shown{};     // of all sandboxes until their removal, configured overheads included
  MilliCpu promised{};  // of ready sandboxes by their kubelet; the scheduler counts these

  HeldOverheads& operator+=(const HeldOverheads& other);
  HeldOverheads& operator-=(const HeldOverheads& other);

  friend bool operator==(const HeldOverheads&, const HeldOverheads&) = default;
};

}  // namespace resmgr
