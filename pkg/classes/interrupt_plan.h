// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>

#include "pkg/classes/class_kind.h"
#include "pkg/classes/class_plan.h"

namespace resmgr {

// The interrupts that existed before we set the affinity of new ones, and later ones with an entry
// in the journal.
struct KnownInterrupts {
  bool looked = false;
  std::set<int> numbers{};
  // Those of the last plan, which may have been made for a comparison alone.
  std::set<int> planned{};

  // The values of the last plan have been written.
  void Keep() {
    if (!planned.empty()) looked = true;
    numbers.merge(planned);
    planned.clear();
  }
};

// Adds the affinities of interrupts. One that pools or containers claim runs on the CPUs of these;
// else, where there are pools that are sinks, on theirs; else it keeps away from the CPUs of
// containers and pools that are isolated, and from those of containers that mask it (nri-plugins
// 0.14). One that was plugged in while the affinity of new ones is ours is to get later what it
// would have had without us. irqbalance, if it runs, is told which CPUs and interrupts to leave
// alone. May block.
void PlanInterrupts(const ClassWork& work, KnownInterrupts& known, ClassPlan& plan);

}  // namespace resmgr
