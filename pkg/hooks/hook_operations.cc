// SPDX-License-Identifier: Apache-2.0
#include <utility>
#include <variant>

#include "pkg/hooks/hook_calls.h"
#include "pkg/hooks/hook_messages.h"
#include "pkg/model/adjustment.h"

namespace resmgr::hooks {
namespace {

// The hooks of calls about pod sandboxes.

void Apply(const KeyedEdits<std::string>& edits, HookMap& map) {
  for (const auto& edit : edits) {
    if (edit.value) {
      map[edit.key] = *edit.value;
    } else {
      map.erase(edit.key);
    }
  }
}

// Applies earlier stages' changes of the sandbox to the request.
void Apply(const Adjustment& so_far, api::PodSandboxHookRequest& request) {
  if (so_far.wide() == nullptr) return;
  Apply(so_far.wide()->labels, *request.mutable_labels());
  Apply(so_far.wide()->annotations, *request.mutable_annotations());
  if (so_far.wide()->cgroup_parent) request.set_cgroup_parent(*so_far.wide()->cgroup_parent);
}

class RunPodCall final : public AskingCall {
 public:
  explicit RunPodCall(HookStage& stage) : AskingCall(stage, HookPoint::kPreRunPodSandbox) {}

  void Consider(Request& request, const Adjustment& so_far) override {
    const Pod* const pod = std::get_if<Pod>(&request.body);
    if (pod == nullptr) return Pass();
    api::PodSandboxHookRequest message = ToPodRequest(*pod, request.pod_attempt);
    Apply(so_far, message);
    merge_.emplace(std::move(message), hooks().hook_options().pods_have_resources
                                           ? PodResources::kTaken
                                           : PodResources::kPassedOver);
    if (hooks().Skips(merge_->request()) || !FindServers()) return Pass();
    Ask(*merge_);
  }

  void After(Request& request, const Outcome& outcome) override {
    HookCall::After(request, outcome);
    if (!outcome.ok() || outcome.id.empty() || !merge_) return;
    hooks().view().AddPod(PodSandboxId(outcome.id), merge_->request());
  }

 private:
  std::optional<PodHookMerge> merge_;
};

void TellPodStop(HookStage& stage, HookPod& pod) {
  if (std::exchange(pod.stop_told, true) || stage.Skips(pod.request)) return;
  stage.Tell(HookPoint::kPostStopPodSandbox, pod.request.SerializeAsString());
}

class StopPodCall final : public HookCall {
 public:
  using HookCall::HookCall;

  void After(Request& request, const Outcome& outcome) override {
    HookCall::After(request, outcome);
    if (!outcome.ok()) return;
    TellAbout(HookPoint::kPostStopPodSandbox, request.pod_id,
              hooks().view().FindPod(request.pod_id.value()), TellPodStop);
  }
};

class UpdatePodCall final : public HookCall {
 public:
  using HookCall::HookCall;

  void After(Request& request, const Outcome& outcome) override {
    HookCall::After(request, outcome);
    const auto* const update = std::get_if<PodUpdate>(&request.body);
    const HookPodPtr pod = hooks().view().FindPod(request.pod_id.value());
    if (!outcome.pod_updated() || update == nullptr || pod == nullptr) return;
    *pod->request.mutable_overhead() = ToHookResources(update->overhead);
    *pod->request.mutable_resources() = ToHookResources(update->resources);
  }
};

// The hooks of calls about containers.

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
    // The runtime itself answers that the container does not exist.
    found.status().code() == StatusCode::kNotFound ? PassUnasked() : GiveUp(found.status());
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
    // Docker starts containers again that were stopped: the next stop is another one.
    if (container() != nullptr) container()->stop_told = false;
    TellAbout(HookPoint::kPostStartContainer, request.container_id, container(),
              [](HookStage& stage, const HookContainer& started) {
                TellContainer(stage, HookPoint::kPostStartContainer, started);
              });
  }
};

class UpdateCall final : public KnownContainerCall {
 public:
  explicit UpdateCall(HookStage& stage)
      : KnownContainerCall(stage, HookPoint::kPreUpdateContainerResources) {}

  void After(Request& request, const Outcome& outcome) override {
    HookCall::After(request, outcome);
    if (!outcome.ok() || container() == nullptr || !merge()) return;
    TakeUpdate(before_, merge()->request(), container()->request);
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
    before_ = message;
    SetUpdate(update_.resources, update_.annotations, details_, message);
  }

 private:
  api::ContainerResourceHookRequest before_;  // without the update
  // The request, with earlier stages' changes.
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
    TellAbout(HookPoint::kPostStopContainer, request.container_id,
              hooks().view().FindContainer(request.container_id.value()), TellStop);
  }
};

class CreateCall final : public ContainerCall {
 public:
  explicit CreateCall(HookStage& stage) : ContainerCall(stage, HookPoint::kPreCreateContainer) {}

  void Consider(Request& request, const Adjustment& so_far) override {
    const CreateRequest* const create = request.create();
    if (create == nullptr) return Pass();
    shown_ = *create;
    ContainerDetails details = request.Details(stage().options().details);
    Overlay(so_far, shown_);
    Overlay(so_far, details);
    environment_ = ToHookEnvironment(std::exchange(details.environment, {}));
    message_ = ToCreateRequest(shown_, details);
    pod_ = hooks().view().FindPod(shown_.pod_id.value());
    const bool asks = FindServers();
    if (pod_ != nullptr) return ConsultAbout(asks);
    if (!asks) return Pass();
    hooks().view().LookUp(shown_.pod_id, InTime<HookPodPtr>([this](StatusOr<HookPodPtr> found) {
                            OnPod(std::move(found));
                          }));
  }

  void After(Request& request, const Outcome& outcome) override {
    HookCall::After(request, outcome);
    if (!outcome.ok() || outcome.id.empty()) return;
    const ContainerId id(outcome.id);
    if (merge() && hooks().view().FindPod(pod_->id.value()) == pod_) {
      hooks().view().AddContainer(pod_, id, merge()->TakeRequest(), merge()->environment());
    } else {
      hooks().view().LookUp(id, [](const auto&) {});
    }
  }

 private:
  void OnPod(StatusOr<HookPodPtr> found) {
    if (found.ok()) {
      pod_ = *std::move(found);
    } else if (found.status().code() == StatusCode::kNotFound) {
      // The runtime itself answers that the pod does not exist.
      return PassUnasked();
    } else if (shown_.pod) {
      pod_ = std::make_shared<HookPod>(HookPod{.request = ToPodRequest(*shown_.pod, 0)});
    } else {
      return GiveUp(found.status());
    }
    ConsultAbout(true);
  }

  void ConsultAbout(bool asks) {
    // If the request has no resources of the pod, the stored ones are used.
    if (!shown_.pod_resources) message_.clear_pod_resources();
    if (message_.pod_cgroup_parent().empty())
      message_.set_pod_cgroup_parent(pod_->request.cgroup_parent());
    Consult(asks, pod_->request, std::move(message_),
            {.pod = EncodedPodPart(pod_->request, !shown_.pod_resources.has_value()),
             .environment = std::move(environment_)});
  }

  CreateRequest shown_;
  api::ContainerResourceHookRequest message_;  // without the pod's part
  HookEnvironment environment_;
  HookPodPtr pod_;
};

}  // namespace

std::unique_ptr<StageCall> MakeHookCall(HookStage& stage, Operation operation) {
  switch (operation) {
    case Operation::kRunPodSandbox:
      return std::make_unique<RunPodCall>(stage);
    case Operation::kStopPodSandbox:
      return std::make_unique<StopPodCall>(stage);
    case Operation::kUpdatePodSandboxResources:
      return std::make_unique<UpdatePodCall>(stage);
    case Operation::kCreateContainer:
      return std::make_unique<CreateCall>(stage);
    case Operation::kStartContainer:
      return std::make_unique<StartCall>(stage);
    case Operation::kStopContainer:
      return std::make_unique<StopCall>(stage);
    case Operation::kUpdateContainerResources:
      return std::make_unique<UpdateCall>(stage);
    case Operation::kRemovePodSandbox:
    case Operation::kRemoveContainer:
      return std::make_unique<HookCall>(stage);
    case Operation::kContainerStatus:
    case Operation::kOther:
      return nullptr;
  }
  return nullptr;
}

}  // namespace resmgr::hooks
