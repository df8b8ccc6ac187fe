// SPDX-License-Identifier: Apache-2.0
#include "pkg/nri/host/adjustment_merge.h"

#include "pkg/nri/host/reply_edits.h"

namespace resmgr::nri {

AdjustmentMerge::AdjustmentMerge(const api::PodSandbox& pod, const api::Container& pristine)
    : pristine_(pristine) {
  *request_.mutable_pod() = pod;
  *request_.mutable_container() = pristine;
}

Status AdjustmentMerge::Add(std::string_view plugin, const api::CreateContainerResponse& reply) {
  const FieldLedger::Mark before = ledger_.mark();
  const ReplyEdits edits(reply.adjust());
  if (Status status = edits.Claim(ledger_.For(pristine_.id(), plugin)); !status.ok()) {
    ledger_.UndoTo(before);
    return status;
  }
  const auto granted = ClaimUpdates(reply.update(), plugin, pristine_.id(), ledger_);
  if (!granted.ok()) {
    ledger_.UndoTo(before);
    return granted.status();
  }
  ledger_.Keep();
  edits.AddTo(adjustment_);
  edits.ShowIn(pristine_, *request_.mutable_container());
  for (const api::ContainerUpdate* const update : *granted)
    updates_.Add(*update);
  return OkStatus();
}

api::ValidateContainerAdjustmentRequest AdjustmentMerge::Validation() const {
  api::ValidateContainerAdjustmentRequest request;
  *request.mutable_pod() = request_.pod();
  *request.mutable_container() = pristine_;
  *request.mutable_adjust() = adjustment_;
  for (const api::ContainerUpdate& update : updates())
    *request.add_update() = update;
  *request.mutable_owners() = owners();
  return request;
}

api::ValidateContainerAdjustmentRequest AdjustmentMerge::OwnValidation() const {
  api::ValidateContainerAdjustmentRequest request;
  *request.mutable_pod() = request_.pod();
  api::Container& container = *request.mutable_container();
  container.set_id(pristine_.id());
  container.set_name(pristine_.name());
  if (pristine_.linux().has_seccomp_profile()) {
    *container.mutable_linux()->mutable_seccomp_profile() = pristine_.linux().seccomp_profile();
  }
  *request.mutable_adjust() = adjustment_;
  *request.mutable_owners() = owners();
  return request;
}

}  // namespace resmgr::nri
