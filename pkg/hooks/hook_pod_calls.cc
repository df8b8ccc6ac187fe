// SPDX-License-Identifier: Apache-2.0
// The hooks of calls about pod sandboxes.
#include <utility>
#include <variant>

#include "pkg/hooks/hook_calls.h"
#include "pkg/hooks/hook_messages.h"

namespace resmgr::hooks {
namespace {

using HookMap = google::protobuf::Map<std::string, std::string>;

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
    Ask({.request = [this] { return merge_->Encoded(); },
         .take = [this](const HookServerSettings& server, const std::string& bytes) -> Status {
           api::PodSandboxHookResponse answer;
           if (!answer.ParseFromString(bytes)) return Internal("its answer is malformed");
           return merge_->Add(server.file, answer);
         },
         .done =
             [this](const Status& refusal) {
               if (!refusal.ok()) return Refuse(refusal);
               LogConflicts(merge_->owners());
               Adjust(std::move(merge_->TakeChanges().adjustment));
             }});
  }

  void After(Request& request, const Outcome& outcome) override {
    HookCall::After(request, outcome);
    if (!outcome.ok() || outcome.id.empty() || !merge_) return;
    hooks().view().AddPod(PodSandboxId(outcome.id), merge_->request());
  }

  std::string PluginOf(const FieldChange& change) const override {
    return merge_ ? merge_->owners().Of(change) : std::string();
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
    const HookPodPtr pod = hooks().view().FindPod(request.pod_id.value());
    if (pod != nullptr) return TellPodStop(hooks(), *pod);
    LookUpFor(HookPoint::kPostStopPodSandbox, request.pod_id, TellPodStop);
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

}  // namespace

std::unique_ptr<StageCall> MakePodCall(HookStage& stage, Operation operation) {
  switch (operation) {
    case Operation::kRunPodSandbox:
      return std::make_unique<RunPodCall>(stage);
    case Operation::kStopPodSandbox:
      return std::make_unique<StopPodCall>(stage);
    case Operation::kRemovePodSandbox:
      return std::make_unique<HookCall>(stage);
    default:
      return std::make_unique<UpdatePodCall>(stage);
  }
}

}  // namespace resmgr::hooks
