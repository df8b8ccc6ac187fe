// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/model/container.h"
#include "pkg/model/plan.h"
#include "pkg/model/pod.h"
#include "pkg/model/snapshot.h"
#include "pkg/policy/policy.h"

namespace resmgr {

class HeldClaims;

// The part of a placement that tells where a container runs.
struct Place {
  std::optional<CpuSet> cpus{};   // nullopt: those of its request
  std::optional<NodeSet> mems{};  // nullopt: those of its request
  CpuSet exclusive{};             // the part of `cpus` that no other container may use

  static Place Of(const Placement& placement) {
    return {placement.cpus, placement.mems, placement.exclusive};
  }
  friend bool operator==(const Place&, const Place&) = default;
};

// A move of containers by one decision: containers that share CPUs and move alike are one shift,
// and each container with exclusive CPUs is one by itself.
struct Shift {
  ContainerKey first{};  // one of them
  size_t containers = 1;
  Place from{};
  Place to{};
};

// Acts of the resource manager. Log lines about them, metrics and the history come from here.
// Called on the loop's thread within the act: an observer must not block, must not call the
// resource manager, and must not keep references.
class Observer {
 public:
  virtual ~Observer() = default;

  struct Act {
    const Policy& policy;      // the policy that decided
    const Snapshot& snapshot;  // has the containers of `others`
    const Pod& pod;
    const Container& container;          // the container after the act
    std::string_view why{};              // "its creation failed"; may be empty
    Place from{};                        // where it was before; empty for a new one
    std::span<const Shift> others = {};  // containers that move for its sake
  };

  // A container was given a place: a new one, or one that had exited and is started again (then it
  // has an id).
  virtual void OnPlaced(const Act& /*act*/) {}
  // A creation, or an update that the kubelet asked for, was refused; nothing changed.
  virtual void OnRefused(const Act& /*act*/, const Status& /*why*/) {}
  // A hook server, a plugin or another stage refused the creation of a container, which has given
  // its place back.
  virtual void OnRefusedByStage(const Act& /*act*/, const Status& /*why*/) {}
  // An update that the kubelet asked for was decided. The place may be the same as before.
  virtual void OnUpdated(const Act& /*act*/) {}
  // A container moves, or several that share CPUs, without a request of the kubelet. The act is
  // that of the first one.
  virtual void OnMoved(const Act& /*act*/, const Shift& /*shift*/) {}
  // A container gave back the place that it had.
  virtual void OnReleased(const Act& /*act*/) {}
  // A list shows containers that are new here: at the start of the daemon, or made by others.
  // `acts` is never empty, here and in OnFoundEnded, and `others` of these acts are reported as
  // moves.
  virtual void OnAdopted(std::span<const Act> /*acts*/) {}
  // A list shows that containers have ended or are gone, which no call or event had reported
  // before.
  virtual void OnFoundEnded(std::span<const Act> /*acts*/) {}
  // A start waits until other containers have left its CPUs; it was refused after a timeout because
  // they had not; or the failure policy let it through.
  virtual void OnStartWaiting(const Act& /*act*/) {}
  virtual void OnStartRefused(const Act& /*act*/, const Status& /*why*/) {}
  virtual void OnStartForced(const Act& /*act*/, std::string_view /*reason*/) {}
  // The runtime carried out an update of the resource manager's own; or it did not, although the
  // container still exists.
  virtual void OnPushed(const Act& /*act*/) {}
  virtual void OnFailed(const Act& /*act*/, const Status& /*why*/) {}
  // A container whose update had failed now has its decided values.
  virtual void OnRecovered(const Act& /*act*/) {}
  // The runtime refused an update, so the CPUs and memory nodes of the container were written into
  // its cgroup; `why` says so. Called again after each further refusal.
  virtual void OnWritten(const Act& /*act*/, const Status& /*why*/) {}
  // Counts the brain's own updates of containers that had ended or were removed meanwhile.
  virtual void OnMoot(size_t /*updates*/) {}
  // The runtime is known to enforce `place` now, by its answer to a creation or an update, or by a
  // list. `place` may differ from the container's placement, which is the decision. Not called
  // while the place in force is unknown (an update without an answer); may be called again with the
  // same place.
  virtual void OnInForce(const Act& /*act*/, const Place& /*place*/) {}
  // The container's name differs from `created`, its name at its creation. Called whenever it gets
  // a new name, and when a list shows this to a new daemon.
  virtual void OnRenamed(const Act& /*act*/, std::string_view /*created_name*/) {}
  // The runtime does not have the container any more; the brain forgets it after this call.
  virtual void OnRemoved(const Act& /*act*/) {}
  // The runtime has been listed completely: `all` has each of its containers, also exited ones, and
  // those whose creation is under way.
  virtual void OnListed(const Snapshot& /*all*/) {}
  // Claims took CPUs or gave some back. The containers that moved for it are reported as moves.
  virtual void OnClaims(const HeldClaims& /*held*/) {}
};

// Collects the changes of a decision to containers that were placed before, for observers. If only
// the shared part of a container's CPUs changes, only that part is noted, so that all containers
// with the same shared CPUs are one shift.
class Shifts {
 public:
  void Clear() { shifts_.clear(); }
  void Note(ContainerKey key, const Placement& before, const Placement& after);
  // Notes that the container gets the CPUs of `change`.
  void NoteShared(ContainerKey key, const Placement& before, const SharedChange& change);
  std::span<const Shift> all() const { return shifts_; }

 private:
  // Adds a container to the shift with these places, or makes a new shift.
  void Add(ContainerKey key, const Place& from, const Place& to);

  std::vector<Shift> shifts_;
};

}  // namespace resmgr
