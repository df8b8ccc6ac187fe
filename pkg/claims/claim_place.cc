// SPDX-License-Identifier: Apache-2.0
#include "pkg/claims/claim_place.h"

#include <fmt/format.h>

namespace resmgr {

StatusOr<ClaimPlace> PlaceOf(const ClaimPart& part, const Machine& machine) {
  if (part.l3_of) {
    const Cpu* const cpu = machine.FindCpu(*part.l3_of);
    if (cpu == nullptr || !cpu->online || cpu->l3 < 0)
      return InvalidArgument("there is no L3 cache of CPU {}", *part.l3_of);
    return ClaimPlace{.cpus = machine.l3_groups()[static_cast<size_t>(cpu->l3)],
                      .name = fmt::format("the L3 cache of CPU {}", *part.l3_of)};
  }
  if (part.node) {
    const NumaNode* const node = machine.FindNode(*part.node);
    if (node == nullptr) return InvalidArgument("there is no NUMA node {}", *part.node);
    return ClaimPlace{.cpus = node->cpus, .name = fmt::format("NUMA node {}", *part.node)};
  }
  return ClaimPlace{.cpus = machine.allowed(), .name = ""};
}

}  // namespace resmgr
