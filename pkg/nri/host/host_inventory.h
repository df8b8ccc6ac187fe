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

// A message that plugins see. Each edit counts, so that nobody is given what was made of the
// message before.
template <typename Message>
class SeenMessage {
 public:
  explicit SeenMessage(std::shared_ptr<uint64_t> edits) : edits_(std::move(edits)) {}

  const Message& operator*() const { return message_; }
  const Message* operator->() const { return &message_; }
  // For one change at once: a reference that is kept would change things unseen.
  Message& Edit() {
    ++*edits_;
    return message_;
  }

 private:
  std::shared_ptr<uint64_t> edits_;  // of all messages of the inventory
  Message message_;
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
  ContainerId id;                       // the runtime's; empty while the container is being created
  SeenMessage<api::Container> message;  // under its alias (id_aliases.h)
  bool told = false;                    // a plugin may know it
  bool stop_told = false;
  bool remove_told = false;

  const std::string& alias() const { return message->id(); }
  bool creating() const { return id.empty(); }
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
  // The runtime has created it. Where it is known already, as by a list, that one goes.
  void SetId(const HostContainerPtr& container, const ContainerId& id);
  // By the runtime's id, an unambiguous beginning of it, or its alias. nullptr: not known.
  HostContainerPtr Find(std::string_view id) const;
  void Remove(const HostContainer& container);
  std::vector<HostContainerPtr> ContainersOf(const HostPod& pod) const;

  std::vector<HostPodPtr> Pods() const;
  std::vector<HostContainerPtr> Containers() const;
  // What a plugin that comes new is told: sandboxes, and containers that have not ended. Marks them
  // as told. As long as somebody has these messages and nothing changes, they are given again.
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
