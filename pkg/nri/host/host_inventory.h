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

// A message that plugins see. Edits are counted, so that what was made of the message before is not
// used any more. The message can be made at its first use: most containers end without one.
template <typename Message>
class SeenMessage {
 public:
  using Make = std::function<Message()>;
  using Change = std::function<void(Message&)>;

  explicit SeenMessage(std::shared_ptr<uint64_t> edits) : edits_(std::move(edits)) {}

  const Message& operator*() const { return Made(); }
  const Message* operator->() const { return &Made(); }
  // Kept until the next edit.
  const std::string& Encoded() const {
    if (encoded_.empty()) encoded_ = Made().SerializeAsString();
    return encoded_;
  }
  // For one change at once: a reference that is kept would change things unseen.
  Message& Edit() {
    NoteEdit();
    return Made();
  }
  // In place of the message and of changes that are not made yet. `make` and `change` must not look
  // at the message by other ways, and are kept until its next use.
  void SetLater(Make make) {
    NoteEdit();
    make_ = std::move(make);
    changes_.clear();
  }
  // Edit where the message is not made for that, unless very many changes wait for it.
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

  std::shared_ptr<uint64_t> edits_;  // of all messages of the inventory
  mutable Message message_;
  mutable Make make_;  // null: it is made
  mutable std::vector<Change> changes_;
  mutable std::string encoded_;
};

// A pod sandbox as plugins see it.
struct HostPod {
  explicit HostPod(const std::shared_ptr<uint64_t>& edits) : message(edits) {}

  SeenMessage<api::PodSandbox> message;
  bool ready = true;         // not stopped
  bool stop_told = false;    // plugins were told that it stops,
  bool remove_told = false;  // and that it is removed
  Turns turns;               // of all events of the pod and of its containers
};

// A container as plugins see it. What they are told follows from the state in its message:
// UNKNOWN (it is being created), CREATED, RUNNING, STOPPED.
struct HostContainer {
  explicit HostContainer(const std::shared_ptr<uint64_t>& edits) : message(edits) {}

  std::shared_ptr<HostPod> pod;
  std::string alias;                    // id_aliases.h; the id in the message
  ContainerId id;                       // the runtime's; empty while the container is being created
  SeenMessage<api::Container> message;  // under its alias
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

// All pod sandboxes and containers that exist, for plugins. Bounded by what the runtime has and by
// the creations that are under way. Records live on in whatever still tells of them. Loop's thread
// only.
class HostInventory {
 public:
  // The real id of a container, once there is one, is in this annotation of what plugins see.
  static constexpr std::string_view kIdAnnotation = "cri-resource-manager.intel.com/container-id";

  // Takes the place of what is known under the message's id.
  HostPodPtr AddPod(api::PodSandbox message, bool ready);
  // By its id or an unambiguous beginning. nullptr: not known.
  HostPodPtr FindPod(std::string_view id) const;
  void RemovePod(const HostPod& pod);

  // A container that is being created; the message has no id yet, and gets its alias. Where the
  // alias is another container's (`attempt` is created once more) it gets one that is free.
  HostContainerPtr Begin(HostPodPtr pod, api::Container message, uint32_t attempt);
  // The same without its message, which the caller sets.
  HostContainerPtr Begin(HostPodPtr pod, std::string_view name, uint32_t attempt);
  // The runtime has created it. Where it is known already, as by a list, that one goes.
  void SetId(const HostContainerPtr& container, const ContainerId& id);
  // By the runtime's id, an unambiguous beginning of it, or its alias. nullptr: not known.
  HostContainerPtr Find(std::string_view id) const;
  void Remove(const HostContainer& container);
  std::vector<HostContainerPtr> ContainersOf(const HostPod& pod) const;

  std::vector<HostPodPtr> Pods() const;
  std::vector<HostContainerPtr> Containers() const;
  // What a plugin that comes new is told: sandboxes, and containers that have not ended. Marks them
  // as told. The same messages are returned again while a caller still holds them and nothing has
  // changed.
  SharedSyncMessages All(bool real_ids);

 private:
  // Of what All has given last.
  struct Encoded {
    uint64_t edits = 0;
    std::weak_ptr<const SyncMessages> messages;
  };

  SharedSyncMessages Encode(bool real_ids);

  template <typename Record>
  using ById = std::map<std::string, Record, std::less<>>;

  ById<HostPodPtr> pods_;
  ById<HostContainerPtr> by_alias_;  // all
  ById<HostContainerPtr> by_id_;     // those that the runtime has created
  // Of the messages, and of which there are.
  const std::shared_ptr<uint64_t> edits_ = std::make_shared<uint64_t>(0);
  std::array<Encoded, 2> encoded_;  // with aliases, with the runtime's ids
};

// The container as a plugin gets it, that knows containers by the runtime's ids or by aliases.
api::Container ViewOf(const HostContainer& container, bool real_ids);

}  // namespace resmgr::nri
