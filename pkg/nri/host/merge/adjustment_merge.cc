// SPDX-License-Identifier: Apache-2.0
#include "pkg/nri/host/merge/adjustment_merge.h"

#include "pkg/nri/host/merge/reply_edits.h"

namespace resmgr::nri {
namespace {

// Longer changes are applied to the request at once: while they wait, the parts that they remove or
// replace are kept, too.
constexpr size_t kMostToKeep = 16 << 10;

}  // namespace

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

void ShownRequest::Add(api::ContainerAdjustment changes) {
  const bool is_long = changes.ByteSizeLong() > kMostToKeep;
  to_show_.push_back(std::move(changes));
  if (is_long) Message();
}

api::CreateContainerRequest& ShownRequest::Message() {
  if (!request_) {
    request_.emplace();
    *request_->mutable_pod() = pristine_->pod();
    *request_->mutable_container() = pristine_->Make();
    args_before_ = request_->container().args();
  }
  for (const api::ContainerAdjustment& changes : std::exchange(to_show_, {}))
    ReplyEdits(changes).ShowIn(args_before_, *request_->mutable_container());
  return *request_;
}

std::string ShownRequest::Question() {
  if (!request_ && to_show_.empty()) return pristine_->Question();
  return Message().SerializeAsString();
}

}  // namespace resmgr::nri
