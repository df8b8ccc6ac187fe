// SPDX-License-Identifier: Apache-2.0
#include "pkg/nri/host/merge/adjustment_merge.h"

#include <utility>

#include "pkg/nri/host/merge/reply_edits.h"

namespace resmgr::nri {

Status AdjustmentMerge::Add(std::string_view plugin, api::CreateContainerResponse reply) {
  const FieldLedger::Mark before = ledger_.mark();
  const ReplyEdits edits(reply.adjust());
  if (Status status = edits.Claim(ledger_.For(pristine().id(), plugin)); !status.ok()) {
    ledger_.UndoTo(before);
    return status;
  }
  const auto granted = ClaimUpdates(reply.update(), plugin, pristine().id(), ledger_);
  if (!granted.ok()) {
    ledger_.UndoTo(before);
    return granted.status();
  }
  ledger_.Keep();
  edits.AddTo(adjustment_);
  for (const api::ContainerUpdate* const update : *granted)
    updates_.Add(*update);
  if (reply.has_adjust()) shown_->Add(std::move(*reply.mutable_adjust()));
  return OkStatus();
}

api::ValidateContainerAdjustmentRequest AdjustmentMerge::Validation() const {
  api::ValidateContainerAdjustmentRequest request;
  *request.mutable_pod() = pristine().pod();
  *request.mutable_container() = pristine().Make();
  *request.mutable_adjust() = adjustment_;
  for (const api::ContainerUpdate& update : updates())
    *request.add_update() = update;
  *request.mutable_owners() = owners();
  return request;
}

}  // namespace resmgr::nri
