// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pkg/classes/class_kind.h"
#include "pkg/classes/class_plan.h"
#include "pkg/classes/host_files.h"

namespace resmgr {

// An interrupt that has an affinity.
struct Interrupt {
  int number = 0;
  // The text behind the counters in /proc/interrupts: "PCI-MSIX-0000:00:03.0 1-edge
  // virtio2-input.0"; empty if it is not in use.
  std::string text{};

  // The last word of the text: the name of the device or the queue.
  std::string_view name() const;
  std::string ToString() const;  // "24 (virtio2-input.0)"
  // Whether the glob matches the number, the name or the whole text.
  bool Matches(std::string_view glob) const;

  friend bool operator==(const Interrupt&, const Interrupt&) = default;
};

// The interrupts in /proc/irq, ascending. May block.
std::vector<Interrupt> FindInterrupts(HostFiles& files);

// Whether one of the globs matches the interrupt.
bool IsControllable(const Interrupt& interrupt, const std::vector<std::string>& globs);

// The interrupts of the last plan that was written. Another one has come since then, also under a
// number that an earlier interrupt had.
struct KnownInterrupts {
  bool looked = false;
  std::set<int> numbers{};
  // The interrupts of the last plan, which may have served only a comparison.
  std::set<int> planned{};

  // Called when the values of the last plan have been written.
  void Keep() {
    if (planned.empty()) return;
    looked = true;
    numbers = std::exchange(planned, {});
  }
};

// Adds the affinities of interrupts. A claimed interrupt runs on the CPUs of the pools or
// containers that claim it. Any other runs on the CPUs of the pools that are sinks; without sinks,
// it keeps away from isolated CPUs and from the CPUs of containers that mask it (nri-plugins 0.14).
// If an interrupt was plugged in while this daemon set the affinity of new ones, it is restored to
// the affinity that it would have begun with. If irqbalance runs, it gets the CPUs and interrupts
// to leave alone. May block.
void PlanInterrupts(const ClassWork& work, KnownInterrupts& known, ClassPlan& plan);

}  // namespace resmgr
