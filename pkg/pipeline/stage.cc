// SPDX-License-Identifier: Apache-2.0
#include "pkg/pipeline/stage.h"

#include "pkg/base/call_end.h"
#include "pkg/pipeline/pipeline_call.h"

namespace resmgr {

Outcome::Kind Outcome::kind() const {
  const auto status = static_cast<StatusCode>(code);
  if (!known || IsUnclear(status)) return Kind::kUnclear;
  if (status == StatusCode::kOk) return Kind::kDone;
  return status == StatusCode::kNotFound ? Kind::kGone : Kind::kRefused;
}

bool Outcome::pod_updated() const {
  constexpr int kUnimplemented = 12;
  return ok() || (known && code == kUnimplemented);
}

StageCall::~StageCall() {
  if (self_ != nullptr) *self_ = nullptr;
  --stage_.calls_;
}

void StageCall::Before(Request&, const Adjustment&) {
  Pass();
}

void StageCall::After(Request&, const Outcome&) {}

void StageCall::Pass() {
  if (host_->IsAsked(*this)) host_->Accept();
}

void StageCall::Adjust(Adjustment&& adjustment) {
  if (host_->IsAsked(*this)) host_->Adjust(std::move(adjustment));
}

void StageCall::Adjust(ResourceValues&& values) {
  Adjust(Adjustment(std::move(values)));
}

void StageCall::Refuse(Status status) {
  if (host_->IsAsked(*this)) host_->Refuse(std::move(status));
}

void StageCall::Fail(Status status) {
  if (host_->IsAsked(*this)) host_->Fail(std::move(status));
}

bool StageCall::PlacementIsOwned() const {
  return host_->PlacementIsOwned();
}

LateAnswer StageCall::AnswerLater() {
  return LateAnswer(Self());
}

ReplyHold StageCall::HoldReply() {
  host_->Hold(*this);
  return ReplyHold(Self());
}

void StageCall::FailReply(Status status) {
  host_->FailReply(*this, std::move(status));
}

std::shared_ptr<StageCall*> StageCall::Self() {
  if (self_ == nullptr) self_ = std::make_shared<StageCall*>(this);
  return self_;
}

LateAnswer::~LateAnswer() {
  if (StageCall* const call = Take()) {
    call->Fail(Unavailable("stage {} ended without an answer", call->stage().options().name));
  }
}

StageCall* LateAnswer::Take() {
  const std::shared_ptr<StageCall*> call = std::exchange(call_, nullptr);
  return call == nullptr ? nullptr : *call;
}

void LateAnswer::Pass() {
  if (StageCall* const call = Take()) call->Pass();
}

void LateAnswer::Adjust(Adjustment&& adjustment) {
  if (StageCall* const call = Take()) call->Adjust(std::move(adjustment));
}

void LateAnswer::Refuse(Status status) {
  if (StageCall* const call = Take()) call->Refuse(std::move(status));
}

void LateAnswer::Fail(Status status) {
  if (StageCall* const call = Take()) call->Fail(std::move(status));
}

void ReplyHold::Release() {
  const std::shared_ptr<StageCall*> call = std::exchange(call_, nullptr);
  if (call != nullptr && *call != nullptr) (*call)->host_->Release(**call);
}

void ReplyHold::Fail(Status status) {
  if (call_ != nullptr && *call_ != nullptr) (*call_)->FailReply(std::move(status));
  Release();
}

}  // namespace resmgr
