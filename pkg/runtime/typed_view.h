// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string_view>
#include <utility>

#include "pkg/base/ids.h"
#include "pkg/base/status.h"
#include "pkg/runtime/inventory.h"
#include "pkg/sys/lifetime.h"

namespace resmgr {

// A view whose data about pods and containers has these types.
template <typename PodData, typename ContainerData>
class TypedView : public InventoryView {
 public:
  using PodPtr = std::shared_ptr<PodData>;
  using ContainerPtr = std::shared_ptr<ContainerData>;

  // `inventory` outlives the view.
  explicit TypedView(Inventory& inventory) : inventory_(inventory) {}
  ~TypedView() override { Detach(); }

  // The view has data from Attach to Detach only.
  void Attach() { inventory_.Attach(*this); }
  void Detach() { inventory_.Detach(*this); }
  Inventory& inventory() const { return inventory_; }

  // nullptr: the view has no data about it.
  PodPtr Of(const InventoryPod& pod) const {
    return attached() ? std::static_pointer_cast<PodData>(pod.data.at(slot())) : nullptr;
  }
  ContainerPtr Of(const InventoryContainer& container) const {
    return attached() ? std::static_pointer_cast<ContainerData>(container.data.at(slot()))
                      : nullptr;
  }
  // As Inventory's functions, but return the view's data.
  PodPtr FindPod(std::string_view id) const {
    const InventoryPodPtr pod = inventory_.FindPod(id);
    return pod == nullptr ? nullptr : Of(*pod);
  }
  ContainerPtr FindContainer(std::string_view id) const {
    const InventoryContainerPtr container = inventory_.FindContainer(id);
    return container == nullptr ? nullptr : Of(*container);
  }
  // Calls `visit` with the data about each object.
  void ForEachPod(const std::function<void(const PodPtr&)>& visit) const {
    for (const auto& [id, pod] : inventory_.pods())
      if (PodPtr data = Of(*pod)) visit(data);
  }
  void ForEachContainer(const std::function<void(const ContainerPtr&)>& visit) const {
    for (const auto& [id, container] : inventory_.containers())
      if (ContainerPtr data = Of(*container)) visit(data);
  }
  // As Inventory's functions; `done` does not run after the end of this view either.
  void AfterRefresh(std::function<void(const Status&)> done) const {
    inventory_.AfterRefresh(lifetime_.Guard(std::move(done)));
  }
  void WhenReady(std::function<void()> done) const {
    inventory_.WhenReady(lifetime_.Guard(std::move(done)));
  }
  void LookUp(const PodSandboxId& id, std::function<void(StatusOr<PodPtr>)> done) const {
    inventory_.LookUp(slot(), id, Unpack<InventoryPod>(std::move(done)));
  }
  void LookUp(const ContainerId& id, std::function<void(StatusOr<ContainerPtr>)> done) const {
    inventory_.LookUp(slot(), id, Unpack<InventoryContainer>(std::move(done)));
  }

 protected:
  // Does nothing after Detach: answers to calls may arrive later.
  void Set(InventoryPod& pod, PodPtr data) const {
    if (attached()) pod.data.at(slot()) = std::move(data);
  }
  void Set(InventoryContainer& container, ContainerPtr data) const {
    if (attached()) container.data.at(slot()) = std::move(data);
  }

 private:
  template <typename Object, typename DataPtr>
  Inventory::Found<Object> Unpack(std::function<void(StatusOr<DataPtr>)> done) const {
    return lifetime_.Guard(
        [this, done = std::move(done)](const StatusOr<std::shared_ptr<Object>>& found) {
          if (!found.ok()) return done(found.status());
          DataPtr data = Of(**found);
          if (data == nullptr) return done(NotFound("{} has ended", (*found)->id.value()));
          done(std::move(data));
        });
  }

  Inventory& inventory_;
  Lifetime lifetime_;
};

}  // namespace resmgr
