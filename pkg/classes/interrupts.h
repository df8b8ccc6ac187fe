// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

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
  // Whether the glob is for the number, the name or the whole text.
  bool Matches(std::string_view glob) const;

  friend bool operator==(const Interrupt&, const Interrupt&) = default;
};

// Those of /proc/irq, ascending. May block.
std::vector<Interrupt> FindInterrupts(HostFiles& files);

// Whether one of the globs matches it.
bool IsControllable(const Interrupt& interrupt, const std::vector<std::string>& globs);

}  // namespace resmgr
