// SPDX-License-Identifier: Apache-2.0
#include "pkg/nri/host/stage/nri_calls.h"

#include <chrono>
#include <utility>
#include <variant>

#include "pkg/nri/host/stage/nri_stage.h"
#include "pkg/nri/host/view/object_views.h"

namespace resmgr::nri {
namespace {

// Plugins' part in calls about existing containers, except updates.

class StartCall final : public StageCall {
 public:
  explicit StartCall(NriStage& stage)
      : StageCall(stage), stage_(stage), budget_(stage.NewBudget()) {}

  void Before(Request& request, const Adjustment&) override {
    container_ = stage_.view().Find(request.container_id.value());
    if (container_ != nullptr) {
      open_ = container_->BeginStart();
      ran_since_ = container_->RunsSince();
    }
    if (container_ == nullptr || !stage_.nri_options().start_before ||
        !stage_.dispatcher().AnyWants(api::EVENT_START_CONTAINER)) {
      return Pass();
    }
    const auto answer = std::make_shared<LateAnswer>(AnswerLater());
    stage_.InTurn(*container_->pod, [&stage = stage_, container = container_, budget = budget_,
                                     answer](const Turns::Turn& turn) {
      container->told = true;
      stage.events().Ask(KindOf(stage, *container), api::EVENT_START_CONTAINER, container->pod,
                         container, budget, [answer, turn](const Status& refusal) {
                           refusal.ok() ? answer->Pass() : answer->Refuse(refusal);
                         });
    });
  }

  void After(Request& request, const Outcome& outcome) override {
    stage_.view().inventory().TakeOutcome(request, outcome);
    const std::shared_ptr<const void> open = std::move(open_);
    if (container_ == nullptr || outcome.unclear()) return;
    if (!outcome.ok()) return stage_.TellStop(container_, stage_.NewBudget(), [] {});
    container_->SetState(api::CONTAINER_RUNNING);
    const auto hold = std::make_shared<ReplyHold>(HoldReply());
    const Dispatcher& dispatcher = stage_.dispatcher();
    if (!dispatcher.AnyWants(api::EVENT_START_CONTAINER) &&
        !dispatcher.AnyWants(api::EVENT_POST_START_CONTAINER)) {
      hold->Release();
    }
    stage_.InTurn(*container_->pod, [&stage = stage_, container = container_, budget = budget_,
                                     hold, open, since = ran_since_](const Turns::Turn& turn) {
      NoteNextLife(*container);
      Inspect(stage, container, budget, hold, {.open = open, .ran_since = since}, turn);
    });
  }

 private:
  struct Begun {
    std::shared_ptr<const void> open;
    int64_t ran_since;
  };
  static Dispatcher::Kind KindOf(const NriStage& stage, const HostContainer& container) {
    return stage.RequestKind(*container.pod, container.message->name());
  }
  // Docker starts containers again that have ended, and stops a running one to restart it: its next
  // stop is another one. Called in the turn of the start, which follows that of the stop.
  static void NoteNextLife(HostContainer& container) {
    if (std::exchange(container.stop_told, false)) container.SetState(api::CONTAINER_RUNNING);
  }
  // Asks the runtime for the process and the cgroup, which plugins need.
  static void Inspect(NriStage& stage, const HostContainerPtr& container, const Budget& budget,
                      const SharedHold& hold, const Begun& begun, const Turns::Turn& turn) {
    const auto inspected = [&stage, container, budget, hold, begun,
                            turn](const StatusOr<ContainerFacts>& facts) {
      if (facts.ok()) AddFacts(*facts, container->message.Edit());
      // Docker accepts the start of a container that runs, and does nothing.
      const bool runs_on = facts.ok() && begun.ran_since != 0 && !container->HasEnded() &&
                           facts->started_at == begun.ran_since;
      if (runs_on) return hold->Release();
      if (stage.nri_options().start_before)
        return TellStarted(stage, container, budget, hold, turn);
      container->told = true;
      stage.events().Ask(KindOf(stage, *container), api::EVENT_START_CONTAINER, container->pod,
                         container, budget,
                         [&stage, container, budget, hold, turn](const Status& refusal) {
                           if (refusal.ok())
                             return TellStarted(stage, container, budget, hold, turn);
                           Undo(stage, container, budget, refusal, hold, turn);
                         });
    };
    stage.runtime().InspectContainer(container->id,
                                     stage.WhileHere<StatusOr<ContainerFacts>>(inspected));
  }

  static void TellStarted(NriStage& stage, const HostContainerPtr& container, const Budget& budget,
                          const SharedHold& hold, const Turns::Turn& turn) {
    stage.events().Tell(api::EVENT_POST_START_CONTAINER, container->pod, container, budget,
                        [hold, turn](const Status&) { hold->Release(); });
  }

  // Stops the running container because a plugin refused its start.
  static void Undo(NriStage& stage, const HostContainerPtr& container, const Budget& budget,
                   const Status& why, const SharedHold& hold, const Turns::Turn& turn) {
    const auto stopped = [&stage, container, budget, why, hold, turn](const Status&) {
      container->SetState(api::CONTAINER_STOPPED);
      stage.events().Stop(container, budget, [why, hold, turn](const Status&) { hold->Fail(why); });
    };
    stage.runtime().StopContainer(container->id, std::chrono::seconds(0),
                                  stage.WhileHere<Status>(stopped));
  }

  NriStage& stage_;
  HostContainerPtr container_;
  std::shared_ptr<const void> open_;  // marks the start as a call's
  int64_t ran_since_ = 0;             // the start of the life before; 0: it did not run
  const Budget budget_;
};

class StopCall final : public StageCall {
 public:
  explicit StopCall(NriStage& stage) : StageCall(stage), stage_(stage) {}

  // Finds the container before the runtime is asked, since an event of its removal may come before
  // the reply.
  void Before(Request& request, const Adjustment&) override {
    container_ = stage_.view().Find(request.container_id.value());
    Pass();
  }

  void After(Request& request, const Outcome& outcome) override {
    if (container_ == nullptr) container_ = stage_.view().Find(request.container_id.value());
    stage_.view().inventory().TakeOutcome(request, outcome);
    if (container_ == nullptr || (!outcome.ok() && !outcome.gone())) return;
    const auto hold = std::make_shared<ReplyHold>(HoldReply());
    if (outcome.ok()) {
      return stage_.TellStop(container_, stage_.NewBudget(), [hold] { hold->Release(); });
    }
    // Releases the reply after the turn in which plugins hear of the removal.
    stage_.InTurn(*container_->pod, [hold](const Turns::Turn&) { hold->Release(); });
  }

 private:
  NriStage& stage_;
  HostContainerPtr container_;
};

// Plugins hear of a removal before the container is gone, as from other NRI hosts.
class RemoveCall final : public StageCall {
 public:
  explicit RemoveCall(NriStage& stage) : StageCall(stage), stage_(stage) {}

  void Before(Request& request, const Adjustment&) override {
    container_ = stage_.view().Find(request.container_id.value());
    if (container_ == nullptr || container_->creating()) return Pass();
    const auto answer = std::make_shared<LateAnswer>(AnswerLater());
    stage_.InTurn(*container_->pod,
                  [&stage = stage_, container = container_, answer](const Turns::Turn& turn) {
                    container->SetState(api::CONTAINER_STOPPED);
                    stage.events().Remove(container, stage.NewBudget(),
                                          [answer, turn](const Status&) { answer->Pass(); });
                  });
  }

  void After(Request& request, const Outcome& outcome) override {
    Inventory& inventory = stage_.view().inventory();
    inventory.TakeOutcome(request, outcome);
    // The container still exists, although plugins were informed of its removal: it must be shown
    // to new plugins.
    if (outcome.kind() == Outcome::Kind::kRefused) inventory.Refresh();
  }

 private:
  NriStage& stage_;
  HostContainerPtr container_;
};

// A kubelet asks for a container's status when its list shows that it has ended.
class StatusCall final : public StageCall {
 public:
  explicit StatusCall(NriStage& stage) : StageCall(stage), stage_(stage) {}

  void After(Request& request, const Outcome& outcome) override {
    if (outcome.gone()) return stage_.view().inventory().TakeOutcome(request, outcome);
    if (!outcome.ok() || outcome.id.empty()) return;
    const HostContainerPtr container = stage_.view().Find(outcome.id);
    if (container == nullptr || container->creating() || container->stop_told) return;
    stage_.TellStop(container, stage_.NewBudget(), [] {});
  }

 private:
  NriStage& stage_;
};

// Plugins' part in calls about pod sandboxes.

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
      stage.events().Ask(stage.RequestKind(*pod), api::EVENT_RUN_POD_SANDBOX, pod, nullptr, budget,
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

  // Finds the pod before the runtime is asked, since an event of its removal may come before the
  // reply.
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
      // If the pod was removed, an earlier turn has informed the plugins.
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
      AskPlugins(stage, plugins, stage.RequestKind(*pod), budget, message,
                 [answer, turn](const Status& refusal) {
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
  static void AskPlugins(NriStage& stage, HostedPlugins plugins, Dispatcher::Kind kind,
                         const Budget& budget,
                         std::shared_ptr<api::UpdatePodSandboxRequest> message,
                         Dispatcher::Done done) {
    const auto ask = [message = std::move(message)](HostedPlugin& plugin,
                                                    std::chrono::milliseconds timeout,
                                                    Dispatcher::Answered answered) {
      plugin.port->Ask<api::UpdatePodSandboxResponse>(
          api::EVENT_UPDATE_POD_SANDBOX, message->SerializeAsString(), timeout,
          [answered = std::move(answered)](const StatusOr<api::UpdatePodSandboxResponse>& answer) {
            answered(answer.status());
          });
    };
    stage.dispatcher().InTurn(kind, std::move(plugins), budget, ask, std::move(done));
  }

  NriStage& stage_;
  HostPodPtr pod_;
  const Budget budget_;
};

}  // namespace

std::unique_ptr<StageCall> MakeNriCall(NriStage& stage, Operation operation) {
  switch (operation) {
    case Operation::kRunPodSandbox:
      return std::make_unique<RunPodCall>(stage);
    case Operation::kUpdatePodSandboxResources:
      return std::make_unique<UpdatePodCall>(stage);
    case Operation::kStopPodSandbox:
    case Operation::kRemovePodSandbox:
      return std::make_unique<EndPodCall>(stage);
    case Operation::kCreateContainer:
      return MakeCreateCall(stage);
    case Operation::kStartContainer:
      return std::make_unique<StartCall>(stage);
    case Operation::kUpdateContainerResources:
      return MakeUpdateCall(stage);
    case Operation::kStopContainer:
      return std::make_unique<StopCall>(stage);
    case Operation::kRemoveContainer:
      return std::make_unique<RemoveCall>(stage);
    case Operation::kContainerStatus:
      return std::make_unique<StatusCall>(stage);
    case Operation::kOther:
      return nullptr;
  }
  return nullptr;
}

}  // namespace resmgr::nri
