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
#include "pkg/nri/host/session/turns.h"
#include "pkg/pipeline/runtime_access.h"
#include "pkg/runtime/typed_view.h"

namespace resmgr::nri {

// A message that plugins see. Edits are counted, which invalidates texts made from a former state.
// The message can be built at its first use: most containers end without one, and a usual one takes
// 66,000 instructions to build, more than twice those of a question about it (callgrind).
template <typename Message>
class SeenMessage {
 public:
  using Make = std::function<Message()>;
  using Change = std::function<void(Message&)>;

  explicit SeenMessage(std::shared_ptr<uint64_t> edits) : edits_(std::move(edits)) {}

  const Message& operator*() const { return Made(); }
  const Message* operator->() const { return &Made(); }
  // The encoded message, cached until the next edit: a question about a container takes 27,300
  // instructions; if its pod had to be encoded anew, it would take 35,800 (callgrind).
  const std::string& Encoded() const {
    if (encoded_.empty()) encoded_ = Made().SerializeAsString();
    return encoded_;
  }
  // Use the reference for one change only: changes through a kept one would not be counted.
  Message& Edit() {
    NoteEdit();
    return Made();
  }
  // Replaces the message and pending changes. `make` and `change` must not access the message in
  // other ways, and are kept until its next use.
  void SetLater(Make make) {
    NoteEdit();
    make_ = std::move(make);
    changes_.clear();
  }
  // Edits without building the message for that, unless very many changes are pending.
  void EditLater(Change change) {
    NoteEdit();
    if (make_ && changes_.size() < kMostChanges) {
      changes_.push_back(std::move(change));
    } else {
      change(Made());
    }
  }

 private:
  static constexpr size_t kMostChanges = 16;

  void NoteEdit() {
    ++*edits_;
    encoded_.clear();
  }
  Message& Made() const {
    if (const Make make = std::exchange(make_, nullptr)) {
      message_ = make();
      for (const Change& change : std::exchange(changes_, {}))
        change(message_);
    }
    return message_;
  }

  std::shared_ptr<uint64_t> edits_;  // counts the edits of all messages of the view
  mutable Message message_;
  mutable Make make_;  // null: the message is built
  mutable std::vector<Change> changes_;
  mutable std::string encoded_;
};

// A pod sandbox with its message for plugins.
struct HostPod {
  explicit HostPod(const std::shared_ptr<uint64_t>& edits) : message(edits) {}

  SeenMessage<api::PodSandbox> message;
  bool ready = true;         // false: the pod is stopped
  bool stop_told = false;    // plugins have got the event of its stop
  bool remove_told = false;  // plugins have got the event of its removal
  Turns turns;               // for all events of the pod and of its containers
};

// A container with its message for plugins. The state in the message decides about the next events:
// UNKNOWN (it is being created), CREATED, RUNNING, STOPPED.
struct HostContainer {
  explicit HostContainer(const std::shared_ptr<uint64_t>& edits) : message(edits) {}

  std::shared_ptr<HostPod> pod;
  std::string alias;                    // the id in the message (AliasOf)
  ContainerId id;                       // runtime's id; empty while the container is being created
  SeenMessage<api::Container> message;  // with the alias as id
  bool told = false;                    // a plugin may have been shown it
  bool stop_told = false;
  bool remove_told = false;
  // Held by calls that start it, until the new start is known.
  std::weak_ptr<const void> starting{};

  // Resources that the runtime is being asked to set: each as long as its owner, the update, keeps
  // it.
  std::vector<std::weak_ptr<const api::LinuxResources>> changing{};

  bool creating() const { return id.empty(); }
  bool HasEnded() const { return message->state() == api::CONTAINER_STOPPED; }
  // When it was started, if it runs and this is known; else 0.
  int64_t RunsSince() const {
    return message->state() == api::CONTAINER_RUNNING ? message->started_at() : 0;
  }
  // Whether the container has ended and was started again since its last known start.
  bool RunsAnew(const ContainerFacts& facts) const {
    return facts.container.state == ContainerState::kRunning && (RunsSince() != 0 || HasEnded()) &&
           facts.started_at > message->started_at();
  }
  std::shared_ptr<const void> BeginStart() {
    std::shared_ptr<const void> held = starting.lock();
    if (held == nullptr) starting = held = std::make_shared<bool>();
    return held;
  }
  void NoteChange(const std::shared_ptr<const api::LinuxResources>& change) {
    std::erase_if(changing, [](const auto& each) { return each.expired(); });
    changing.push_back(change);
  }
  void SetState(api::ContainerState state) {
    message.EditLater([state](api::Container& container) { container.set_state(state); });
  }
};

using HostPodPtr = std::shared_ptr<HostPod>;
using HostContainerPtr = std::shared_ptr<HostContainer>;

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
