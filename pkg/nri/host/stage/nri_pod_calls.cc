// SPDX-License-Identifier: Apache-2.0
// Plugins' part in calls about pod sandboxes.
#include <utility>
#include <variant>

#include "pkg/nri/host/stage/nri_calls.h"
#include "pkg/nri/host/stage/nri_stage.h"
#include "pkg/nri/host/view/pod_view.h"
#include "pkg/nri/host/view/resource_view.h"

namespace resmgr::nri {

namespace {

// Stops and removes a sandbox that a plugin refused; the client is answered afterwards, so that it
// may use the name again.
void UndoSandbox(NriStage& stage, const HostPodPtr& pod, const Budget& budget, const Status& why,
                 const SharedHold& hold, const Turns::Turn& turn) {
  const PodSandboxId id(pod->message->id());
  const auto removed = [&stage, id, pod, budget, why, hold, turn](const Status&) {
    stage.view().inventory().Remove(id);
    stage.events().RemovePod(pod, budget, [why, hold, turn](const Status&) { hold->Fail(why); });
  };
  const auto stopped = [&stage, id, removed](const Status&) {
    stage.runtime().RemoveSandbox(id, stage.WhileHere<Status>(removed));
  };
  stage.runtime().StopSandbox(id, stage.WhileHere<Status>(stopped));
}

class RunPodCall final : public StageCall {
 public:
  explicit RunPodCall(NriStage& stage) : StageCall(stage), stage_(stage) {}

  void After(Request& request, const Outcome& outcome) override {
    stage_.view().inventory().TakeOutcome(request, outcome);
    if (!outcome.ok() || outcome.id.empty()) return;
    Pod pod = std::get<Pod>(request.body);
    pod.id = PodSandboxId(outcome.id);
    const HostPodPtr added = stage_.view().AddPod(ToPodSandbox(pod), true);
    const auto hold = std::make_shared<ReplyHold>(HoldReply());
    // The sandbox's other facts are requested in any case, since plugins that connect later need
    // them, too.
    if (!stage_.dispatcher().AnyWants(api::EVENT_RUN_POD_SANDBOX)) hold->Release();
    stage_.InTurn(*added, [&stage = stage_, added, hold](const Turns::Turn& turn) {
      Inspect(stage, added, stage.NewBudget(), hold, turn);
    });
  }

 private:
  static void Inspect(NriStage& stage, const HostPodPtr& pod, const Budget& budget,
                      const SharedHold& hold, const Turns::Turn& turn) {
    const auto inspected = [&stage, pod, budget, hold, turn](const StatusOr<SandboxFacts>& facts) {
      if (facts.ok()) AddFacts(*facts, pod->message.Edit());
      stage.events().Ask(api::EVENT_RUN_POD_SANDBOX, pod, nullptr, budget,
                         [&stage, pod, budget, hold, turn](const Status& refusal) {
                           if (refusal.ok()) return hold->Release();
                           UndoSandbox(stage, pod, budget, refusal, hold, turn);
                         });
    };
    stage.runtime().InspectSandbox(PodSandboxId(pod->message->id()),
                                   stage.WhileHere<StatusOr<SandboxFacts>>(inspected));
  }

  NriStage& stage_;
};

// Handles StopPodSandbox and RemovePodSandbox.
class EndPodCall final : public StageCall {
 public:
  explicit EndPodCall(NriStage& stage) : StageCall(stage), stage_(stage) {}

  // An event of its removal may come before the reply.
  void Before(Request& request, const Adjustment&) override {
    pod_ = stage_.view().FindPod(request.pod_id.value());
    Pass();
  }

  void After(Request& request, const Outcome& outcome) override {
    if (pod_ == nullptr) pod_ = stage_.view().FindPod(request.pod_id.value());
    const bool stopped = outcome.ok() && request.operation() == Operation::kStopPodSandbox;
    stage_.view().inventory().TakeOutcome(request, outcome);
    if (pod_ == nullptr || (!outcome.ok() && !outcome.gone())) return;
    const auto hold = std::make_shared<ReplyHold>(HoldReply());
    stage_.InTurn(*pod_, [&stage = stage_, pod = pod_, stopped, hold](const Turns::Turn& turn) {
      // An earlier turn has told plugins of the removal.
      if (!stopped) return hold->Release();
      stage.events().StopPod(pod, stage.NewBudget(),
                             [hold, turn](const Status&) { hold->Release(); });
    });
  }

 private:
  NriStage& stage_;
  HostPodPtr pod_;
};

class UpdatePodCall final : public StageCall {
 public:
  explicit UpdatePodCall(NriStage& stage)
      : StageCall(stage), stage_(stage), budget_(stage.NewBudget()) {}

  void Before(Request& request, const Adjustment&) override {
    pod_ = stage_.view().FindPod(request.pod_id.value());
    HostedPlugins plugins = stage_.dispatcher().Wanting(api::EVENT_UPDATE_POD_SANDBOX);
    if (pod_ == nullptr || plugins.empty()) return Pass();
    const auto& update = std::get<PodUpdate>(request.body);
    const auto message = std::make_shared<api::UpdatePodSandboxRequest>();
    *message->mutable_overhead_linux_resources() = ToNriResources(update.overhead);
    *message->mutable_linux_resources() = ToNriResources(update.resources);
    const auto answer = std::make_shared<LateAnswer>(AnswerLater());
    stage_.InTurn(*pod_, [&stage = stage_, pod = pod_, plugins = std::move(plugins), message,
                          budget = budget_, answer](const Turns::Turn& turn) {
      *message->mutable_pod() = *pod->message;
      AskPlugins(stage, plugins, budget, message, [answer, turn](const Status& refusal) {
        refusal.ok() ? answer->Pass() : answer->Refuse(refusal);
      });
    });
  }

  void After(Request& request, const Outcome& outcome) override {
    stage_.view().inventory().TakeOutcome(request, outcome);
    if (pod_ == nullptr || !outcome.pod_updated()) return;
    const auto& update = std::get<PodUpdate>(request.body);
    api::LinuxPodSandbox& resources = *pod_->message.Edit().mutable_linux();
    *resources.mutable_pod_overhead() = ToNriResources(update.overhead);
    *resources.mutable_pod_resources() = ToNriResources(update.resources);
    if (!stage_.dispatcher().AnyWants(api::EVENT_POST_UPDATE_POD_SANDBOX)) return;
    const auto hold = std::make_shared<ReplyHold>(HoldReply());
    stage_.InTurn(*pod_,
                  [&stage = stage_, pod = pod_, budget = budget_, hold](const Turns::Turn& turn) {
                    stage.events().Tell(api::EVENT_POST_UPDATE_POD_SANDBOX, pod, nullptr, budget,
                                        [hold, turn](const Status&) { hold->Release(); });
                  });
  }

 private:
  static void AskPlugins(NriStage& stage, HostedPlugins plugins, const Budget& budget,
                         std::shared_ptr<api::UpdatePodSandboxRequest> message,
                         Dispatcher::Done done) {
    const auto ask = [message = std::move(message)](HostedPlugin& plugin,
                                                    std::chrono::milliseconds timeout,
                                                    Dispatcher::Answered answered) {
      plugin.port->UpdatePod(
          *message, timeout,
          [answered = std::move(answered)](const StatusOr<api::UpdatePodSandboxResponse>& answer) {
            answered(answer.status());
          });
    };
    stage.dispatcher().InTurn(Dispatcher::Kind::kRequest, std::move(plugins), budget, ask,
                              std::move(done));
  }

  NriStage& stage_;
  HostPodPtr pod_;
  const Budget budget_;
};

}  // namespace

std::unique_ptr<StageCall> MakePodCall(NriStage& stage, Operation operation) {
  switch (operation) {
    case Operation::kRunPodSandbox:
      return std::make_unique<RunPodCall>(stage);
    case Operation::kUpdatePodSandboxResources:
      return std::make_unique<UpdatePodCall>(stage);
    default:
      return std::make_unique<EndPodCall>(stage);
  }
}

}  // namespace resmgr::nri
