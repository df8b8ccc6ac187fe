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
class KnownContainerCall : public ContainerCall {
 public:
  using ContainerCall::ContainerCall;

  void Consider(Request& request, const Adjustment& so_far) override {
    if (!Read(request, so_far)) return Pass();
    container_ = hooks().view().FindContainer(request.container_id.value());
    const bool asks = FindServers();
    if (container_ != nullptr) return ConsultAbout(asks);
    if (!asks) return Pass();
    hooks().view().LookUp(request.container_id,
                          InTime<HookContainerPtr>([this](StatusOr<HookContainerPtr> found) {
                            OnContainer(std::move(found));
                          }));
  }

 protected:
  // Reads the request; false: the call has no hook.
  virtual bool Read(Request&, const Adjustment&) { return true; }
  // Adds the request's changes to the message.
  virtual void Show(api::ContainerResourceHookRequest&) {}

  const HookContainerPtr& container() const { return container_; }

 private:
  void OnContainer(StatusOr<HookContainerPtr> found) {
    if (found.ok()) {
      container_ = *std::move(found);
      return ConsultAbout(true);
    }
    if (found.status().code() != StatusCode::kNotFound) return PassUnasked(found.status());
    // The call passes: the runtime itself answers that the container does not exist.
    StopWaiting();
    Pass();
  }

  void ConsultAbout(bool asks) {
    api::ContainerResourceHookRequest message = OwnRequestOf(*container_);
    Show(message);
    Consult(asks, container_->pod->request, std::move(message),
            {.pod = EncodedPodPart(container_->pod->request, /*resources=*/true),
             .environment = container_->environment});
  }

  HookContainerPtr container_;
};

void TellContainer(HookStage& stage, HookPoint point, const HookContainer& container) {
  if (stage.Skips(container.pod->request)) return;
  stage.Tell(point, EncodedRequestOf(container));
}

class StartCall final : public KnownContainerCall {
 public:
  explicit StartCall(HookStage& stage) : KnownContainerCall(stage, HookPoint::kPreStartContainer) {}

  void After(Request& request, const Outcome& outcome) override {
    HookCall::After(request, outcome);
    if (!outcome.ok()) return;
    if (container() != nullptr) return TellStart(hooks(), *container());
    LookUpFor(HookPoint::kPostStartContainer, request.container_id, TellStart);
  }

 private:
  static void TellStart(HookStage& stage, const HookContainer& container) {
    TellContainer(stage, HookPoint::kPostStartContainer, container);
  }
};

class UpdateCall final : public KnownContainerCall {
 public:
  explicit UpdateCall(HookStage& stage)
      : KnownContainerCall(stage, HookPoint::kPreUpdateContainerResources) {}

  void After(Request& request, const Outcome& outcome) override {
    HookCall::After(request, outcome);
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

class StopCall final : public HookCall {
 public:
  using HookCall::HookCall;

  void After(Request& request, const Outcome& outcome) override {
    HookCall::After(request, outcome);
    if (!outcome.ok()) return;
    const HookContainerPtr container = hooks().view().FindContainer(request.container_id.value());
    if (container != nullptr) return TellStop(hooks(), *container);
    LookUpFor(HookPoint::kPostStopContainer, request.container_id, TellStop);
  }
};

}  // namespace

std::unique_ptr<StageCall> MakeContainerCall(HookStage& stage, Operation operation) {
  switch (operation) {
    case Operation::kStartContainer:
      return std::make_unique<StartCall>(stage);
    case Operation::kStopContainer:
      return std::make_unique<StopCall>(stage);
    case Operation::kRemoveContainer:
      return std::make_unique<HookCall>(stage);
    default:
      return std::make_unique<UpdateCall>(stage);
  }
}

}  // namespace resmgr::hooks
