// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "pkg/api/nri.pb.h"
#include "pkg/base/ids.h"
#include "pkg/nri/host/session/turns.h"
#include "pkg/pipeline/runtime_access.h"

namespace resmgr::nri {

namespace api = ::nri::pkg::api::v1alpha1;

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
  bool incomplete = false;   // the runtime has not answered for its status yet
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
  bool incomplete = false;  // as HostPod's
  // Held by calls that start it, until the new start is known.
  std::weak_ptr<const void> starting{};

  // Resources that the runtime is being asked to set: each until HostView::EndChange, or as long as
  // its owner, the update, keeps it.
  using Change = std::shared_ptr<const api::LinuxResources>;
  std::vector<Change::weak_type> changing{};
  // After an update with an unclear outcome, until the runtime reports what is in force.
  struct Unclear {
    api::LinuxResources values;  // of that update and later ones
    uint64_t since = 0;          // the end of the last of them, in the inventory's time
  };
  std::unique_ptr<Unclear> unclear{};

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
  void NoteChange(const Change& change) {
    std::erase_if(changing, [](const auto& each) { return each.expired(); });
    changing.push_back(change);
  }
  bool IsBeingChanged() const {
    return std::ranges::any_of(changing, [](const auto& each) { return !each.expired(); });
  }
  void SetState(api::ContainerState state) {
    message.EditLater([state](api::Container& container) { container.set_state(state); });
  }
};

using HostPodPtr = std::shared_ptr<HostPod>;
using HostContainerPtr = std::shared_ptr<HostContainer>;

}  // namespace resmgr::nri
