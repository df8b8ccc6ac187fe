// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pkg/api/nri.pb.h"
#include "pkg/base/ids.h"
#include "pkg/nri/host/session/plugin_port.h"
#include "pkg/nri/host/view/host_objects.h"
#include "pkg/pipeline/runtime_access.h"
#include "pkg/pipeline/stage.h"
#include "pkg/runtime/typed_view.h"

namespace resmgr::nri {

// The runtime's objects as plugins see them, and the containers that are being created. Removed
// records live on with their last user. Loop's thread only.
class HostView final : public TypedView<HostPod, HostContainer> {
 public:
  // Called when the inventory learns of an end of which plugins may not have heard, or that a
  // container that had ended was started again.
  struct Ends {
    std::function<void(const HostPodPtr&)> pod_stopped{};
    std::function<void(const HostPodPtr&)> pod_gone{};
    std::function<void(const HostContainerPtr&)> exited{};   // with the runtime's facts
    std::function<void(const HostContainerPtr&)> stopped{};  // known from an event alone
    std::function<void(const HostContainerPtr&)> gone{};
    std::function<void(const HostContainerPtr&)> started{};  // known from an event alone
    std::function<void(const HostContainerPtr&, const ContainerFacts&)> runs_again{};
  };

  // The annotation in plugins' messages with the real id of a container, once there is one.
  static constexpr std::string_view kIdAnnotation = "cri-resource-manager.intel.com/container-id";

  HostView(Inventory& inventory, Ends ends) : TypedView(inventory), ends_(std::move(ends)) {}

  // Replaces a pod with the message's id.
  HostPodPtr AddPod(api::PodSandbox message, bool ready);
  // From now on plugins do not see the pod.
  void RemovePod(const HostPod& pod);

  // Adds a container that is being created; the message has no id yet, and gets the alias. If
  // another container has that alias (`attempt` is created once more) it gets a free one.
  HostContainerPtr Begin(HostPodPtr pod, api::Container message, uint32_t attempt);
  // The other Begin, but the caller sets the message later.
  HostContainerPtr Begin(HostPodPtr pod, std::string_view name, uint32_t attempt);
  // Sets the runtime's id. A record with that id, for example from a list, is removed.
  void SetId(const HostContainerPtr& container, const ContainerId& id);
  // Finds by the runtime's id, an unambiguous beginning of it, or the alias. nullptr: unknown.
  HostContainerPtr Find(std::string_view id) const;
  void Remove(const HostContainer& container);
  // A change of the container has ended. After an unclear end the runtime is asked for the values
  // in force.
  void EndChange(HostContainer& container, const HostContainer::Change& change, Outcome::Kind end);
  std::vector<HostContainerPtr> ContainersOf(const HostPod& pod) const;

  std::vector<HostContainerPtr> Containers() const;
  // The state for a new plugin: sandboxes, and containers that have not ended, which are marked as
  // told. Returns the same messages again while a caller still holds them and nothing has changed.
  SharedSyncMessages All(bool real_ids);

  void OnFacts(InventoryPod& pod, const SandboxFacts& facts) override;
  void OnFacts(InventoryContainer& container, const ContainerFacts& facts) override;
  void OnValues(InventoryContainer& container, const LinuxResources& values) override;
  void OnStarted(InventoryContainer& container) override;
  void OnStopped(InventoryContainer& container) override;
  void OnGone(InventoryPod& pod) override;
  void OnGone(InventoryContainer& container) override;

 private:
  // The last result of All.
  struct Encoded {
    uint64_t edits = 0;
    std::weak_ptr<const SyncMessages> messages;
  };

  SharedSyncMessages Encode(bool real_ids);
  // Builds the message of a record that was made without a status.
  static void Complete(HostPod& pod, const SandboxFacts& facts);
  static void Complete(HostContainer& container, const ContainerFacts& facts);
  // Adds later values, and asks the runtime.
  void AddUnclear(HostContainer::Unclear& unclear, const api::LinuxResources& values);
  // Takes the values in force for unclear ones.
  void EndUnclear(HostContainer& container, const ContainerFacts& facts);

  void Bind(const HostContainerPtr& container, InventoryContainer& object);

  const Ends ends_;
  std::map<std::string, HostContainerPtr, std::less<>> by_alias_;  // all containers
  // Counts changes of the messages, and of the set of them.
  const std::shared_ptr<uint64_t> edits_ = std::make_shared<uint64_t>(0);
  std::array<Encoded, 2> encoded_;  // with aliases; with the runtime's ids
};

// The message for a plugin that knows containers by the runtime's ids or by aliases.
api::Container ViewOf(const HostContainer& container, bool real_ids);

// The id by which plugins know a container. NRI shows a container before the runtime creates it,
// and behind a relay the runtime's id is unknown until then; plugins store data by the id, so it
// must not change. It is computed from the container's name within its sandbox, which runtimes keep
// unique and list, so a restarted daemon computes the same id without a file. 64 hexadecimal
// digits, as runtimes' ids have.
std::string AliasOf(const PodSandboxId& pod, std::string_view name, uint32_t attempt);

}  // namespace resmgr::nri
