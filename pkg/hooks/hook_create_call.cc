// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "pkg/hooks/hook_calls.h"
#include "pkg/hooks/hook_messages.h"
#include "pkg/model/overlay.h"

namespace resmgr::hooks {
namespace {

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
    message_ = ToCreateRequest(Pod(), 0, shown_, std::move(details));
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
      // The call passes: the runtime itself answers that the pod does not exist.
      StopWaiting();
      return Pass();
    } else if (shown_.pod) {
      pod_ = std::make_shared<HookPod>(HookPod{.request = ToPodRequest(*shown_.pod, 0)});
    } else {
      return PassUnasked(found.status());
    }
    ConsultAbout(true);
  }

  void ConsultAbout(bool asks) {
    // Without resources in the request the pod's stored ones are used.
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

std::unique_ptr<StageCall> MakeCreateCall(HookStage& stage) {
  return std::make_unique<CreateCall>(stage);
}

}  // namespace resmgr::hooks
