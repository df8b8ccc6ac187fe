// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "pkg/model/adjustment.h"
#include "pkg/model/request.h"
#include "pkg/resmgr/admission.h"
#include "pkg/resmgr/brain.h"
#include "pkg/resmgr/endings.h"
#include "pkg/resmgr/pod_limits.h"
#include "pkg/resmgr/set_later.h"

namespace resmgr {

// Containers that are created, and those that have exited and are started again: both are placed as
// new ones. Owns ContainerRecord::superseded, supersedes, bounded and former_qos. Loop's thread
// only.
class Creations {
 public:
  // All must outlive it.
  Creations(Brain& brain, PodLimits& pod_limits, Endings& endings, SetLater& set_later)
      : brain_(brain), pod_limits_(pod_limits), endings_(endings), set_later_(set_later) {}

  // Places the container of a known sandbox, or of the one that the request describes; the policy's
  // refusal names container, need and shortage, and changes nothing. With an empty adjustment:
  //   - a request without Linux resources, since adding some would change more than the cpuset
  //     (containerd and CRI-O then set oom_score_adj): the container gets its CPUs by an update
  //     after its creation, for which its start waits;
  //   - an unknown sandbox that the request does not describe either: the container is not kept; if
  //     the runtime creates it, everything is listed again and the container is adopted.
  // A former attempt of the container in the same sandbox is dead: its CPUs pass on, and come back
  // to it if this creation fails and no other has them by then. A tentative refusal leaves the
  // request as it was, except for its pod. `claims`: uids of claims that it carries, on whose CPUs
  // it is placed; NotFound where one is not held, AlreadyExists where another container has one.
  StatusOr<Admission> Admit(CreateRequest&& request, RefusalKind refusal,
                            std::vector<std::string> claims);
  // `sent`: what all stages, the brain's among them, changed in the request. Values that other
  // stages set never count as the client's request.
  void Succeeded(ContainerKey key, ContainerId id, const Adjustment& sent);
  // `refusal`: set if another part of the daemon has refused the creation that was admitted here.
  void Failed(ContainerKey key, const Status& refusal);
  // The creation was not answered, so the container may exist: the runtime is soon listed.
  void Unclear(ContainerKey key);
  // A list shows containers whose creations were not answered: their pods' classes and resources,
  // which do not count them, are as after the creations. The caller reconciles.
  void Found(const std::vector<ContainerKey>& found);

  // Places a container that has exited and is to be started again; an update sends the new place to
  // the runtime, and the start waits for it. A refusal changes nothing; a tentative refusal for
  // lack of CPUs is not reported.
  Status Revive(ContainerRecord& record, RefusalKind refusal);
  // Takes the place back because the revived container was not started.
  void EndRevived(ContainerRecord& record) { endings_.End(&record, "it was not started again"); }

 private:
  PodRecord* PodOf(CreateRequest& request);
  bool DeriveQos(ContainerRecord& record) const;
  static void RestoreQos(ContainerRecord& record);
  // The pod's present class is final, so it is saved.
  void KeepQos(ContainerRecord& record);
  StatusOr<ContainerKeys> PlaceInPod(ContainerRecord& record, bool falls);
  StatusOr<ContainerKeys> Place(ContainerRecord& record);
  ContainerRecord* FindPredecessor(const ContainerRecord& record);
  void End(ContainerRecord& record, const Status& refusal);
  void Discard(ContainerRecord& record);

  Brain& brain_;
  PodLimits& pod_limits_;
  Endings& endings_;
  SetLater& set_later_;
};

}  // namespace resmgr
