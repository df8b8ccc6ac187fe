// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "pkg/base/ids.h"
#include "pkg/model/resources.h"
#include "pkg/pipeline/runtime_access.h"

namespace resmgr {

// The data that each view keeps with an object, by the view's slot.
using ViewData = std::array<std::shared_ptr<void>, 2>;

// A pod sandbox that the runtime has. A removed one lives on with its last user.
struct InventoryPod {
  const PodSandboxId id;
  uint64_t seen = 0;  // when it was last known to exist, in the inventory's time
  ViewData data{};
};
using InventoryPodPtr = std::shared_ptr<InventoryPod>;

// A container that the runtime has.
struct InventoryContainer {
  const ContainerId id;
  const InventoryPodPtr pod;
  uint64_t seen = 0;
  ViewData data{};
};
using InventoryContainerPtr = std::shared_ptr<InventoryContainer>;

// The data of one user of the inventory about the objects, and how it learns of changes. An object
// without data of this view is one that the view does not know yet, or has given up. The functions
// run on the loop's thread; they may change the view's data, but not the inventory.
class InventoryView {
 public:
  InventoryView() = default;
  virtual ~InventoryView() = default;
  InventoryView(const InventoryView&) = delete;
  InventoryView& operator=(const InventoryView&) = delete;

  // The runtime has reported the object: the view adds or completes its data. A container's pod has
  // been reported to the view before, or was added by it.
  virtual void OnFacts(InventoryPod& pod, const SandboxFacts& facts) = 0;
  virtual void OnFacts(InventoryContainer& container, const ContainerFacts& facts) = 0;
  // The runtime has these values in force, by an update that no client called.
  virtual void OnValues(InventoryContainer& /*container*/, const LinuxResources& /*values*/) {}
  // An event reports that the container has ended; it still exists.
  virtual void OnStopped(InventoryContainer& /*container*/) {}
  // The object does not exist any more. A pod takes its containers with it, without a call for
  // each.
  virtual void OnGone(InventoryPod& /*pod*/) {}
  virtual void OnGone(InventoryContainer& /*container*/) {}

  // Whether the view is attached; without a slot it has no data.
  bool attached() const { return attached_; }
  // The place of its data, while it is attached.
  size_t slot() const { return slot_; }

 private:
  friend class Inventory;
  bool attached_ = false;
  size_t slot_ = 0;
};

}  // namespace resmgr
