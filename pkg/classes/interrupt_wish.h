// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/base/string_map.h"

namespace resmgr {

// The interrupts that are to run on a container's own CPUs alone, and those that are to keep away
// from them, as globs (Interrupt::Matches). A value.
struct InterruptWish {
  std::vector<std::string> claim{};
  std::vector<std::string> mask{};
  bool mask_wins = false;  // where both match; otherwise the claim does

  bool any() const { return !claim.empty() || !mask.empty(); }
  std::string ToString() const;  // "claim eth0*, 24; mask *"
  friend bool operator==(const InterruptWish&, const InterruptWish&) = default;
};

// The annotation of topology-aware in nri-plugins 0.14, "irq-affinity" (pkg/kube/annotations.h):
// {claim: [GLOB], mask: [GLOB], mode: mask-first|claim-first}. A mode names the list that is
// applied first, so the other one wins. InvalidArgument names the key. Pure.
Status ReadInterruptWish(const StringMap& annotations, std::string_view container,
                         InterruptWish& wish);

}  // namespace resmgr
