// SPDX-License-Identifier: Apache-2.0
#include "pkg/hooks/hook_calls.h"

#include <utility>

#include <fmt/format.h>
#include <google/protobuf/arena.h>

#include "pkg/base/parse.h"
#include "pkg/hooks/hook_port.h"

namespace resmgr::hooks {
namespace {

Status TooLate(const HookStage& stage) {
  return DeadlineExceeded("the hook servers of one call had {} ms together",
                          stage.hook_options().budget.count());
}

// Returns the changes as an adjustment of the request.
Adjustment AdjustmentOf(HookChanges changes) {
  if (changes.clears_cpus) changes.adjustment.Wide().clear_cpus = true;
  if (changes.clears_mems) changes.adjustment.Wide().clear_mems = true;
  return std::move(changes.adjustment);
}

}  // namespace

HookRound::HookRound(HookStage& stage, HookPoint point, HookStage::Servers servers, Steps steps)
    : stage_(stage), point_(point), servers_(std::move(servers)), steps_(std::move(steps)) {}

HookRound::~HookRound() {
  stage_.KeepForNow(std::move(servers_));
}

void HookRound::Ask() {
  servers_[next_]->Ask(
      point_, steps_.request(),
      lifetime_.Guard([this](const StatusOr<std::string>& answer) { OnAnswer(answer); }));
}

void HookRound::OnAnswer(const StatusOr<std::string>& answer) {
  const HookServerPort& server = *servers_[next_];
  const Status taken = answer.ok() ? steps_.take(server.settings(), *answer) : answer.status();
  if (!taken.ok()) {
    const Status failure = FailureOf(point_, server, taken);
    if (server.settings().failure == FailurePolicy::kFail) return End(failure);
    stage_.NoteIgnored(failure);
  }
  if (++next_ == servers_.size()) return End(OkStatus());
  Ask();
}

void HookRound::Expire() {
  // An answer that comes now is too late.
  lifetime_.End();
  for (; next_ < servers_.size(); ++next_) {
    const Status failure = FailureOf(point_, *servers_[next_], TooLate(stage_));
    if (servers_[next_]->settings().failure == FailurePolicy::kFail) return End(failure);
    stage_.NoteIgnored(failure);
  }
  End(OkStatus());
}

void HookRound::End(const Status& refusal) {
  lifetime_.End();
  const auto done = std::move(steps_.done);
  done(refusal);
}

Status FailureOf(HookPoint point, const HookServerPort& server, const Status& why) {
  return Annotate(why, fmt::format("hook {} of {}", NameOf(point), server.settings().file));
}

void AskingCall::Before(Request& request, const Adjustment& so_far) {
  if (hooks().knows_servers()) return Consider(request, so_far);
  hooks().WhenServersKnown(
      lifetime_.Guard([this, &request, &so_far] { Consider(request, so_far); }));
}

bool AskingCall::FindServers() {
  servers_ = hooks().ServersOf(point_);
  if (servers_.empty()) return false;
  budget_ = hooks().clock().After(hooks().hook_options().budget, [this] { Expire(); });
  return true;
}

void AskingCall::Ask(HookRound::Steps steps) {
  steps.done = [this, done = std::move(steps.done)](const Status& refusal) {
    StopWaiting();
    done(refusal);
  };
  round_.emplace(hooks(), point_, servers_, std::move(steps));
  round_->Start();
}

void AskingCall::PassUnasked(const Status& why) {
  StopWaiting();
  for (const std::shared_ptr<HookServerPort>& server : servers_) {
    const Status failure = FailureOf(point_, *server, why);
    if (server->settings().failure == FailurePolicy::kFail) return Refuse(failure);
    hooks().NoteIgnored(failure);
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
  PassUnasked(TooLate(hooks()));
}

void AskingCall::LogConflicts(const HookOwners& owners) const {
  for (const HookConflict& conflict : owners.conflicts()) {
    const std::string key = conflict.change.key.empty() ? "" : " " + conflict.change.key;
    hooks().NoteConflict(
        point_, fmt::format("{} and {} disagree about {}{}: that of {} counts", conflict.former,
                            conflict.later, ToString(conflict.change.field), key, conflict.later));
  }
}

void ContainerCall::Consult(bool asks, const api::PodSandboxHookRequest& pod,
                            api::ContainerResourceHookRequest message, BesideRequest beside) {
  merge_.emplace(point(), std::move(message), placement_owner(), std::move(beside));
  if (!asks || hooks().Skips(pod)) {
    StopWaiting();
    return Pass();
  }
  Ask({.request = [this] { return merge_->Encoded(); },
       .take = [this](const HookServerSettings& server, const std::string& bytes) -> Status {
         // An arena frees the answer with its dozens of variables at once.
         google::protobuf::Arena arena;
         auto& answer =
             *google::protobuf::Arena::CreateMessage<api::ContainerResourceHookResponse>(&arena);
         const std::optional<std::string> rest = merge_->WithoutRepeatedEnvironment(bytes);
         if (!answer.ParseFromString(rest ? *rest : bytes))
           return Internal("its answer is malformed");
         return merge_->Add(server.file, server.style, answer);
       },
       .done =
           [this](const Status& refusal) {
             if (!refusal.ok()) return Refuse(refusal);
             LogConflicts(merge_->owners());
             Adjust(AdjustmentOf(merge_->TakeChanges()));
           }});
}

}  // namespace resmgr::hooks
