// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include <absl/container/inlined_vector.h>

#include "pkg/model/requirements.h"
#include "pkg/resmgr/adoption.h"
#include "pkg/resmgr/brain.h"

namespace resmgr {

// Keeps the resources of a pod's containers within those of the pod as a whole. Loop's thread only.
class PodLimits {
 public:
  using Members = absl::InlinedVector<PodMember, 4>;

  // It must outlive this.
  explicit PodLimits(Brain& brain) : brain_(brain) {}

  // Whether the pod has resources that bound its containers.
  static bool Bounds(const PodRecord& pod);
  // Sets the needs of a container that is not placed yet, and returns the siblings whose needs
  // change because of it. `falls`: the pod's class falls with the new container, so the siblings'
  // needs are estimated anew.
  Members TakePart(ContainerRecord& record, bool falls) const;
  // The same for a container that exists already: the siblings have these needs from now on. The
  // caller reconciles.
  void CountFound(ContainerRecord& record, bool falls);
  // The siblings that get less because of the container's present needs.
  Members ReducedBy(const ContainerRecord& record) const;
  // Decides about these siblings, and adds the moves to `shifts`; `bounded` and `change` note their
  // former values.
  StatusOr<ContainerKeys> Reduce(const Members& siblings, Transaction& change,
                                 std::vector<Shift>& shifts, std::vector<ReducedSibling>& bounded);
  // Called when that is final: reports the moves, and saves the siblings.
  void NoteReduced(std::span<const Shift> shifts, std::span<const ReducedSibling> bounded);
  // Called when a new container, for which its siblings were reduced, was not created after all.
  // They get their former needs back, as far as the remaining containers allow, at the same place
  // if it is free. Others get what the container had of the pod's resources.
  ContainerKeys Restore(PodRecord& pod, std::span<const ReducedSibling> bounded);

  // The pod's resources changed, or the needs of one of its containers, or one came back or ended.
  // Returns the containers that changed places.
  ContainerKeys Apply(PodRecord& pod);
  // After a list: divides the resources of pods with a container without a saved share, with
  // another request than its pod's shares were saved for, or without a request of its own. Saved
  // requests count as the containers' own only if this is the first list of a connection; later
  // they may be out of date.
  void ApplyToAdopted(const Adoption& adoption, bool first);
  // The same for a pod of which the list shows that containers ended.
  void ApplyToRest(const PodRecord& pod, const Adoption& adoption, bool first);

 private:
  void SetNeeds(const PodMember& member);
  void DivideFound(const PodRecord& pod, const Adoption& adoption, bool first);
  ContainerKeys Divide(PodRecord& pod, std::span<const ReducedSibling> bounded,
                       std::string_view why);
  StatusOr<ContainerKeys> ChangeNeeds(ContainerRecord& record, const Requirements& needs);

  Brain& brain_;
};

}  // namespace resmgr
