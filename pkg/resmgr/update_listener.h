// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "pkg/base/status.h"
#include "pkg/resmgr/applied_resources.h"
#include "pkg/resmgr/container_record.h"

namespace resmgr {

// Is told what becomes of the pusher's updates (pusher.h). Called on the loop's thread, from within
// an answer of the runtime.
class UpdateListener {
 public:
  virtual ~UpdateListener() = default;
  // The values of an update are in force.
  virtual void OnApplied(ContainerKey key) = 0;
  // An update failed and will be tried again; not called if the container does not exist
  // (NotFound).
  virtual void OnFailed(ContainerKey key, const Status& status) = 0;
  // An update that had failed has succeeded, or is not needed any more. The pusher must not be
  // called from here.
  virtual void OnRecovered(const ContainerRecord& record) = 0;
  // An update was refused; the cpuset was written past the runtime and is in force. OnApplied
  // follows.
  virtual void OnWritten(const ContainerRecord& record, const Status& why) = 0;
  // The runtime has no such container any more.
  virtual void OnGone(ContainerKey key) = 0;
  // An update was answered whose outcome does not matter any more: its container has ended
  // meanwhile, or another update follows.
  virtual void OnMoot() = 0;
  // `applied` is in force, also if no update of the pusher caused it. May be called more than
  // once. The pusher must not be called from here.
  virtual void OnInForce(const ContainerRecord& record, const AppliedResources& applied) = 0;
};

}  // namespace resmgr
