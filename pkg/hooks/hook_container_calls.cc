// SPDX-License-Identifier: Apache-2.0
// The hooks of calls about existing containers.
#include <utility>
#include <variant>

#include "pkg/hooks/hook_calls.h"
#include "pkg/hooks/hook_messages.h"
#include "pkg/model/overlay.h"

namespace resmgr::hooks {
namespace {

// Asks about an existing container, once its record is found.
class KnownContainerCall : public AskingCall {
 public:
  using AskingCall::AskingCall;

  void Consider(Request& request, const Adjustment& so_far) override {
    if (!Read(request, so_far)) return Pass();
    container_ = hooks().view().FindContainer(request.container_id.value());
    const bool asks = FindServers();
    if (container_ != nullptr) return Consult(asks);
    if (!asks) return Pass();
    hooks().view().LookUp(request.container_id,
                          InTime<HookContainerPtr>([this](StatusOr<HookContainerPtr> found) {
                            OnContainer(std::move(found));
                          }));
  }

  std::string PluginOf(const FieldChange& change) const override {
    return merge_ ? merge_->owners().Of(change) : std::string();
  }

 protected:
  // Reads the request; false: the call has no hook.
  virtual bool Read(Request&, const Adjustment&) { return true; }
  // Adds the request's changes to the message.
  virtual void Show(api::ContainerResourceHookRequest&) {}

  const HookContainerPtr& container() const { return container_; }
  const std::optional<ContainerHookMerge>& merge() const { return merge_; }

 private:
  void OnContainer(StatusOr<HookContainerPtr> found) {
    if (found.ok()) {
      container_ = *std::move(found);
      return Consult(true);
    }
    if (found.status().code() != StatusCode::kNotFound) return PassUnasked(found.status());
    // The call passes: the runtime itself answers that the container does not exist.
    StopWaiting();
    Pass();
  }

  void Consult(bool asks) {
    api::ContainerResourceHookRequest message = OwnRequestOf(*container_);
    Show(message);
    merge_.emplace(
        point(), std::move(message), placement_owner(),
        BesideRequest{.pod = EncodedPodPart(container_->pod->request, /*resources=*/true),
                      .environment = container_->environment});
    if (!asks || hooks().Skips(container_->pod->request)) {
      StopWaiting();
      return Pass();
    }
    Ask(StepsOf<api::ContainerResourceHookResponse>(*merge_, [this](const Status& refusal) {
      if (!refusal.ok()) return Refuse(refusal);
      LogConflicts(merge_->owners());
      Adjust(AdjustmentOf(merge_->TakeChanges()));
    }));
  }

  HookContainerPtr container_;
  std::optional<ContainerHookMerge> merge_;
};

void TellContainer(HookStage& stage, HookPoint point, const HookContainer& container) {
  if (stage.Skips(container.pod->request)) return;
  stage.Tell(point, EncodedRequestOf(container));
}

class StartCall final : public KnownContainerCall {
 public:
  explicit StartCall(HookStage& stage) : KnownContainerCall(stage, HookPoint::kPreStartContainer) {}

  void After(Request& request, const Outcome& outcome) override {
    hooks().view().inventory().TakeOutcome(request, outcome);
    if (!outcome.ok()) return;
    constexpr HookPoint kPoint = HookPoint::kPostStartContainer;
    if (container() != nullptr) return TellContainer(hooks(), kPoint, *container());
    if (hooks().ServersOf(kPoint).empty()) return;
    hooks().view().LookUp(request.container_id,
                          [&stage = hooks()](const StatusOr<HookContainerPtr>& found) {
                            if (found.ok()) TellContainer(stage, kPoint, **found);
                          });
  }
};

class UpdateCall final : public KnownContainerCall {
 public:
  explicit UpdateCall(HookStage& stage)
      : KnownContainerCall(stage, HookPoint::kPreUpdateContainerResources) {}

  void After(Request& request, const Outcome& outcome) override {
    hooks().view().inventory().TakeOutcome(request, outcome);
    if (!outcome.ok() || container() == nullptr || !merge()) return;
    container()->request.mutable_container_resources()->CopyFrom(
        merge()->request().container_resources());
    *container()->request.mutable_container_annotations() =
        merge()->request().container_annotations();
  }

 protected:
  bool Read(Request& request, const Adjustment& so_far) override {
    const auto* const update = std::get_if<ContainerUpdate>(&request.body);
    if (update == nullptr || !update->has_linux) return false;
    CreateRequest shown;
    shown.resources = update->resources;
    shown.annotations = update->annotations;
    details_ = request.Details({Detail::kResources});
    Overlay(so_far, shown);
    Overlay(so_far, details_);
    update_ = std::move(shown);
    return true;
  }

  void Show(api::ContainerResourceHookRequest& message) override {
    SetUpdate(update_.resources, update_.annotations, details_, message);
  }

 private:
  // The changes by the client and earlier stages.
  CreateRequest update_;
  ContainerDetails details_;
};

void TellStop(HookStage& stage, HookContainer& container) {
  if (std::exchange(container.stop_told, true)) return;
  TellContainer(stage, HookPoint::kPostStopContainer, container);
}

class StopCall final : public StageCall {
 public:
  explicit StopCall(HookStage& stage) : StageCall(stage), stage_(stage) {}

  void After(Request& request, const Outcome& outcome) override {
    stage_.view().inventory().TakeOutcome(request, outcome);
    if (!outcome.ok()) return;
    const HookContainerPtr container = stage_.view().FindContainer(request.container_id.value());
    if (container != nullptr) return TellStop(stage_, *container);
    if (stage_.ServersOf(HookPoint::kPostStopContainer).empty()) return;
    stage_.view().LookUp(request.container_id,
                         [&stage = stage_](const StatusOr<HookContainerPtr>& found) {
                           if (found.ok()) TellStop(stage, **found);
                         });
  }

 private:
  HookStage& stage_;
};

class RemoveCall final : public StageCall {
 public:
  explicit RemoveCall(HookStage& stage) : StageCall(stage), stage_(stage) {}

  void After(Request& request, const Outcome& outcome) override {
    stage_.view().inventory().TakeOutcome(request, outcome);
  }

 private:
  HookStage& stage_;
};

}  // namespace

std::unique_ptr<StageCall> MakeContainerCall(HookStage& stage, Operation operation) {
  switch (operation) {
    case Operation::kStartContainer:
      return std::make_unique<StartCall>(stage);
    case Operation::kStopContainer:
      return std::make_unique<StopCall>(stage);
    case Operation::kRemoveContainer:
      return std::make_unique<RemoveCall>(stage);
    default:
      return std::make_unique<UpdateCall>(stage);
  }
}

}  // namespace resmgr::hooks
