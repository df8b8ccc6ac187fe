// SPDX-License-Identifier: Apache-2.0
#include "pkg/hooks/hook_calls.h"

#include <fmt/format.h>

#include "pkg/base/parse.h"
#include "pkg/hooks/hook_names.h"

namespace resmgr::hooks {

Status FailureOf(HookPoint point, const HookServerPort& server, const Status& why) {
  return Annotate(why, fmt::format("hook {} of {}", NameOf(point), server.settings().file));
}

Status TooLate(const HookStage& stage) {
  return DeadlineExceeded("the hook servers of one call had {} ms together",
                          stage.hook_options().budget.count());
}

Adjustment AdjustmentOf(HookChanges changes) {
  if (changes.clears_cpus) changes.adjustment.Wide().clear_cpus = true;
  if (changes.clears_mems) changes.adjustment.Wide().clear_mems = true;
  return std::move(changes.adjustment);
}

void AskingCall::Before(Request& request, const Adjustment& so_far) {
  if (stage_.knows_servers()) return Consider(request, so_far);
  stage_.WhenServersKnown(
      lifetime_.Guard([this, &request, &so_far] { Consider(request, so_far); }));
}

bool AskingCall::FindServers() {
  servers_ = stage_.ServersOf(point_);
  if (servers_.empty()) return false;
  budget_ = stage_.clock().After(stage_.hook_options().budget, [this] { Expire(); });
  return true;
}

void AskingCall::Ask(HookRound::Steps steps) {
  steps.done = [this, done = std::move(steps.done)](const Status& refusal) {
    StopWaiting();
    done(refusal);
  };
  round_.emplace(stage_, point_, servers_, std::move(steps));
  round_->Start();
}

void AskingCall::PassUnasked(const Status& why) {
  StopWaiting();
  for (const std::shared_ptr<HookServerPort>& server : servers_) {
    const Status failure = FailureOf(point_, *server, why);
    if (server->settings().failure == FailurePolicy::kFail) return Refuse(failure);
    stage_.NoteIgnored(failure);
  }
  Pass();
}

void AskingCall::StopWaiting() {
  budget_.reset();
  lifetime_.End();
}

void AskingCall::Expire() {
  lifetime_.End();
  if (round_) return round_->Expire();
  PassUnasked(TooLate(stage_));
}

void AskingCall::LogConflicts(const HookOwners& owners) const {
  for (const HookConflict& conflict : owners.conflicts()) {
    const std::string key = conflict.change.key.empty() ? "" : " " + conflict.change.key;
    stage_.NoteConflict(
        point_, fmt::format("{} and {} disagree about {}{}: that of {} counts", conflict.former,
                            conflict.later, ToString(conflict.change.field), key, conflict.later));
  }
}

std::unique_ptr<StageCall> MakeHookCall(HookStage& stage, Operation operation) {
  switch (operation) {
    case Operation::kRunPodSandbox:
    case Operation::kStopPodSandbox:
    case Operation::kRemovePodSandbox:
    case Operation::kUpdatePodSandboxResources:
      return MakePodCall(stage, operation);
    case Operation::kCreateContainer:
      return MakeCreateCall(stage);
    case Operation::kStartContainer:
    case Operation::kStopContainer:
    case Operation::kRemoveContainer:
    case Operation::kUpdateContainerResources:
      return MakeContainerCall(stage, operation);
    case Operation::kContainerStatus:
    case Operation::kOther:
      return nullptr;
  }
  return nullptr;
}

}  // namespace resmgr::hooks
