// SPDX-License-Identifier: Apache-2.0
// Plugins' part in calls about existing containers, except updates.
#include <chrono>
#include <utility>

#include "pkg/nri/host/stage/nri_calls.h"
#include "pkg/nri/host/stage/nri_stage.h"
#include "pkg/nri/host/view/container_view.h"

namespace resmgr::nri {

namespace {

class StartCall final : public StageCall {
 public:
  explicit StartCall(NriStage& stage)
      : StageCall(stage), stage_(stage), budget_(stage.NewBudget()) {}

  void Before(Request& request, const Adjustment&) override {
    container_ = stage_.view().Find(request.container_id.value());
    if (container_ == nullptr || !stage_.nri_options().start_before ||
        !stage_.dispatcher().AnyWants(api::EVENT_START_CONTAINER)) {
      return Pass();
    }
    const auto answer = std::make_shared<LateAnswer>(AnswerLater());
    stage_.InTurn(*container_->pod, [&stage = stage_, container = container_, budget = budget_,
                                     answer](const Turns::Turn& turn) {
      container->told = true;
      stage.events().Ask(api::EVENT_START_CONTAINER, container->pod, container, budget,
                         [answer, turn](const Status& refusal) {
                           refusal.ok() ? answer->Pass() : answer->Refuse(refusal);
                         });
    });
  }

  void After(Request& request, const Outcome& outcome) override {
    stage_.view().inventory().TakeOutcome(request, outcome);
    if (container_ == nullptr || outcome.unclear()) return;
    if (!outcome.ok()) return stage_.TellStop(container_, stage_.NewBudget(), [] {});
    container_->SetState(api::CONTAINER_RUNNING);
    const auto hold = std::make_shared<ReplyHold>(HoldReply());
    const Dispatcher& dispatcher = stage_.dispatcher();
    if (!dispatcher.AnyWants(api::EVENT_START_CONTAINER) &&
        !dispatcher.AnyWants(api::EVENT_POST_START_CONTAINER)) {
      hold->Release();
    }
    stage_.InTurn(*container_->pod,
                  [&stage = stage_, container = container_, budget = budget_, hold](
                      const Turns::Turn& turn) { Inspect(stage, container, budget, hold, turn); });
  }

 private:
  // Plugins need the process and the cgroup, which only the runtime knows.
  static void Inspect(NriStage& stage, const HostContainerPtr& container, const Budget& budget,
                      const SharedHold& hold, const Turns::Turn& turn) {
    const auto inspected = [&stage, container, budget, hold,
                            turn](const StatusOr<ContainerFacts>& facts) {
      if (facts.ok()) AddFacts(*facts, container->message.Edit());
      if (stage.nri_options().start_before)
        return TellStarted(stage, container, budget, hold, turn);
      container->told = true;
      stage.events().Ask(api::EVENT_START_CONTAINER, container->pod, container, budget,
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
  const Budget budget_;
};

class StopCall final : public StageCall {
 public:
  explicit StopCall(NriStage& stage) : StageCall(stage), stage_(stage) {}

  // An event of its removal may come before the reply.
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
    // Runs after the turn in which plugins are told of the removal.
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
    // The container still exists, and new plugins must be shown it.
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

}  // namespace

std::unique_ptr<StageCall> MakeContainerCall(NriStage& stage, Operation operation) {
  switch (operation) {
    case Operation::kStartContainer:
      return std::make_unique<StartCall>(stage);
    case Operation::kStopContainer:
      return std::make_unique<StopCall>(stage);
    case Operation::kRemoveContainer:
      return std::make_unique<RemoveCall>(stage);
    default:
      return std::make_unique<StatusCall>(stage);
  }
}

std::unique_ptr<StageCall> MakeNriCall(NriStage& stage, Operation operation) {
  switch (operation) {
    case Operation::kRunPodSandbox:
    case Operation::kStopPodSandbox:
    case Operation::kRemovePodSandbox:
    case Operation::kUpdatePodSandboxResources:
      return MakePodCall(stage, operation);
    case Operation::kCreateContainer:
      return MakeCreateCall(stage);
    case Operation::kUpdateContainerResources:
      return MakeUpdateCall(stage);
    case Operation::kStartContainer:
    case Operation::kStopContainer:
    case Operation::kRemoveContainer:
    case Operation::kContainerStatus:
      return MakeContainerCall(stage, operation);
    case Operation::kOther:
      return nullptr;
  }
  return nullptr;
}

}  // namespace resmgr::nri
