// SPDX-License-Identifier: Apache-2.0
#include "pkg/hooks/hook_stage.h"

#include <utility>

#include "pkg/base/parse.h"
#include "pkg/hooks/hook_calls.h"
#include "pkg/hooks/hook_port.h"
#include "pkg/log/not_logged.h"

namespace resmgr::hooks {
namespace {

constexpr OperationSet kOperations{Operation::kRunPodSandbox,
                                   Operation::kStopPodSandbox,
                                   Operation::kRemovePodSandbox,
                                   Operation::kCreateContainer,
                                   Operation::kStartContainer,
                                   Operation::kStopContainer,
                                   Operation::kRemoveContainer,
                                   Operation::kUpdateContainerResources,
                                   Operation::kUpdatePodSandboxResources};
constexpr DetailSet kDetails{Detail::kEnvironment, Detail::kResources, Detail::kSandbox};

}  // namespace

// The stage's options have no time limit: each call limits its time itself, and then keeps the
// changes so far.
HookStage::HookStage(const Context& context, HookStageOptions options)
    : Stage({.name = "hooks",
             .rank = StageRank::kHookServers,
             .operations = kOperations,
             .details = kDetails}),
      context_(context),
      hook_options_(std::move(options)),
      log_(GetLogger("hooks")),
      view_(context.inventory),
      failures_limit_(/*burst=*/20, std::chrono::minutes(1)),
      conflicts_limit_(/*burst=*/20, std::chrono::minutes(1)) {}

HookStage::~HookStage() = default;

std::unique_ptr<StageCall> HookStage::Begin(const Request& request) {
  return MakeHookCall(*this, request.operation());
}

void HookStage::Start() {
  knows_servers_ = false;
  view_.Attach();
}

void HookStage::Forget() {
  OpenServers();
  view_.Detach();
}

void HookStage::OpenServers() {
  knows_servers_ = true;
  for (const auto& then : std::exchange(waiting_, {}))
    then();
}

void HookStage::SetSkip(std::string key, std::string value) {
  hook_options_.skip_key = std::move(key);
  hook_options_.skip_value = std::move(value);
}

bool HookStage::Skips(const api::PodSandboxHookRequest& pod) const {
  if (hook_options_.skip_handlers.contains(pod.runtime_handler())) return true;
  const std::string& key = hook_options_.skip_key;
  const std::string& value = hook_options_.skip_value;
  return !key.empty() &&
         (HasEntry(pod.labels(), key, value) || HasEntry(pod.annotations(), key, value));
}

void HookStage::Tell(HookPoint point, const std::string& request) {
  for (const std::shared_ptr<HookServerPort>& server : ServersOf(point)) {
    const auto kept = telling_.insert(telling_.end(), server);
    server->Ask(point, request,
                lifetime_.Guard([this, kept, point](const StatusOr<std::string>& answer) {
                  const std::shared_ptr<HookServerPort> told = std::move(*kept);
                  telling_.erase(kept);
                  if (!answer.ok()) NoteIgnored(FailureOf(point, *told, answer.status()));
                  KeepForNow({told});
                }));
  }
}

void HookStage::NoteIgnored(const Status& why) {
  ++ignored_failures_;
  if (context_.metrics != nullptr) context_.metrics->CountIgnoredFailure(Stage::options().name);
  if (const auto suppressed = failures_limit_.Pass(context_.loop.Now())) {
    log_.Warn("a call continues without the answer of a hook server: {}{}",
              Printable(Describe(why)), NotLogged(*suppressed));
  }
}

void HookStage::NoteConflict(HookPoint point, const std::string& conflict) {
  if (const auto suppressed = conflicts_limit_.Pass(context_.loop.Now())) {
    log_.Warn("hook {}: {}{}", NameOf(point), Printable(conflict), NotLogged(*suppressed));
  }
}

void HookStage::KeepForNow(Servers servers) {
  if (!servers.empty()) context_.loop.Post([servers = std::move(servers)] {});
}

}  // namespace resmgr::hooks
