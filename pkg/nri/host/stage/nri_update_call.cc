// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <utility>
#include <variant>

#include "pkg/nri/host/mapping/resource_mapping.h"
#include "pkg/nri/host/merge/reply_edits.h"
#include "pkg/nri/host/merge/update_merge.h"
#include "pkg/nri/host/stage/nri_calls.h"
#include "pkg/nri/host/stage/nri_stage.h"
#include "pkg/nri/host/stage/plugin_updates.h"
#include "pkg/nri/host/view/object_views.h"
#include "pkg/sys/lifetime.h"

namespace resmgr::nri {

namespace {

class UpdateCall final : public StageCall {
 public:
  explicit UpdateCall(NriStage& stage)
      : StageCall(stage), stage_(stage), budget_(stage.NewBudget()) {}

  void Before(Request& request, const Adjustment& so_far) override {
    container_ = stage_.view().Find(request.container_id.value());
    const auto& update = std::get<ContainerUpdate>(request.body);
    if (container_ == nullptr || container_->creating() || !update.has_linux) return Pass();
    CreateRequest shown;
    shown.resources = update.resources;
    Overlay(so_far, shown);
    const auto details = Overlaid(so_far, request.KeepDetails({Detail::kResources}));
    *wanted_ = ToNriResources(shown.resources, details->memory_swap_limit, details->unified);
    HostedPlugins plugins = stage_.dispatcher().Wanting(api::EVENT_UPDATE_CONTAINER);
    if (plugins.empty()) {
      container_->NoteChange(wanted_);
      return Pass();
    }
    const auto answer = std::make_shared<LateAnswer>(AnswerLater());
    stage_.InTurn(*container_->pod,
                  lifetime_.Guard([this, answer, plugins = std::move(plugins)](
                                      const Turns::Turn& turn) { Ask(plugins, answer, turn); }));
  }

  void After(Request& request, const Outcome& outcome) override {
    stage_.view().inventory().TakeOutcome(request, outcome);
    if (container_ == nullptr) return;
    stage_.view().EndChange(*container_, wanted_, outcome.kind());
    if (!outcome.ok()) return;
    if (!stage_.dispatcher().AnyWants(api::EVENT_POST_UPDATE_CONTAINER)) return;
    const auto hold = std::make_shared<ReplyHold>(HoldReply());
    stage_.InTurn(*container_->pod, [&stage = stage_, container = container_, budget = budget_,
                                     hold](const Turns::Turn& turn) {
      stage.events().Tell(api::EVENT_POST_UPDATE_CONTAINER, container->pod, container, budget,
                          [hold, turn](const Status&) { hold->Release(); });
    });
  }

 private:
  void Ask(HostedPlugins plugins, const std::shared_ptr<LateAnswer>& answer,
           const Turns::Turn& turn) {
    api::UpdateContainerRequest whole;
    *whole.mutable_pod() = *container_->pod->message;
    *whole.mutable_container() = *container_->message;
    *whole.mutable_linux_resources() = *wanted_;
    const auto merge = std::make_shared<UpdateMerge>(std::move(whole));
    // Plugins are asked to the end, also after the client has gone away.
    const auto ask = [&stage = stage_, container = container_, merge](
                         HostedPlugin& plugin, std::chrono::milliseconds timeout,
                         Dispatcher::Answered answered) {
      api::UpdateContainerRequest request = merge->request();
      container->told = true;
      if (WantsRealIds(plugin)) {
        request.mutable_container()->set_id(std::string(container->id.value()));
      }
      plugin.port->Ask<api::UpdateContainerResponse>(
          api::EVENT_UPDATE_CONTAINER, request.SerializeAsString(), timeout,
          [&stage, merge, name = plugin.name,
           answered = std::move(answered)](StatusOr<api::UpdateContainerResponse> reply) {
            if (!reply.ok()) return answered(reply.status());
            stage.updates().Normalize(*reply->mutable_update());
            answered(merge->Add(name, reply->update()));
          });
    };
    stage_.dispatcher().InTurn(stage_.RequestKind(*container_->pod, container_->message->name()),
                               std::move(plugins), budget_, ask,
                               lifetime_.Guard([this, merge, answer, turn](const Status& refusal) {
                                 if (!refusal.ok()) return answer->Refuse(refusal);
                                 UpdateOthers(merge, answer, turn);
                               }));
  }

  // Updates other containers before the asked one, as NRI does. Failures are logged.
  void UpdateOthers(const std::shared_ptr<UpdateMerge>& merge,
                    const std::shared_ptr<LateAnswer>& answer, const Turns::Turn& turn) {
    stage_.updates().Apply(merge->updates(),
                           lifetime_.Guard([this, merge, answer, turn](const PluginUpdates::List&) {
                             Finish(merge->target(), *answer);
                           }));
  }

  // Answers with the plugins' changes of the container itself.
  void Finish(api::LinuxResources target, LateAnswer& answer) {
    const auto left_out =
        LeaveOutShortfalls(stage_.traits(), stage_.nri_options().unsupported, target);
    if (!left_out.ok()) return answer.Refuse(left_out.status());
    stage_.NoteLeftOut(*container_, *left_out);
    Adjustment adjustment;
    if (Status added = MapResources(target, stage_.traits(), adjustment); !added.ok()) {
      return answer.Refuse(std::move(added));
    }
    // If the policy owns the placement, the pipeline drops such changes from the adjustment and
    // counts them; here they only must not get into wanted_.
    if (stage_.PlacementIsOwned()) LeaveOutPlacement(target);
    OverlayResources(target, *wanted_);
    container_->NoteChange(wanted_);
    answer.Adjust(std::move(adjustment));
  }

  NriStage& stage_;
  HostContainerPtr container_;
  const Budget budget_;
  // The values for the container that the client, former stages and plugins want.
  const std::shared_ptr<api::LinuxResources> wanted_ = std::make_shared<api::LinuxResources>();
  Lifetime lifetime_;
};

}  // namespace

std::unique_ptr<StageCall> MakeUpdateCall(NriStage& stage) {
  return std::make_unique<UpdateCall>(stage);
}

}  // namespace resmgr::nri
