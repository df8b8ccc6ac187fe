// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "pkg/base/status.h"
#include "pkg/cri/message_splice.h"
#include "pkg/cri/messages.h"
#include "pkg/model/adjustment.h"
#include "pkg/model/operation.h"

namespace resmgr {

// Which CRI fields (runtime.v1) an adjustment changes. All that CreateContainerRequest,
// UpdateContainerResourcesRequest and RunPodSandboxRequest have; the classes of block I/O and RDT
// go into the annotations that containerd and CRI-O read them from.

// Whether a request of this operation has a place for the field.
bool CriHas(Operation operation, Field field);

// The message as adjusted: every byte that the adjustment is not about stays. InvalidArgument: the
// message, or a part that is edited, is no protobuf. Must not outlive the message.
StatusOr<SplicedMessage> SpliceAdjustment(Operation operation, std::string_view message,
                                          const Adjustment& adjustment);

// For what is adjusted most, the few fields of the policy: bytes that are appended to the message,
// since in protobuf a later value of a field wins and embedded messages merge.
class AdjustmentSuffix {
 public:
  // Empty where nothing changes. Valid until the next call.
  std::string_view For(Operation operation, const ResourceValues& values) {
    if (operation == Operation::kCreateContainer) return creation_.For(values);
    update_.clear();
    if (operation == Operation::kUpdateContainerResources) AppendUpdateAdjustment(values, update_);
    return update_;
  }

 private:
  CreationSuffix creation_;
  std::string update_;  // kept for its room
};

}  // namespace resmgr
