// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "pkg/base/status.h"
#include "pkg/cri/message_splice.h"
#include "pkg/cri/messages.h"
#include "pkg/model/adjustment.h"
#include "pkg/model/request.h"

namespace resmgr {

// Maps an adjustment to CRI fields (runtime.v1) of CreateContainerRequest,
// UpdateContainerResourcesRequest and RunPodSandboxRequest; the classes of block I/O and RDT become
// the annotations that containerd and CRI-O read.

// Whether the operation's request has a place for the field.
bool CriHas(Operation operation, Field field);

// Returns the adjusted message, in which all other bytes are unchanged. kInvalidArgument: the
// message, or an edited part, is malformed protobuf. The result must not outlive the message.
StatusOr<SplicedMessage> SpliceAdjustment(Operation operation, std::string_view message,
                                          const Adjustment& adjustment);

// SpliceAdjustment for the policy's few fields, but faster: only returns bytes to be appended to
// the message, since in protobuf a later value of a field wins and embedded messages merge. Keeps
// the bytes of the last creation, since most containers get the same shared CPUs as the container
// before.
class AdjustmentSuffix {
 public:
  // Returns the bytes to append, valid until the next call; empty if `values` changes nothing.
  std::string_view For(Operation operation, const ResourceValues& values);

 private:
  ResourceValues created_;
  std::string creation_;  // for `created_`
  std::string update_;    // reused memory
};

}  // namespace resmgr
