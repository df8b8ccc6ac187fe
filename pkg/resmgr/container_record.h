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

#include "pkg/base/parse.h"
#include "pkg/base/text_hash.h"
#include "pkg/model/container.h"
#include "pkg/model/snapshot.h"
#include "pkg/resmgr/applied_resources.h"
#include "pkg/resmgr/lifecycle.h"
#include "pkg/resmgr/push_state.h"
#include "pkg/state/saved_container.h"

namespace resmgr {

// One pod, as far as it is known.
struct PodRecord {
  Pod pod;
  std::vector<ContainerKey> containers;  // ascending
  // The same by a hash of the container's name: its attempts, ascending; mostly one, and those of
  // another name among them by an odd chance.
  using Attempts = absl::InlinedVector<ContainerKey, 2>;
  absl::flat_hash_map<size_t, Attempts> attempts;
  static size_t NameHash(std::string_view name) { return TextHash()(name); }
  // Learned from a container's request only: forgotten with the last container of a failed
  // creation.
  bool provisional = false;
  // Known from a list and from what was kept of its containers only: the runtime did not tell more.
  bool unclear = false;
  uint64_t touched = 0;

  // ContainerStore. The sandbox is not ready any more, which is final, and what it adds to the
  // sum of the overheads.
  bool stopped = false;
  HeldOverheads counted{};
};

// A kubelet's update of a container that was forwarded and is not answered yet.
struct PendingUpdate {
  uint64_t ticket = 0;
  LinuxResources changes;
  AppliedResources sent;
  // Decided when it came.
  Requirements needs;
  Placement placement;
};

// The values that hold until the updates under way are answered.
struct ConfirmedRequest {
  LinuxResources requested;
  Requirements needs;
  // Placement decided for these needs, if known.
  std::optional<Placement> placement;
};

// The values of a container before a new one of its pod came, for whose sake it has less.
struct ReducedSibling {
  ContainerKey key{};
  Requirements needs;
  Placement placement;
  // Needs that the sibling has now.
  Requirements bounded;
};

// One container, as far as it is known. Each group of fields is written by its owner only.
struct ContainerRecord {
  explicit ContainerRecord(PodRecord& its_pod) : pod(&its_pod) {}

  PodRecord* pod;
  uint64_t touched = 0;  // ContainerStore: its clock at the last event about this container

  Lifecycle life;  // Lifecycle, by Advance

  // Creations. A newer attempt is being created and has taken its CPUs over;
  // this container gets them back if that fails.
  bool superseded = false;
  // Starts. It was logged that it may run on exclusive CPUs of others.
  bool unpinned_warned = false;
  // Adoption: the runtime reported only that it exists; the rest comes from the disk.
  bool unclear = false;
  // Adoption: an earlier daemon's notes are all that is known of it, since its runtime has not been
  // listed yet.
  bool kept = false;
  // Adoption: the runtime is about to remove it, and neither starts nor updates it any more.
  bool dead = false;
  // ExitedContainers: updates that were to free it after its exit, and that the runtime refused.
  uint8_t free_refusals = 0;
  bool unsaved = false;  // StateWriter: changed since it was saved
  // Brain::NoteTold: the store's clock when the runtime was last told something about it.
  uint64_t told_at = 0;

  // Identity: ContainerStore and what creates the record. State: `life`. Placement: Decider, and
  // Transaction. Requests: Updates, PodLimits.
  Container container;

  // Pusher: where it follows the container, or its creation.
  std::optional<PushState> push;

  // Creations: the attempt that this one takes the place of, which is `superseded`.
  ContainerKey supersedes{};
  // While it is being created: its siblings get these back if that fails.
  std::vector<ReducedSibling> bounded;
  // While it is being created: its pod gets this class back if that fails, where the class is
  // derived from what containers ask for.
  std::optional<QosClass> former_qos{};
  // The placement that it had before it exited or was superseded; mostly none.
  std::unique_ptr<Placement> former;

  // Updates: those that are not answered, and what holds
  // without them; nullptr where there are none.
  std::vector<PendingUpdate> updates;
  std::unique_ptr<ConfirmedRequest> confirmed;
  // Updates: one has failed. Its numbers may be in force where the request names none.
  bool update_failed = false;

  // ContainerStore: the name that it had at its creation; null where it has that name still.
  std::unique_ptr<std::string> created_name;

  // Creations: what a stage changed of its labels and annotations; mostly nothing.
  std::unique_ptr<AskedTexts> texts;

  // Starts. When it began to run, where that is known (from a list: adoption).
  std::optional<std::chrono::system_clock::time_point> started_at;

  // The only way to change its state.
  void Advance(LifeEvent event) { life.Apply(event, container); }
  std::string_view CreatedName() const {
    return created_name == nullptr ? container.name : *created_name;
  }
  // Empty where there is none.
  Placement FormerPlacement() const { return former == nullptr ? Placement() : *former; }
  bool MayRun() const { return !superseded && life.MayRun(); }
  // The policy leaves it on whatever CPUs it runs on.
  bool Unpinned() const { return Placeable() && !container.placement.cpus; }
  // The policy decides about it and its placement counts.
  bool Placeable() const { return !superseded && container.state != ContainerState::kExited; }
};

// "namespace/pod/name" for log lines.
inline std::string LogName(const ContainerRecord& record) {
  return Printable(FullName(record.pod->pod, record.container.name));
}

}  // namespace resmgr
