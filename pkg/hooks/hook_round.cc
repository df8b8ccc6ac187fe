// SPDX-License-Identifier: Apache-2.0
#include "pkg/hooks/hook_round.h"

#include <utility>

#include "pkg/hooks/hook_calls.h"

namespace resmgr::hooks {

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

}  // namespace resmgr::hooks
