// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <absl/container/flat_hash_map.h>
#include <absl/container/inlined_vector.h>

#include "pkg/base/ids.h"
#include "pkg/base/parse.h"
#include "pkg/model/container.h"
#include "pkg/model/snapshot.h"
#include "pkg/resmgr/lifecycle.h"
#include "pkg/resmgr/push_state.h"
#include "pkg/state/saved_container.h"

namespace resmgr {

// The knowledge about one pod.
struct PodRecord {
  Pod pod;
  std::vector<ContainerKey> containers;  // ascending
  // The keys by a hash of the container's name: its attempts, ascending, usually one. Names with
  // equal hashes share an entry.
  using Attempts = absl::InlinedVector<ContainerKey, 2>;
  absl::flat_hash_map<size_t, Attempts> attempts;
  static size_t NameHash(std::string_view name) { return TextHash()(name); }
  // The pod is known only from a container's request: it is forgotten with the last container if
  // the creation fails.
  bool provisional = false;
  // The pod is known only from a list and the saved data of its containers: the runtime reported no
  // more.
  bool unclear = false;
  uint64_t touched = 0;

  // For ContainerStore: whether the sandbox is not ready any more, as the runtime may only have
  // guessed; and the pod's part in the sum of overheads.
  bool stopped = false;
  HeldOverheads counted{};
};

// A kubelet's update of a container that was forwarded and is not answered yet.
struct PendingUpdate {
  uint64_t ticket = 0;
  LinuxResources changes;
  AppliedResources sent;
  // The needs that were decided for the update.
  Requirements needs;
  Placement placement;
};

// The values without the updates under way, which hold until these are answered.
struct ConfirmedRequest {
  LinuxResources requested;
  Requirements needs;
  // The placement decided for these needs, if known.
  std::optional<Placement> placement;
};

// A container whose resources were reduced for a new container of its pod, with its former values.
struct ReducedSibling {
  ContainerKey key{};
  Requirements needs;
  Placement placement;
  // The reduced needs, which it has now.
  Requirements bounded;
};

// The knowledge about one container. Each group of fields is written by its owner only.
struct ContainerRecord {
  explicit ContainerRecord(PodRecord& its_pod) : pod(&its_pod) {}

  PodRecord* pod;
  uint64_t touched = 0;  // ContainerStore: its clock at the last event about this container

  Lifecycle life;  // Lifecycle: changed by Advance alone

  // Creations: a newer attempt is being created and has taken this one's CPUs; this container gets
  // them back if that creation fails.
  bool superseded = false;
  // Starts: a warning was logged that it may run on exclusive CPUs of others.
  bool unpinned_warned = false;
  // Adoption: the runtime reported only that the container exists; the rest comes from the saved
  // data.
  bool unclear = false;
  // Adoption: the container is known only from an earlier daemon's notes, since its runtime has not
  // been listed yet.
  bool kept = false;
  // Adoption: the runtime is about to remove it, and neither starts nor updates it any more.
  bool dead = false;
  // ExitedContainers: number of updates that the runtime refused and that were to free the
  // container after its exit.
  uint8_t free_refusals = 0;
  bool unsaved = false;  // StateWriter: changed since it was saved
  // Brain::NoteTold: the store's clock when the runtime was last sent values of the container.
  uint64_t told_at = 0;

  // Identity: ContainerStore and the creator of the record. State: `life`. Placement: Decider, and
  // Transaction. Requests: Updates, PodLimits.
  Container container;

  // Pusher: set while the pusher follows the container or its creation.
  std::optional<PushState> push;

  // Creations: the attempt that this one replaces, which is `superseded`.
  ContainerKey supersedes{};
  // While it is being created: the reduced siblings, which get their former needs back if the
  // creation fails.
  std::vector<ReducedSibling> bounded;
  // While it is being created: the pod's former class, if the class is derived from containers'
  // requests; the pod gets it back if the creation fails.
  std::optional<QosClass> former_qos{};
  // The placement before the container exited or was superseded; usually none.
  std::unique_ptr<Placement> former;

  // Updates: unanswered updates, and the values without them.
  std::vector<PendingUpdate> updates;
  std::unique_ptr<ConfirmedRequest> confirmed;
  // Updates: an update has failed; numbers of it may be in force that the request does not name.
  bool update_failed = false;

  // ContainerStore: the container's name at its creation; null if it has not changed.
  std::unique_ptr<std::string> created_name;

  // Creations: the client's labels and annotations that a stage changed; usually none.
  std::unique_ptr<AskedTexts> texts;

  // Starts: the time when it began to run, if known (from a list: adoption).
  std::optional<std::chrono::system_clock::time_point> started_at;

  // The only way to change its state.
  void Advance(LifeEvent event) { life.Apply(event, container); }
  std::string_view CreatedName() const {
    return created_name == nullptr ? container.name : *created_name;
  }
  // The former placement; empty without one.
  Placement FormerPlacement() const { return former == nullptr ? Placement() : *former; }
  bool MayRun() const { return !superseded && life.MayRun(); }
  // Whether the policy does not bind the container, so that it may run on any CPUs.
  bool Unpinned() const { return Placeable() && !container.placement.cpus; }
  // Whether the policy decides about the container and its placement counts.
  bool Placeable() const { return !superseded && container.state != ContainerState::kExited; }
};

// "namespace/pod/name" for log lines.
inline std::string LogName(const ContainerRecord& record) {
  return Printable(FullName(record.pod->pod, record.container.name));
}

}  // namespace resmgr
