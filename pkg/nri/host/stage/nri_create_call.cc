// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <utility>

#include "pkg/model/overlay.h"
#include "pkg/nri/host/stage/creation.h"
#include "pkg/nri/host/stage/nri_calls.h"
#include "pkg/nri/host/stage/nri_stage.h"
#include "pkg/sys/lifetime.h"

namespace resmgr::nri {

namespace {

class CreateCall final : public StageCall {
 public:
  explicit CreateCall(NriStage& stage) : StageCall(stage), stage_(stage) {}
  ~CreateCall() override { Undo(); }

  void Before(Request& request, const Adjustment& so_far) override {
    if (stage_.view().inventory().ready()) return Decide(request, so_far);
    DecideAfterRefresh(request, so_far);
  }

  void RollBack() override { Undo(); }
  std::string PluginOf(const FieldChange& change) const override {
    return creation_ == nullptr ? std::string() : creation_->Owners().PluginOf(change);
  }
  std::vector<std::string> LeftOut() const override {
    return creation_ == nullptr ? std::vector<std::string>() : creation_->left_out();
  }

  void After(Request&, const Outcome& outcome) override {
    const std::shared_ptr<Creation> creation = std::exchange(creation_, nullptr);
    const bool unclear = outcome.unclear() || (outcome.ok() && outcome.id.empty());
    if (creation == nullptr) {
      // Another client created the unknown sandbox; a list will find it.
      if (unclear || outcome.ok()) stage_.view().inventory().Refresh();
    } else if (unclear) {
      creation->Clarify();
    } else if (outcome.ok()) {
      creation->Succeed(ContainerId(outcome.id), std::make_shared<ReplyHold>(HoldReply()));
    } else {
      if (creation->RefusedWithoutRdt(outcome.message)) stage_.NoteWithoutRdt();
      creation->Undo();
    }
  }

 private:
  void DecideAfterRefresh(Request& request, const Adjustment& so_far) {
    refreshed_ = true;
    stage_.view().AfterRefresh(lifetime_.Guard([this, &request, &so_far](const Status& status) {
      if (!status.ok()) return Refuse(Annotate(status, "the runtime's pods are not known"));
      Decide(request, so_far);
    }));
  }

  void Decide(Request& request, const Adjustment& so_far) {
    if (Status required = stage_.CheckRequired(); !required.ok()) return Refuse(required);
    const CreateRequest* const create = request.create();
    if (create == nullptr) return Pass();
    const HostPodPtr pod = stage_.view().FindPod(create->pod_id.value());
    if (pod == nullptr && !refreshed_) return DecideAfterRefresh(request, so_far);
    // The call passes: the runtime itself refuses it.
    if (pod == nullptr || !pod->ready) return Pass();
    CreateRequest shown = *create;
    shown.pod_id = PodSandboxId(pod->message->id());
    Overlay(so_far, shown);
    auto planned = std::make_shared<PlannedContainer>(
        pod, std::move(shown), Overlaid(so_far, request.KeepDetails(kAllDetails)));
    creation_ = std::make_shared<Creation>(stage_, std::move(planned), pod);
    const auto answer = std::make_shared<LateAnswer>(AnswerLater());
    creation_->Begin([answer](StatusOr<Adjustment> adjustment) {
      if (adjustment.ok()) {
        answer->Adjust(*std::move(adjustment));
      } else {
        answer->Refuse(adjustment.status());
      }
    });
  }

  void Undo() {
    if (const auto creation = std::exchange(creation_, nullptr)) creation->Undo();
  }

  NriStage& stage_;
  std::shared_ptr<Creation> creation_;
  bool refreshed_ = false;
  Lifetime lifetime_;
};

}  // namespace

std::unique_ptr<StageCall> MakeCreateCall(NriStage& stage) {
  return std::make_unique<CreateCall>(stage);
}

}  // namespace resmgr::nri
