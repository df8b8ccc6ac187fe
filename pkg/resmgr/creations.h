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

  // See ResourceManager: AdmitCreate, CreateSucceeded, CreateFailed, CreateUnclear.
  StatusOr<Admission> Admit(CreateRequest&& request, RefusalKind refusal,
                            std::vector<std::string> claims);
  void Succeeded(ContainerKey key, ContainerId id, const Adjustment& sent);
  void Failed(ContainerKey key, const Status& refusal);
  void Unclear(ContainerKey key);

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
