// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "pkg/model/adjustment.h"
#include "pkg/model/resources.h"
#include "pkg/resmgr/brain.h"
#include "pkg/resmgr/container_record.h"

namespace resmgr {

// CPU numbers (shares, quota, period) of containers that later stages, or the runtime's own
// plugins, set in place of those of the policy and the client. The request of a container is never
// derived from them, and the brain's own updates do not change them. Loop's thread only.
class SetLater {
 public:
  // The brain must outlive it.
  explicit SetLater(Brain& brain) : brain_(brain) {}
  SetLater(const SetLater&) = delete;
  SetLater& operator=(const SetLater&) = delete;

  // The creation is about to be sent, as later stages changed it: the client's original request is
  // saved for a later daemon that finds the container without knowing how the creation ended.
  void CreationSent(ContainerKey key, const Adjustment& sent);
  // A later stage is about to have these values set by the runtime; or, if `accepted`, the runtime
  // has set them.
  void SetByStage(const ContainerId& id, const ResourceValues& values, bool accepted);
  // Whether the numbers that the runtime reports of the container may differ from those that the
  // client asked for. `shares_in_file`: a stage may have set a file of cgroup v2 in place of the
  // shares.
  bool SentOtherNumbers(const ContainerId& id, bool shares_in_file) const;
  // Replaces such numbers in a report.
  void ShowAsked(const ContainerId& id, CpuNumbers& reported) const;

  // Notes numbers of a request that the runtime carried out with the changes of all stages.
  void TakeCreation(ContainerRecord& record, const Adjustment& sent);
  void TakeUpdate(ContainerRecord& record, PendingUpdate& update, const ResourceValues& sent);
  // Notes a client's call. The runtime is listed soon after it, to learn the values in force before
  // another client's update may follow. The brain's own updates may be about hundreds of
  // containers, so the next list is soon enough for them.
  void NoteCalled(ContainerRecord& record);

  // Notes that a list has reported the container for the first time since its last update.
  void NoteFirstReport(ContainerRecord& record);
  // Whether no list has reported the values in force since the last update, although lists can.
  bool LacksReport(const ContainerRecord& record) const;

 private:
  Brain& brain_;
  EventLoop::HandlePtr report_timer_;  // runs until the list after a call
};

// Shows clients the CPU numbers that they requested for a container. Kubelets take the reported
// numbers for the resources that the container got, and compare them with the pod's. If they saw
// the numbers of the policy or of a later stage, a resize of the pod would never seem to be
// complete.
//
// A reported number that differs from the one that was sent was set by another program, and is
// shown. While an update of the client is under way, the request before it counts. Memory limits
// are never changed.

// Whether a report about the container may have to be changed.
bool SentOtherNumbers(const ContainerRecord& record);
// Replaces the sent numbers in the report by those that the client requested.
void ShowAsked(const ContainerRecord& record, CpuNumbers& reported);

}  // namespace resmgr
