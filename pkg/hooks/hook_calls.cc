// SPDX-License-Identifier: Apache-2.0
#include "pkg/hooks/hook_calls.h"

#include <utility>

#include <fmt/format.h>

#include "pkg/base/parse.h"
#include "pkg/hooks/hook_port.h"

namespace resmgr::hooks {
Status FailureOf(HookPoint point, const HookServerPort& server, const Status& why) {
  return Annotate(why, fmt::format("hook {} of {}", NameOf(point), server.settings().file));
}

void AskingCall::Before(Request& request, const Adjustment& so_far) {
  if (hooks().knows_servers()) return Consider(request, so_far);
  hooks().WhenServersKnown(
      lifetime_.Guard([this, &request, &so_far] { Consider(request, so_far); }));
}

AskingCall::~AskingCall() {
  if (merge_ != nullptr) hooks().KeepForNow(std::move(servers_));
}

bool AskingCall::FindServers() {
  servers_ = hooks().ServersOf(point_);
  if (servers_.empty()) return false;
  budget_ = hooks().clock().After(hooks().hook_options().budget, [this] {
    GiveUp(DeadlineExceeded("the hook servers of one call had {} ms together",
                            hooks().hook_options().budget.count()));
  });
  return true;
}

void AskingCall::Ask(HookMerge& merge) {
  merge_ = &merge;
  AskNext();
}

void AskingCall::AskNext() {
  servers_[next_]->Ask(
      point_, merge_->Encoded(),
      lifetime_.Guard([this](const StatusOr<std::string>& answer) { OnAnswer(answer); }));
}

void AskingCall::OnAnswer(const StatusOr<std::string>& answer) {
  const HookServerPort& server = *servers_[next_];
  const Status taken = answer.ok() ? merge_->Take(server.settings(), *answer) : answer.status();
  if (!taken.ok() && Fails(server, taken)) return;
  ++next_ == servers_.size() ? Finish() : AskNext();
}

void AskingCall::GiveUp(const Status& why) {
  // An answer that comes now is too late.
  StopWaiting();
  for (; next_ < servers_.size(); ++next_)
    if (Fails(*servers_[next_], why)) return;
  Finish();
}

bool AskingCall::Fails(const HookServerPort& server, const Status& why) {
  const Status failure = FailureOf(point_, server, why);
  if (server.settings().failure == FailurePolicy::kFail) {
    StopWaiting();
    Refuse(failure);
    return true;
  }
  hooks().NoteIgnored(failure);
  return false;
}

void AskingCall::Finish() {
  if (merge_ == nullptr) return PassUnasked();
  StopWaiting();
  LogConflicts();
  Adjust(merge_->TakeChanges());
}

void AskingCall::PassUnasked() {
  StopWaiting();
  Pass();
}

void AskingCall::StopWaiting() {
  budget_.reset();
  lifetime_.End();
}

void AskingCall::LogConflicts() const {
  for (const HookConflict& conflict : merge_->owners().conflicts()) {
    const std::string key = conflict.change.key.empty() ? "" : " " + conflict.change.key;
    hooks().NoteConflict(
        point_, fmt::format("{} and {} disagree about {}{}: that of {} counts", conflict.former,
                            conflict.later, ToString(conflict.change.field), key, conflict.later));
  }
}

void ContainerCall::Consult(bool asks, const api::PodSandboxHookRequest& pod,
                            api::ContainerResourceHookRequest message, BesideRequest beside) {
  merge_.emplace(point(), std::move(message),
                 PlacementIsOwned() ? PlacementOwner::kPolicy : PlacementOwner::kServers,
                 std::move(beside));
  if (!asks || hooks().Skips(pod)) return PassUnasked();
  Ask(*merge_);
}

}  // namespace resmgr::hooks
