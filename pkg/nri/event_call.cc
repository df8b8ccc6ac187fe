// SPDX-License-Identifier: Apache-2.0
#include "pkg/nri/event_call.h"

namespace resmgr::nri {

EventCall::EventCall(Pipeline& pipeline, Operation operation, ContainerDetails details)
    : details_(std::move(details)),
      request_(operation, static_cast<Request::Source&>(*this)),
      call_(pipeline, static_cast<PipelineCall::Front&>(*this)) {}

void EventCall::Start(Decided decided, std::function<void()> over) {
  decided_ = std::move(decided);
  over_ = std::move(over);
  if (const auto* const create = std::get_if<CreateRequest>(&request_.body)) create_ = *create;
  call_.Start(request_);
}

void EventCall::Abandon() {
  decided_ = nullptr;
  over_ = nullptr;
  call_.Abandon();
}

void EventCall::OnDecided(const Status& refusal, const Adjustment& adjustment) {
  const Decided decided = std::exchange(decided_, nullptr);
  if (!refusal.ok()) {
    decided({.refusal = refusal, .adjustment = adjustment});
    End();
    return;
  }
  // Before the answer is sent: stages that see the success may add updates of other containers to
  // it.
  const bool over = call_.OnReply({.known = true, .code = 0, .id = id_});
  decided({.refusal = OkStatus(), .adjustment = adjustment});
  if (over) End();
}

void EventCall::End() {
  if (const auto over = std::exchange(over_, nullptr)) over();
}

bool EventCall::ReadCreate(CreateRequest& create) {
  create = create_;
  return true;
}

bool EventCall::ReadDetails(DetailSet, ContainerDetails& details) {
  details = details_;
  return true;
}

}  // namespace resmgr::nri
