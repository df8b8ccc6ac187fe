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
#include "pkg/nri/host/sync_messages.h"
#include "pkg/nri/host/turns.h"

namespace resmgr::nri {

// A message that plugins see. Edits are counted, which invalidates texts made from a former state.
// The message can be built at its first use: most containers end without one.
template <typename Message>
class SeenMessage {
 public:
  using Make = std::function<Message()>;
  using Change = std::function<void(Message&)>;

  explicit SeenMessage(std::shared_ptr<uint64_t> edits) : edits_(std::move(edits)) {}

  const Message& operator*() const { return Made(); }
  const Message* operator->() const { return &Made(); }
  // The encoded message, cached until the next edit.
  const std::string& Encoded() const {
    if (encoded_.empty()) encoded_ = Made().SerializeAsString();
    return encoded_;
  }
  // For one change at once: changes through a kept reference would not be counted.
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

  std::shared_ptr<uint64_t> edits_;  // counts the edits of all messages of the inventory
  mutable Message message_;
  mutable Make make_;  // null: the message is built
  mutable std::vector<Change> changes_;
  mutable std::string encoded_;
};

// A pod sandbox with its message for plugins.
struct HostPod {
  explicit HostPod(const std::shared_ptr<uint64_t>& edits) : message(edits) {}

  SeenMessage<api::PodSandbox> message;
  bool ready = true;         // false: stopped
  bool stop_told = false;    // plugins were told that it stops
  bool remove_told = false;  // plugins were told that it is removed
  Turns turns;               // for all events of the pod and of its containers
};

// A container with its message for plugins. The state in the message decides about the next events:
// UNKNOWN (it is being created), CREATED, RUNNING, STOPPED.
struct HostContainer {
  explicit HostContainer(const std::shared_ptr<uint64_t>& edits) : message(edits) {}

  std::shared_ptr<HostPod> pod;
  std::string alias;                    // the id in the message (id_aliases.h)
  ContainerId id;                       // runtime's id; empty while the container is being created
  SeenMessage<api::Container> message;  // with the alias as id
  bool told = false;                    // a plugin may know it
  bool stop_told = false;
  bool remove_told = false;

  bool creating() const { return id.empty(); }
  void SetState(api::ContainerState state) {
    message.EditLater([state](api::Container& container) { container.set_state(state); });
  }
};

using HostPodPtr = std::shared_ptr<HostPod>;
using HostContainerPtr = std::shared_ptr<HostContainer>;

// All existing pod sandboxes and containers, for plugins. Bounded by the runtime's number of them
// and by the creations under way. Removed records live on with their last user. Loop's thread only.
class HostInventory {
 public:
  // The annotation in plugins' messages with the real id of a container, once there is one.
  static constexpr std::string_view kIdAnnotation = "cri-resource-manager.intel.com/container-id";

  // Replaces a pod with the message's id.
  HostPodPtr AddPod(api::PodSandbox message, bool ready);
  // Finds by the pod's id or an unambiguous beginning. nullptr: unknown.
  HostPodPtr FindPod(std::string_view id) const;
  void RemovePod(const HostPod& pod);

  // Adds a container that is being created; the message has no id yet, and gets the alias. If
  // another container has that alias (`attempt` is created once more) it gets a free one.
  HostContainerPtr Begin(HostPodPtr pod, api::Container message, uint32_t attempt);
  // The same without a message, which the caller sets.
  HostContainerPtr Begin(HostPodPtr pod, std::string_view name, uint32_t attempt);
  // Sets the runtime's id. A record with that id, for example from a list, is removed.
  void SetId(const HostContainerPtr& container, const ContainerId& id);
  // Finds by the runtime's id, an unambiguous beginning of it, or the alias. nullptr: unknown.
  HostContainerPtr Find(std::string_view id) const;
  void Remove(const HostContainer& container);
  std::vector<HostContainerPtr> ContainersOf(const HostPod& pod) const;

  std::vector<HostPodPtr> Pods() const;
  std::vector<HostContainerPtr> Containers() const;
  // The state for a new plugin: sandboxes, and containers that have not ended, which are marked as
  // told. Returns the same messages again while a caller still holds them and nothing has changed.
  SharedSyncMessages All(bool real_ids);

 private:
  // The last result of All.
  struct Encoded {
    uint64_t edits = 0;
    std::weak_ptr<const SyncMessages> messages;
  };

  SharedSyncMessages Encode(bool real_ids);

  template <typename Record>
  using ById = std::map<std::string, Record, std::less<>>;

  ById<HostPodPtr> pods_;
  ById<HostContainerPtr> by_alias_;  // all containers
  ById<HostContainerPtr> by_id_;     // containers that the runtime has created
  // Counts changes of the messages, and of the set of them.
  const std::shared_ptr<uint64_t> edits_ = std::make_shared<uint64_t>(0);
  std::array<Encoded, 2> encoded_;  // with aliases; with the runtime's ids
};

// The message for a plugin that knows containers by the runtime's ids or by aliases.
api::Container ViewOf(const HostContainer& container, bool real_ids);

}  // namespace resmgr::nri
